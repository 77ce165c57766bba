// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Memory that the processes of a node share: parts of different sizes, which all see, and no file
// of it is left.
// together: transport
#include <doctest/doctest.h>

#include <mpi.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>

#include <tessera/comm/mesh_core.hpp>
#include <tessera/comm/mpi/detail/node_memory.hpp>

#include <support/world.hpp>

using namespace tessera;

namespace {
void wait_for(MPI_Request* request, const char* function) {
  detail::check(MPI_Wait(request, MPI_STATUS_IGNORE), function);
}
int files_of_this_process() {
  const std::string begin = "tessera-" + std::to_string(::getpid()) + "-";
  int count = 0;
  for (const auto& entry : std::filesystem::directory_iterator(detail::shared_folder))
    if (entry.path().filename().string().starts_with(begin)) ++count;
  return count;
}
}  // namespace

TEST_CASE("each process of a node writes its part of shared memory, and reads the others'") {
  int own = 0, size = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &own);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  const auto bytes_of = [](int rank) { return Index{5000} * (rank % 3); };  // some have none
  const detail::NodeMemory memory =
      detail::share_on_node(bytes_of(own), true, MPI_COMM_WORLD, &wait_for);
  REQUIRE(memory.all != nullptr);
  CHECK(files_of_this_process() == 0);
  CHECK(memory.own == own);
  for (int rank = 0; rank < size; ++rank) {
    CHECK(reinterpret_cast<std::uintptr_t>(memory.part(rank)) % detail::NodeMemory::page == 0);
    const std::byte* const part = memory.part(rank);
    if (rank == own)
      CHECK(
          std::all_of(part, part + bytes_of(rank), [](std::byte b) { return b == std::byte{0}; }));
  }
  CHECK(memory.memory().bytes >= bytes_of(own));
  MPI_Barrier(MPI_COMM_WORLD);  // all have looked
  std::fill_n(memory.part(own), bytes_of(own), static_cast<std::byte>(own + 1));
  MPI_Barrier(MPI_COMM_WORLD);
  for (int rank = 0; rank < size; ++rank) {
    const std::byte* const part = memory.part(rank);
    CHECK(std::all_of(part, part + bytes_of(rank),
                      [&](std::byte b) { return b == static_cast<std::byte>(rank + 1); }));
  }
  MPI_Barrier(MPI_COMM_WORLD);
}

TEST_CASE("memory that the others cannot reach without a name has one until all have it") {
  int own = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &own);
  const detail::NodeMemory memory =
      detail::share_on_node(4096, true, MPI_COMM_WORLD, &wait_for, true);
  REQUIRE(memory.all != nullptr);
  *memory.part(own) = static_cast<std::byte>(own + 1);
  MPI_Barrier(MPI_COMM_WORLD);
  CHECK(*memory.part(0) == std::byte{1});
  CHECK(files_of_this_process() == 0);
  MPI_Barrier(MPI_COMM_WORLD);
}

TEST_CASE("a file that a killed process left is removed, one that is in use or alive is not") {
  int own = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &own);
  if (own == 0) {
    const auto path = [](long process) {
      return std::string(detail::shared_folder) + "/tessera-" + std::to_string(process) + "-1";
    };
    const pid_t gone = ::fork();
    if (gone == 0) ::_exit(0);
    ::waitpid(gone, nullptr, 0);
    const auto make = [](const std::string& name) {
      return ::open(name.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    };
    const int left = make(path(gone)), alive = make(path(::getpid()));
    REQUIRE(left >= 0);
    REQUIRE(::flock(left, LOCK_EX | LOCK_NB) == 0);
    detail::remove_left_files();
    CHECK(std::filesystem::exists(path(gone)));  // locked
    ::close(left);
    detail::remove_left_files();
    CHECK(!std::filesystem::exists(path(gone)));
    CHECK(std::filesystem::exists(path(::getpid())));
    ::unlink(path(::getpid()).c_str());
    ::close(alive);
  }
  MPI_Barrier(MPI_COMM_WORLD);
}

TEST_CASE("shared memory that one process cannot have, none has") {
  int own = 0, size = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &own);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  // More than any address space has, on one of them.
  const Index bytes = own == size - 1 ? Index{1} << 60 : 4096;
  CHECK(detail::share_on_node(bytes, true, MPI_COMM_WORLD, &wait_for).all == nullptr);
  CHECK(detail::share_on_node(4096, own != size - 1, MPI_COMM_WORLD, &wait_for).all == nullptr);
  CHECK(files_of_this_process() == 0);
}

TEST_CASE("meshes of another size each time keep the memory of few of them") {
  const auto mapped = [] {
    std::ifstream maps("/proc/self/maps");
    int count = 0;
    for (std::string line; std::getline(maps, line);)
      count += line.find("memfd:tessera") != std::string::npos;
    return count;
  };
  const int size = support::world()->size();
  const auto use = [&](Index megabytes) {
    (void)make_mesh_core(support::world(), MeshShape{size}, {"data"},
                         {.arena_bytes = megabytes << 20});
  };
  for (Index megabytes = 1; megabytes < 6; ++megabytes) use(megabytes);
  const int before = mapped();
  MESSAGE(before << " blocks are mapped");  // none on one process, or where the node has no memory
  for (Index megabytes = 6; megabytes < 16; ++megabytes) use(megabytes);
  CHECK(mapped() <= before);
}
