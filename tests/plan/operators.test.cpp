// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// together: plan_operators
// Products, reductions, elementwise operators and transposes over enumerated shardings, all
// processes in a dry run.
#include <doctest/doctest.h>

#include "support/dry_cases.hpp"

using namespace tessera;
using namespace support;

namespace {

using Value = DryRun::Value;

std::string wrong_einsum(const Terms& terms, const TensorDesc& a, const TensorDesc& b,
                         const Sharding& out, const MeshShape& mesh, const PlanOptions& options) {
  const Whole<Value> expected =
      einsum(terms, whole_input<Value>(a, mesh, 5), whole_input<Value>(b, mesh, 6));
  return wrong_operator(
      to_text(terms), {a, b}, out, mesh,
      [&](int p) {
        return ops::Einsum{terms, out}.plan({a, b}, {mesh, p, options});
      },
      expected, options.machine);
}

/// An extent for each letter.
struct LetterExtents {
  Extents of_letter = Extents{};
  Term letters;
  LetterExtents(const Terms& terms, Random& random, const std::vector<Index>& choices) {
    for (const Term& term : terms.operands)
      for (char label : term)
        if (!letters.contains(label)) {
          letters.push_back(label);
          of_letter.push_back(random.of(choices));
        }
  }
  Index& operator[](char label) { return of_letter[letters.find(label)]; }
  TensorDesc desc(const Term& term, DType type, const Sharding& s) const {
    TensorDesc d{type, {}, s};
    for (char label : term) d.extents.push_back(of_letter[letters.find(label)]);
    return d;
  }
};

/// Some legal sharding for the result of a product: left open over some axes where that is allowed.
Sharding some_result(Random& random, const Terms& terms, const Shardings& operands, int axes,
                     Reduction kind = Reduction::sum) {
  for (int attempt = 0; attempt < 3; ++attempt) {
    const Sharding out =
        some_sharding(random, terms.result.size(), axes, attempt < 2 ? 40 : 0, kind);
    if (detail::check_open_axes(terms, operands, out, kind).ok()) return out;
  }
  return Sharding::replicated(terms.result.size());
}

const char* const equations[] = {
    "ik,kj->ij",    "ik,jk->ij",   "ki,kj->ij",   "ki,jk->ji",       "bij,bjk->bik",
    "bji,bkj->kbi", "bsm,mh->bsh", "bsh,hm->bsm", "bqhd,bkhd->bhqk", "bhqk,bkhd->bqhd",
    "i,j->ij",      "i,j->ji",     "i,i->",       ",ij->ij",         "ij,->ji",
    "ij,ij->ij",    "ij,ji->ij",   "ij,ij->",     "ij,ij->j",        "ika,kj->ij",
    "ik,kjb->ij",   "ia,jb->ij",   "a,b->",       "ij,jkl->ilk",     "abc,cd->dab",
    "abc,dca->bd",  "ab,cd->acbd", "ijk,kji->i",  "bsm,bsh->mh",     "ab,b->a",
    "b,ab->a",      ",->",         "ii,ij->ij",   "iij,jk->ik",      "ijij,jk->ik",
    "ii,jj->ij",    "ii,ii->",     "iji,kj->ik",  "jii,kjk->jk",     "ik,kj->",
};

}  // namespace

TEST_CASE("einsum: the matrix product, every sharding of operands and result over up to two axes") {
  Random random(seed_for("einsum, machines", 4));
  Tally tally;
  const Terms terms = parse("ik,kj->ij");
  for (const MeshShape& mesh : meshes(8, 2)) {
    const std::vector<Sharding> all = shardings(2, mesh.rank());
    for (const Sharding& a : all)
      for (const Sharding& b : all)
        for (const Sharding& out : all) {
          const Extents e =
              random.of<Extents>({{5, 7, 3}, {4, 8, 6}, {1, 9, 0}, {6, 1, 5}, {3, 0, 4}});
          tally.add(wrong_einsum(terms, {DType::f32, {e[0], e[1]}, a},
                                 {DType::f32, {e[1], e[2]}, b}, out, mesh,
                                 {some_machine(random), max_int64}));
        }
  }
}

