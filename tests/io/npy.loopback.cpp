// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// together: transport
// Tensors through .npy files: against files made by plain loops and by NumPy, and what is answered
// when a file is missing, damaged or cannot be written.
#include <doctest/doctest.h>

#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/un.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <mutex>
#include <stdexcept>

#include "io/npy_cases.hpp"

#include "support/grid.hpp"

using namespace tessera;
using namespace support;

namespace {
template <class... Dims> using Tensor = ShardedTensor<float, Grid, P<Dims...>>;

/// Runs f(mesh) on 2 x 2 processes; returns whether each of them throws FileError with this part in
/// it.
template <class F> bool all_say(const std::string& part, F f) {
  std::vector<std::string> texts(4);
  run_loopback(4, [&](std::shared_ptr<Transport> world) {
    const auto mesh = make_mesh<Grid>(world, 2, 2);
    try {
      f(mesh);
    } catch (const FileError& error) {
      texts[static_cast<std::size_t>(mesh.process())] = error.what();
    }
  });
  for (const std::string& text : texts) {
    if (text.find(part) != std::string::npos) continue;
    MESSAGE("\"" << text << "\" does not say \"" << part << "\"");
    return false;
  }
  return true;
}
}  // namespace

TEST_CASE("tensors of every type go through files as plain loops say, from any spec to any") {
  const std::uint64_t seed = seed_for("npy files", 71);
  const Folder folder("tessera_npy");
  std::mutex mutex;
  std::vector<std::string> wrong;
  std::uint64_t number = 0;
  for (const MeshShape& shape : meshes(6, 2)) {
    ++number;
    run_loopback(shape.processes(), [&](std::shared_ptr<Transport> world) {
      Random random(seed + 1000 * number);
      const auto mesh = make_mesh_core(world, shape, axis_names(shape.rank()));
      for (int i = 0; i < 24; ++i) {
        const std::string text = npy_case(mesh, random, folder, random.of(npy_types));
        const std::lock_guard lock(mutex);
        if (!text.empty()) wrong.push_back(text);
      }
    });
  }
  for (std::size_t i = 0; i < wrong.size() && i < 5; ++i) MESSAGE(wrong[i]);
  CHECK(wrong.empty());
}

TEST_CASE("typed tensors: long runs, progress, expectations, and a file replaced whole") {
  const Folder folder("tessera_npy_typed");
  const std::string path = folder.file("weights.npy");
  write_bytes(path, "what was here before");
  run_loopback(4, [&](std::shared_ptr<Transport> world) {
    const auto mesh = make_mesh<Grid>(world, 2, 2);
    const auto x = random_normal<Tensor<_, model>>(mesh, {301, 70001}, 3);
    Index seen = 0, total = -1;
    NpyOptions options;
    options.progress = [&](Index done, Index all) {
      CHECK(done >= seen);
      seen = done;
      total = all;
    };
    write_npy(x, path, options);
    CHECK(seen == total);
    CHECK(total > 0);
    const auto y = read_npy<Tensor<data, model>>(mesh, path, {{}, Extents{301, 70001}});
    CHECK(to_host(y) == to_host(x));
    CHECK(read_npy_header(path).extents == Extents{301, 70001});
  });
  CHECK(folder.files() == 1);
  CHECK(bytes_of(path).size() == 128 + 301ul * 70001 * 4);
}

