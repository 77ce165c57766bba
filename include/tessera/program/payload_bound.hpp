// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// The least payload that a product or a move needs, whatever its plan: explain() prints a
/// product's payload over it, and what a move sends above it for the sake of time.
///
///     payload_bound(plan)        // bytes that some process must receive or send
///
/// A reshard, transpose, reshape, slice, pad, roll, shift, reversal or concatenation sends each
/// process what it needs and has not. The process that sends most sends at least the mean of this,
/// and at least what it alone has and another needs (which counts unless blocks differ and the plan
/// gathers).
///
/// A product: where the given shardings are even, one of P processes makes at least 1 / P of all
/// multiplications. By Loomis and Whitney, F of them touch a, b and c elements of the three
/// matrices with a b c >= F^2, and at least F / n, F / m and F / k of each. The process has its own
/// blocks; it must communicate what it touches beside them.
///
/// - The least a + b + c, and so the bound for any memory: Al Daas, Ballard, Grigori, Kumar and
///   Rouse, "Tight memory-independent parallel matrix multiplication communication lower bounds"
///   (SPAA 2022), lemma 2 and theorem 3, which sharpen Demmel et al., "Communication-optimal
///   parallel recursive rectangular matrix multiplication" (IPDPS 2013).
/// - With memory for M elements, F / sqrt(8 M) - M: Irony, Toledo and Tiskin, "Communication lower
///   bounds for distributed-memory matrix multiplication" (JPDC 2004), theorem 3.1. M is what the
///   plan holds.
///
/// Always, whatever is done twice: of its c elements of the result, a process receives something
/// for each that it does not make by itself; to make x of them it needs x k / n and x k / m
/// elements of the operands. The payload is at least the mean of this over the processes.
///
/// In a batch, whole products come first and one is divided: this touches least, since the least
/// a + b + c is concave in F.
///
/// Laws: payload_bytes() of a product's or a finished move's plan is at least the bound; of other
/// plans, of moves that read an element twice or make several results, and of reshapes whose rows
/// share too many runs to be counted, the bound is 0.
#include <tessera/base/compiled.hpp>
#include <tessera/plan/plan.hpp>

namespace tessera {

/// Returns the bytes that the process with most payload has at least in any plan of a product or a
/// move with these shardings on this mesh, and with the plan's memory; 0 for other operators.
TESSERA_FUNCTION Index payload_bound(const Plan& plan);

}  // namespace tessera

#if TESSERA_BODIES
#include <tessera/program/detail/payload_bound.hpp>
#endif
