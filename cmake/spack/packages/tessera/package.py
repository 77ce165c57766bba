# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""How Spack builds Tessera, from the repository that this file lies in:

    spack repo add cmake/spack && spack install tessera
"""
import os

from spack.package import *

try:  # since Spack 1.0 a package of its own; before, part of spack.package
    from spack_repo.builtin.build_systems.cmake import CMakePackage
except ImportError:
    pass

here = os.path.dirname(os.path.realpath(__file__))


class Tessera(CMakePackage):
    """Sharded tensors in C++20: the type of a tensor says how it is split over a mesh of processes, a pure planner
    says what every operator computes and communicates, and Kokkos and MPI do exactly that."""

    git = "file://" + os.path.realpath(os.path.join(here, "..", "..", "..", ".."))

    license("Apache-2.0 WITH LLVM-exception")

    version("main", branch="main")

    variant("tests", default=False, description="Build the tests")
    variant("examples", default=False, description="Build the examples")
    variant("benchmarks", default=False, description="Build the benchmarks")
    variant("plan_only", default=False, description="Install the plans alone, without Kokkos and MPI")
    variant("onednn", default=True, description="Multiply and convolve with oneDNN too")
    variant("openmp", default=True, description="Compute with threads, by Kokkos's OpenMP backend")
    variant("cuda", default=False, description="Compute on NVIDIA GPUs, by Kokkos's CUDA backend")
    variant("cudnn", default=False, when="+cuda", description="Convolve with cuDNN there")

    depends_on("cxx", type="build")
    depends_on("cmake@3.25:", type="build")
    with when("~plan_only"):
        depends_on("mpi@3:")
        depends_on("kokkos@5: cxxstd=20")
        depends_on("kokkos+openmp", when="+openmp")
        depends_on("kokkos+serial", when="~openmp")
        depends_on("kokkos+cuda", when="+cuda")  # its cuda_arch is chosen there: ^kokkos cuda_arch=90
        depends_on("fmt@9:")
        depends_on("blas")
        depends_on("onednn@2.5:", when="+onednn")
        depends_on("cudnn@9:", when="+cudnn")
        depends_on("doctest@2.4.9:", type="build", when="+tests")
        depends_on("benchmark@1.7:", type="build", when="+benchmarks")
        # cblas.h beside the library; without threads, since the processes are the parallelism.
        requires("^openblas threads=none", "^blis+cblas threads=none", policy="one_of")

    for part in ("tests", "examples", "benchmarks"):
        conflicts("+" + part, when="+plan_only", msg="the plans alone have none of what these run")
    conflicts("%gcc@:11")
    conflicts("%clang@:13")

    def cmake_args(self):
        args = [
            self.define_from_variant("TESSERA_TESTS", "tests"),
            self.define_from_variant("TESSERA_EXAMPLES", "examples"),
            self.define_from_variant("TESSERA_BENCHMARKS", "benchmarks"),
            self.define_from_variant("TESSERA_PLAN_ONLY", "plan_only"),
            self.define_from_variant("TESSERA_WITH_DNNL", "onednn"),
            self.define_from_variant("TESSERA_WITH_CUDNN", "cudnn"),
            self.define("TESSERA_WITH_BLIS", self.spec.satisfies("^blis")),
            self.define("TESSERA_PROVISION", False),
        ]
        if self.spec.satisfies("~plan_only"):
            blas = self.spec["blas"]
            args += [
                self.define("MPI_CXX_COMPILER", self.spec["mpi"].mpicxx),
                self.define("TESSERA_BLAS_LIBRARY", blas.libs[0]),
                self.define("TESSERA_BLAS_INCLUDE", os.path.dirname(find_headers("cblas", blas.prefix.include, True)[0])),
            ]
        return args