TEST_CASE("a missing, damaged or unfit file is the same error on every process") {
  const Folder folder("tessera_npy_faults");
  const std::string path = folder.file("x.npy");
  const auto read = [&](const auto& mesh) { read_npy<Tensor<data, _>>(mesh, path); };
  CHECK(all_say(
      "read_npy: \"" + path + "\" could not be opened: No such file or directory (process 0)",
      read));
  CHECK(all_say("is not an ordinary file", [&](const auto& mesh) {
    read_npy<Tensor<data, _>>(mesh, std::filesystem::path(path).parent_path().string());
  }));
  const auto zero = [](Index, Index) { return 0; };
  const std::string sound = npy_file(DType::f32, {8, 3}, false, false, zero);
  write_bytes(path, sound.substr(0, sound.size() - 1));
  CHECK(all_say(
      "is not read: it is cut off: its header promises 96 bytes of elements and 95 are there",
      read));
  write_bytes(path, sound.substr(0, 11));
  CHECK(all_say("its header is cut off", read));
  write_bytes(path, "no array at all");
  CHECK(all_say("does not begin as a .npy file", read));
  write_bytes(path, npy_file(DType::f64, {8, 3}, false, false, zero));
  CHECK(all_say(
      "holds double 8x3 and is read as float; read it as what it holds and cast the tensor", read));
  write_bytes(path, npy_file(DType::f32, {8, 3, 1}, false, false, zero));
  CHECK(all_say("holds float 8x3x1, of 3 dimensions, and is read with a spec of 2", read));
  write_bytes(path, sound);
  CHECK(all_say("holds float 8x3 and is read as 3x8", [&](const auto& mesh) {
    read_npy<Tensor<data, _>>(mesh, path, {{}, Extents{3, 8}});
  }));
  const std::string missing = folder.file("only_there.npy");
  CHECK(
      all_say("could not be opened: No such file or directory (process 2)", [&](const auto& mesh) {
        read_npy<Tensor<data, _>>(mesh, mesh.process() == 2 ? missing : path);
      }));
  write_bytes(missing, npy_file(DType::f32, {9, 3}, false, false, zero));
  CHECK(all_say("is another file on some processes", [&](const auto& mesh) {
    read_npy<Tensor<data, _>>(mesh, mesh.process() == 2 ? missing : path);
  }));
  CHECK_THROWS_AS(read_npy_header(folder.file("none.npy")), FileError);
}

TEST_CASE("a file that cannot be written leaves the old one, and nothing beside it") {
  const Folder folder("tessera_npy_unwritable");
  const std::string path = folder.file("x.npy");
  write_bytes(path, "old");
  const auto write = [&](const auto& mesh) {
    write_npy(zeros<Tensor<data, _>>(mesh, 8, 3), folder.file("none/x.npy"));
  };
  CHECK(all_say("could not be opened: No such file or directory", write));
  CHECK(all_say("is a directory and not an ordinary file, and is not replaced",
                [&](const auto& mesh) {
                  write_npy(zeros<Tensor<data, _>>(mesh, 8, 3),
                            std::filesystem::path(path).parent_path().string());
                }));
  CHECK(all_say("write_npy: stop (process 3)", [&](const auto& mesh) {
    NpyOptions options;
    if (mesh.process() == 3)
      options.progress = [](Index, Index) { throw std::runtime_error("stop"); };
    write_npy(zeros<Tensor<data, model>>(mesh, 8, 6), path, options);
  }));
  struct rlimit old {};
  getrlimit(RLIMIT_FSIZE, &old);
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  struct rlimit small = old;
  small.rlim_cur = 1000;
  setrlimit(RLIMIT_FSIZE, &small);
  const bool said = all_say("bytes long: File too large", [&](const auto& mesh) {
    write_npy(zeros<Tensor<data, _>>(mesh, 800, 3), path);
  });
  setrlimit(RLIMIT_FSIZE, &old);
  std::signal(SIGXFSZ, handler);
  CHECK(said);
  CHECK(bytes_of(path) == "old");
  CHECK(folder.files() == 1);
}

