// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// Operators on tensors of any element type, compared with plain loops over exact values: small
/// whole numbers, of which no sum or product here leaves what the narrowest type holds exactly
/// (integers wrap, as the oracle's do).
///
///     ElementCases all(mesh, random);   all.enumerate();   all.wrong;
#include <complex>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include <tessera/kernel/reduce.hpp>
#include <tessera/tessera.hpp>

#include "support/enumerate.hpp"
#include "support/reference.hpp"

namespace support {

using Exact = std::complex<double>;

inline Exact load(DType type, const void* data, Index i) {
  return detail::with_type(type, [&](auto zero) -> Exact {
    const auto x = static_cast<const decltype(zero)*>(data)[i];
    if constexpr (ComplexElement<decltype(zero)>)
      return {x.re, x.im};
    else
      return static_cast<double>(x);
  });
}
inline void store(DType type, void* data, Index i, Exact x) {
  detail::with_type(type, [&](auto zero) {
    using T = decltype(zero);
    T& to = static_cast<T*>(data)[i];
    if constexpr (ComplexElement<T>)
      to = T(static_cast<typename T::value_type>(x.real()),
             static_cast<typename T::value_type>(x.imag()));
    else if constexpr (IntegerElement<T>)
      to = x.real() >= 0x1p63 ? std::numeric_limits<T>::max()
                              : static_cast<T>(static_cast<std::int64_t>(x.real()));
    else
      to = static_cast<T>(x.real());
  });
}
/// What an exact value becomes when it is stored.
inline Exact stored(DType type, Exact x) {
  alignas(16) std::byte memory[16];
  store(type, memory, 0, x);
  return load(type, memory, 0);
}

inline Exact join_exact(Reduction reduction, Exact a, Exact b) {
  switch (reduction) {
    case Reduction::sum:
      return a + b;
    case Reduction::product:
      return a * b;
    case Reduction::max:
      return a.real() < b.real() ? b : a;
    case Reduction::min:
      return b.real() < a.real() ? b : a;
    case Reduction::any:
      return a.real() + b.real() > 0 ? 1 : 0;
    case Reduction::all:
      return a.real() * b.real();
    case Reduction::none:
      break;
  }
  return a;
}
inline Exact start_exact(DType type, Reduction reduction) {
  return detail::with_type(type, [&](auto zero) -> Exact {
    alignas(16) std::byte memory[16];
    *reinterpret_cast<decltype(zero)*>(memory) = detail::identity<decltype(zero)>(reduction);
    return load(type, memory, 0);
  });
}

/// Element i of part q of a tensor: small whole numbers, or, for products, numbers of size 1 and
/// now and then 2.
inline Exact element_value(DType type, Reduction kind, std::uint64_t seed, Index i, int part) {
  const std::int64_t r = element(seed, i, part) + 4;  // 0 to 8
  const std::int64_t s = element(seed + 99, i, part) + 4;
  if (is_boolean(type)) return kind == Reduction::all ? r != 0 : r % 3 == 0;
  if (kind == Reduction::product) {
    const double size = r == 8 && s == 8 ? 2 : 1,
                 sign = is_integer(type) && !detail::facts_of(type).is_signed
                            ? 1
                            : (r % 2 == 0 ? 1.0 : -1.0);
    return is_complex(type) && s % 2 == 0 ? Exact{0, sign * size} : Exact{sign * size, 0};
  }
  const double x = detail::facts_of(type).is_signed ? static_cast<double>(r % 5 - 2)
                                                    : static_cast<double>(r % 5);
  return is_complex(type) ? Exact{x, static_cast<double>(s % 5 - 2)} : Exact{x, 0};
}

struct AddOne {
  template <class T> KOKKOS_FUNCTION T operator()(T x, T y) const {
    if constexpr (std::is_same_v<T, bool>)
      return x != y;
    else
      return fn::Add{}(fn::Add{}(x, y), T(1));
  }
};

class ElementCases {
 public:
  ElementCases(std::shared_ptr<MeshCore> mesh, Random& random)
      : mesh_(std::move(mesh)), shape_(mesh_->shape()), random_(random) {
    use_all_elements();
  }

