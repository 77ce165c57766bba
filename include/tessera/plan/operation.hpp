// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// An operator as a value. Each kind is a struct of plan/op/ that describes the operator
/// completely, without its operands' data; an Operation holds one of any kind.
///
///     const ops::Reshard to{sharding};
///     to.check({desc}).ok();   to.plan({desc}, planning);      // typed, constexpr and dry forms call the struct itself
///     const Operation any(to);
///     any.plan({desc}, planning) == to.plan({desc}, planning);
///
/// A struct has
///
///     constexpr OperatorKind kind() const                     and name(), where messages call it otherwise
///     constexpr Verdict check(const TensorDescs&) const       the first rule that it breaks on these operands
///     constexpr TensorDescs results(const TensorDescs&) const element types, extents and shardings of what it returns
///     constexpr Plan plan(const TensorDescs&, const Planning&) const
///     constexpr void members(visit) const                     visit("name", member) for each member
///     operator==
///
/// and, where the default would be wrong: stand_in(operands), a call that stands for all extents
/// and numbers; scale(operands), a factor for its sum; explain(verdict, operands, names), a better
/// text.
///
/// Laws: an Operation gives the same answers as its struct; equal ones have equal digests, on every
/// process.
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include <tessera/base/compiled.hpp>
#include <tessera/base/digest.hpp>
#include <tessera/plan/check/extents_text.hpp>
#include <tessera/plan/operation_struct.hpp>

