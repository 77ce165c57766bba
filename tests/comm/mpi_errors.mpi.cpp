// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// together: transport
// Every call of MPI's that fails on all processes is an exception on all, and the next mesh is
// well. Failures on one process alone end the job: mismatch/mismatch.cpp.
#include <doctest/doctest.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <tessera/comm/mesh_core.hpp>

#include "comm/collective_cases.hpp"
#include "support/pmpi.hpp"
#include "support/world.hpp"

using namespace tessera;

namespace {

const std::shared_ptr<Transport>& world() { return support::world(); }

std::shared_ptr<Transport> transport(Wait wait, Shared shared = Shared::off,
                                     Index large_count = INT_MAX, bool pieces = false) {
  TransportSettings settings = world()->settings();
  settings.wait = wait;
  settings.shared = shared;
  settings.shared_least = 1;
  settings.large_count = large_count;
  settings.large_in_pieces = pieces;
  return world()->duplicate(settings);
}
std::shared_ptr<detail::Group> everybody(Transport& of) {
  return of.group(detail::all_members(of.size()), 1);
}

/// Makes every kind of call in two shapes; stops at the first exception, which it returns.
std::string run_all(detail::Group& group) {
  // When a wait fails the call goes on, and what it writes to has to stay.
  static std::vector<std::shared_ptr<void>> kept;
  try {
    for (const Collective kind : cases::kinds)
      for (const cases::Shape shape : {cases::Shape::even, cases::Shape::ragged}) {
        auto made =
            cases::make_case<float>(kind, shape, Reduction::sum, group.own(), group.size(), 2);
        const auto c = std::make_shared<decltype(made)>(std::move(made));
        kept.push_back(c);
        group.run(c->call, c->send.data(), c->receive.data());
      }
  } catch (const CommunicationError& error) {
    return error.what();
  }
  return "nothing was thrown";
}

/// Returns whether the order to fail was carried out and told.
bool told(const std::string& function, const std::string& said, const std::string& text) {
  // Numbers and texts are each MPI library's own.
  char words[MPI_MAX_ERROR_STRING] = {};
  int length = 0;
  MPI_Error_string(MPI_ERR_INTERN, words, &length);
  const std::string expected = said + " failed with code " + std::to_string(MPI_ERR_INTERN) +
                               " of class " + std::to_string(MPI_ERR_INTERN) + ": " + words;
  const bool good =
      support::pmpi::failed() && length > 0 && text.find(expected) != std::string::npos;
  if (!good) MESSAGE(function << ": " << text);
  support::pmpi::fail("", MPI_SUCCESS);
  return good;
}

}  // namespace

TEST_CASE("a call of MPI's that fails on all processes is an exception on all") {
  if (world()->size() == 1) return;  // no calls are made
  struct Way {
    Wait wait;
    Index large_count;
    bool pieces;
    std::vector<const char*> functions;
  };
  std::vector<Way> ways{
      {Wait::nap,
       INT_MAX,
       false,
       {"MPI_Iallgather", "MPI_Iallgatherv", "MPI_Ialltoall", "MPI_Ialltoallv",
        "MPI_Ireduce_scatter", "MPI_Iallreduce", "MPI_Isend", "MPI_Irecv"}},
      {Wait::nap, 1, true, {"MPI_Ireduce", "MPI_Iallreduce", "MPI_Isend", "MPI_Irecv"}}};
#if TESSERA_MPI_LARGE_COUNTS
  ways.push_back({Wait::nap,
                  1,
                  false,
                  {"MPI_Iallgather_c", "MPI_Iallgatherv_c", "MPI_Ialltoall_c", "MPI_Ialltoallv_c",
                   "MPI_Ireduce_scatter_c", "MPI_Iallreduce_c", "MPI_Isend_c", "MPI_Irecv_c"}});
#endif
  if (world()->size() <= 2) {  // spinning takes long with more processes than cores
    ways.push_back({Wait::spin,
                    INT_MAX,
                    false,
                    {"MPI_Allgather", "MPI_Allgatherv", "MPI_Alltoall", "MPI_Alltoallv"}});
#if TESSERA_MPI_LARGE_COUNTS
    ways.push_back({Wait::spin,
                    1,
                    false,
                    {"MPI_Allgather_c", "MPI_Allgatherv_c", "MPI_Alltoall_c", "MPI_Alltoallv_c"}});
#endif
  }
  for (const Way& way : ways)
    for (const char* function : way.functions) {
      auto of = transport(way.wait, Shared::off, way.large_count, way.pieces);
      auto group = everybody(*of);
      support::pmpi::fail(function, MPI_ERR_INTERN);
      std::string said = function;  // large-count forms go by the name of the operation
      if (said.ends_with("_c")) said.resize(said.size() - 2);
      CHECK(told(function, said, run_all(*group)));
    }
  auto after = transport(Wait::nap);
  const std::string text = cases::all_wrong<double>(*everybody(*after), 1);
  CHECK_MESSAGE(text.empty(), text);
}

