// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// The symbols that a Kokkos library built with a newer GCC and glibc needs and Debian 12 lacks.
/// Only `relax` makes a library look for them here; elsewhere this file is not used.
#include <cstdlib>
#include <cstring>
#include <iostream>  // its static initialiser sets std::cerr up, which newer libstdc++ does by itself
#include <string>

/// glibc 2.38: strtol as C23 has it, which only adds the prefix 0b that Kokkos never writes.
extern "C" long __isoc23_strtol(const char* text, char** end, int base) {
  return std::strtol(text, end, base);
}

/// GCC 13: the initialisation of the standard streams, done by <iostream> above.
extern "C" void _ZSt21ios_base_library_initv() {}

/// GCC 13: the rare path of std::string::_M_replace, where the new text may alias the old.
extern "C" void _ZNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEE15_M_replace_coldEPcmPKcmm(
    void* /*this*/, char* place, std::size_t old_size, const char* text, std::size_t size,
    std::size_t tail) {
  const std::string copy(text, size);
  if (tail != 0 && old_size != size) std::memmove(place + size, place + old_size, tail);
  std::memcpy(place, copy.data(), size);
}