namespace tessera {

class Operation;

namespace detail {
class AdjointBuilder;
using MakeAdjoint = void (*)(const void* op, AdjointBuilder& build);
/// What makes the adjoint of an operator; room grad sets it.
template <class Op> inline MakeAdjoint adjoint_of_operation = nullptr;

/// The functions of an operator whose kind is known only at run time. One table for each kind.
struct OperationTable {
  std::size_t size;
  OperatorKind (*kind)(const void*);
  std::string_view (*name)(const void*);
  bool (*equal)(const void*, const void*);
  std::uint64_t (*digest)(const void*);
  Verdict (*check)(const void*, const TensorDescs&);
  std::string (*explain)(const void*, const Verdict&, const TensorDescs&, const AxisNames&);
  TensorDescs (*results)(const void*, const TensorDescs&);
  Plan (*plan)(const void*, const TensorDescs&, const Planning&);
  double (*scale)(const void*, const TensorDescs&);
  std::string (*text)(const void*, const AxisNames&);
  const Terms* (*terms)(const void*);  ///< null: it has no letters
  Sharding (*deduced)(const void*, const TensorDescs&);
  Sharding* (*stated)(void*);  ///< how its results are split; null: it does not state it
  const MakeAdjoint* adjoint;
};

/// Writes the numbers of an operator: " start 0x2, limit 4x6".
struct WriteMember {
  std::string& text;
  const AxisNames& names;
  void operator()(std::string_view name, const Extents& numbers) const {
    if (!numbers.empty()) write(name, to_string(numbers));
  }
  void operator()(std::string_view name, const Sharding& s) const {
    if (s.rank() > 0) text += " " + std::string(name) + " " + to_string(s, names);
  }
  template <class T> void operator()(std::string_view name, const T& member) const {
    if constexpr (std::is_same_v<T, Index> || std::is_same_v<T, int>)
      write(name, std::to_string(member));
  }
  void write(std::string_view name, const std::string& value) const {
    text += (text.empty() ? " " : ", ") + std::string(name) + " " + value;
  }
};

template <class Op> constexpr std::string_view name_in_messages(const Op& op) {
  if constexpr (requires { op.name(); })
    return op.name();
  else
    return name_of(op.kind());
}

/// Returns the sentence of a broken rule of an operator with letters. The letters come first,
/// unless the sentence contains its own facts.
inline std::string explain_terms(const Verdict& v, const Terms& terms, const TensorDescs& operands,
                                 const AxisNames& names, bool stretch = false) {
  if (sentence(v.rule).find('{') != std::string_view::npos) return explain(v);
  if (v.rule != Rule::extents_agree) return explain(v, terms, names);
  return extents_text(terms, operands, stretch, names);
}

template <class Op>
std::string explain_operation(const Op& op, const Verdict& v, const TensorDescs& operands,
                              const AxisNames& names) {
  if (kind_of(v.rule) == ErrorKind::usage || v.rule == Rule::factor_types_alike)
    return explain(v, {.operands = operands.size()});
  if constexpr (requires { op.explain(v, operands, names); })
    return op.explain(v, operands, names);
  else if constexpr (requires { op.terms; })
    return explain_terms(v, op.terms, operands, names);
  else
    return explain(v, {.operands = operands.size()});
}

template <OperationStruct Op> struct TableOf {
  static const Op& as(const void* op) { return *static_cast<const Op*>(op); }
  static const OperationTable value;
};
template <OperationStruct Op>
const OperationTable TableOf<Op>::value{
    sizeof(Op),
    [](const void* op) { return TableOf<Op>::as(op).kind(); },
    [](const void* op) { return name_in_messages(TableOf<Op>::as(op)); },
    [](const void* a, const void* b) -> bool { return TableOf<Op>::as(a) == TableOf<Op>::as(b); },
    [](const void* op) { return digest_of(TableOf<Op>::as(op)); },
    [](const void* op, const TensorDescs& operands) { return TableOf<Op>::as(op).check(operands); },
    [](const void* op, const Verdict& v, const TensorDescs& operands, const AxisNames& names) {
      return explain_operation(TableOf<Op>::as(op), v, operands, names);
    },
    [](const void* op, const TensorDescs& operands) {
      return TableOf<Op>::as(op).results(operands);
    },
    [](const void* op, const TensorDescs& operands, const Planning& on) {
      return TableOf<Op>::as(op).plan(operands, on);
    },
    [](const void* op, const TensorDescs& operands) -> double {
      if constexpr (requires { TableOf<Op>::as(op).scale(operands); })
        return TableOf<Op>::as(op).scale(operands);
      else
        return 1;
    },
    [](const void* op, const AxisNames& names) {
      std::string text;
      TableOf<Op>::as(op).members(WriteMember{text, names});
      return text;
    },
    [](const void* op) -> const Terms* {
      if constexpr (requires { TableOf<Op>::as(op).terms; })
        return &TableOf<Op>::as(op).terms;
      else
        return nullptr;
    },
    [](const void* op, const TensorDescs& operands) -> Sharding {
      if constexpr (requires { TableOf<Op>::as(op).deduced(operands); })
        return TableOf<Op>::as(op).deduced(operands);
      else
        return TableOf<Op>::as(op).results(operands)[0].sharding;
    },
    [](void* op) -> Sharding* {
      if constexpr (requires(Op & any) { any.out = Sharding(); })
        return &static_cast<Op*>(op)->out;
      else if constexpr (requires(Op & any) { any.made.sharding = Sharding(); })
        return &static_cast<Op*>(op)->made.sharding;
      else
        return nullptr;
    },
    &adjoint_of_operation<Op>};

/// A view of an operator of any kind, which lives elsewhere. Calls pass operators in this form.
class OperationView {
 public:
  template <OperationStruct Op>
  OperationView(const Op& op) : table_(&TableOf<Op>::value), op_(&op) {}  // NOLINT: as a reference

