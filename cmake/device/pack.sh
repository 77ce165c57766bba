#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# pack.sh PACKAGE PROGRAM...: gathers in folder PACKAGE what run.sh needs on a machine that has a GPU, its driver and CUDA, and
# nothing else of ours: the programs, stripped, the shared libraries that they load but for the C library's and CUDA's own, and
# MPICH's launcher. Cases of the differential test that lie in PACKAGE/cases are run as well.
set -euo pipefail
package=${1:?the folder of the package}
shift
[ $# -gt 0 ] || { echo "pack.sh: name the programs to be run" >&2; exit 2; }
mkdir -p "$package"/{bin,lib}

launcher=$(readlink -f "$(command -v mpiexec.hydra || command -v mpiexec)")
proxy=$(dirname "$launcher")/hydra_pmi_proxy
cp "$launcher" "$package/bin/mpiexec"
[ ! -x "$proxy" ] || cp "$proxy" "$package/bin/hydra_pmi_proxy"
for program in "$@"; do
  strip -o "$package/bin/$(basename "$program")" "$program"
done

# The machine has a C library, which its loader belongs to, and CUDA.
own='/(ld-linux.*|libc|libm|libdl|librt|libpthread|libresolv|libcuda|libcudart|libcublas|libcublasLt|libcudnn.*|libnvrtc|libnccl)\.so'
for file in "$package"/bin/*; do
  ldd "$file" | awk '$2 == "=>" && $3 ~ "^/" { print $3 }'
done | sort -u | grep -Ev "$own" | while read -r library; do
  cp -L "$library" "$package/lib/"
done
du -sh "$package" | awk '{ print "the package has " $1 }'
