// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// together: reports
// Processes that diverge at one of a hundred operators are found by default: on 2 to 8 processes,
// shared memory on and off, for every pair of operators, wherever it is. Under mpiexec a sample of
// the same programs: mismatch/mismatch.cpp.
#include <doctest/doctest.h>

#include <algorithm>
#include <chrono>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "mismatch/divergence.hpp"

using namespace mismatch;

namespace {

struct Ending {
  std::vector<std::string> texts;
  double seconds = 0;
};

template <class F>
Ending ending_of(int processes, const F& program, TransportSettings settings = {}) {
  Ending ending;
  settings.time_limit = 100;
  ending.texts.assign(static_cast<std::size_t>(processes), "returned");
  const auto start = std::chrono::steady_clock::now();
  try {
    run_loopback(processes,
                 [&](std::shared_ptr<Transport> world) {
                   try {
                     program(world->duplicate(settings));
                   } catch (const std::exception& error) {
                     ending.texts[static_cast<std::size_t>(world->process())] = error.what();
                     throw;
                   }
                 },
                 {100});
  } catch (const std::exception&) {
  }
  ending.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return ending;
}

double longest = 0;

/// Returns what is wrong with how a program ends, or nothing.
std::string fault(const Divergence& d, int processes, int odd, Shared shared) {
  const Ending ending = ending_of(processes, [&](std::shared_ptr<Transport> world) {
    Part part{world, sizes<mismatch::Grid>(processes, 1), world->process() == odd, Check::normal,
              shared};
    run(d, part, [] {});
  });
  longest = std::max(longest, ending.seconds);
  const std::string name = std::string(way_names[static_cast<std::size_t>(d.way)]) + " at " +
                           std::to_string(d.at) + ", process " + std::to_string(odd) + " of " +
                           std::to_string(processes) + ": ";
  if (ending.seconds > 5) return name + "took " + std::to_string(ending.seconds) + " s";
  const auto words = words_of(d);
  const std::string rule = d.way == Way::late ? "has ended" : "all processes must call the same";
  std::string all;
  for (const std::string& text : ending.texts) {
    if (text == "returned" && d.way != Way::late) return name + "a process returned";
    all += text + "\n";
    const auto first = text.find(words[0]);
    const bool both =
        d.way == Way::operands || d.way == Way::late
            ? first != std::string::npos && text.find(words[1], first + 1) != std::string::npos
            : first != std::string::npos && text.find(words[1]) != std::string::npos;
    const auto place = text.find("(at divergence.hpp:");
    if (both && text.find(rule) != std::string::npos && place != std::string::npos &&
        text.find("(at divergence.hpp:", place + 1) != std::string::npos)
      return {};
  }
  return name + "nobody is told both of " + words[0] + " and " + words[1] + ":\n" + all;
}

}  // namespace

TEST_CASE("every pair of operators is told apart") {
  std::mt19937 random(7);
  int count = 0;
  for (int regular = 0; regular < kind_count; ++regular)
    for (int odd = 0; odd < kind_count; ++odd) {
      if (regular == odd) continue;
      const int processes = 2 + static_cast<int>(random() % 7);
      const int who = static_cast<int>(random() % static_cast<unsigned>(processes));
      const int at = static_cast<int>(random() % divergence_length);
      const std::string text = fault({Way::kind, at, regular, odd}, processes, who,
                                     random() % 2 == 0 ? Shared::on : Shared::off);
      CHECK_MESSAGE(text.empty(), text);
      ++count;
    }
  CHECK(count == kind_count * (kind_count - 1));
  MESSAGE("the longest program took " << longest << " s");
}

TEST_CASE("every way to diverge, at the first, the last and other operators, on 2 to 8 processes") {
  longest = 0;
  for (const Way way : {Way::operands, Way::extents, Way::more, Way::less})
    for (const Shared shared : {Shared::on, Shared::off})
      for (int processes = 2; processes <= 8; ++processes)
        for (const int at : {0, 13 * processes - 20, 98}) {
          const std::string text =
              fault({way, at}, processes, (at + processes) % processes, shared);
          CHECK_MESSAGE(text.empty(), text);
        }
  MESSAGE("the longest program took " << longest << " s");
}

TEST_CASE("an operator less of a hundred that are alike shows when the others end") {
  longest = 0;
  for (const int processes : {2, 3, 8}) {
    const std::string text = fault({Way::late, 40}, processes, processes - 1, Shared::off);
    CHECK_MESSAGE(text.empty(), text);
  }
  MESSAGE("the longest program took " << longest << " s");
}

