// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// What moves elements, looks them up or puts them in order, by the names of cases.txt. Halos are
/// driver.cpp's: their results overlap.
#include "case.hpp"

namespace differential {
namespace {

template <class T> DynamicTensor padded(const Run& r) {
  const auto value = static_cast<double>(r.c.number_of("value"));
  if constexpr (std::is_same_v<T, bool>)
    return pad(r.in[0], r.c.list("low"), r.c.list("high"), r.c.list("interior"), value != 0,
               r.out());
  else
    return pad(r.in[0], r.c.list("low"), r.c.list("high"), r.c.list("interior"),
               static_cast<int>(value), r.out());
}

OutOfRange out_of_range(const Run& r) {
  return r.c.number_of("drop") != 0 ? OutOfRange::drop : OutOfRange::clamp;
}

/// The tensors of a call: all operands, or those between the first and the last.
template <class Call> Results with_list(const std::vector<DynamicTensor>& t, const Call& call) {
  if (t.size() == 1) return {call({t[0]})};
  if (t.size() == 2) return {call({t[0], t[1]})};
  if (t.size() == 3) return {call({t[0], t[1], t[2]})};
  if (t.size() == 4) return {call({t[0], t[1], t[2], t[3]})};
  return {call({t[0], t[1], t[2], t[3], t[4]})};
}

/// With any number of tensors of indices, of columns and of windows.
Results take_of(const Run& r) {
  const Sharding out = r.out();
  const auto call = [&](std::initializer_list<DynamicTensor> indices) {
    if (!r.c.has("windows")) return take(r.equation(), r.in[0], indices, out_of_range(r), out);
    return take(r.equation(), r.in[0], indices, {WindowSizes(r.c.list("windows")), out_of_range(r)},
                out);
  };
  return with_list({r.in.begin() + 1, r.in.end()}, call);
}

template <class Kind> Results scattered(const Run& r) {
  if (r.c.has("indexed") || r.in.size() != 3) {
    const Extents extents = r.c.has("indexed") ? r.c.list("indexed") : Extents{};
    const Sharding out = r.out();
    return with_list(r.in, [&](std::initializer_list<DynamicTensor> tensors) {
      return scatter<Kind>(r.equation(), tensors, extents, out_of_range(r), out);
    });
  }
  return {scatter<Kind>(r.equation(), r.in[0], r.in[1], r.in[2], out_of_range(r), r.out())};
}

Results scatter_of(const Run& r) {
  const std::string& kind = r.c.text("kind");
  if (kind == "sum") return scattered<Sum>(r);
  if (kind == "product") return scattered<Product>(r);
  if (kind == "max") return scattered<Max>(r);
  if (kind == "min") return scattered<Min>(r);
  if (kind == "any") return scattered<Any>(r);
  if (kind == "all") return scattered<All>(r);
  return scattered<Set>(r);
}

template <class T> DynamicTensor parts(const Run& r) {
  const auto end = [&](const char* name) { return static_cast<double>(r.c.number_of(name)); };
  return histogram<T>(r.equation(), r.in[0], r.c.number_of("n"), end("low"), end("high"), r.out());
}

Results sort_of(const Run& r) {
  const SortOptions options{.descending = r.c.number_of("descending") != 0};
  const std::string& kind = r.c.text("kind");
  if (kind == "sort") return {sort(r.equation(), r.along(), r.in[0], options, r.out())};
  if (kind == "argsort") return {argsort(r.equation(), r.along(), r.in[0], options, r.out())};
  const auto both = sort_with_indices(r.equation(), r.along(), r.in[0], options, r.out());
  return {both.values, both.indices};
}

Results top_of(const Run& r) {
  const auto both = r.c.number_of("descending") != 0
                        ? top_k(r.equation(), r.along(), r.in[0], r.c.number_of("k"), r.out())
                        : bottom_k(r.equation(), r.along(), r.in[0], r.c.number_of("k"), r.out());
  return {both.values, both.indices};
}

template <class T> Results hot(const Run& r) {
  return {one_hot<T>(r.equation(), r.along(), r.in[0], r.c.number_of("n"), r.out())};
}
Results one_hot_of(const Run& r) {
  switch (r.c.out[0].type) {
    case DType::f16:
      return hot<half>(r);
    case DType::f64:
      return hot<double>(r);
    case DType::i32:
      return hot<std::int32_t>(r);
    case DType::boolean:
      return hot<bool>(r);
    default:
      return hot<float>(r);
  }
}

}  // namespace

void add_moves(Table& table) {
  table.add("reshard", [](const Run& r) -> Results { return {reshard(r.in[0], r.out())}; });
  table.add("transpose", [](const Run& r) -> Results {
    return {reshard(transpose(r.equation(), r.in[0]), r.out())};
  });
  table.add("slice", [](const Run& r) -> Results {
    return {slice(r.in[0], r.c.list("start"), r.c.list("limit"), r.c.list("stride"), r.out())};
  });
  table.add("pad", [](const Run& r) -> Results {
    return {r.in[0].type() == DType::boolean ? padded<bool>(r) : padded<int>(r)};
  });
  table.add("reverse", [](const Run& r) -> Results {
    return {reverse(r.in[0], r.c.list<FixedVector<int, max_dims>>("dims"), r.out())};
  });
  table.add("roll", [](const Run& r) -> Results {
    return {roll(r.in[0], r.c.number_of("by"), static_cast<int>(r.c.number_of("dim")), r.out())};
  });
  table.add("shift", [](const Run& r) -> Results {
    return {
        shift(r.in[0], r.c.number_of("by"), static_cast<int>(r.c.number_of("dim")), {}, r.out())};
  });
  table.add("concatenate", [](const Run& r) -> Results {
    return {concatenate(static_cast<int>(r.c.number_of("dim")), r.in, r.out())};
  });
  table.add("update", [](const Run& r) -> Results {
    return {update(r.in[0], r.in[1], r.c.list("start"), r.out())};
  });
  table.add("reshape", [](const Run& r) -> Results {
    return {reshape(r.in[0], r.c.list("extents"), r.out())};
  });
  table.add("dynamic_slice", [](const Run& r) -> Results {
    return {dynamic_slice(r.equation(), r.c.text("along"), r.in[0], r.c.list("start"),
                          r.c.list("size"), r.out())};
  });
  table.add("dynamic_update", [](const Run& r) -> Results {
    return {dynamic_update_slice(r.equation(), r.c.text("along"), r.in[0], r.in[1],
                                 r.c.list("start"), r.out())};
  });
  table.add("take", [](const Run& r) -> Results {
    return {
        take(r.in[0], r.in[1], static_cast<int>(r.c.number_of("dim")), out_of_range(r), r.out())};
  });
  table.add("take_eq", [](const Run& r) -> Results {
    return {take(r.equation(), r.in[0], r.in[1], out_of_range(r), r.out())};
  });
  table.add("take_terms", take_of);
  table.add("take_along_axis", [](const Run& r) -> Results {
    return {take_along_axis(r.equation(), r.along(), r.in[0], r.in[1], out_of_range(r), r.out())};
  });
  table.add("tril", [](const Run& r) -> Results {
    return {reshard(tril(r.in[0], r.c.number_of("k")), r.out())};
  });
  table.add("triu", [](const Run& r) -> Results {
    return {reshard(triu(r.in[0], r.c.number_of("k")), r.out())};
  });
  table.add("one_hot", one_hot_of);
  table.add("scatter", scatter_of);
  table.add("bincount", [](const Run& r) -> Results {
    return {bincount(r.equation(), r.in[0], r.c.number_of("n"), {}, r.out())};
  });
  table.add("histogram", [](const Run& r) -> Results {
    switch (r.in[0].type()) {
      case DType::f32:
        return {parts<float>(r)};
      case DType::f64:
        return {parts<double>(r)};
      default:
        return {parts<std::int32_t>(r)};
    }
  });
  table.add("sort", sort_of);
  table.add("top_k", top_of);
}

}  // namespace differential
