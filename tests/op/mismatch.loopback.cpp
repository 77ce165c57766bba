// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// together: reports
// Processes that do not do the same: on every mesh, whoever deviates, every process is told both
// sides and where. What takes a job of its own: mismatch/mismatch.cpp.
#include <doctest/doctest.h>

#include <chrono>
#include <mutex>
#include <stdexcept>
#include <thread>

#include "mismatch/cases.hpp"

using namespace mismatch;

namespace {

const MeshSizes<mismatch::Grid> meshes[] = {
    sizes<mismatch::Grid>(2, 1), sizes<mismatch::Grid>(1, 3), sizes<mismatch::Grid>(2, 2),
    sizes<mismatch::Grid>(3, 2)};

/// Runs a program in which process `odd` deviates; returns what each process ended with.
std::vector<std::string> endings(const MeshSizes<mismatch::Grid>& size, int odd,
                                 void (*program)(const Part&), double limit = 20) {
  std::vector<std::string> texts(static_cast<std::size_t>(size.shape.processes()), "returned");
  try {
    run_loopback(size.shape.processes(),
                 [&](std::shared_ptr<Transport> world) {
                   const auto process = static_cast<std::size_t>(world->process());
                   try {
                     program({world, size, world->process() == odd});
                   } catch (const std::exception& error) {
                     texts[process] = error.what();
                     throw;
                   }
                 },
                 {limit});
  } catch (const std::exception&) {
  }
  return texts;
}

/// Returns what is wrong with the endings of processes of which one deviated.
std::string told_both(const Deviation& d, const MeshSizes<mismatch::Grid>& size, int odd) {
  const std::vector<std::string> texts = endings(size, odd, d.run);
  for (int process = 0; process < size.shape.processes(); ++process) {
    const std::string& text = texts[static_cast<std::size_t>(process)];
    const bool own_odd = process == odd;
    const auto own = text.find("process " + std::to_string(process) + " calls ");
    const auto other = text.find("but process ");
    const bool said =
        own != std::string::npos && other != std::string::npos && own < other &&
        text.substr(own, other - own).find(own_odd ? d.odd : d.regular) != std::string::npos &&
        text.substr(other).find(own_odd ? d.regular : d.odd) != std::string::npos;
    if (!said)
      return std::string(d.name) + ", process " + std::to_string(odd) + " deviates, process " +
             std::to_string(process) + ": " + text;
  }
  return {};
}

template <std::size_t N> int check_all(const Deviation (&deviations)[N]) {
  int count = 0;
  for (const Deviation& d : deviations)
    for (const MeshSizes<mismatch::Grid>& size : meshes)
      for (const int odd : {0, size.shape.processes() - 1}) {
        const std::string text = told_both(d, size, odd);
        CHECK_MESSAGE(text.empty(), text);
        ++count;
      }
  return count;
}

bool has(const std::string& text, const std::string& part) {
  const bool found = text.find(part) != std::string::npos;
  if (!found) MESSAGE("\"" << part << "\" is not in: " << text);
  return found;
}

}  // namespace

TEST_CASE("different calls: every process is told both") {
  CHECK(check_all(different_calls) == 32 * 4 * 2);
}

TEST_CASE("different meshes: every process is told both") {
  CHECK(check_all(different_meshes) == 6 * 4 * 2);
}

namespace {
/// A function with padding, a pointer and the place where a process has its own numbers.
struct Padded {
  float factor;
  double more;
  const double* table;
  char sign;
  KOKKOS_FUNCTION double operator()(double x) const { return factor * x + more; }
};
}  // namespace

TEST_CASE("padding and pointers of a function differ on processes, and are no numbers") {
  run_loopback(3, [](std::shared_ptr<Transport> world) {
    MeshOptions options;
    options.check = Check::heavy;
    const auto mesh = make_mesh<mismatch::Grid>(world, sizes<mismatch::Grid>(3, 1), options);
    const std::vector<double> own(static_cast<std::size_t>(world->process() + 1), 1);
    alignas(Padded) unsigned char memory[sizeof(Padded)];
    std::memset(memory, 17 * (world->process() + 1), sizeof memory);
    auto& f = *reinterpret_cast<Padded*>(memory);
    f.factor = 2;
    f.more = 3;
    f.table = own.data();
    f.sign = '-';
    const auto x = zeros<ShardedTensor<double, mismatch::Grid, P<rows, _>>>(mesh, 6, 6);
    const auto y = map(f, x);
    const double more = 3;
    const auto z =
        map([table = own.data(), more](double a) { return table == nullptr ? a : a + more; }, y);
    const auto w = map_with_index(
        [table = own.data()](const GlobalIndex& i, double a) {
          return table == nullptr ? a : a + static_cast<double>(i[0]);
        },
        z);
    CHECK(to_host(sum<"ij->">(w)).values[0] == 36 * 6 + 6 * 15);
  });
}

