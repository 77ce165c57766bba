// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// Communicators and windows that are freed together, and how the windows are made.
///
///     MpiWindow window = allocate_window(bytes, node);
///
/// Laws: a window begins at a page on every process.
#include <mpi.h>
#include <sys/statvfs.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include <tessera/comm/mpi/detail/error.hpp>
#include <tessera/comm/transport.hpp>

namespace tessera::detail {

/// Shared memory of this process within its node's window.
struct MpiWindow {
  MPI_Win handle = MPI_WIN_NULL;
  SharedMemory memory;

  static constexpr Index page = 4096;

  /// Returns where the part of MPI rank `rank` begins here: at a page, wherever MPI began it (Open
  /// MPI at any multiple of 8). As MPI maps windows at pages, that is the same byte for all
  /// processes.
  std::byte* part(int rank) const {
    MPI_Aint size = 0;
    int unit = 0;
    void* begin = nullptr;
    check(MPI_Win_shared_query(handle, rank, &size, &unit, &begin), "MPI_Win_shared_query");
    auto* const first = static_cast<std::byte*>(begin);
    const auto address = reinterpret_cast<std::uintptr_t>(begin);
    return first + (round_up(static_cast<Index>(address), page) - static_cast<Index>(address));
  }

  /// Collective over: the node.
  void free() {
    check(MPI_Win_unlock_all(handle), "MPI_Win_unlock_all");
    check(MPI_Win_free(&handle), "MPI_Win_free");
  }
};

/// A communicator and, if one was made, the window of its group alone; all its processes sort it by
/// the same key.
struct MpiComm {
  std::uint64_t key = 0;
  MPI_Comm comm = MPI_COMM_NULL;
  MPI_Win window = MPI_WIN_NULL;
};

/// Communicators and windows of one transport, to be freed together.
struct MpiHandles {
  std::vector<MpiComm> comms;
  std::vector<MpiWindow> windows;  ///< of the node

  void add(std::uint64_t key, MPI_Comm comm) { comms.push_back({key, comm, MPI_WIN_NULL}); }
  /// Frees `window` together with `comm` from now on.
  void keep(MPI_Comm comm, MPI_Win window) {
    for (MpiComm& entry : comms)
      if (entry.comm == comm) entry.window = window;
  }

  void free_comms() {
    std::sort(comms.begin(), comms.end(),
              [](const MpiComm& a, const MpiComm& b) { return a.key < b.key; });
    for (MpiComm& entry : comms) {
      if (entry.window != MPI_WIN_NULL) MpiWindow{entry.window, {}}.free();
      check(MPI_Comm_free(&entry.comm), "MPI_Comm_free");
    }
    comms.clear();
  }
};

/// MPICH looks for a part of the address space that is free in all processes, a page at a time: 0.9
/// ms per MiB of window. Nothing here needs equal addresses, so this tells MPICH not to try. Other
/// MPI libraries do not know the variable.
inline void forgo_symmetric_windows() {
  static bool told = false;
  if (std::exchange(told, true)) return;
  int level = 0;
  if (MPI_T_init_thread(MPI_THREAD_SINGLE, &level) != MPI_SUCCESS) return;
  int index = 0;
  int count = 0;
  MPI_T_cvar_handle handle = MPI_T_CVAR_HANDLE_NULL;
  if (MPI_T_cvar_get_index("MPIR_CVAR_SHM_SYMHEAP_RETRY", &index) == MPI_SUCCESS &&
      MPI_T_cvar_handle_alloc(index, nullptr, &handle, &count) == MPI_SUCCESS) {
    const int retries = 0;
    if (count == 1) MPI_T_cvar_write(handle, &retries);
    MPI_T_cvar_handle_free(&handle);
  }
  MPI_T_finalize();
}

/// Returns whether `bytes` for each process of the node are a modest part of its shared memory.
inline bool shared_memory_has(Index bytes, int processes) {
  struct statvfs stat {};
  if (statvfs("/dev/shm", &stat) != 0) return false;
  const Index free = static_cast<Index>(stat.f_bavail) * static_cast<Index>(stat.f_frsize);
  return bytes <= free / processes / 4;
}

/// Returns `bytes` for each process of `comm`, all on one node. Collective over: these.
inline MpiWindow allocate_window(Index bytes, MPI_Comm comm) {
  forgo_symmetric_windows();
  MPI_Info info = MPI_INFO_NULL;
  check(MPI_Info_create(&info), "MPI_Info_create");
  check(MPI_Info_set(info, "alloc_shared_noncontig", "true"), "MPI_Info_set");
  MpiWindow window;
  window.memory.bytes = bytes;
  const Index reserved = bytes == 0 ? 0 : bytes + MpiWindow::page;  // room to begin at a page
  void* begin = nullptr;
  check(MPI_Win_allocate_shared(static_cast<MPI_Aint>(reserved), 1, info, comm, &begin,
                                &window.handle),
        "MPI_Win_allocate_shared");
  check(MPI_Info_free(&info), "MPI_Info_free");
  check(MPI_Win_set_errhandler(window.handle, MPI_ERRORS_RETURN), "MPI_Win_set_errhandler");
  check(MPI_Win_lock_all(MPI_MODE_NOCHECK, window.handle), "MPI_Win_lock_all");
  if (bytes > 0) {
    int own = 0;
    check(MPI_Comm_rank(comm, &own), "MPI_Comm_rank");
    window.memory.base = window.part(own);
  }
  return window;
}

/// Returns a duplicate of the user's communicator whose errors come back as codes. The user's own
/// handler, which may end the program, does not see an error of this call.
inline MPI_Comm copy_of(MPI_Comm user) {
  MPI_Comm comm = MPI_COMM_NULL;
  MPI_Errhandler users = MPI_ERRHANDLER_NULL;
  check(MPI_Comm_get_errhandler(user, &users), "MPI_Comm_get_errhandler");
  check(MPI_Comm_set_errhandler(user, MPI_ERRORS_RETURN), "MPI_Comm_set_errhandler");
  const int code = MPI_Comm_dup(user, &comm);
  check(MPI_Comm_set_errhandler(user, users), "MPI_Comm_set_errhandler");
  check(MPI_Errhandler_free(&users), "MPI_Errhandler_free");
  check(code, "MPI_Comm_dup");
  check(MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN), "MPI_Comm_set_errhandler");
  return comm;
}

}  // namespace tessera::detail
