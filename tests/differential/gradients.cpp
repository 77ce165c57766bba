// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Gradients of the other operators: a case names one, and its last operand is the gradient of that
/// one's first result.
#include <tessera/grad.hpp>

#include "case.hpp"

namespace differential {
namespace {
Table* operators = nullptr;

Results gradient_of(const Run& r) {
  Case of = r.c;
  of.op = r.c.text("of");
  of.out = {of.in.back()};
  of.in.pop_back();
  Results by;
  for (std::size_t i = 0; i < of.in.size(); ++i)
    if (is_real(of.in[i].type)) by.push_back(r.in[i]);
  const auto f = [&](const Results& x) {
    Run run{of, r.mesh, r.random, {}, {}};
    std::size_t next = 0;
    for (std::size_t i = 0; i < of.in.size(); ++i)
      run.in.push_back(is_real(of.in[i].type) ? x[next++] : r.in[i]);
    const Results made = operators->find(of)(run);
    r.chosen += run.chosen;
    return made[0];
  };
  auto [y, pull] = vjp(f, by);
  return pull(r.in.back());
}
}  // namespace

void add_gradients(Table& table) {
  operators = &table;
  table.add("gradient", gradient_of);
}

}  // namespace differential
