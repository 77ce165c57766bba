// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Checkpoints: trees written on one mesh and read on another, by the format's own library, damaged
// in every byte, of other models, and of runs that are killed.
#include <doctest/doctest.h>

#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <mutex>
#include <optional>
#include <thread>

#include "io/checkpoint_cases.hpp"
#include "support/every_mesh.hpp"
#include "support/grid.hpp"

using namespace tessera;
using namespace support;

namespace {
template <class... Dims> using Tensor = ShardedTensor<float, Grid, P<Dims...>>;

template <class W, class B> struct Dense {
  W weight;
  B bias;
  static constexpr auto fields = Fields<&Dense::weight, &Dense::bias>{};
};
template <class W, class B> struct Model {
  W table;
  std::vector<Dense<W, B>> layers;
  std::optional<B> scale;
  static constexpr auto fields = Fields<&Model::table, &Model::layers, &Model::scale>{};
};
using ShardedModel = Model<Tensor<data, model>, Tensor<model>>;
using ReplicatedModel = Model<Tensor<_, _>, Tensor<_>>;

template <class M> M model_of(const ProcessMesh<Grid>& mesh, int layers, std::uint64_t seed) {
  using W = decltype(M::table);
  using B = typename decltype(M::scale)::value_type;
  M made{random_normal<W>(mesh, {11, 6}, seed), {}, random_normal<B>(mesh, {6}, seed + 1)};
  for (int l = 0; l < layers; ++l)
    made.layers.push_back(
        {random_normal<W>(mesh, {6, 7}, ++seed + 10), random_normal<B>(mesh, {7}, ++seed + 10)});
  return made;
}
/// The text of the FileError that every process of 2 x 2 throws alike, or what came instead.
template <class F> std::string said_by_all(F f) {
  std::vector<std::string> texts(4);
  run_loopback(4, [&](std::shared_ptr<Transport> world) {
    const auto mesh = make_mesh<Grid>(world, 2, 2);
    std::string& text = texts[static_cast<std::size_t>(mesh.process())];
    try {
      f(mesh);
      text = "nothing";
    } catch (const FileError& error) {
      text = error.what();
    }
  });
  for (const std::string& text : texts)
    if (text != texts[0]) return "process 0: " + texts[0] + "; another: " + text;
  return texts[0];
}
bool says(const std::string& text, const std::string& part) {
  if (text.find(part) != std::string::npos) return true;
  MESSAGE("\"" << text << "\" does not say \"" << part << "\"");
  return false;
}
}  // namespace

TEST_CASE("checkpoints: tensors of every type, written on one mesh and read on the next") {
  const std::uint64_t seed = seed_for("checkpoints", 91);
  const Folder folder("tessera_checkpoint");
  std::mutex mutex;
  std::vector<std::string> wrong;
  for (int i = 0; i < cases_of(48); ++i) {
    Random choice(seed + 100 * static_cast<std::uint64_t>(i));
    const std::vector<TensorDesc> tensors = some_tensors(choice);
    const std::string path = folder.file("x.safetensors");
    for (int turn = 0; turn < 2; ++turn) {
      const MeshShape shape = choice.of(meshes(6, 3));
      const std::uint64_t shardings = seed + 7 * static_cast<std::uint64_t>(2 * i + turn);
      run_loopback(shape.processes(), [&](std::shared_ptr<Transport> world) {
        Random random(shardings);
        const auto mesh = make_mesh_core(world, shape, axis_names(shape.rank()));
        const std::string text =
            checkpoint_case(mesh, random, tensors, path, 1000 * (turn + 1), 1000 * turn);
        const std::lock_guard lock(mutex);
        if (!text.empty()) wrong.push_back(text);
      });
      CHECK(folder.files() == 1);
    }
  }
  for (std::size_t i = 0; i < wrong.size() && i < 5; ++i) MESSAGE(wrong[i]);
  CHECK(wrong.empty());
}