TEST_CASE("einsum: many equations, unfinished operands and results, up to three axes") {
  Random random(seed_for("einsum", 5));
  Tally tally;
  for (const MeshShape& mesh : meshes(8, 3))
    for (const char* equation : equations) {
      const Terms terms = parse(equation);
      for (int i = 0; i < 12 / share; ++i) {
        const LetterExtents extents(terms, random, {1, 2, 3, 4, 5, 2, 3, 4, i == 0 ? 0 : 5});
        const int open = random.below(3);  // at most one operand is unfinished
        const Shardings s{
            some_sharding(random, terms.operands[0].size(), mesh.rank(), open == 1 ? 40 : 0),
            some_sharding(random, terms.operands[1].size(), mesh.rank(), open == 2 ? 40 : 0)};
        const Sharding out = some_result(random, terms, s, mesh.rank());
        REQUIRE(detail::check_einsum(terms, s, out).ok());
        const DType type = random.of<DType>({DType::f32, DType::f64, DType::i32, DType::i64});
        const PlanOptions options{some_machine(random),
                                  random.of<Index>({max_int64, max_int64, 0, 500})};
        tally.add(wrong_einsum(terms, extents.desc(terms.operands[0], type, s[0]),
                               extents.desc(terms.operands[1], type, s[1]), out, mesh, options));
      }
    }
}

/// product + 2 x first extra + 3 x second..., as DryRun's maps do.
Whole<Value> with_epilogue(Whole<Value> product, const std::vector<Whole<Value>>& extras) {
  for (std::size_t k = 0; k < extras.size(); ++k) {
    Extents own = detail::row_major_strides(extras[k].extents);
    const int missing = product.extents.size() - own.size();
    Extents strides(product.extents.size(), 0);
    for (int d = 0; d < own.size(); ++d)
      strides[missing + d] = extras[k].extents[d] == 1 ? 0 : own[d];
    const Extents target = detail::row_major_strides(product.extents);
    for_each_index(product.extents, [&](const Extents& at) {
      product[dot(at, target)] += static_cast<Value>(k + 2) * extras[k][dot(at, strides)];
    });
  }
  return product;
}

TEST_CASE("einsum with an epilogue, into fresh or given memory, and added to what is there") {
  Random random(seed_for("epilogue", 15));
  Tally tally;
  for (const MeshShape& mesh : meshes(8, 3))
    for (const char* equation :
         {"ik,kj->ij", "bsm,mh->bsh", "i,i->", "bij,bjk->bki", "ii,ij->ij", "ij,ij->j"}) {
      const Terms terms = parse(equation);
      for (int i = 0; i < 20 / share; ++i) {
        const LetterExtents extents(terms, random, {1, 2, 3, 4, 5, 2, 3, 4, i == 0 ? 0 : 5});
        const Shardings s{some_sharding(random, terms.operands[0].size(), mesh.rank()),
                          some_sharding(random, terms.operands[1].size(), mesh.rank())};
        const TensorDesc a = extents.desc(terms.operands[0], DType::f32, s[0]);
        const TensorDesc b = extents.desc(terms.operands[1], DType::f32, s[1]);
        PlanOptions options{some_machine(random), random.of<Index>({max_int64, 0})};
        options.destination = random.of<Destination>(
            {Destination::fresh, Destination::given, Destination::accumulated});
        const bool adds = options.destination == Destination::accumulated;
        const Sharding out = adds ? some_result(random, terms, s, mesh.rank())
                                  : some_sharding(random, terms.result.size(), mesh.rank());
        Epilogue epilogue{true, {}, DType::f32};
        std::vector<Whole<Value>> extras;
        for (int k = adds ? 1 : random.below(3); k > 0; --k) {
          TensorDesc extra = extents.desc(terms.result, DType::f32, out);
          if (!adds) {
            const int rank = random.below(terms.result.size() + 1);
            Extents e;
            for (int d = terms.result.size() - rank; d < terms.result.size(); ++d)
              e.push_back(random.chance(20) ? 1 : extra.extents[d]);
            extra = {DType::f32, e, some_sharding(random, rank, mesh.rank())};
          }
          epilogue.extras.push_back(extra);
          extras.push_back(whole_input<Value>(extra, mesh, 7 + extras.size()));
        }
        const Terms all = detail::with_extras(terms, epilogue.extras);
        REQUIRE(detail::check_epilogue(all, epilogue.extras, out, adds).ok());
        REQUIRE(detail::check_extras(all, {a, b}, epilogue.extras).ok());
        const Whole<Value> expected = with_epilogue(
            einsum(terms, whole_input<Value>(a, mesh, 5), whole_input<Value>(b, mesh, 6)), extras);
        TensorDescs operands{a, b};
        for (const TensorDesc& extra : epilogue.extras) operands.push_back(extra);
        tally.add(wrong_operator(
            to_text(all), operands, out, mesh,
            [&](int p) {
              return detail::plan_einsum(terms, a, b, out, mesh, p, options, epilogue);
            },
            expected, options.machine));
        const Plan plan = detail::plan_einsum(terms, a, b, out, mesh, 0, options, epilogue);
        CHECK(plan.slots[plan.result].given == (options.destination != Destination::fresh));
      }
    }
}