  /// All types, all kinds of partial values, all shardings of a matrix and of a vector.
  void enumerate() {
    for (int t = 0; t < dtypes; ++t) {
      const DType type = static_cast<DType>(t);
      for (int k = 0; k < reductions; ++k) {
        const Reduction kind = static_cast<Reduction>(k);
        if (!defined(kind, type)) continue;
        for (const Sharding& from : shardings(2, shape_.rank(), kind))
          if (from.reduction == kind) one(type, kind, TensorDesc{type, {5, 7}, from});
        for (const Sharding& from : shardings(1, shape_.rank(), kind))
          if (from.reduction == kind) one(type, kind, TensorDesc{type, {random_.below(9)}, from});
      }
    }
  }
  void sample(int count) {
    for (int n = 0; n < count; ++n) {
      const DType type = static_cast<DType>(random_.below(dtypes));
      Reduction kind = static_cast<Reduction>(random_.below(reductions));
      if (!defined(kind, type)) kind = Reduction::none;
      const int rank = 1 + random_.below(3);
      Extents extents;
      for (int d = 0; d < rank; ++d) extents.push_back(random_.below(8));
      one(type, kind,
          TensorDesc{
              type, extents,
              some_sharding(random_, rank, shape_.rank(), kind == Reduction::none ? 0 : 50, kind)});
    }
  }

  std::vector<std::string> wrong;
  long cases = 0;

 private:
  void one(DType type, Reduction kind, const TensorDesc& desc) {
    ++cases;
    const Reduction values =
        kind == Reduction::none ? (is_boolean(type) ? Reduction::any : Reduction::sum) : kind;
    const int rank = desc.rank();
    const std::string terms = "ijk";
    const std::string of = terms.substr(0, static_cast<std::size_t>(rank));
    const DynamicTensor x = input(desc, values, 1);
    const Whole<Exact> whole_x = whole(desc, values, 1);
    // Resharding finishes partial values.
    compare("reshard", x, reshard(x, some_sharding(random_, rank, shape_.rank())), whole_x);
    // Reductions: by the tensor's own kind when it is partial, else by each that the type has;
    // finished, scattered, open.
    for (int k = 1; k < reductions; ++k) {
      const Reduction by = static_cast<Reduction>(k);
      if (!defined(by, type) || (!desc.sharding.partial.empty() && by != kind)) continue;
      if (by == Reduction::product && values != Reduction::product)
        continue;  // its values would grow
      const Terms reduced = parse((of + "->" + of.substr(1)).c_str());
      Sharding out = some_sharding(random_, rank - 1, shape_.rank(), 40, by);
      if (!detail::check_open_axes(reduced, {desc.sharding}, out, by).ok()) out = out.finished();
      const bool own = is_integer(type) && (by == Reduction::sum || by == Reduction::product) &&
                       (!desc.sharding.partial.empty() || random_.below(4) == 0);
      const DynamicTensor y = own ? reduce_as(by, of + "->" + of.substr(1), x, out)
                                  : reduce_by(by, of + "->" + of.substr(1), x, out);
      compare("reduce " + std::string(name_of(by)), x, reshard(y, out.finished()),
              reduce_exact(type, by, reduced, whole_x));
    }
    if (rank == 2)
      compare("transpose", x,
              reshard(transpose("ij->ji", x), some_sharding(random_, 2, shape_.rank())),
              map_exact(parse("ij->ji"), type, {whole_x},
                        [](const std::vector<Exact>& v) { return v[0]; }));
    if (!desc.sharding.partial.empty()) return;
    // A function of two, the other differently sharded.
    TensorDesc other = desc;
    other.sharding = some_sharding(random_, rank, shape_.rank());
    const DynamicTensor y = input(other, values, 2);
    const Whole<Exact> whole_y = whole(other, values, 2);
    const std::string equation = of + "," + of + "->" + of;
    const DynamicTensor sum = detail::with_type(type, [&](auto zero) {
      return map_dynamic<decltype(zero)>(equation, AddOne{}, desc.sharding, x, y);
    });
    compare("map", x, sum,
            map_exact(parse(equation.c_str()), type, {whole_x, whole_y},
                      [&](const std::vector<Exact>& v) {
                        return is_boolean(type) ? Exact(v[0] != v[1]) : v[0] + v[1] + 1.0;
                      }));
    if (rank == 2 && is_number(type)) {
      const Sharding out = some_sharding(random_, 2, shape_.rank());
      const DynamicTensor product = einsum("ik,jk->ij", x, y, out);
      Whole<Exact> expected = support::einsum(parse("ik,jk->ij"), whole_x, whole_y);
      for (Exact& e : expected.values) e = stored(type, e);
      compare("einsum", x, product, expected);
    }
  }

