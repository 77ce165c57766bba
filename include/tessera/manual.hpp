// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// Manual mode: the umbrella of the room manual. It is not part of tessera/tessera.hpp, since few
/// programs use it.
///
///     const auto f = manual<model>([](const auto& block) { return all_reduce_over<model>(block); });
#include <tessera/manual/along.hpp>
#include <tessera/manual/axis.hpp>
#include <tessera/manual/collectives.hpp>
#include <tessera/manual/equal_by_promise.hpp>
#include <tessera/manual/manual.hpp>
#include <tessera/manual/permute.hpp>
#include <tessera/manual/reduce.hpp>
#include <tessera/manual/within.hpp>