TEST_CASE("what is not an ordinary file is neither replaced nor waited for; a link stays a link") {
  namespace fs = std::filesystem;
  const Folder folder("tessera_npy_special");
  const auto write_to = [&](const std::string& path) {
    return [path](const auto& mesh) { write_npy(full<Tensor<data, _>>(mesh, {8, 3}, 1.0F), path); };
  };
  const auto read_from = [&](const std::string& path) {
    return [path](const auto& mesh) { read_npy<Tensor<data, _>>(mesh, path); };
  };
  const auto kept = [&](const std::string& path, const std::string& kind) {
    const fs::file_type before = fs::symlink_status(path).type();
    CHECK(all_say("write_npy: \"" + path + "\" is " + kind + " and not an ordinary file",
                  write_to(path)));
    CHECK(fs::symlink_status(path).type() == before);
    if (kind != "a socket") CHECK(all_say("is not an ordinary file", read_from(path)));
  };
  const std::string pipe = folder.file("pipe");
  REQUIRE(::mkfifo(pipe.c_str(), 0600) == 0);
  kept(pipe, "a named pipe");
  const std::string directory = folder.file("directory");
  fs::create_directory(directory);
  kept(directory, "a directory");
  const std::string device = folder.file("null");
  if (::mknod(device.c_str(), S_IFCHR | 0600, makedev(1, 3)) == 0)  // root, where the system allows
    kept(device, "a device");
  const std::string socket_name = folder.file("socket");
  const int descriptor = ::socket(AF_UNIX, SOCK_STREAM, 0);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::snprintf(address.sun_path, sizeof address.sun_path, "%s", socket_name.c_str());
  REQUIRE(::bind(descriptor, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0);
  kept(socket_name, "a socket");
  ::close(descriptor);

  const std::string to_pipe = folder.file("to_pipe");
  fs::create_symlink("pipe", to_pipe);
  kept(to_pipe, "a named pipe");
  const std::string to_null = folder.file("to_null");  // of the system's own /dev/null
  fs::create_symlink("/dev/null", to_null);
  CHECK(all_say("is a device and not an ordinary file", write_to(to_null)));
  CHECK(fs::is_character_file("/dev/null"));
  const std::string nowhere = folder.file("nowhere");
  fs::create_symlink("is_not_there.npy", nowhere);
  CHECK(all_say("is a symbolic link that leads to no file", write_to(nowhere)));
  CHECK(fs::read_symlink(nowhere) == "is_not_there.npy");

  fs::create_directory(folder.file("elsewhere"));
  const std::string target = folder.file("elsewhere/x.npy");
  write_bytes(target, "old");
  const std::string link = folder.file("link.npy");
  const std::string link_of_link = folder.file("again.npy");
  fs::create_symlink("elsewhere/x.npy", link);
  fs::create_symlink("link.npy", link_of_link);
  CHECK(all_say("", write_to(link_of_link)));
  CHECK(fs::is_symlink(link));
  CHECK(fs::is_symlink(link_of_link));
  CHECK(fs::symlink_status(target).type() == fs::file_type::regular);
  const std::string written = bytes_of(target);
  const std::vector<float> expected(24, 1.0F);
  REQUIRE(written.size() > 96);
  CHECK(std::memcmp(written.data() + written.size() - 96, expected.data(), 96) == 0);
  CHECK(read_npy_header(target).extents == Extents{8, 3});
}

TEST_CASE("on a dry mesh a file's header is enough to plan, and nothing is written") {
  const Folder folder("tessera_npy_dry");
  const std::string path = folder.file("x.npy");
  write_bytes(path, npy_file(DType::f32, {8, 3}, false, true, [](Index, Index) { return 0; }));
  const auto mesh = dry_mesh<Grid>(2, 2);
  const auto x = read_npy<Tensor<data, _>>(mesh, path);
  CHECK(x.extents() == Extents{8, 3});
  write_npy(x, folder.file("y.npy"));
  CHECK(folder.files() == 1);
}

TEST_CASE("what NumPy wrote is read, and what is written is byte by byte what NumPy writes") {
  std::string sample = __FILE__;
  sample = sample.substr(0, sample.rfind('/')) + "/sample/";  // sample/generate.py makes them
  const Folder folder("tessera_npy_numpy");
  const std::string out = folder.file("out.npy"), out_complex = folder.file("complex.npy");
  std::atomic<int> right = 0;
  run_loopback(4, [&](std::shared_ptr<Transport> world) {
    const auto mesh = make_mesh<Grid>(world, 2, 2);
    const auto x = read_npy<Tensor<data, model>>(mesh, sample + "big_endian_columns.npy");
    const auto all = to_host(x);
    bool good = all.extents == Extents{7, 11};
    for (Index i = 0; i < 77; ++i)
      good = good && all.values[static_cast<std::size_t>(i)] == static_cast<float>(i);
    write_npy(x, out);
    using Complex = ShardedTensor<complex<double>, Grid, P<model, data>>;
    const auto z = read_npy<Complex>(mesh, sample + "complex.npy");
    const auto parts = to_host(z);
    for (Index i = 0; i < 77; ++i)
      good = good && parts.values[static_cast<std::size_t>(i)] ==
                         complex<double>(0, 2 * static_cast<double>(i));
    write_npy(z, out_complex);
    if (good) ++right;
  });
  CHECK(right == 4);
  CHECK(bytes_of(out) == bytes_of(sample + "rows.npy"));
  CHECK(bytes_of(out_complex) == bytes_of(sample + "complex.npy"));
}
