// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// together: transport
#include <doctest/doctest.h>

#include <cmath>
#include <cstring>
#include <string>
#include <vector>

#include <tessera/comm/mesh_core.hpp>
#include <tessera/comm/mpi/detail/context.hpp>
#include <tessera/comm/run_main.hpp>

#include "comm/collective_cases.hpp"
#include "support/world.hpp"

using namespace tessera;

namespace {

const std::shared_ptr<Transport>& world() { return support::world(); }

TransportSettings waiting(Wait wait, Index large_count = INT_MAX, bool pieces = false) {
  TransportSettings settings = world()->settings();
  settings.wait = wait;
  settings.large_count = large_count;
  settings.large_in_pieces = pieces;
  return settings;
}

template <class E, class F> std::string text_of(F f) {
  try {
    f();
  } catch (const E& error) {
    return error.what();
  }
  return "nothing was thrown";
}

bool has(const std::string& text, const std::string& part) {
  const bool found = text.find(part) != std::string::npos;
  if (!found) MESSAGE("\"" << part << "\" is not in: " << text);
  return found;
}

}  // namespace

TEST_CASE("every call in every shape and type, napping") {
  auto transport = world()->duplicate(waiting(Wait::nap));
  auto group = transport->group(detail::all_members(transport->size()), 1);
  for (const Index scale : {1, 3000}) {
    const std::string text = cases::all_types_wrong(*group, scale);
    CHECK_MESSAGE(text.empty(), text);
  }
}

TEST_CASE("the same with large counts, which are used above the threshold") {
  auto transport = world()->duplicate(waiting(Wait::nap, 4));
  auto group = transport->group(detail::all_members(transport->size()), 1);
  const std::string text = cases::all_types_wrong(*group, 2);
  CHECK_MESSAGE(text.empty(), text);
}

TEST_CASE("the same in pieces, as an MPI without large counts needs them") {
  for (const Index most : {1, 4, 7}) {
    auto transport = world()->duplicate(waiting(Wait::nap, most, true));
    auto group = transport->group(detail::all_members(transport->size()), 1);
    const std::string text = cases::all_types_wrong(*group, most == 1 ? 1 : 2);
    CHECK_MESSAGE(text.empty(), text);
  }
}

TEST_CASE("NaN, infinities, zeros of both signs and ends of ranges are reduced alike everywhere") {
  const int p = world()->size();
  for (const Wait wait : {Wait::nap, Wait::spin}) {
    if (wait == Wait::spin && p > 2) continue;  // more processes than cores
    for (const Index most : {Index{INT_MAX}, Index{4}})
      for (const bool pieces : {false, true}) {
        if (pieces && most != 4) continue;
        auto group = world()
                         ->duplicate(waiting(wait, pieces ? 50 : static_cast<int>(most), pieces))
                         ->group(detail::all_members(p), 1);
        const std::string text = cases::all_special_wrong(*group);
        CHECK_MESSAGE(text.empty(), text);
      }
  }
}

TEST_CASE("an uneven all-to-all with a bound is large on all members or on none") {
  const int p = world()->size();
  for (const bool pieces : {false, true}) {
    auto group =
        world()->duplicate(waiting(Wait::nap, 10, pieces))->group(detail::all_members(p), 1);
    Call call;  // the first member alone sends much, and only to the last
    call.kind = Collective::all_to_all;
    call.type = DType::i32;
    call.own = group->own();
    call.members = p;
    call.bound = 100 + p;
    Index sent = 0;
    Index received = 0;
    std::vector<std::int32_t> send;
    for (int other = 0; other < p; ++other) {
      const Index to = call.own == 0 && other == p - 1 ? 100 : 1;
      const Index from = other == 0 && call.own == p - 1 ? 100 : 1;
      call.send.push_back({other, sent, to});
      call.receive.push_back({other, received, from});
      for (Index i = 0; i < to; ++i)
        send.push_back(static_cast<std::int32_t>(1000 * call.own + 10 * other + i));
      sent += to;
      received += from;
    }
    std::vector<std::int32_t> got(static_cast<std::size_t>(received), -1);
    group->run(call, send.data(), got.data());
    bool right = true;
    for (const Piece& piece : call.receive)
      for (Index i = 0; i < piece.count; ++i)
        right = right && got[static_cast<std::size_t>(piece.offset + i)] ==
                             1000 * piece.peer + 10 * call.own + i;
    CHECK(right);
  }
}

