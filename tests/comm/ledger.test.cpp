// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <doctest/doctest.h>

#include <cstdlib>
#include <string>

#include <tessera/comm/check.hpp>
#include <tessera/comm/detail/mix.hpp>
#include <tessera/comm/dry.hpp>
#include <tessera/comm/fake.hpp>
#include <tessera/comm/ledger.hpp>
#include <tessera/comm/wait.hpp>

#include "collective_cases.hpp"

using namespace tessera;

TEST_CASE("a ledger sums calls, messages and payload by kind, group and axis") {
  Ledger ledger;
  Call gather =
      cases::make_case<float>(Collective::all_gather, cases::Shape::even, Reduction::none, 1, 4, 1)
          .call;
  gather.group = AxisSet{0};
  Call reduce =
      cases::make_case<double>(Collective::all_reduce, cases::Shape::even, Reduction::sum, 1, 3, 1)
          .call;
  reduce.group = AxisSet{0, 1};
  Call exchange;
  exchange.kind = Collective::exchange;
  exchange.type = DType::i32;
  exchange.group = AxisSet{1};
  exchange.members = 4;
  exchange.send = {{2, 0, 5}, {3, 5, 0}};

  ledger.add(gather);
  ledger.add(gather);
  ledger.add(reduce);
  ledger.add(exchange);
  CHECK(ledger.of(all_gather, AxisSet{0}) == Traffic{2, 4, 2 * 3 * 3 * 4});
  CHECK(ledger.of(all_reduce, AxisSet{0, 1}) == Traffic{1, 4, 2 * (3 - 1) * 8});
  CHECK(ledger.of(Collective::exchange) == Traffic{1, 1, 5 * 4});
  CHECK(ledger.count(all_gather) == 2);
  CHECK(ledger.count(reduce_scatter) == 0);
  CHECK(ledger.payload_bytes() == 72 + 32 + 20);
  CHECK(ledger.payload_bytes(AxisSet{0}) == 72);
  CHECK(ledger.over_axis(0).payload_bytes == 72 + 32);
  CHECK(ledger.over_axis(1).payload_bytes == 32 + 20);
  CHECK(ledger.total() == Traffic{4, 9, 124});
  CHECK(ledger.calls().empty());

  ledger.record_calls(true);
  ledger.add(exchange);
  REQUIRE(ledger.calls().size() == 1);
  CHECK(ledger.calls()[0] == exchange);
  ledger.reset();
  CHECK(ledger.total() == Traffic{});
  CHECK(ledger.calls().empty());
}

TEST_CASE("the dry transport is any size and does nothing") {
  auto transport = dry_transport(4096, 17);
  CHECK(transport->dry());
  CHECK(transport->size() == 4096);
  CHECK(transport->process() == 17);
  auto group = transport->group({1, 17, 4095}, 1);
  CHECK(group->own() == 1);
  CHECK(group->size() == 3);
  Call call = detail::control_all_reduce(*group, Reduction::sum, 1 << 20);
  group->run(call, nullptr, nullptr);
  transport->barrier();
  CHECK(transport->duplicate()->process() == 17);
  CHECK_THROWS_AS(dry_transport(4, 4), UsageError);
  CHECK_THROWS_AS(dry_transport(0), UsageError);
}