TEST_CASE("checkpoints: typed trees with names, under other specs, with progress and facts") {
  const Folder folder("tessera_checkpoint_typed");
  const std::string path = folder.file("model.safetensors");
  run_loopback(4, [&](std::shared_ptr<Transport> world) {
    const auto mesh = make_mesh<Grid>(world, 2, 2);
    const ShardedModel written = model_of<ShardedModel>(mesh, 2, 5);
    Index seen = -1, total = 0;
    CheckpointOptions options;
    options.progress = [&](Index done, Index all) {
      CHECK(done >= seen);
      seen = done;
      total = all;
    };
    write_checkpoint(mesh, path, written, {{"step", "12"}, {"rate", "0x1.8p-3"}}, options);
    CHECK(seen == total);
    CHECK(total > 0);
    const SafetensorsHeader header = read_checkpoint_header(path);
    CHECK(header.tensors.size() == 6);
    REQUIRE(header.find("layers.1.weight") != nullptr);
    CHECK(header.find("layers.1.weight")->shape == std::vector<Index>{6, 7});
    CHECK(header.metadata.at("step") == "12");
    ReplicatedModel read = model_of<ReplicatedModel>(mesh, 2, 99);
    seen = -1;
    const CheckpointFacts facts = read_checkpoint(mesh, path, read, options);
    CHECK(facts == CheckpointFacts{{"step", "12"}, {"rate", "0x1.8p-3"}});
    CHECK(seen == total);
    for_each_tensor([](const auto& a, const auto& b) { CHECK(to_host(a) == to_host(b)); }, written,
                    read);
    // A tree without tensors, and one tensor alone.
    std::vector<Tensor<data, _>> none;
    write_checkpoint(mesh, path, none, {{"step", "13"}});
    CHECK(read_checkpoint(mesh, path, none) == CheckpointFacts{{"step", "13"}});
    write_checkpoint(mesh, path, written.table);
    Tensor<_, data> alone = zeros<Tensor<_, data>>(mesh, 11, 6);
    CHECK(read_checkpoint(mesh, path, alone).empty());
    CHECK(to_host(alone) == to_host(written.table));
  });
  CHECK(folder.files() == 1);
}

TEST_CASE("checkpoints: what the format's own library wrote") {
  run_loopback(3, [&](std::shared_ptr<Transport> world) {
    const auto mesh = make_mesh_core(world, {3}, {"data"});
    const std::string path = TESSERA_SAMPLE_DIR "/library.safetensors";
    const SafetensorsHeader header = read_checkpoint_header(path);
    REQUIRE(header.tensors.size() == 4 * 13);
    Tensors tensors;
    for (const SafetensorsEntry& entry : header.tensors) {
      Extents extents;
      for (const Index extent : entry.shape) extents.push_back(extent);
      Sharding split = Sharding::replicated(extents.size());
      if (extents.size() > 0) split[0] = {0};
      const TensorCore x = TensorCore::make(mesh, {entry.type, extents, split});
      tensors.push_back(DynamicTensor(x));
    }
    std::vector<detail::NamedTensor> named;
    for (std::size_t i = 0; i < tensors.size(); ++i)
      named.push_back({header.tensors[i].name, tensors[i].core()});
    const CheckpointFacts facts = detail::read_checkpoint(
        mesh, path, named, {}, {"read_checkpoint", Where::here(), Contract{}},
        [&](std::size_t i, TensorCore read) { tensors[i] = DynamicTensor(read); });
    CHECK(facts == CheckpointFacts{{"step", "1200"}, {"say", "a \"quoted\" text, ä€😀\n"}});
    int wrong = 0;
    for (std::size_t i = 0; i < tensors.size(); ++i) {
      const DType type = tensors[i].core().type();
      const auto all = to_host<double>(cast<double>(tensors[i])).values;
      for (std::size_t k = 0; k < all.size(); ++k) {
        const double wanted = is_boolean(type)    ? (k % 3 == 0)
                              : type == DType::i8 ? static_cast<double>(k * 3 % 127)
                              : is_real(type)     ? static_cast<double>(k * 3 % 251) * 0.25
                                                  : static_cast<double>(k * 3 % 251);
        wrong += all[k] != wanted;
      }
    }
    CHECK(wrong == 0);
  });
}