TEST_CASE("the same, spinning, where that does not take for ever") {
  auto transport = world()->duplicate(waiting(Wait::spin));
  auto group = transport->group(detail::all_members(transport->size()), 1);
  const std::string text = transport->size() <= 2
                               ? cases::all_types_wrong(*group)
                               : cases::all_wrong<float>(*group, transport->size() <= 4 ? 40 : 1);
  if (transport->size() <= 4) CHECK_MESSAGE(text.empty(), text);
  if (transport->size() <= 2) {
    auto large = world()
                     ->duplicate(waiting(Wait::spin, 4))
                     ->group(detail::all_members(transport->size()), 1);
    const std::string large_text = cases::all_types_wrong(*large, 2);
    CHECK_MESSAGE(large_text.empty(), large_text);
  }
}

TEST_CASE(
    "waiting does not change results: floating sums have the same bits napping and spinning") {
  auto nap = world()->duplicate(waiting(Wait::nap));
  auto spin = world()->duplicate(waiting(Wait::spin));
  const int p = nap->size();
  auto napping = nap->group(detail::all_members(p), 1);
  auto spinning = spin->group(detail::all_members(p), 1);
  for (const Index n : {5, 3000, 60000, 200000}) {
    if (n > 60000 && p > 4) continue;
    for (const bool even : {true, false}) {
      std::vector<float> send(static_cast<std::size_t>(n * p + p * p));
      for (std::size_t i = 0; i < send.size(); ++i)
        send[i] =
            std::sin(static_cast<float>(i) * 0.37f + 1.7f * static_cast<float>(nap->process())) *
            std::exp(0.1f * static_cast<float>(nap->process()));
      Call call;
      call.kind = Collective::reduce_scatter;
      call.reduction = Reduction::sum;
      call.even = even;
      call.own = nap->process();
      call.members = p;
      Index at = 0;
      for (int to = 0; to < p; ++to) {
        const Index count = even ? n : n + to;
        call.send.push_back({to, at, count});
        if (to == call.own) call.receive = {{to, 0, count}};
        at += count;
      }
      std::vector<float> a(send.size());
      std::vector<float> b(send.size());
      napping->run(call, send.data(), a.data());
      spinning->run(call, send.data(), b.data());
      CHECK(std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0);

      call.kind = Collective::all_reduce;
      call.even = true;
      call.send = call.receive = {{call.own, 0, n}};
      napping->run(call, send.data(), a.data());
      spinning->run(call, send.data(), b.data());
      CHECK(std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0);
    }
  }
}

TEST_CASE("groups of some processes in any order; only members take part") {
  auto transport = world()->duplicate();
  const int p = transport->size();
  const int parity = transport->process() % 2;
  std::vector<int> members;
  for (int r = p - 1; r >= 0; --r)
    if (r % 2 == parity) members.push_back(r);
  auto group = transport->group(members, static_cast<std::uint64_t>(parity));
  CHECK(group->size() == static_cast<int>(members.size()));
  CHECK(members[static_cast<std::size_t>(group->own())] == transport->process());
  const std::string text = cases::all_wrong<double>(*group, 1);
  CHECK_MESSAGE(text.empty(), text);
}

TEST_CASE("an MPI error becomes an exception with function, code, class and text") {
  detail::check(MPI_SUCCESS, "MPI_Barrier");
  const std::string text =
      text_of<CommunicationError>([] { detail::check(MPI_ERR_COUNT, "MPI_Allreduce"); });
  CHECK(has(text, "MPI_Allreduce failed with code " + std::to_string(MPI_ERR_COUNT) + " of class " +
                      std::to_string(MPI_ERR_COUNT) + ": "));
  CHECK(has(text, "count"));
}