TEST_CASE("a process without the others receives what it sends, and of a sum its own part") {
  const auto transport = fake_transport(1024, 3);
  CHECK(!transport->dry());
  CHECK(transport->alone());
  CHECK(!dry_transport(2)->alone());
  CHECK(transport->name() == "fake");
  CHECK(transport->duplicate()->process() == 3);
  CHECK(transport->among({1, 3, 1023})->process() == 1);
  CHECK(transport->among({1, 3, 1023})->processes() == std::vector<int>{1, 3, 1023});
  CHECK_THROWS_WITH_AS(fake_transport(4, 4),
                       doctest::Contains("a fake transport was asked for process 4 of 4"),
                       UsageError);
  const auto group = transport->group({1, 3, 1023}, 1);
  CHECK(group->own() == 1);
  const auto made = [&](Collective kind, std::vector<Piece> send, std::vector<Piece> receive,
                        bool own_stays = false) {
    Call call;
    call.kind = kind;
    call.type = DType::i32;
    call.own = 1;
    call.members = 3;
    call.send = std::move(send);
    call.receive = std::move(receive);
    call.own_stays = own_stays;
    const std::vector<std::int32_t> from{1, 2, 3, 4, 5, 6};
    std::vector<std::int32_t> to(6, -1);
    group->run(call, from.data(), to.data());
    return to;
  };
  using Numbers = std::vector<std::int32_t>;
  CHECK(made(all_gather, {{1, 0, 2}}, {{0, 0, 2}, {1, 2, 2}, {2, 4, 1}}) ==
        Numbers{1, 2, 1, 2, 1, -1});
  CHECK(made(all_gather, {{1, 0, 2}}, {{0, 0, 2}, {1, 2, 2}, {2, 4, 1}}, true) ==
        Numbers{1, 2, -1, -1, 1, -1});
  CHECK(made(all_reduce, {{1, 1, 3}}, {{1, 2, 3}}) == Numbers{-1, -1, 2, 3, 4, -1});
  CHECK(made(reduce_scatter, {{0, 0, 2}, {1, 2, 2}, {2, 4, 2}}, {{1, 0, 2}}) ==
        Numbers{3, 4, -1, -1, -1, -1});
  CHECK(made(all_to_all, {{0, 0, 1}, {1, 1, 1}, {2, 2, 4}}, {{0, 0, 1}, {1, 1, 1}, {2, 2, 2}}) ==
        Numbers{1, 2, 3, 4, -1, -1});
  CHECK(made(collective_permute, {{2, 3, 2}}, {{0, 0, 5}}) == Numbers{4, 5, 4, 5, 4, -1});
  CHECK(made(Collective::exchange, {}, {{0, 1, 2}}) == Numbers{-1, 0, 0, -1, -1, -1});
  CHECK(made(Collective::broadcast, {{1, 0, 2}}, {}) == Numbers(6, -1));
}

TEST_CASE("waiting is chosen from processes and cores, unless it is said") {
  static_assert(detail::choose_wait(Wait::automatic, 2, 2) == Wait::spin);
  static_assert(detail::choose_wait(Wait::automatic, 3, 2) == Wait::nap);
  static_assert(detail::choose_wait(Wait::spin, 3, 2) == Wait::spin);
  CHECK(detail::core_count(detail::usable_processors()) >= 1);
  detail::ProcessorMask mask{};
  CHECK(detail::core_count(mask) == 1);
}

TEST_CASE("environment variables are read strictly") {
  const auto text = [](auto f) {
    try {
      f();
    } catch (const UsageError& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  setenv("TESSERA_WAIT", "doze", 1);
  CHECK(text([] { detail::wait_from_environment(); }) ==
        "[tessera] TESSERA_WAIT is \"doze\"; it is one of automatic, spin, nap: set it so, or "
        "unset it");
  setenv("TESSERA_WAIT", "nap", 1);
  CHECK(detail::wait_from_environment() == Wait::nap);
  unsetenv("TESSERA_WAIT");
  CHECK(detail::wait_from_environment() == Wait::automatic);
  CHECK(detail::wait_from_environment(Wait::spin) == Wait::spin);
  setenv("TESSERA_CHECK", "heavy", 1);
  CHECK(detail::check_from_environment() == Check::heavy);
  CHECK(detail::find_from_environment() == Find::nothing);
  setenv("TESSERA_CHECK", "light,nan", 1);
  CHECK(detail::check_from_environment() == Check::light);
  CHECK(detail::find_from_environment() == Find::nan_and_infinity);
  setenv("TESSERA_CHECK", "nan_alone", 1);
  CHECK(detail::check_from_environment() == Check::normal);
  CHECK(detail::find_from_environment() == Find::nan);
  setenv("TESSERA_CHECK", "nan,much", 1);
  CHECK(text([] { detail::check_from_environment(); }) ==
        "[tessera] TESSERA_CHECK is \"much\"; it is one of none, light, normal, communicating, "
        "heavy, nan, nan_alone: set it so, or unset it");
  unsetenv("TESSERA_CHECK");
  CHECK(detail::check_from_environment() == Check::normal);
  for (const char* bad : {"ten", "-1", "3x", "nan"}) {
    setenv("TESSERA_TIME_LIMIT", bad, 1);
    CHECK(text([] { detail::settings_from_environment(); }).find("TESSERA_TIME_LIMIT") !=
          std::string::npos);
  }
  setenv("TESSERA_TIME_LIMIT", "2.5", 1);
  CHECK(detail::settings_from_environment().time_limit == 2.5);
  unsetenv("TESSERA_TIME_LIMIT");
  CHECK(detail::settings_from_environment().time_limit == 600);
}

TEST_CASE("digests tell texts and numbers apart") {
  using detail::mix;
  static_assert(mix(mix(0, 1), 2) != mix(mix(0, 2), 1));
  static_assert(mix(mix(0, "ab"), "c") != mix(mix(0, "a"), "bc"));
  static_assert(mix(0, "") != 0);
}
