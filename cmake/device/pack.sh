#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# pack.sh PACKAGE PROGRAM...: gathers in PACKAGE.tgz what run.sh needs on a machine that has a GPU, its driver and CUDA, and
# nothing else of ours: the programs, stripped, the shared libraries that they load but for the C library's and CUDA's own, and
# MPICH's launcher. Cases of the differential test that lie in folder PACKAGE/cases are run as well.
set -euo pipefail
package=${1:?the folder of the package}
shift
[ $# -gt 0 ] || { echo "pack.sh: name the programs to be run" >&2; exit 2; }
rm -rf "$package"/{bin,lib}
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
missing=$(ldd "$package"/bin/* | grep 'not found' | grep -v libcuda.so || true)
[ -z "$missing" ] || { echo "pack.sh: name the places of these in LD_LIBRARY_PATH:" "$missing" >&2; exit 1; }
for file in "$package"/bin/*; do
  ldd "$file" | awk '$2 == "=>" && $3 ~ "^/" { print $3 }'
done | sort -u | grep -Ev "$own" | while read -r library; do
  strip --strip-unneeded -o "$package/lib/$(basename "$library")" "$library" || cp -L "$library" "$package/lib/"
done
tar -C "$package" -czf "$package.tgz" .
ls -l "$package.tgz" | awk '{ printf "the package has %.1f MiB\n", $5 / 1048576 }'