TEST_CASE("a wait of MPI's that fails names the call that was waited for") {
  if (world()->size() == 1) return;
  auto napping = transport(Wait::nap);
  auto group = everybody(*napping);
  support::pmpi::fail("MPI_Test", MPI_ERR_INTERN);
  CHECK(told("MPI_Test", "MPI_Iallgather", run_all(*group)));
  auto spinning = transport(Wait::spin);
  auto other = everybody(*spinning);
  Call call = cases::make_case<float>(Collective::exchange, cases::Shape::even, Reduction::sum,
                                      other->own(), other->size(), 1)
                  .call;
  static std::vector<float> buffers[2] = {std::vector<float>(1000), std::vector<float>(1000)};
  support::pmpi::fail("MPI_Wait", MPI_ERR_INTERN);
  std::string text;
  try {
    other->run(call, buffers[0].data(), buffers[1].data());
  } catch (const CommunicationError& error) {
    text = error.what();
  }
  CHECK(told("MPI_Wait", "MPI_Wait", text));
}

TEST_CASE(
    "what fails while a transport, a group, shared memory or a mesh is made is an exception") {
  if (world()->size() == 1) return;
  const int p = world()->size();
  const auto mesh = [&] { make_mesh_core(world(), MeshShape{p}, {"data"})->group(AxisSet{0}); };
  const auto some = [&] {  // all but the first in a group, the first alone
    std::vector<int> members;
    for (int r = 1; r < p; ++r) members.push_back(r);
    auto of = world()->duplicate();
    if (world()->process() == 0)
      of->group({0}, 1);
    else
      of->group(members, 1);
  };
  const auto memory = [&] {
    auto of = transport(Wait::nap, Shared::on);
    const std::string text = run_all(*everybody(*of));
    if (text != "nothing was thrown") throw CommunicationError(text);
  };
  const auto copy = [] { mpi_transport(MPI_COMM_WORLD); };
  struct Making {
    const char* function;
    std::function<void()> make;
    bool all = true;  ///< the first process too makes this call
  };
  std::vector<Making> makings{{"MPI_Comm_idup", mesh},
                              {"MPI_Comm_set_errhandler", mesh},
                              {"MPI_Ibarrier", [] { world()->duplicate()->barrier(); }},
                              {"MPI_Comm_dup", copy},
                              {"MPI_Comm_split_type", copy},
                              {"MPI_Comm_rank", copy},
                              {"MPI_Iallgather", copy},
                              {"MPI_Iallreduce", copy},
                              {"MPI_Iallgather", memory},
                              {"MPI_Iallreduce", memory}};
  if (p > 2) {
    makings.push_back({"MPI_Comm_create_group", some, false});
    makings.push_back({"MPI_Comm_group", some, false});
    makings.push_back({"MPI_Group_incl", some, false});
  }
  for (const Making& making : makings) {
    if (making.all || world()->process() > 0) support::pmpi::fail(making.function, MPI_ERR_INTERN);
    std::string text = "nothing was thrown";
    try {
      making.make();
    } catch (const CommunicationError& error) {
      text = error.what();
    }
    if (making.all || world()->process() > 0)
      CHECK(told(making.function, making.function, text));
    else
      CHECK(text == "nothing was thrown");
  }
  mesh();
}