TEST_CASE("checkpoints: a byte that changed, and a file that is cut off, is an error on all") {
  const Folder folder("tessera_checkpoint_damage");
  const std::string path = folder.file("model.safetensors");
  run_loopback(2, [&](std::shared_ptr<Transport> world) {
    const auto mesh = make_mesh<Grid>(world, 1, 2);
    write_checkpoint(mesh, path, model_of<ShardedModel>(mesh, 1, 5), {{"step", "12"}});
  });
  const std::string sound = bytes_of(path);
  int accepted = 0, unequal = 0, tries = 0;
  const auto read = [&](const std::string& bytes) {
    write_bytes(path, bytes);
    std::vector<std::string> texts(2);
    run_loopback(2, [&](std::shared_ptr<Transport> world) {
      const auto mesh = make_mesh<Grid>(world, 2, 1);
      ReplicatedModel model = model_of<ReplicatedModel>(mesh, 1, 1);
      try {
        read_checkpoint(mesh, path, model);
      } catch (const FileError& error) {
        texts[static_cast<std::size_t>(mesh.process())] = error.what();
      }
    });
    ++tries;
    accepted += texts[0].empty();
    unequal += texts[0] != texts[1];
  };
  const int every = cases_of(100) == 100 && share == 1 ? 1 : 7;
  for (std::size_t at = 0; at < sound.size(); at += static_cast<std::size_t>(every)) {
    std::string bytes = sound;
    bytes[at] = static_cast<char>(bytes[at] ^ (1 << (at % 8)));
    read(bytes);
  }
  for (std::size_t size = 0; size < sound.size(); size += 97) read(sound.substr(0, size));
  read(sound + "x");
  CHECK(tries > 100);
  CHECK(accepted == 0);
  CHECK(unequal == 0);
  read(sound);
  CHECK(accepted == 1);
  // The sentence says where.
  std::string bytes = sound;
  bytes.back() ^= 1;
  write_bytes(path, bytes);
  const std::string text = said_by_all([&](const auto& mesh) {
    ShardedModel model = model_of<ShardedModel>(mesh, 1, 1);
    read_checkpoint(mesh, path, model);
  });
  CHECK(says(text, "is damaged: bytes "));
  CHECK(says(text, "are not those that were written; read an older checkpoint"));
}

TEST_CASE("checkpoints: of another model: the first difference, and nothing is read") {
  const Folder folder("tessera_checkpoint_other");
  const std::string path = folder.file("model.safetensors");
  run_loopback(1, [&](std::shared_ptr<Transport> world) {
    const auto mesh = make_mesh<Grid>(world, 1, 1);
    write_checkpoint(mesh, path, model_of<ShardedModel>(mesh, 2, 5));
  });
  const auto reading = [&](auto change) {
    return said_by_all([&](const auto& mesh) {
      ShardedModel model = model_of<ShardedModel>(mesh, 2, 1);
      change(mesh, model);
      std::vector<HostTensor<float>> before, after;
      for_each_tensor([&](const auto& x) { before.push_back(to_host(x)); }, model);
      const auto check = [&] {
        for_each_tensor([&](const auto& x) { after.push_back(to_host(x)); }, model);
        CHECK(before == after);
      };
      try {
        read_checkpoint(mesh, path, model);
      } catch (...) {
        check();
        throw;
      }
    });
  };
  CHECK(says(
      reading([](const auto& mesh, ShardedModel& m) {
        m.layers.push_back({zeros<Tensor<data, model>>(mesh, 6, 7), zeros<Tensor<model>>(mesh, 7)});
      }),
      "it lacks \"layers.2.weight\", float 6x7, which the program has (the file has 6 "
      "tensors, the program 8)"));
  // What the file has beside is passed by.
  CHECK(reading([](const auto&, ShardedModel& m) { m.layers.pop_back(); }) == "nothing");
  CHECK(reading([](const auto&, ShardedModel& m) { m.scale.reset(); }) == "nothing");
  CHECK(says(reading([](const auto& mesh, ShardedModel& m) {
               m.layers[0].weight = zeros<Tensor<data, model>>(mesh, 6, 8);
             }),
             "it has \"layers.0.weight\", float 6x7, and the program's is float 6x8"));
  CHECK(says(said_by_all([&](const auto& mesh) {
               ShardedTensor<double, Grid, P<data, _>> x =
                   zeros<ShardedTensor<double, Grid, P<data, _>>>(mesh, 3, 3);
               read_checkpoint(mesh, path + ".not", x);
             }),
             "could not be opened: No such file or directory"));
  CHECK(says(said_by_all([&](const auto& mesh) {
               ShardedModel model = model_of<ShardedModel>(mesh, 2, 1);
               write_checkpoint(mesh, folder.file("no/such/folder"), model);
             }),
             "write_checkpoint: "));
  run_loopback(2, [&](std::shared_ptr<Transport> world) {
    const auto mesh = make_mesh<Grid>(world, 1, 2);
    const auto other = make_mesh<Grid>(world, 2, 1);
    ShardedModel model = model_of<ShardedModel>(mesh, 1, 1);
    CHECK_THROWS_AS(write_checkpoint(other, path, model), UsageError);
    CHECK_THROWS_AS(read_checkpoint(other, path, model), UsageError);
    CHECK_THROWS_AS(write_checkpoint(mesh, path, model, {{"tessera.x", ""}}), UsageError);
    CHECK_THROWS_AS(write_checkpoint(mesh, path, model, {{"name", "K\xe4se"}}), UsageError);
    CHECK_THROWS_AS(write_checkpoint(mesh, path, model, {{"\xff", ""}}), UsageError);
    CheckpointOptions alike;
    alike.name = [](const std::string&) { return std::string("x"); };
    CHECK_THROWS_AS(write_checkpoint(mesh, path, model, {}, alike), UsageError);
    CHECK_THROWS_AS(write_checkpoint(mesh, path, ShardedModel{}), UsageError);
  });
}