TEST_CASE("an operator's error names the place of the call, the process and its coordinates") {
  const auto texts = endings(sizes<mismatch::Grid>(2, 2), 3, [](const Part& p) {
    const auto x = matrix(p.mesh());
    reduce<Sum>(p.odd ? "ij->j" : "ij->i", x);
  });
  CHECK(has(texts[3], "(at mismatch.loopback.cpp:"));
  CHECK(has(texts[3], "on process 3: rows=1, columns=1)"));
  CHECK(has(texts[0], "on process 0: rows=0, columns=0)"));
  const auto shapes = endings(sizes<mismatch::Grid>(1, 2), -1, [](const Part& p) {
    const auto mesh = p.mesh();
    einsum("ik,kj->ij", matrix(mesh), matrix(mesh, DType::f32, {5, 6}), whole(2));
  });
  CHECK(has(shapes[1], "k is 6 in operand 1"));
  CHECK(has(shapes[1], "on process 1: rows=0, columns=1)"));
}

TEST_CASE("typed operators and maps name the place of the call") {
  using Real = ShardedTensor<float, mismatch::Grid, P<rows, _>>;
  const auto place = [](auto call) {
    std::string text = "nothing was thrown";
    run_loopback(1, [&](std::shared_ptr<Transport> world) {
      const auto mesh = make_mesh<mismatch::Grid>(world, sizes<mismatch::Grid>(1, 1));
      try {
        call(zeros<Real>(mesh, 4, 3), zeros<Real>(mesh, 4, 2));
      } catch (const Error& error) {
        text = to_string(error.where());
      }
    });
    return text;
  };
  const auto here = [](int line) { return "mismatch.loopback.cpp:" + std::to_string(line); };
  CHECK(place([](auto x, auto y) { maximum(x, y); }) == here(__LINE__));
  CHECK(place([](auto x, auto y) { x + y; }) == here(__LINE__));
  CHECK(place([](auto x, auto y) { x - y; }) == here(__LINE__));
  CHECK(place([](auto x, auto y) { x* y; }) == here(__LINE__));
  CHECK(place([](auto x, auto y) { x / y; }) == here(__LINE__));
  CHECK(place([](auto x, auto y) { (void)(x < y); }) == here(__LINE__));
  CHECK(place([](auto x, auto y) { (void)(x >= y); }) == here(__LINE__));
  CHECK(place([](auto x, auto y) { x += y; }) == here(__LINE__));
  CHECK(place([](auto x, auto y) { x *= y; }) == here(__LINE__));
  CHECK(place([](auto x, auto y) { axpy(2, x, y); }) == here(__LINE__));
  CHECK(place([](auto x, auto y) { map_into(at(), x, fn::Add{}, x, y); }) == here(__LINE__));
  CHECK(place([](auto x, auto y) { map(fn::Add{}, x, y); }) == here(__LINE__));
  CHECK(place([](auto x, auto y) { map<"ab,ab->ab">(fn::Add{}, x, y); }) == here(__LINE__));
  CHECK(place([](auto x, auto y) { einsum<"ik,jk->ij">(x, y); }) == here(__LINE__));
  CHECK(place([](auto x, auto y) { einsum<"ik,jk,lk->i">(x, y, x); }) == here(__LINE__));
  CHECK(place([](auto, auto) { exp(Real{}); }) == here(__LINE__));
  CHECK(place([](auto, auto) { sum(Real{}); }) == here(__LINE__));
  CHECK(place([](auto, auto) { replicate(Real{}); }) == here(__LINE__));
  CHECK(place([](auto, auto) { transpose<"ij->ji">(Real{}); }) == here(__LINE__));
}