/// Some equation of up to `letters` letters, each in one operand, the other or both, and perhaps in
/// the result.
Terms some_equation(Random& random, int letters) {
  Terms terms = parse(",->");
  const auto put = [&](Term& term, char label) {
    term.push_back(label);
    const int d = random.below(term.size());
    term[term.size() - 1] = term[d];
    term[d] = label;
  };
  for (int l = 0; l < letters; ++l) {
    const char label = static_cast<char>('a' + l);
    const int where = random.below(6);  // mostly in both
    if (where != 0) put(terms.operands[0], label);
    if (where != 1) put(terms.operands[1], label);
    if (random.chance(50)) put(terms.result, label);
  }
  return terms;
}

TEST_CASE("einsum: any equation") {
  Random random(seed_for("einsum, equations", 11));
  Tally tally;
  for (const MeshShape& mesh : meshes(8, 3))
    for (int i = 0; i < 150 / share; ++i) {
      const Terms terms = some_equation(random, 1 + random.below(7));
      const LetterExtents extents(terms, random, {1, 2, 3, 2, 3, 4});
      const int open = random.below(3);
      const Shardings s{
          some_sharding(random, terms.operands[0].size(), mesh.rank(), open == 1 ? 40 : 0),
          some_sharding(random, terms.operands[1].size(), mesh.rank(), open == 2 ? 40 : 0)};
      const Sharding out = some_result(random, terms, s, mesh.rank());
      REQUIRE(detail::check_einsum(terms, s, out).ok());
      tally.add(wrong_einsum(terms, extents.desc(terms.operands[0], DType::i32, s[0]),
                             extents.desc(terms.operands[1], DType::i32, s[1]), out, mesh,
                             {some_machine(random), max_int64}));
    }
}

