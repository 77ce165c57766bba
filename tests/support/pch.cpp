// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Nothing: the target of this file only holds the precompiled headers that the large test programs
/// share.