TEST_CASE("checkpoints: of a file of others what is asked for is read, by the file's names") {
  const Folder folder("tessera_checkpoint_names");
  const std::string path = folder.file("model.safetensors");
  {  // two floats between elements of types that Tessera has not
    const std::string json =
        R"({"__metadata__":null,"a.gewicht für ä":{"dtype":"F32","shape":[2],"data_offsets":[3,11]},)"
        R"("q":{"dtype":"F8_E4M3","shape":[3],"data_offsets":[0,3],"note":{}},)"
        R"("z":{"dtype":"F8_E5M2","shape":[1],"data_offsets":[11,12]}})";
    const float values[] = {1.5f, -2.5f};
    std::ofstream out(path, std::ios::binary);
    for (int i = 0; i < 8; ++i) out.put(static_cast<char>(json.size() >> (8 * i) & 0xff));
    out << json << "123";
    out.write(reinterpret_cast<const char*>(values), sizeof values) << "4";
  }
  run_loopback(2, [&](std::shared_ptr<Transport> world) {
    const auto mesh = make_mesh<Grid>(world, 2, 1);
    CheckpointOptions options;
    options.name = [](const std::string&) { return "a.gewicht für ä"; };
    Tensor<data> read = zeros<Tensor<data>>(mesh, 2);
    CHECK(read_checkpoint(mesh, path, read, options).empty());
    CHECK(to_host(read).values == std::vector<float>{1.5f, -2.5f});
    options.name = [](const std::string&) { return "q"; };
    Tensor<data> three = zeros<Tensor<data>>(mesh, 3);
    const auto error = [&] {
      return complaint_of([&] { read_checkpoint(mesh, path, three, options); });
    };
    CHECK(says(error(), "has \"q\", F8_E4M3 3, whose elements Tessera has not"));
    options.name = [](const std::string&) { return "für"; };
    CHECK(says(error(), "it lacks \"für\", float 3"));
  });
  run_loopback(2, [&](std::shared_ptr<Transport> world) {  // the same names, written and read
    const auto mesh = make_mesh<Grid>(world, 1, 2);
    CheckpointOptions other;
    other.name = [](const std::string& own) { return "model." + own; };
    const ShardedModel written = model_of<ShardedModel>(mesh, 1, 3);
    write_checkpoint(mesh, path, written, {}, other);
    CHECK(read_checkpoint_header(path).find("model.layers.0.bias") != nullptr);
    ReplicatedModel read = model_of<ReplicatedModel>(mesh, 1, 4);
    read_checkpoint(mesh, path, read, other);
    for_each_tensor([](const auto& a, const auto& b) { CHECK(to_host(a) == to_host(b)); }, written,
                    read);
  });
}

