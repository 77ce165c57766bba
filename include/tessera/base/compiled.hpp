// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// Compile once, or with every source. Tessera is header-only; a program of many sources may have
/// the bodies below its operators compiled in a single source: the executor, the kernels of all
/// element types, and the functions that every operator calls at run time.
///
///     g++ -DTESSERA_COMPILED -c model.cpp solver.cpp       // declarations alone
///     g++ -DTESSERA_COMPILED -DTESSERA_IMPLEMENTATION -c tessera.cpp   // #include <tessera/tessera.hpp>
///
/// CMake's target tessera::compiled does both. It has several sources, since a compiler uses one
/// core: all with -DTESSERA_KERNEL_PARTS=2, the one above, which then leaves out the following;
///
///     -DTESSERA_KERNEL_PART=0        // #include <tessera/kernel/use_element.hpp>: the kernels of
///     -DTESSERA_KERNEL_PART=1        // every second element type
///     -DTESSERA_DERIVATIVES_PART=0   // #include <tessera/grad/functions.hpp>: the derivatives of
///     -DTESSERA_DERIVATIVES_PART=1   // functions of every second element type
///
/// Laws: all sources of a program agree on TESSERA_COMPILED, and exactly one has
/// TESSERA_IMPLEMENTATION; results are the same, to the bit.
#if defined(TESSERA_IMPLEMENTATION) && !defined(TESSERA_COMPILED)
#error "TESSERA_IMPLEMENTATION is for programs all of whose sources define TESSERA_COMPILED"
#endif

#if !defined(TESSERA_COMPILED)
#define TESSERA_BODIES 1
#define TESSERA_FUNCTION inline
#elif defined(TESSERA_IMPLEMENTATION)
#define TESSERA_BODIES 1
#define TESSERA_FUNCTION
#else
#define TESSERA_BODIES 0
#define TESSERA_FUNCTION
#endif

/// Whether this source compiles the kernels of the element types that it uses, and the derivatives
/// of the library's functions.
#if !defined(TESSERA_KERNEL_PARTS)
#define TESSERA_KERNELS TESSERA_BODIES
#define TESSERA_DERIVATIVES TESSERA_BODIES
#elif defined(TESSERA_KERNEL_PART)
#define TESSERA_KERNELS 1
#define TESSERA_DERIVATIVES 0
#elif defined(TESSERA_DERIVATIVES_PART)
#define TESSERA_KERNELS 0
#define TESSERA_DERIVATIVES 1
#else
#define TESSERA_KERNELS 0
#define TESSERA_DERIVATIVES 0
#endif

/// For a static member of a template, or a class template: one source instantiates it, the others
/// do not.
#if !defined(TESSERA_COMPILED)
#define TESSERA_INSTANTIATE(...)
#elif defined(TESSERA_IMPLEMENTATION)
#define TESSERA_INSTANTIATE(...) template __VA_ARGS__;
#else
#define TESSERA_INSTANTIATE(...) extern template __VA_ARGS__;
#endif