  static DynamicTensor reduce_by(Reduction by, const std::string& equation, const DynamicTensor& x,
                                 const Sharding& out) {
    switch (by) {
      case Reduction::product:
        return reduce<Product>(equation, x, out);
      case Reduction::max:
        return reduce<Max>(equation, x, out);
      case Reduction::min:
        return reduce<Min>(equation, x, out);
      case Reduction::any:
        return reduce<Any>(equation, x, out);
      case Reduction::all:
        return reduce<All>(equation, x, out);
      default:
        return reduce<Sum>(equation, x, out);
    }
  }
  /// In the elements' own type, as what is unfinished in it must be.
  static DynamicTensor reduce_as(Reduction by, const std::string& equation, const DynamicTensor& x,
                                 const Sharding& out) {
    return detail::with_integer_type(x.type(), [&](auto zero) {
      using T = decltype(zero);
      return by == Reduction::product ? reduce<As<Product, T>>(equation, x, out)
                                      : reduce<As<Sum, T>>(equation, x, out);
    });
  }
  static Whole<Exact> reduce_exact(DType type, Reduction by, const Terms& terms,
                                   const Whole<Exact>& x) {
    const Letters letters(terms, {x.extents});
    Whole<Exact> y(letters.result, start_exact(type, by));
    for_each_index(letters.extents, [&](const Extents& at) {
      Exact& out = y[dot(at, letters.strides[1])];
      out = join_exact(by, out, x[dot(at, letters.strides[0])]);
    });
    for (Exact& e : y.values) e = stored(type, e);
    return y;
  }
  template <class F>
  static Whole<Exact> map_exact(const Terms& terms, DType type, const std::vector<Whole<Exact>>& x,
                                F f) {
    Whole<Exact> y = support::map<Exact>(terms, x, f);
    for (Exact& e : y.values) e = stored(type, e);
    return y;
  }

  /// The whole tensor that the parts make.
  Whole<Exact> whole(const TensorDesc& desc, Reduction values, std::uint64_t seed) const {
    Whole<Exact> x(desc.extents);
    const int parts = shape_.group_size(desc.sharding.partial);
    for (Index i = 0; i < x.size(); ++i) {
      x[i] = element_value(desc.type, values, seed, i, 0);
      for (int q = 1; q < parts; ++q)
        x[i] = join_exact(values, x[i], element_value(desc.type, values, seed, i, q));
      x[i] = stored(desc.type, x[i]);
    }
    return x;
  }
  template <class F> void for_each_of_block(const TensorDesc& desc, F f) const {
    const Box box = block(desc.extents, desc.sharding, shape_, mesh_->coordinates());
    const Extents strides = detail::row_major_strides(desc.extents);
    Index local = 0;
    for_each_index(box.extents(), [&](const Extents& at) {
      Index i = 0;
      for (int d = 0; d < at.size(); ++d) i += (box[d].lo + at[d]) * strides[d];
      f(local++, i);
    });
  }
  DynamicTensor input(const TensorDesc& desc, Reduction values, std::uint64_t seed) const {
    const TensorCore core = TensorCore::make(mesh_, desc);
    std::vector<std::byte> bytes(static_cast<std::size_t>(TensorCore::local_bytes(*mesh_, desc)));
    const int part = shape_.place_in_group(desc.sharding.partial, mesh_->coordinates());
    for_each_of_block(desc, [&](Index local, Index i) {
      store(desc.type, bytes.data(), local, element_value(desc.type, values, seed, i, part));
    });
    detail::copy_from_host(core.data(), bytes.data(), static_cast<Index>(bytes.size()));
    return DynamicTensor(core);
  }
  void compare(const std::string& what, const DynamicTensor& x, const DynamicTensor& y,
               const Whole<Exact>& expected) {
    tessera::detail::fence();
    std::vector<std::byte> bytes(
        static_cast<std::size_t>(TensorCore::local_bytes(*mesh_, y.desc())));
    detail::copy_to_host(bytes.data(), y.core().data(), static_cast<Index>(bytes.size()));
    if (!(y.extents() == expected.extents)) wrong.push_back(what + ": other extents");
    bool said = false;
    for_each_of_block(y.desc(), [&](Index local, Index i) {
      const Exact got = load(y.type(), bytes.data(), local);
      if (said || got == expected[i]) return;
      said = true;
      const auto text = [](Exact e) {
        return std::to_string(e.real()) + "+" + std::to_string(e.imag()) + "i";
      };
      wrong.push_back(what + " of " + describe(x.desc(), shape_) + " to " +
                      describe(y.desc(), shape_) + " on " + describe(shape_) + ", process " +
                      std::to_string(mesh_->process()) + ", element " + std::to_string(i) + ": " +
                      text(got) + " in place of " + text(expected[i]));
    });
  }

  std::shared_ptr<MeshCore> mesh_;
  MeshShape shape_;
  Random& random_;
};

}  // namespace support