TEST_CASE("einsum: long dimensions, which products read and write in panels") {
  Random random(seed_for("einsum in panels", 6));
  Tally tally;
  long panels = 0, parts = 0;
  for (const MeshShape& mesh :
       {MeshShape{2}, MeshShape{4}, MeshShape{2, 2}, MeshShape{2, 4}, MeshShape{4, 2},
        MeshShape{3, 2}, MeshShape{2, 2, 2}, MeshShape{2, 1}, MeshShape{1, 4}})
    for (const char* equation : {"ik,kj->ij", "ik,jk->ij", "ki,kj->ij", "ki,jk->ji", "bik,bkj->bij",
                                 "ibk,kj->ibj", "ki,kj->ji", "kib,kj->ibj"}) {
      const Terms terms = parse(equation);
      for (int i = 0; i < 60 / share; ++i) {
        LetterExtents extents(terms, random, {2, 4, 6, 1});
        extents[random.of<char>({'i', 'j', 'k'})] =
            random.of<Index>({128, 192, 256, 384, 512, 520, 1024});
        const Shardings s{some_sharding(random, terms.operands[0].size(), mesh.rank()),
                          some_sharding(random, terms.operands[1].size(), mesh.rank())};
        const Sharding out = some_result(random, terms, s, mesh.rank());
        const TensorDesc a = extents.desc(terms.operands[0], DType::f32, s[0]);
        const TensorDesc b = extents.desc(terms.operands[1], DType::f32, s[1]);
        const PlanOptions options{some_machine(random), max_int64};
        const Plan plan = ops::Einsum{terms, out}.plan({a, b}, {mesh, 0, options});
        bool in_panels = false, in_parts = false;
        for (const Slot& slot : plan.slots) {
          in_panels = in_panels || slot.panel_dim >= 0;
          in_parts = in_parts || slot.own_part >= 0;
        }
        panels += in_panels;
        parts += in_parts;
        if (in_panels || in_parts || i < 5)
          tally.add(wrong_einsum(terms, a, b, out, mesh, options));
      }
    }
  MESSAGE(panels << " cases with panels, " << parts << " of which an own part stays");
  CHECK(panels > 100 / share);
  CHECK(parts > 40 / share);
}

TEST_CASE(
    "einsum: panels along the sum are wider than along the result; narrower ones are unpacked") {
  const auto panels = [](const Sharding& a, const Sharding& b, const Sharding& out, Index k,
                         Index n, DType type = DType::f32) {
    const Plan plan = ops::Einsum{parse("ik,kj->ij"), out}.plan(
        {TensorDesc{type, {4096, k}, a}, TensorDesc{type, {k, n}, b}}, {MeshShape{2}});
    int count = 0;
    for (const Slot& slot : plan.slots) count += slot.panel_dim >= 0;
    return count;
  };
  const Sharding rows{{0}, {}}, columns{{}, {0}};
  CHECK(panels(columns, columns, columns, 512, 4096) == 1);
  CHECK(panels(columns, columns, columns, 510, 4096) == 0);
  CHECK(panels(rows, columns, rows, 4096, 128) == 1);
  CHECK(panels(rows, columns, rows, 4096, 126) == 0);
  CHECK(panels(columns, columns, columns, 512, 4096, DType::f16) == 0);  // sums are rounded once
  CHECK(panels(rows, columns, rows, 4096, 128, DType::f16) == 1);
}

TEST_CASE("einsum: the own part of a gathered operand is read where it lies") {
  PlanOptions options;
  DType type = DType::f32;
  // Returns the operand whose own part stays, or -1.
  const auto stays = [&](const Sharding& a, const Sharding& b, const Sharding& out, Index m,
                         Index k, Index n, const MeshShape& mesh = MeshShape{2}) {
    const Plan plan = ops::Einsum{parse("ik,kj->ij"), out}.plan(
        {TensorDesc{type, {m, k}, a}, TensorDesc{type, {k, n}, b}}, {mesh, 0, options});
    for (const Slot& slot : plan.slots)
      if (slot.own_part >= 0) return int{slot.own_part};
    return -1;
  };
  const Sharding rows{{0}, {}}, columns{{}, {0}}, whole{{}, {}};
  CHECK(stays(rows, rows, rows, 512, 16384, 512) == 1);     // rows of the sum
  CHECK(stays(rows, columns, rows, 512, 16384, 512) == 1);  // columns of the result, in panels
  CHECK(stays(columns, columns, columns, 512, 16384, 512) == 0);
  CHECK(stays(rows, whole, rows, 512, 16384, 512) == -1);  // nothing is gathered
  CHECK(stays(rows, rows, rows, 512, 510, 512) == -1);     // the sum in two parts is too short
  // A result of 1024 x 4096 is passed over once more, where a part of 1024 (then 1280) rows of 4096
  // is not copied.
  CHECK(stays(rows, rows, rows, 2048, 2048, 4096) == -1);
  CHECK(stays(rows, rows, rows, 2048, 2560, 4096) == 1);
  CHECK(stays(rows, columns, rows, 64, 32, 128) == -1);  // a product more takes longer than a copy
  CHECK(stays(rows, rows, rows, 8192, 65536, 512, MeshShape{4}) == 1);
  type = DType::bf16;  // of which sums are rounded once
  CHECK(stays(rows, rows, rows, 512, 16384, 512) == -1);
  CHECK(stays(rows, columns, rows, 512, 16384, 512) == 1);
  type = DType::f32;
  options.machine.processes_per_node = 1;  // messages do not come by a copy
  CHECK(stays(rows, rows, rows, 512, 16384, 512) == -1);
}