TEST_CASE("checkpoints: a file that is replaced keeps its permissions") {
  const Folder folder("tessera_checkpoint_mode");
  const std::string path = folder.file("run.safetensors");
  const auto mode = [&] {
    return std::filesystem::status(path).permissions() & std::filesystem::perms::all;
  };
  for (const auto wanted : {std::filesystem::perms{0640}, std::filesystem::perms{0444}})
    run_loopback(3, [&](std::shared_ptr<Transport> world) {
      const auto mesh = make_mesh<Grid>(world, 3, 1);
      write_checkpoint(mesh, path, full<Tensor<data, _>>(mesh, {5, 2}, 1.0f));
      world->barrier();
      if (world->process() == 0) std::filesystem::permissions(path, wanted);
      world->barrier();
      write_checkpoint(mesh, path, full<Tensor<data, _>>(mesh, {5, 2}, 2.0f));
      world->barrier();
      CHECK(mode() == wanted);
    });
}

TEST_CASE("checkpoints: written beside the steps that follow") {
  const Folder folder("tessera_checkpoint_begun");
  const std::string path = folder.file("run.safetensors"), other = folder.file("other.safetensors");
  run_loopback(4, [&](std::shared_ptr<Transport> world) {
    const auto mesh = make_mesh<Grid>(world, 2, 2);
    using X = Tensor<data, model>;
    const auto number_in = [&](const std::string& file) {
      X x = zeros<X>(mesh, 3000, 70);
      read_checkpoint(mesh, file, x);
      return to_host(x).values;
    };
    const auto all = [](float value) { return std::vector<float>(3000 * 70, value); };
    for (const Index memory : {max_int64, Index{1000}, Index{0}}) {
      X x = full<X>(mesh, {3000, 70}, 1.0f);
      write_checkpoint(mesh, path, x);
      x *= 2.0f;
      CheckpointOptions options;
      options.memory = memory;
      PendingCheckpoint saving = begin_checkpoint(mesh, path, x, {{"step", "1"}}, options);
      x *= 2.0f;  // what was copied is what is written
      CHECK(number_in(path) == all(1));
      saving.wait();
      saving.wait();  // there is nothing left to wait for
      CHECK(saving.written());
      CHECK(number_in(path) == all(2));
      CHECK(read_checkpoint_header(path).metadata.at("step") == "1");
      // Each waits for the one before, which gets its name.
      saving = begin_checkpoint(mesh, path, x, {{"step", "2"}}, options);
      PendingCheckpoint next = begin_checkpoint(mesh, other, x, {{"step", "3"}}, options);
      CHECK(number_in(path) == all(4));
      write_checkpoint(mesh, path, x, {{"step", "4"}});
      CHECK(read_checkpoint_header(other).metadata.at("step") == "3");
      CHECK(read_checkpoint_header(path).metadata.at("step") == "4");
      CHECK(saving.written());
      { const PendingCheckpoint last = begin_checkpoint(mesh, other, x, {{"step", "5"}}); }
      CHECK(read_checkpoint_header(other).metadata.at("step") == "5");
      CHECK_THROWS_AS((void)begin_checkpoint(mesh, folder.file("no/such/folder"), x), FileError);
    }
  });
  CHECK(folder.files() == 2);
  run_loopback(2, [&](std::shared_ptr<Transport> world) {  // an exception leaves the old file
    const auto mesh = make_mesh<Grid>(world, 2, 1);
    const auto x = full<Tensor<data, _>>(mesh, {4, 4}, 9.0f);
    try {
      const PendingCheckpoint saving = begin_checkpoint(mesh, other, x, {{"step", "6"}});
      throw 1;
    } catch (int) {
    }
    world->barrier();
    CHECK(read_checkpoint_header(other).metadata.at("step") == "5");
  });
  CHECK(folder.files() == 2);
  const auto dry = dry_mesh<Grid>(4, 2);
  begin_checkpoint(dry, folder.file("dry"), model_of<ShardedModel>(dry, 2, 5)).wait();
  CHECK(folder.files() == 2);
}