  OperatorKind kind() const { return table_->kind(op_); }
  /// Returns its name in messages: "einsum", "sum".
  std::string_view name() const { return table_->name(op_); }
  std::uint64_t digest() const { return table_->digest(op_); }
  Verdict check(const TensorDescs& operands) const { return table_->check(op_, operands); }
  /// Returns the sentence of a broken rule with its facts.
  std::string explain(const Verdict& v, const TensorDescs& operands, const AxisNames& names) const {
    return table_->explain(op_, v, operands, names);
  }
  TensorDescs results(const TensorDescs& operands) const { return table_->results(op_, operands); }
  Plan plan(const TensorDescs& operands, const Planning& on) const {
    return table_->plan(op_, operands, on);
  }
  /// Returns the factor of its sum: for a mean, one over the number of elements.
  double scale(const TensorDescs& operands) const { return table_->scale(op_, operands); }
  /// Returns its numbers and the sharding of its result: " start 0x2, limit 4x6 to P<data,_>".
  std::string text(const AxisNames& names) const { return table_->text(op_, names); }
  /// Returns the letters of its operands and its result; null where it has none.
  const Terms* terms() const { return table_->terms(op_); }
  /// Returns the sharding that its result has where the caller says nothing.
  Sharding deduced(const TensorDescs& operands) const { return table_->deduced(op_, operands); }
  /// Returns the sharding that it states for its result; null where it states none.
  const Sharding* stated() const { return table_->stated(const_cast<void*>(op_)); }
  /// Makes its adjoint, if the program knows it; returns whether it does.
  bool make_adjoint(AdjointBuilder& build) const {
    if (*table_->adjoint != nullptr) (*table_->adjoint)(op_, build);
    return *table_->adjoint != nullptr;
  }
  /// Returns the struct, if it is of this kind.
  template <OperationStruct Op> const Op* get_if() const {
    return table_ == &TableOf<Op>::value ? static_cast<const Op*>(op_) : nullptr;
  }
  bool operator==(const OperationView& other) const {
    return table_ == other.table_ && (op_ == other.op_ || table_->equal(op_, other.op_));
  }

  OperationView(const OperationTable* table, const void* op) : table_(table), op_(op) {}

 private:
  friend class tessera::Operation;
  const OperationTable* table_;
  const void* op_;
};
}  // namespace detail

/// An operator of any kind, as a value. Copies of large ones share their contents, which never
/// change.
class Operation {
 public:
  template <detail::OperationStruct Op>
  Operation(const Op& op) : Operation(detail::OperationView(op)) {}  // NOLINT: a value of any kind
  explicit Operation(const detail::OperationView& view) : table_(view.table_) {
    if (table_->size <= sizeof(small_)) {
      std::memcpy(small_, view.op_, table_->size);
    } else {
      const std::shared_ptr<std::byte[]> copy(new std::byte[table_->size]);
      std::memcpy(copy.get(), view.op_, table_->size);
      large_ = copy;
    }
  }
  operator detail::OperationView() const { return view(); }  // NOLINT: as the struct itself
  detail::OperationView view() const {
    return {table_, large_ != nullptr ? static_cast<const void*>(large_.get()) : small_};
  }

  OperatorKind kind() const { return view().kind(); }
  std::string_view name() const { return view().name(); }
  std::uint64_t digest() const { return view().digest(); }
  Verdict check(const TensorDescs& operands) const { return view().check(operands); }
  TensorDescs results(const TensorDescs& operands) const { return view().results(operands); }
  Plan plan(const TensorDescs& operands, const Planning& on) const {
    return view().plan(operands, on);
  }
  /// Returns the same operator with its results under another sharding; itself where it does not
  /// state one.
  Operation with_result(const Sharding& to) const {
    Operation other(view());
    std::byte* const large = const_cast<std::byte*>(other.large_.get());  // nobody else's yet
    if (Sharding* const out = table_->stated(large != nullptr ? large : other.small_)) *out = to;
    return other;
  }
  /// Returns whether with_result() makes another.
  bool states_result() const { return view().stated() != nullptr; }
  bool operator==(const Operation& other) const { return view() == other.view(); }

 private:
  const detail::OperationTable* table_;
  alignas(std::max_align_t) std::byte small_[256];
  std::shared_ptr<const std::byte[]> large_;
};
}  // namespace tessera

/// Follows each struct of tessera::ops: its functions at run time are compiled once
/// (base/compiled.hpp).
#define TESSERA_OPERATION(Name) \
  TESSERA_INSTANTIATE(          \
      const tessera::detail::OperationTable tessera::detail::TableOf<tessera::ops::Name>::value)