TEST_CASE("einsum on meshes of four to six axes") {
  Random random(seed_for("einsum on many axes", 7));
  Tally tally;
  for (const MeshShape& mesh :
       {MeshShape{2, 2, 2, 2}, MeshShape{1, 2, 2, 1, 2}, MeshShape{2, 1, 2, 1, 2, 2}})
    for (const char* equation :
         {"ik,kj->ij", "bsm,mh->bsh", "bqhd,bkhd->bhqk", "ika,kjb->ji", "abc,dca->bd"}) {
      const Terms terms = parse(equation);
      for (int i = 0; i < 100 / share; ++i) {
        const LetterExtents extents(terms, random, {1, 2, 3, 4, 5});
        const int open = random.below(3);
        const Shardings s{
            some_sharding(random, terms.operands[0].size(), mesh.rank(), open == 1 ? 30 : 0),
            some_sharding(random, terms.operands[1].size(), mesh.rank(), open == 2 ? 30 : 0)};
        const Sharding out = some_result(random, terms, s, mesh.rank());
        tally.add(wrong_einsum(terms, extents.desc(terms.operands[0], DType::f64, s[0]),
                               extents.desc(terms.operands[1], DType::f64, s[1]), out, mesh,
                               {some_machine(random), max_int64}));
      }
    }
}

TEST_CASE("reduce: all kinds, kept dimensions in any order, unfinished operands and results") {
  Random random(seed_for("reduce", 8));
  Tally tally;
  for (const MeshShape& mesh : meshes(8, 3))
    for (const char* equation : {"a->", "a->a", "ab->a", "ab->b", "ab->ba", "ab->", "abc->ac",
                                 "abc->ca", "abc->b", "abc->", "abc->cab", "->"}) {
      const Terms terms = parse(equation);
      for (int i = 0; i < 20 / share; ++i) {
        const Reduction kind =
            random.of<Reduction>({Reduction::sum, Reduction::max, Reduction::min});
        const LetterExtents extents(terms, random, {1, 2, 3, 4, 5, 7, 8, 9, i == 0 ? 0 : 5});
        const Shardings s{some_sharding(random, terms.operands[0].size(), mesh.rank(),
                                        random.chance(40) ? 40 : 0, kind)};
        const Sharding out = some_result(random, terms, s, mesh.rank(), kind);
        REQUIRE(detail::check_reduce(terms, s, out, kind, false).ok());
        const TensorDesc x = extents.desc(terms.operands[0], DType::i32, s[0]);
        const PlanOptions options{some_machine(random), max_int64};
        tally.add(wrong_operator(
            to_text(terms), {x}, out, mesh,
            [&](int p) {
              return ops::Reduce{.terms = terms, .reduction = kind, .type = x.type, .out = out}
                  .plan({x}, {mesh, p, options});
            },
            reduce(terms, kind, whole_input<Value>(x, mesh, 5)), options.machine));
      }
    }
}