TEST_CASE("a tensor more on one process is nobody else's matter") {
  const auto texts = endings(sizes<mismatch::Grid>(2, 2), 1, [](const Part& p) {
    const auto mesh = p.mesh();
    const auto x = matrix(mesh);
    if (p.odd) matrix(mesh, DType::f64, {100, 3});
    reduce<Sum>("ij->j", x, whole(1));
  });
  for (const std::string& text : texts) CHECK(text == "returned");
}

TEST_CASE("a process that throws, whatever it throws, ends the others' waits") {
  for (int odd = 0; odd < 4; ++odd) {
    const auto texts = endings(sizes<mismatch::Grid>(2, 2), odd, [](const Part& p) {
      const auto x = matrix(p.mesh());
      reduce<Sum>("ij->j", x, whole(1));
      if (p.odd) throw std::runtime_error("planted");
      reshard(x, whole(2));
    });
    for (int process = 0; process < 4; ++process)
      if (process == odd)
        CHECK(texts[static_cast<std::size_t>(process)] == "planted");
      else
        CHECK(has(texts[static_cast<std::size_t>(process)],
                  "process " + std::to_string(odd) + " failed while process " +
                      std::to_string(process) + " made a call with others: planted"));
  }
  std::string none = "nothing";
  try {
    run_loopback(2, [](std::shared_ptr<Transport> world) {
      if (world->process() == 1) throw 42;
      world->barrier();
    });
  } catch (int value) {
    none = std::to_string(value);
  }
  CHECK(none == "42");
}

TEST_CASE("a process that has returned is not waited for") {
  for (int odd = 0; odd < 4; ++odd) {
    const auto texts = endings(sizes<mismatch::Grid>(2, 2), odd, [](const Part& p) {
      const auto x = matrix(p.mesh());
      if (p.odd) return;
      reduce<Sum>("ij->j", x, whole(1));
    });
    for (int process = 0; process < 4; ++process)
      if (process == odd)
        CHECK(texts[static_cast<std::size_t>(process)] == "returned");
      else
        CHECK(has(texts[static_cast<std::size_t>(process)],
                  "process " + std::to_string(odd) + " has ended, but process "));
  }
}

TEST_CASE("a process that makes a mesh more stands in another call: found without the limit") {
  for (const bool first : {true, false}) {
    const auto texts = endings(
        sizes<mismatch::Grid>(2, 1), first ? 0 : 1,
        [](const Part& p) {
          const auto x = matrix(p.mesh());
          if (p.odd) p.mesh();
          reduce<Sum>("ij->j", x, whole(1));
        },
        60);
    const std::string both = texts[0] + texts[1];
    CHECK(has(both, "stands in another call than process "));
    CHECK(has(both, "waits in the making of a mesh for rows=2 x columns=1 (at cases.hpp:"));
    CHECK(has(both, "sum ij->j of float 6x6 P<rows,_>"));
  }
}

TEST_CASE("a process that computes for long is waited for to the limit") {
  const auto texts = endings(
      sizes<mismatch::Grid>(2, 1), 1,
      [](const Part& p) {
        const auto x = matrix(p.mesh());
        if (p.odd) std::this_thread::sleep_for(std::chrono::milliseconds(1500));
        reduce<Sum>("ij->j", x, whole(1));
      },
      0.4);
  CHECK(has(texts[0], "process 0 has waited longer than the limit of 0.4 s"));
  const auto patient = endings(
      sizes<mismatch::Grid>(2, 1), 1,
      [](const Part& p) {
        const auto x = matrix(p.mesh());
        if (p.odd) std::this_thread::sleep_for(std::chrono::milliseconds(1500));
        reduce<Sum>("ij->j", x, whole(1));
      },
      60);
  CHECK(patient[0] == "returned");
  CHECK(patient[1] == "returned");
}

TEST_CASE("a user's error on one process alone ends all, though nobody compares operators") {
  const auto texts = endings(sizes<mismatch::Grid>(2, 2), 2, [](const Part& part) {
    Part p = part;
    p.check = Check::normal;
    const auto mesh = p.mesh();
    const auto x = matrix(mesh);
    einsum("ik,kj->ij", x, p.odd ? matrix(mesh, DType::f32, {5, 6}) : x, whole(2));
  });
  CHECK(has(texts[2], "k is 6 in operand 1"));
  CHECK(has(texts[0], "process 2 failed while process 0 made a call with others"));
}