TEST_CASE("level none goes without, and what is no divergence is none") {
  const auto both = [](Check check, auto program) {
    return ending_of(4, [&](std::shared_ptr<Transport> world) {
      program(Part{world, sizes<mismatch::Grid>(2, 2), world->process() == 3, check});
    });
  };
  const auto sums = [](const Part& p) {
    const auto mesh = p.mesh();
    const auto x = matrix(mesh), y = matrix(mesh);
    reduce<Sum>("ij->j", p.odd ? y : x, whole(1));
    reduce<Sum>("ij->j", p.odd ? x : y, whole(1));
  };
  for (const std::string& text : both(Check::none, sums).texts) CHECK(text == "returned");
  for (const std::string& text : both(Check::light, sums).texts) CHECK(text == "returned");
  for (const Check check : {Check::normal, Check::communicating, Check::heavy}) {
    int told = 0;
    for (const std::string& text : both(check, sums).texts) {
      // At level normal nobody waits: who was through before the other came could not know.
      if (check >= Check::communicating) CHECK(text != "returned");
      told += text.find("all processes must call the same operators") != std::string::npos;
    }
    CHECK(told > 0);
  }
  // What a process does on its own, without communication, is its own matter at level normal.
  const auto alone = [](const Part& p) {
    const auto mesh = p.mesh();
    const auto x = matrix(mesh);
    for (int step = 0; step < 200; ++step) {
      if (p.odd) {
        matrix(mesh, DType::f64, {100, 3});
        map_dynamic<float>("ij->ij", fn::Exp{}, split_rows(), x);
      }
      reduce<Sum>("ij->j", x, whole(1));
      if (step % 50 == 0) mesh.core()->barrier();
    }
  };
  for (const std::string& text : both(Check::normal, alone).texts) CHECK(text == "returned");
}

TEST_CASE("processes of one mesh that go far ahead of others are not taken for others") {
  // Rows of a grid communicate among themselves: one may be hundreds of operators ahead.
  const Ending ending = ending_of(4, [](std::shared_ptr<Transport> world) {
    const bool slow = world->process() < 2;
    const Part part{world, sizes<mismatch::Grid>(2, 2), false, Check::normal};
    const auto mesh = part.mesh();
    const auto x = matrix(mesh, DType::f32, {6, 6}, split_columns());
    for (int step = 0; step < 400; ++step) {
      reduce<Sum>("ij->j",
                  matrix(mesh, DType::f32, {6, 6}, named_sharding<mismatch::Grid, P<columns, _>>()),
                  whole(1));
      reshard(x, named_sharding<mismatch::Grid, P<_, _>>());
      if (slow && step % 40 == 0) std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
  });
  for (const std::string& text : ending.texts) CHECK(text == "returned");
}

TEST_CASE("between nodes operators are compared every 64th time") {
  TransportSettings settings;
  settings.processes_per_node = 1;
  for (const int at : {0, 30, 63, 64, 90}) {
    const Ending ending = ending_of(
        3,
        [&](std::shared_ptr<Transport> world) {
          const Part part{world, sizes<mismatch::Grid>(3, 1), world->process() == 1, Check::normal};
          const auto mesh = part.mesh();
          const auto x = matrix(mesh), y = matrix(mesh);
          for (int step = 0; step < 130; ++step)
            reduce<Sum>("ij->j", part.odd && step == at ? y : x, whole(1));
        },
        settings);
    for (const std::string& text : ending.texts) {
      CHECK_MESSAGE(text.find("calls sum ij->j of float 6x6") != std::string::npos, text);
      CHECK_MESSAGE(text.find("but process ") != std::string::npos, text);
    }
  }
}

TEST_CASE("a mesh belongs to the thread that made it") {
  std::string text = "nothing was thrown";
  run_loopback(2, [&](std::shared_ptr<Transport> world) {
    const auto mesh = make_mesh<mismatch::Grid>(world, sizes<mismatch::Grid>(2, 1));
    const auto x = matrix(mesh);
    if (world->process() == 0)
      std::thread([&] {
        try {
          reduce<Sum>("ij->j", x, whole(1));
        } catch (const UsageError& error) {
          text = error.what();
        }
      }).join();
    reduce<Sum>("ij->j", x, whole(1));
  });
  CHECK_MESSAGE(text.find("used by another thread than the one that made it") != std::string::npos,
                text);
  CHECK_MESSAGE(text.find("(at divergence.loopback.cpp:") != std::string::npos, text);
}