TEST_CASE("checkpoints: the facts are those of process 0, and the tree is the same on all") {
  const Folder folder("tessera_checkpoint_facts");
  const std::string path = folder.file("model.safetensors");
  run_loopback(3, [&](std::shared_ptr<Transport> world) {
    const auto mesh = make_mesh<Grid>(world, 3, 1);
    using X = Tensor<data, _>;
    const int p = mesh.process();
    const auto round = [&](const CheckpointFacts& facts, const CheckpointFacts& wanted, int seed,
                           bool begin) {
      const auto x = random_normal<X>(mesh, {64, 100}, static_cast<std::uint64_t>(seed));
      if (begin)
        begin_checkpoint(mesh, path, x, facts).wait();
      else
        write_checkpoint(mesh, path, x, facts);
      X read = zeros<X>(mesh, 64, 100);
      CHECK(read_checkpoint(mesh, path, read) == wanted);
      CHECK(to_host(read) == to_host(x));
    };
    for (const bool begin : {false, true}) {
      const CheckpointFacts first{{"step", "2"}, {"note", std::string(99, 'n')}};
      round(p == 0 ? first : CheckpointFacts{}, first, 7, begin);
      round({{"loss", p == 0 ? "1.5" : std::string(64, '1')}}, {{"loss", "1.5"}}, 8, begin);
    }
    const auto refused = [&](const auto& tree, const CheckpointFacts& facts, const char* why) {
      CHECK_THROWS_WITH_AS(write_checkpoint(mesh, path, tree, facts), doctest::Contains(why),
                           UsageError);
      CHECK_THROWS_WITH_AS(begin_checkpoint(mesh, path, tree, facts).wait(), doctest::Contains(why),
                           UsageError);
    };
    const X x = random_normal<X>(mesh, {6, 5}, 9);
    refused(x, {{"step", p == 2 ? "\xff" : "2"}}, "no UTF-8");
    refused(x, {{p == 2 ? "tessera.step" : "step", "2"}}, "a name that begins with \"tessera.\"");
    refused(std::vector<X>(p == 2 ? 3 : 2, x), {}, "process 2 gives tensors of other names");
    CHECK(read_checkpoint_header(path).metadata.at("loss") == "1.5");
  });
  CHECK(folder.files() == 1);
}

TEST_CASE("checkpoints: facts of any name are kept") {
  const Folder folder("tessera_checkpoint_names");
  const std::string path = folder.file("model.safetensors");
  const CheckpointFacts facts{{"a\"tessera.header", "0123456789abcdefXYZ"},
                              {",\"tessera.header\":\"", "{\"tessera.header\":\"0000"},
                              {"", "\\"},
                              {"\\", ""}};
  run_loopback(1, [&](std::shared_ptr<Transport> world) {
    const auto mesh = make_mesh<Grid>(world, 1, 1);
    auto x = random_normal<Tensor<data, _>>(mesh, {4, 4}, 7);
    write_checkpoint(mesh, path, x, facts);
    CHECK(read_checkpoint(mesh, path, x) == facts);
  });
}

TEST_CASE(
    "checkpoints: progress counts what a process writes, and may end it from the first call on") {
  const Folder folder("tessera_checkpoint_progress");
  const std::string path = folder.file("model.safetensors");
  run_loopback(2, [&](std::shared_ptr<Transport> world) {
    const auto mesh = make_mesh<Grid>(world, 2, 1);
    auto one = random_normal<Tensor<_, _>>(mesh, {1, 1}, 7);  // process 0 writes it
    CheckpointOptions options;
    Index seen = -1, total = -1;
    options.progress = [&](Index done, Index all) { seen = done, total = all; };
    write_checkpoint(mesh, path, one, {}, options);
    CHECK(seen == total);
    CHECK(total == (mesh.process() == 0 ? 4 : 0));
    read_checkpoint(mesh, path, one, options);
    CHECK(seen == total);
    auto x = random_normal<Tensor<data, _>>(mesh, {64, 100}, 7);
    for (const Index least : {Index{0}, Index{1}}) {
      options.progress = [&, process = mesh.process()](Index done, Index) {
        if (process == 1 && done >= least) throw std::runtime_error("ended by the user");
      };
      const auto ended = doctest::Contains("ended by the user");
      CHECK_THROWS_WITH_AS(write_checkpoint(mesh, path, x, {}, options), ended, FileError);
      CHECK_THROWS_WITH_AS(begin_checkpoint(mesh, path, x, {}, options).wait(), ended, FileError);
      write_checkpoint(mesh, path, x);
      CHECK_THROWS_WITH_AS(read_checkpoint(mesh, path, x, options), ended, FileError);
    }
  });
  CHECK(folder.files() == 1);
}