TEST_CASE(
    "map: broadcasting by letters, stretched extents, sums of unfinished sums, products with one") {
  Random random(seed_for("map", 9));
  Tally tally;
  for (const MeshShape& mesh : meshes(8, 3))
    for (const char* equation : {"a->a", "ab->ba", "ab,ab->ab", "ab,b->ab", "b,ab->ab", "ab,ba->ab",
                                 "abc,bc,c->abc", "abc,->abc", "a,b->ab", "ab,ab,ab,ab->ba"}) {
      const Terms terms = parse(equation);
      for (int i = 0; i < 16 / share; ++i) {
        const LetterExtents extents(terms, random, {1, 2, 3, 4, 5, 7, i == 0 ? 0 : 5});
        const bool unfinished = random.chance(25);
        const bool multiply =
            random.chance(40);  // then one operand may be open, and the others are finished
        const int which = random.below(terms.operands.size());
        const AxisSet open = unfinished ? AxisSet{random.below(mesh.rank())} : AxisSet{};
        const auto opened = [&](Sharding s) {
          for (int d = 0; d < s.rank(); ++d) s[d] = s[d].without(open);
          return s.with_partial(open, Reduction::sum);
        };
        TensorDescs operands;
        std::vector<Whole<Value>> whole;
        Shardings s;
        for (const Term& term : terms.operands) {
          TensorDesc desc = extents.desc(term, DType::f32,
                                         opened(some_sharding(random, term.size(), mesh.rank())));
          if (multiply && operands.size() != which)
            desc.sharding = some_sharding(random, term.size(), mesh.rank());
          if (random.chance(30) && desc.rank() > 0) desc.extents[random.below(desc.rank())] = 1;
          operands.push_back(desc);
          s.push_back(desc.sharding);
          whole.push_back(whole_input<Value>(desc, mesh, 5 + whole.size()));
        }
        const Sharding out = opened(some_sharding(random, terms.result.size(), mesh.rank()));
        REQUIRE(detail::check_map(terms, s, out, multiply ? Linearity::bilinear : Linearity::linear)
                    .ok());
        REQUIRE(detail::check_extents(terms, operands, true).ok());
        const PlanOptions options{some_machine(random), max_int64};
        const auto f = [multiply](const std::vector<Value>& v) {
          Value value = multiply ? 1 : 0;
          for (std::size_t k = 0; k < v.size(); ++k)
            value = multiply ? value * v[k] : value + static_cast<Value>(k + 1) * v[k];
          return value;
        };
        tally.add(wrong_operator(
            to_text(terms), operands, out, mesh,
            [&](int p) {
              return ops::Map{.terms = terms, .type = DType::f64, .out = out, .reads_index = false}
                  .plan(operands, {mesh, p, options});
            },
            map<Value>(terms, whole, f), options.machine,
            [&](DryRun& dry) { dry.multiply(multiply); }));
      }
    }
}

TEST_CASE("transpose: any order, any target") {
  Random random(seed_for("transpose", 10));
  Tally tally;
  for (const MeshShape& mesh : meshes(8, 3))
    for (const char* equation : {"a->a", "ab->ba", "abc->cab", "abc->bac", "abc->cba"}) {
      const Terms terms = parse(equation);
      for (int i = 0; i < 16 / share; ++i) {
        const Reduction kind =
            random.of<Reduction>({Reduction::sum, Reduction::max, Reduction::min});
        const LetterExtents extents(terms, random, {1, 2, 3, 4, 5, 7, 8, i == 0 ? 0 : 5});
        const TensorDesc x =
            extents.desc(terms.operands[0], DType::f64,
                         some_sharding(random, terms.operands[0].size(), mesh.rank(), 30, kind));
        Sharding out = some_sharding(random, terms.result.size(), mesh.rank());
        if (random.chance(30) && !x.sharding.partial.empty()) {
          for (int d = 0; d < out.rank(); ++d) out[d] = out[d].without(x.sharding.partial);
          out = out.with_partial(x.sharding.partial, kind);
        }
        REQUIRE(detail::check_transpose(terms, {x.sharding}, out).ok());
        const PlanOptions options{some_machine(random), max_int64};
        tally.add(wrong_operator(
            to_text(terms), {x}, out, mesh,
            [&](int p) {
              return ops::Transpose{terms, out}.plan({x}, {mesh, p, options});
            },
            transpose(terms, whole_input<Value>(x, mesh, 5)), options.machine));
        Sharding along = Sharding::replicated(out.rank());
        for (int d = 0; d < along.rank(); ++d)
          along[d] = x.sharding[terms.operands[0].find(terms.result[d])];
        CHECK(ops::Transpose{terms, along.with_partial(x.sharding.partial, kind)}
                  .plan({x}, {mesh})
                  .communications() == 0);
      }
    }
}

