#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# make_prefix.sh FOLDER RECIPE CXX: makes FOLDER/kokkos-<version>-<RECIPE>, a prefix with Kokkos 5 that
# find_package(Kokkos) accepts, from the binary packages of Debian's newer release, and prints its path last.
# Needs apt, dpkg and a C++ compiler; no root. What apt downloads is authenticated by the archive's signed index.
# The prefix appears whole or not at all: it is made beside its final place and renamed at the end.
set -euo pipefail
folder=${1:?folder} recipe=${2:?recipe} cxx=${3:?compiler}
known=5.2.2-2 # the version this recipe was tried with; a later 5.x is taken when the archive no longer has it
here=$(cd "$(dirname "$0")" && pwd)

say() { echo "Kokkos: $*"; }
fail() { echo "Kokkos: $*" >&2; exit 1; }

mkdir -p "$folder"
find "$folder" -maxdepth 1 -name '.making.*' -mtime +0 -exec rm -rf {} + # what a killed run left, a day ago or more
work=$(mktemp -d "$folder/.making.XXXXXX")
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT TERM
mkdir -p "$work"/{lists/partial,cache/archives/partial,etc,deb,root}

# The mirror is the one that apt already takes Debian itself from: by what its index says of itself,
# else, where no index was read yet, by where apt would read it.
mirror=$(apt-get indextargets --format '$(ORIGIN)|$(RELEASE)|$(REPO_URI)' 'Created-By: Packages' 2>/dev/null |
  sed -n '/-security/d; s/^Debian|[^|]*|//p' | head -n 1 || true)
if [ -z "$mirror" ]; then
  mirror=$(apt-get --print-uris -o Debug::NoLocking=1 update 2>/dev/null |
    sed -n "s#^'\(.*/debian/*\)/dists/.*/*InRelease'.*#\1#p" | head -n 1 || true)
fi
[ -n "$mirror" ] || fail "apt knows no Debian mirror to take Kokkos from; install Kokkos 5 yourself and set Kokkos_DIR."
keyring=/usr/share/keyrings/debian-archive-keyring.gpg
[ -r "$keyring" ] || fail "$keyring is missing, so nothing could be authenticated; install debian-archive-keyring."

# An apt of our own: the system's lists, preferences and package state are neither used nor changed.
printf 'Types: deb\nURIs: %s\nSuites: sid\nComponents: main\nSigned-By: %s\n' "$mirror" "$keyring" > "$work/etc/newer.sources"
own=(-o "Dir::Etc::SourceList=/dev/null" -o "Dir::Etc::SourceParts=$work/etc" -o "Dir::Etc::Preferences=/dev/null"
  -o "Dir::Etc::PreferencesParts=/dev/null" -o "Dir::State::Lists=$work/lists" -o "Dir::State::status=/dev/null"
  -o "Dir::Cache=$work/cache" -o "APT::Sandbox::User=root" -o "Acquire::Languages=none"
  -o "Acquire::IndexTargets::deb::DEP-11::DefaultEnabled=false" -o "Acquire::IndexTargets::deb::Contents-deb::DefaultEnabled=false"
  -o "Acquire::Retries=3")
say "reading the signed index of Debian's newer release"
apt-get -qq "${own[@]}" update || fail "the index of Debian's newer release cannot be read; install Kokkos 5 yourself and set Kokkos_DIR."

versions=$(apt-cache "${own[@]}" madison libkokkos-dev | awk -F'|' '{ gsub(/ /, "", $2); print $2 }')
if grep -qxF "$known" <<< "$versions"; then
  version=$known
else
  version=$(grep '^5\.' <<< "$versions" | sort -V | tail -n 1 || true)
  [ -n "$version" ] || fail "Debian's newer release has no Kokkos 5 (it has: ${versions//$'\n'/, }); install Kokkos 5 yourself and set Kokkos_DIR."
  say "$known is gone from the archive; taking $version"
fi
runtime=$(apt-cache "${own[@]}" show "libkokkos-dev=$version" | grep '^Depends:' | grep -o 'libkokkos[0-9][0-9.]*' | head -n 1)
say "downloading libkokkos-dev and $runtime $version"
(cd "$work/deb" && apt-get -qq "${own[@]}" download "libkokkos-dev=$version" "$runtime=$version")
for package in "$work"/deb/*.deb; do dpkg -x "$package" "$work/root"; done

root=$work/root/usr
libraries=$(dirname "$(find "$root/lib" -name 'libkokkoscore.so' | head -n 1)")
targets=$libraries/cmake/Kokkos/KokkosTargets.cmake
[ -f "$targets" ] || fail "the package libkokkos-dev $version is laid out in an unexpected way: no KokkosTargets.cmake."

# The package names /usr/include; in a prefix of its own the headers are beside the library.
sed -i 's#"/usr/include/kokkos"#"${_IMPORT_PREFIX}/include/kokkos"#' "$targets"
# Debian's package names these two archives without having them; nothing is compiled into them.
for name in algorithms simd; do
  [ -e "$libraries/libkokkos$name.a" ] || [ -e "$libraries/libkokkos$name.so" ] || ar qc "$libraries/libkokkos$name.a"
done

"$cxx" -std=c++17 -O1 -o "$work/relax" "$here/relax.cpp" -ldl
supplied=$(for library in "$libraries"/libkokkos*.so.*.*.*; do [ -L "$library" ] || "$work/relax" "$library"; done | sort -u)
shim=()
if [ -n "$supplied" ]; then
  say "symbols that this system lacks and cmake/kokkos/shim.cpp supplies:"
  sed 's/^/Kokkos:   /' <<< "$supplied"
  "$cxx" -O2 -fPIC -shared -Wl,-soname,libkokkosshim.so -o "$libraries/libkokkosshim.so" "$here/shim.cpp"
  shim=(-lkokkosshim)
  printf '\n# Supplies what this system'"'"'s C and C++ libraries lack.\n%s\n' \
    'set_property(TARGET Kokkos::kokkoscore APPEND PROPERTY INTERFACE_LINK_LIBRARIES "${CMAKE_CURRENT_LIST_DIR}/../../libkokkosshim.so")' \
    >> "$(dirname "$targets")/KokkosConfig.cmake"
fi

say "trying it: compile, link and run a small program"
"$cxx" -std=c++20 -fopenmp -I"$root/include/kokkos" -o "$work/trial" "$here/trial.cpp" -L"$libraries" \
  -Wl,-rpath,"$libraries" -lkokkoscore -lkokkoscontainers "${shim[@]}" ||
  fail "$version needs something that this system lacks and cmake/kokkos/shim.cpp does not supply (see above)."
OMP_NUM_THREADS=1 OMP_PROC_BIND=false "$work/trial" || fail "a program with Kokkos $version does not run on this system."

prefix=$folder/kokkos-$version-$recipe
rm -rf "$root/share" # documentation
# -T: if another build put the same prefix in place meanwhile, theirs stays.
mv -T "$root" "$prefix" 2>/dev/null || [ -d "$prefix" ]
say "ready"
echo "$prefix"