TEST_CASE("checkpoints: on a dry mesh the communication is planned and nothing is written") {
  const Folder folder("tessera_checkpoint_dry");
  const std::string path = folder.file("model.safetensors");
  const auto mesh = dry_mesh<Grid>(4, 2);
  write_checkpoint(mesh, path, model_of<ShardedModel>(mesh, 2, 5));
  CHECK(folder.files() == 0);
  run_loopback(1, [&](std::shared_ptr<Transport> world) {
    const auto one = make_mesh<Grid>(world, 1, 1);
    write_checkpoint(one, path, model_of<ShardedModel>(one, 2, 5), {{"step", "3"}});
  });
  ShardedModel model = model_of<ShardedModel>(mesh, 2, 5);
  CHECK(read_checkpoint(mesh, path, model) == CheckpointFacts{{"step", "3"}});
}

namespace {
/// Writes one checkpoint after the other, at once or beside the next, each with its number
/// everywhere, until it is killed.
[[noreturn]] void write_for_ever(const std::string& path, Index first) {
  run_loopback(2, [&](std::shared_ptr<Transport> world) {
    const auto mesh = make_mesh<Grid>(world, 2, 1);
    using X = Tensor<data, _>;
    PendingCheckpoint saving;
    for (Index number = first;; ++number) {
      const std::vector<X> tree(3, full<X>(mesh, {500, 64}, static_cast<float>(number)));
      const CheckpointFacts facts{{"number", std::to_string(number)}};
      if (number % 2 == 0)
        write_checkpoint(mesh, path, tree, facts);
      else
        saving = begin_checkpoint(mesh, path, tree, facts);
    }
  });
  std::abort();
}
}  // namespace

TEST_CASE("checkpoints: nothing is lost by a run that is killed while it writes") {
  if (const char* path = std::getenv("TESSERA_TEST_WRITES_FOR_EVER"); path != nullptr)
    write_for_ever(path, std::atol(std::getenv("TESSERA_TEST_FIRST_NUMBER")));
  const Folder folder("tessera_checkpoint_killed");
  const std::string path = folder.file("run.safetensors");
  Random random(seed_for("killed checkpoints", 92));
  Index last = 0;
  int kills = 0, torn = 0, backwards = 0;
  long most = 0;
  for (const int wanted = cases_of(300) / (share > 1 ? 4 : 1); kills < wanted; ++kills) {
    ::setenv("TESSERA_TEST_WRITES_FOR_EVER", path.c_str(), 1);
    ::setenv("TESSERA_TEST_FIRST_NUMBER", std::to_string(last + 1).c_str(), 1);
    const pid_t child = ::vfork();
    if (child == 0) {
      ::execl("/proc/self/exe", "writer", "--test-case=checkpoints: nothing is lost by a run*",
              static_cast<char*>(nullptr));
      ::_exit(127);
    }
    ::unsetenv("TESSERA_TEST_WRITES_FOR_EVER");
    if (kills == 0)  // until there is a first one
      while (bytes_of(path).empty()) std::this_thread::sleep_for(std::chrono::milliseconds(5));
    std::this_thread::sleep_for(std::chrono::microseconds(20000 + random.below(80000)));
    ::kill(child, SIGKILL);
    int status = 0;
    REQUIRE(::waitpid(child, &status, 0) == child);
    REQUIRE(WIFSIGNALED(status));
    most = std::max(most, folder.files());
    run_loopback(3, [&](std::shared_ptr<Transport> world) {
      const auto mesh = make_mesh<Grid>(world, 1, 3);
      using X = Tensor<_, model>;
      std::vector<X> tree(3, zeros<X>(mesh, 500, 64));
      const Index number = std::stol(read_checkpoint(mesh, path, tree).at("number"));
      bool whole = true;
      for (const X& x : tree)
        for (const float value : to_host(x).values) whole &= value == static_cast<float>(number);
      if (mesh.process() != 0) return;
      torn += !whole;
      backwards += number < last;
      last = number;
    });
  }
  MESSAGE(kills << " times killed, " << last << " checkpoints");
  CHECK(torn == 0);
  CHECK(backwards == 0);
  CHECK(last > 0);
  CHECK(most <= 2);  // what one run leaves, the next one removes
}
