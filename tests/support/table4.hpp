// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// The rows of GShard's Table 4 (section 5.3) that are products, sums and maps, and the einsums of
/// its MoE layer (algorithm 2), each on D processes with the dimensions that the table lets grow:
/// tests plan them for D from 2 to 4096.
///
///     for (const Table4Row& row : support::table4()) row.plan(4096, 0, {}).payload_bytes()
#include <string>
#include <vector>

#include <tessera/plan.hpp>

namespace support {

using namespace tessera;

inline constexpr int table4_most = 4096;

struct Table4Row {
  std::string name;
  int exponent;          ///< payload a process is O(D^exponent); -1: nothing is communicated
  int message_exponent;  ///< messages; 0 stands for O(log D)
  Plan (*plan)(int processes, int process, const PlanOptions& options);
  Index (*payload)(Index processes);  ///< bytes
  Index (*messages)(Index processes);
  Index (*flops)(Index processes);
};

namespace table4_rows {
inline constexpr Index part = 64;     ///< of a dimension that grows with D, on each process
inline constexpr Index fixed_a = 64;  ///< dimensions that do not grow
inline constexpr Index fixed_c = 64;
inline constexpr Index tokens = table4_most;   ///< S
inline constexpr Index model = 32;             ///< M
inline constexpr Index hidden = 48;            ///< H
inline constexpr Index capacity = 2 * tokens;  ///< E * C

constexpr TensorDesc tensor(const Extents& extents, const Sharding& s) {
  return {DType::f32, extents, s};
}
constexpr Plan product(const char* equation, const TensorDesc& a, const TensorDesc& b,
                       const Sharding& out, int processes, int process,
                       const PlanOptions& options) {
  return ops::Einsum{parse(equation), out}.plan({a, b}, {MeshShape{processes}, process, options});
}
constexpr Index none(Index) { return 0; }
constexpr Index log2_of(Index n) { return detail::rounds(static_cast<int>(n)); }
/// What all but a D-th of `elements` take.
constexpr Index others(Index elements, Index processes) {
  return 4 * (elements - elements / processes);
}
}  // namespace table4_rows

inline std::vector<Table4Row> table4() {
  using namespace table4_rows;
  return {
      {"Add(A,A->A), A split", -1, -1,
       [](int d, int process, const PlanOptions& o) {
         const TensorDesc x = tensor({part * d}, {{0}});
         return ops::Map{
             .terms = parse("a,a->a"), .type = DType::f32, .out = {{0}}, .reads_index = false}
             .plan({x, x}, {MeshShape{d}, process, o});
       },
       none, none, [](Index) { return part; }},
      {"Matmul(AB,BC->AC), B split", 0, 0,
       [](int d, int process, const PlanOptions& o) {
         return product("ab,bc->ac", tensor({fixed_a, part * d}, {{}, {0}}),
                        tensor({part * d, fixed_c}, {{0}, {}}), {{}, {}}, d, process, o);
       },
       [](Index d) { return 2 * others(fixed_a * fixed_c, d); },
       [](Index d) { return 2 * log2_of(d); }, [](Index) { return 2 * fixed_a * part * fixed_c; }},
      {"Matmul(AB,BC->AC), A split", -1, -1,
       [](int d, int process, const PlanOptions& o) {
         return product("ab,bc->ac", tensor({part * d, fixed_a}, {{0}, {}}),
                        tensor({fixed_a, fixed_c}, {{}, {}}), {{0}, {}}, d, process, o);
       },
       none, none, [](Index) { return 2 * part * fixed_a * fixed_c; }},
      {"Matmul(AB,BC->AC), A and B split", 1, 0,
       [](int d, int process, const PlanOptions& o) {
         return product("ab,bc->ac", tensor({part * d, part * d}, {{0}, {}}),
                        tensor({part * d, fixed_c}, {{0}, {}}), {{0}, {}}, d, process, o);
       },
       [](Index d) { return others(part * d * fixed_c, d); }, log2_of,
       [](Index d) { return 2 * part * part * d * fixed_c; }},
      {"Matmul(AB,BC->AC), A and C split", 1, 0,
       [](int d, int process, const PlanOptions& o) {
         return product("ab,bc->ac", tensor({part * d, fixed_a}, {{0}, {}}),
                        tensor({fixed_a, part * d}, {{}, {0}}), {{}, {0}}, d, process, o);
       },
       [](Index d) { return others(part * d * fixed_a, d); }, log2_of,
       [](Index d) { return 2 * part * d * fixed_a * part; }},
      {"Reduce(AB->A), A split", -1, -1,
       [](int d, int process, const PlanOptions& o) {
         return detail::plan_reduce(parse("ab->a"), Reduction::sum,
                                    tensor({part * d, fixed_c}, {{0}, {}}), {{0}}, MeshShape{d},
                                    process, o);
       },
       none, none, [](Index) { return part * fixed_c; }},
      {"Reduce(AB->B), A split", 0, 0,
       [](int d, int process, const PlanOptions& o) {
         return detail::plan_reduce(parse("ab->b"), Reduction::sum,
                                    tensor({part * d, table4_most}, {{0}, {}}), {{}}, MeshShape{d},
                                    process, o);
       },
       [](Index d) { return 2 * others(table4_most, d); }, [](Index d) { return 2 * log2_of(d); },
       [](Index) { return part * table4_most; }},
      // The MoE layer: as many groups and experts as processes, and C = 2 S / E.
      {"Einsum(GSEC,GSM->EGCM), G to E", 0, 1,
       [](int d, int process, const PlanOptions& o) {
         return product("gsec,gsm->egcm", tensor({d, tokens, d, capacity / d}, {{0}, {}, {}, {}}),
                        tensor({d, tokens, model}, {{0}, {}, {}}), {{0}, {}, {}, {}}, d, process,
                        o);
       },
       [](Index d) { return others(capacity * model, d); }, [](Index d) { return d - 1; },
       [](Index) { return 2 * tokens * capacity * model; }},
      {"Einsum(EGCM,EMH->EGCH), E split", -1, -1,
       [](int d, int process, const PlanOptions& o) {
         return product("egcm,emh->egch", tensor({d, d, capacity / d, model}, {{0}, {}, {}, {}}),
                        tensor({d, model, hidden}, {{0}, {}, {}}), {{0}, {}, {}, {}}, d, process,
                        o);
       },
       none, none, [](Index) { return 2 * capacity * model * hidden; }},
      {"Einsum(EGCH,EHM->GECM), E to G", 0, 1,
       [](int d, int process, const PlanOptions& o) {
         return product("egch,ehm->gecm", tensor({d, d, capacity / d, hidden}, {{0}, {}, {}, {}}),
                        tensor({d, hidden, model}, {{0}, {}, {}}), {{0}, {}, {}, {}}, d, process,
                        o);
       },
       [](Index d) { return others(capacity * model, d); }, [](Index d) { return d - 1; },
       [](Index) { return 2 * capacity * model * hidden; }},
      {"Einsum(GSEC,GECM->GSM), G split", -1, -1,
       [](int d, int process, const PlanOptions& o) {
         return product("gsec,gecm->gsm", tensor({d, tokens, d, capacity / d}, {{0}, {}, {}, {}}),
                        tensor({d, d, capacity / d, model}, {{0}, {}, {}, {}}), {{0}, {}, {}}, d,
                        process, o);
       },
       none, none, [](Index) { return 2 * tokens * capacity * model; }},
  };
}

}  // namespace support