TEST_CASE("meshes over MPI: groups, agreement, refusal") {
  const int p = world()->size();
  std::vector<MeshShape> shapes{{p}, {1, p}, {p, 1}};
  if (p % 2 == 0) shapes.push_back({2, p / 2});
  if (p == 8) shapes.push_back({2, 2, 2});
  for (const MeshShape& shape : shapes) {
    auto mesh = make_mesh_core(world(), shape, {"a", "b", "c"}, {.check = Check::communicating});
    for (std::uint32_t bits = 1; bits <= shape.axes().bits; ++bits) {
      const AxisSet axes = AxisSet::from_bits(bits);
      std::int64_t x = 1 + 1000 * mesh->process();
      Call call = detail::control_all_reduce(mesh->group(axes), Reduction::sum, 1);
      call.group = axes;
      mesh->collective(call, &x, &x, "sum", Where::here());
      std::int64_t expected = 0;
      for (int k = 0; k < shape.group_size(axes); ++k)
        expected += 1 + 1000 * shape.process(shape.member(axes, mesh->coordinates(), k));
      CHECK(x == expected);
    }
    mesh->agree(5, "the same", Where::here());
    if (p > 1) {
      const std::string text = text_of<MismatchError>([&] {
        const bool last = mesh->process() == p - 1;
        mesh->agree(last ? 1 : 2, last ? "operator B" : "operator A", Where::here());
      });
      CHECK(has(text, "operator A"));
      CHECK(has(text, "operator B"));
      CHECK_FALSE(mesh->usable());
    }
  }
  CHECK(has(text_of<MeshError>([] {
              make_mesh_core(world(), MeshShape{world()->size() + 1, 2}, {"data", "model"});
            }),
            "but the communicator has"));
}

TEST_CASE("the arena's memory is shared by the node, or there is none; all say the same") {
  const int p = world()->size();
  for (const Index bytes : {Index{1} << 20, Index{0}, Index{1} << 60}) {
    auto mesh = make_mesh_core(world(), MeshShape{p}, {"data"}, {.arena_bytes = bytes});
    const Index window = mesh->arena().shared_bytes();
    if (bytes != Index{1} << 20 || p == 1) CHECK(window == 0);
    std::int64_t least = window;
    Call call = detail::control_all_reduce(mesh->group(AxisSet{0}), Reduction::min, 1);
    call.group = AxisSet{0};
    mesh->collective(call, &least, &least, "min", Where::here());
    CHECK(least == window);
    detail::Block a = mesh->arena().allocate(500 << 10);
    detail::Block b =
        mesh->arena().allocate(900 << 10);  // what does not fit goes to private memory
    std::memset(a.data, 1, static_cast<std::size_t>(a.bytes));
    std::memset(b.data, 2, static_cast<std::size_t>(b.bytes));
    CHECK(a.shared == (window > 0));
    CHECK_FALSE(b.shared);
    CHECK(mesh->arena().in_use() ==
          detail::arena_charge(500 << 10) + detail::arena_charge(900 << 10));
    mesh->arena().release(a);
    mesh->arena().release(b);
  }
}

TEST_CASE(
    "meshes come and go, in different orders on different processes, and their communicators are "
    "used again") {
  const int p = world()->size();
  const int rounds = p <= 2 ? 500 : 30;  // six communicators each: more than MPICH has
  std::shared_ptr<MeshCore> kept;
  for (int i = 0; i < rounds; ++i) {
    auto one = make_mesh_core(world(), MeshShape{p}, {"a"}, {.arena_bytes = 0});
    auto two = make_mesh_core(world(), MeshShape{1, p}, {"a", "b"},
                              {.arena_bytes = i % 50 == 0 ? 65536 : 0});
    one->group(AxisSet{0});
    two->group(AxisSet{0, 1});
    if (world()->process() % 2 == 0) one.reset();
    if (i % 7 == world()->process()) kept = two;
  }
  kept.reset();
  world()->barrier();
}

TEST_CASE(
    "the end of a program: the same exit code on all processes, 2 when all failures are the "
    "user's") {
  detail::MpiContext& context = support::environment().context();
  const int rank = context.process();
  const int last = context.size() - 1;
  const auto code = [&](auto program) {
    return detail::agree_on_ending(context, detail::ending_of(program, rank));
  };
  CHECK(code([] {}) == 0);
  {
    CHECK(detail::ending_of([] { throw UsageError("x"); }, 3).code == 2);
    CHECK(detail::ending_of([] { throw MeshError("x"); }, 3).text == "[tessera] process 3: x");
    CHECK(detail::ending_of([] { throw ShapeError("x"); }, 3).code == 1);
    CHECK(detail::ending_of([] { throw 3; }, 3).code == 1);
  }
  CHECK(code([&] {
          if (rank == last) throw MeshError("this line is part of a test: a user's failure");
        }) == 2);
  CHECK(code([&] {
          if (rank == last) throw ShapeError("this line is part of a test: a failure");
          throw UsageError("this line is part of a test: a user's failure");
        }) == 1);
}
