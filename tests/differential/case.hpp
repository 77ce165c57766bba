// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// A case of the differential test as generate.py writes it, and what an operator is given to run
/// it. driver.cpp reads the cases, chooses meshes and shardings, and compares.
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <tessera/tessera.hpp>

#include "support/enumerate.hpp"

namespace differential {
using namespace tessera;
using tessera::half;  // CUDA has one at global scope

/// One array of a case: where its elements begin among those of its type.
struct ArrayOf {
  DType type = DType::f32;
  Extents extents;
  Index first = 0;
};

/// A line of cases.txt.
struct Case {
  long number = 0;
  std::string op, line;
  std::map<std::string, std::string> keys;
  std::vector<ArrayOf> in, out;

  const std::string& text(const std::string& key) const {
    const auto found = keys.find(key);
    if (found == keys.end())
      throw std::runtime_error("case " + std::to_string(number) + " has no " + key + ": " + line);
    return found->second;
  }
  bool has(const std::string& key) const { return keys.count(key) > 0; }
  double real(const std::string& key, double otherwise) const {
    return has(key) ? std::stod(text(key)) : otherwise;
  }
  Index number_of(const std::string& key, Index otherwise = 0) const {
    return has(key) ? std::stoll(text(key)) : otherwise;
  }
  /// Returns "3,0,5" as numbers.
  template <class List = Extents> List list(const std::string& key) const {
    List numbers;
    const std::string& all = text(key);
    for (std::size_t at = 0; at < all.size();) {
      numbers.push_back(
          static_cast<std::remove_cvref_t<decltype(numbers[0])>>(std::stoll(all.substr(at))));
      at = all.find(',', at);
      if (at != std::string::npos) ++at;
    }
    return numbers;
  }
};

/// What a process has of a result: the elements of `box` of the whole array.
struct Part {
  DType type = DType::f32;
  Extents extents;
  Box box;
  std::vector<char> bytes;
};

/// What an operator is given: the case, its operands on a mesh, and the source of further choices.
struct Run {
  const Case& c;
  const std::shared_ptr<MeshCore>& mesh;
  support::Random& random;
  std::vector<DynamicTensor> in;
  mutable std::string chosen;  ///< the shardings, for messages

  std::string_view equation() const { return c.text("eq"); }
  char along() const { return c.text("along")[0]; }
  /// Returns some sharding of a result, and notes it.
  Sharding some(int rank) const {
    return note(support::some_sharding(random, rank, mesh->shape().rank()));
  }
  Sharding note(const Sharding& s) const {
    chosen += " " + to_string(s, mesh->names());
    return s;
  }
  /// Returns some sharding of the case's result number k.
  Sharding out(int k = 0) const { return some(c.out[static_cast<std::size_t>(k)].extents.size()); }
  /// Some sharding, in a fifth of the cases with open values, where allowed(sharding).
  template <class Allowed> Sharding out_open(Reduction kind, const Allowed& allowed) const {
    const int rank = c.out[0].extents.size();
    for (int attempt = 0; attempt < 4; ++attempt) {
      const Sharding s =
          support::some_sharding(random, rank, mesh->shape().rank(), attempt < 3 ? 20 : 0, kind);
      if (allowed(s)) return note(s);
    }
    return note(Sharding::replicated(rank));
  }
};

using Results = std::vector<DynamicTensor>;
using Operator = Results (*)(const Run&);

/// The operators by their names in cases.txt; those that are compiled for an element type also by
/// that of the first operand.
class Table {
 public:
  void add(const std::string& name, Operator run) { any_[name] = run; }
  void add(const std::string& name, DType type, Operator run) { typed_[{name, type}] = run; }
  Operator find(const Case& c) const {
    const std::string name = c.op == "map" ? c.text("f") : c.op;
    const auto any = any_.find(name);
    if (any != any_.end()) return any->second;
    const auto typed = typed_.find({name, c.in[0].type});
    if (typed == typed_.end())
      throw std::runtime_error("the driver has no " + name + " of " +
                               std::string(name_of(c.in[0].type)) + ": " + c.line);
    return typed->second;
  }

 private:
  std::map<std::string, Operator> any_;
  std::map<std::pair<std::string, DType>, Operator> typed_;
};

void add_moves(Table& table);        // moves.cpp
void add_products(Table& table);     // products.cpp
void add_reductions(Table& table);   // reductions.cpp
void add_elementwise(Table& table);  // elementwise.cpp
void add_gradients(Table& table);    // gradients.cpp; the last, of the others' operators

}  // namespace differential