TEST_CASE("a product copies nothing because of a dimension of extent 1") {
  const auto copies = [](std::string_view equation, const Extents& a, const Extents& b) {
    const Terms terms = parse(equation);
    const TensorDesc x{DType::f32, a, Sharding::replicated(a.size())};
    const TensorDesc y{DType::f32, b, Sharding::replicated(b.size())};
    const Sharding out = Sharding::replicated(terms.result.size());
    const Plan plan = ops::Einsum{terms, out}.plan({x, y}, {MeshShape{}});
    int count = 0;
    for (const Step& step : plan.steps) count += step.kind == StepKind::permute ? 1 : 0;
    return count;
  };
  // Attention with a head for each key and value (r is 1), and with two.
  CHECK(copies("bgrst,btgd->bsgrd", {2, 3, 1, 4, 4}, {2, 4, 3, 5}) == 0);
  CHECK(copies("bgrst,btgd->bsgrd", {2, 3, 2, 4, 4}, {2, 4, 3, 5}) > 0);
  CHECK(copies("bsgrd,btgd->bgrst", {2, 4, 3, 1, 5}, {2, 4, 3, 5}) == 0);
  CHECK(copies("bgrst,bsgrd->btgd", {2, 3, 1, 4, 4}, {2, 4, 3, 1, 5}) == 0);
  CHECK(copies("aib,bj->aij", {3, 1, 2}, {2, 4}) == 0);
}

TEST_CASE("map: operands that lie alike are joined where they lie, and the result moves once") {
  const MeshShape mesh{4};
  const TensorDesc x{DType::f32, {4096, 64}, {{0}, {}}}, narrow{DType::i8, {4096, 64}, {{0}, {}}};
  const Sharding out{{}, {0}};
  const auto sum = [&](const TensorDescs& operands, DType type, const Sharding& to,
                       bool reads_index = false) {
    FixedVector<int, max_operands> ranks;
    for (const TensorDesc& one : operands) ranks.push_back(one.rank());
    return ops::Map{.terms = detail::broadcast_terms(ranks),
                    .type = type,
                    .out = to,
                    .reads_index = reads_index}
        .plan(operands, {mesh, 0, {}});
  };
  const Index moved = ops::Reshard{out}.plan({x}, {mesh}).payload_bytes();
  CHECK(sum({x, x}, DType::f32, out).payload_bytes() == moved);
  CHECK(sum({x, x, x}, DType::f32, out).communications() == 1);
  CHECK(sum({x, {DType::f32, {64}, {{}}}}, DType::f32, out).payload_bytes() == moved);
  // A result of larger elements moves no earlier than its operand; one of smaller elements does.
  CHECK(sum({narrow}, DType::f32, out).payload_bytes() == moved / 4);
  CHECK(sum({x}, DType::i8, out).payload_bytes() == moved / 4);
  // Operands that lie apart: all but the result's own move, or the result does.
  const TensorDesc y{DType::f32, {4096, 64}, {{}, {0}}};
  CHECK(sum({x, y}, DType::f32, out).payload_bytes() == moved);
  CHECK(sum({x, x, y}, DType::f32, out).payload_bytes() == 2 * moved);
  // A function of the index runs where its result lies.
  CHECK(sum({x, x}, DType::f32, out, true).payload_bytes() == 2 * moved);
}
