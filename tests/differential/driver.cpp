// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Runs the cases that generate.py wrote through the dynamic operators, on meshes and under
/// shardings that a seed chooses, and compares what every process has of each result with what
/// NumPy computed.
///
///     differential_cases tests/differential/sample                       processes as threads
///     mpiexec -n 4 differential_cases tests/differential/sample --mpi
///     differential_cases FOLDER --seed 5 --case 17 --mesh 3x2            one case again
///
/// Green: nothing differs. Else the first that do, each with the command that runs it alone.
#include <unistd.h>

#include <cmath>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <limits>
#include <mutex>
#include <optional>
#include <sstream>

#include "case.hpp"

namespace differential {
namespace {

// ---- reading ------------------------------------------------------------------------------------

constexpr std::pair<const char*, DType> type_names[] = {
    {"half", DType::f16},   {"bfloat16", DType::bf16}, {"float", DType::f32},
    {"double", DType::f64}, {"complex64", DType::c64}, {"complex128", DType::c128},
    {"int8", DType::i8},    {"int16", DType::i16},     {"int32", DType::i32},
    {"int64", DType::i64},  {"uint8", DType::u8},      {"uint16", DType::u16},
    {"uint32", DType::u32}, {"uint64", DType::u64},    {"bool", DType::boolean}};

[[noreturn]] void give_up(const std::string& text) { throw std::runtime_error(text); }

DType type_of(const std::string& name) {
  for (const auto& [known, type] : type_names)
    if (name == known) return type;
  give_up("there is no element type " + name);
}

/// Reads "float@120[3x5]".
ArrayOf array_of(const std::string& text) {
  const std::size_t at = text.find('@'), open = text.find('[');
  if (at == std::string::npos || open == std::string::npos) give_up("no array: " + text);
  ArrayOf array{type_of(text.substr(0, at)), {}, std::stoll(text.substr(at + 1))};
  for (std::size_t i = open + 1; text[i] != ']'; i = text.find_first_of("x]", i)) {
    if (text[i] == 'x') ++i;
    array.extents.push_back(std::stoll(text.substr(i)));
  }
  return array;
}

/// The cases of a folder and all their arrays.
class Cases {
 public:
  explicit Cases(const std::string& folder) {
    std::ifstream file(folder + "/cases.txt");
    if (!file) give_up(folder + "/cases.txt cannot be read; generate.py writes it");
    for (std::string line; std::getline(file, line);) {
      if (line.rfind("# seed ", 0) == 0) seed = std::stoull(line.substr(7));
      if (line.empty() || line[0] == '#') continue;
      std::istringstream words(line);
      Case c;
      c.line = line;
      words >> c.number >> c.op;
      for (std::string word; words >> word;) {
        const std::size_t equal = word.find('=');
        const std::string key = word.substr(0, equal), value = word.substr(equal + 1);
        if (key == "in")
          c.in.push_back(array_of(value));
        else if (key == "out")
          c.out.push_back(array_of(value));
        else
          c.keys[key] = value;
      }
      all.push_back(std::move(c));
    }
    for (const auto& [name, type] : type_names) load(folder + "/" + name + ".npy", type);
    for (const Case& c : all)
      for (const auto* arrays : {&c.in, &c.out})
        for (const ArrayOf& array : *arrays) (void)at(array);
  }
  /// Returns an array's elements, row-major.
  const char* at(const ArrayOf& array) const {
    const auto& bytes = bytes_[static_cast<std::size_t>(array.type)];
    const std::size_t unit = size_of(array.type);
    const auto first = static_cast<std::size_t>(array.first) * unit;
    const auto count = static_cast<std::size_t>(volume(array.extents)) * unit;
    if (first + count > bytes.size())
      give_up("an array of " + std::string(name_of(array.type)) + " lies beyond its file");
    return bytes.data() + first;
  }
  std::vector<Case> all;
  std::uint64_t seed = 1;  ///< that they were made from

 private:
  void load(const std::string& path, DType type) {
    std::ifstream file(path, std::ios::binary);
    if (!file) return;  // no case has such elements
    const NpyHeader header = read_npy_header(path);
    const DType stored = type == DType::bf16 ? DType::i16 : type;
    if (header.type != stored || header.big_endian || header.extents.size() != 1)
      give_up(path + " holds other elements than its name says");
    auto& bytes = bytes_[static_cast<std::size_t>(type)];
    bytes.resize(static_cast<std::size_t>(header.extents[0]) * size_of(type));
    file.seekg(header.data_offset);
    file.read(bytes.data(), static_cast<std::streamsize>(bytes.size()));
    if (!file) give_up(path + " is shorter than its header says");
  }
  std::vector<char> bytes_[dtypes];
};

// ---- comparing ----------------------------------------------------------------------------------

struct Tolerance {
  double ulps = 0;
  double scale = 0;
  bool zeros = false;  ///< the sign of zero counts
};

template <class R> double epsilon() {
  if constexpr (std::is_same_v<R, half>)
    return 0x1p-10;
  else if constexpr (std::is_same_v<R, bfloat16>)
    return 0x1p-7;
  else
    return static_cast<double>(std::numeric_limits<R>::epsilon());
}
template <class R> double least() {
  if constexpr (std::is_same_v<R, half>)
    return 0x1p-24;
  else if constexpr (std::is_same_v<R, bfloat16>)
    return 0x1p-133;
  else
    return static_cast<double>(std::numeric_limits<R>::denorm_min());
}

template <class R> bool agree(double got, double want, double size, const Tolerance& t) {
  if (std::isnan(want)) return std::isnan(got);
  if (got == want) return !t.zeros || want != 0 || std::signbit(got) == std::signbit(want);
  if (std::isinf(want) || t.ulps == 0) return false;
  return std::abs(got - want) <= t.ulps * (epsilon<R>() * std::max(size, t.scale) + least<R>());
}
template <class T> bool same(const T& got, const T& want, const Tolerance& t) {
  if constexpr (ComplexElement<T>) {
    using R = typename T::value_type;
    const auto finite = [](R part) {
      const auto x = static_cast<double>(part);
      return std::isfinite(x) ? x : 0.0;
    };
    const double size = std::hypot(finite(want.real()), finite(want.imag()));
    return agree<R>(static_cast<double>(got.real()), static_cast<double>(want.real()), size, t) &&
           agree<R>(static_cast<double>(got.imag()), static_cast<double>(want.imag()), size, t);
  } else if constexpr (RealElement<T>) {
    const auto w = static_cast<double>(want);
    return agree<T>(static_cast<double>(got), w, std::abs(w), t);
  } else {
    return got == want;
  }
}
template <class T> std::string show(const T& value) {
  char text[80];
  if constexpr (ComplexElement<T>)
    std::snprintf(text, sizeof text, "%.17g%+.17gi", static_cast<double>(value.real()),
                  static_cast<double>(value.imag()));
  else if constexpr (RealElement<T>)
    std::snprintf(text, sizeof text, "%.17g", static_cast<double>(value));
  else
    return std::to_string(value);
  return text;
}

/// Returns the first element of a process's part that differs from the whole array, or nothing.
template <class T>
std::string difference(const Part& part, const ArrayOf& whole, const char* wanted,
                       const Tolerance& t) {
  const Extents local = part.box.extents();
  const Index count = volume(local);
  if (count == 0) return "";
  Index wrong = 0;
  std::string first;
  Extents at(local.size(), 0);
  for (Index i = 0; i < count; ++i) {
    Index linear = 0;
    for (int d = 0; d < at.size(); ++d) linear = linear * whole.extents[d] + part.box[d].lo + at[d];
    T got, want;
    std::memcpy(&got, part.bytes.data() + static_cast<std::size_t>(i) * sizeof(T), sizeof(T));
    std::memcpy(&want, wanted + static_cast<std::size_t>(linear) * sizeof(T), sizeof(T));
    if (!same(got, want, t) && wrong++ == 0) {
      first = "at (";
      for (int d = 0; d < at.size(); ++d)
        first += (d > 0 ? ", " : "") + std::to_string(part.box[d].lo + at[d]);
      first += ") it has " + show(got) + ", NumPy " + show(want);
    }
    for (int d = at.size() - 1; d >= 0 && ++at[d] == local[d]; --d) at[d] = 0;
  }
  if (wrong > 1) first += " (and " + std::to_string(wrong - 1) + " more of its elements)";
  return first;
}

std::string difference(const Part& part, const ArrayOf& whole, const Cases& cases,
                       const Tolerance& t) {
  if (part.type != whole.type)
    return "the result is of " + std::string(name_of(part.type)) + ", NumPy's of " +
           std::string(name_of(whole.type));
  if (!(part.extents == whole.extents))
    return "the result is " + to_string(part.extents) + ", NumPy's " + to_string(whole.extents);
  return detail::with_type(whole.type, [&](auto element) {
    return difference<decltype(element)>(part, whole, cases.at(whole), t);
  });
}

// ---- running ------------------------------------------------------------------------------------

DynamicTensor operand(const Run& r, const ArrayOf& array, const Cases& cases) {
  const Sharding sharding = r.some(array.extents.size());
  const char* bytes = cases.at(array);
  const auto count = static_cast<std::size_t>(volume(array.extents));
  return detail::with_type(array.type, [&](auto element) {
    using T = decltype(element);
    using Host = std::conditional_t<std::is_same_v<T, bool>, std::uint8_t, T>;
    std::vector<Host> values(count);
    if (count > 0) std::memcpy(values.data(), bytes, count * sizeof(T));
    return from_host<T>(r.mesh, array.extents, sharding, std::span<const Host>(values));
  });
}

Part part_of(DType type, const Extents& extents, const Box& box, const void* data) {
  Part part{type, extents, box, {}};
  part.bytes.resize(static_cast<std::size_t>(volume(box.extents())) * size_of(type));
  tessera::detail::fence();
  if (!part.bytes.empty())
    detail::copy_to_host(part.bytes.data(), data, static_cast<Index>(part.bytes.size()));
  return part;
}

/// What the process has of x, once x is finished.
Part part_of(const Run& r, const DynamicTensor& x) {
  if (!x.sharding().partial.empty()) return part_of(r, reshard(x, r.some(x.extents().size())));
  return part_of(x.type(), x.extents(), x.box(), x.core().data());
}

/// The extended block, in indices of the padded array.
Part halo_part(const Run& r) {
  const Extents low = r.c.list("low"), high = r.c.list("high");
  Halo widths;
  std::istringstream modes(r.c.text("modes"));
  for (int d = 0; d < low.size(); ++d) {
    std::string mode;
    std::getline(modes, mode, ',');
    Boundary boundary = Boundary::constant;
    for (const Boundary b : {Boundary::periodic, Boundary::reflected, Boundary::symmetric})
      if (mode == name_of(b)) boundary = b;
    widths.push_back({low[d], high[d], boundary});
  }
  const DynamicHaloTensor y = halo_exchange(r.in[0], widths);
  Extents whole = r.in[0].extents();
  Box box = y.box();
  for (int d = 0; d < low.size(); ++d) {
    whole[d] += low[d] + high[d];
    box[d].lo += low[d];
    box[d].hi += low[d];
  }
  if (y.own_box().empty()) {
    for (int d = 0; d < low.size(); ++d) box[d] = {};
    return {y.desc().type, whole, box, {}};
  }
  return part_of(y.desc().type, whole, box, y.block().core.data());
}

std::string text_of(const MeshShape& shape) {
  std::string text;
  for (int a = 0; a < shape.rank(); ++a) text += (a > 0 ? "x" : "") + std::to_string(shape[a]);
  return text;
}
MeshShape shape_of(const std::string& text) {
  MeshShape shape;
  for (std::size_t at = 0; at < text.size(); at = text.find('x', at)) {
    if (text[at] == 'x') ++at;
    shape.push_back(std::stoi(text.substr(at)));
    if (text.find('x', at) == std::string::npos) break;
  }
  return shape;
}

struct Settings {
  std::string folder;
  std::uint64_t seed = 0;
  bool seeded = false;  ///< else the cases' own seed
  long only = -1;
  std::string mesh;
  long tell = 12;  ///< how many differences are told in full
  bool mpi = false;
  bool sparse = false;  ///< each case on one mesh, not on all
};

std::uint64_t seed_of(const Settings& s, const Case& c, const MeshShape& shape) {
  std::uint64_t seed = detail::mix(s.seed, static_cast<std::uint64_t>(c.number));
  for (int a = 0; a < shape.rank(); ++a)
    seed = detail::mix(seed, static_cast<std::uint64_t>(shape[a]));
  return seed;
}

/// Returns what differs on this process, or nothing.
std::string run_case(const Settings& s, const Case& c, const Cases& cases, const Table& table,
                     const std::shared_ptr<MeshCore>& mesh) {
  support::Random random(seed_of(s, c, mesh->shape()));
  Run r{c, mesh, random, {}, ""};
  std::string wrong;
  try {
    for (const ArrayOf& array : c.in) r.in.push_back(operand(r, array, cases));
    std::vector<Part> parts;
    if (c.op == "halo") {
      parts.push_back(halo_part(r));
    } else {
      for (const DynamicTensor& x : table.find(c)(r)) parts.push_back(part_of(r, x));
    }
    if (parts.size() != c.out.size()) give_up("the case has another number of results");
    const Tolerance t{c.real("ulps", 0), c.real("scale", 0), c.number_of("zeros") != 0};
    for (std::size_t k = 0; k < parts.size() && wrong.empty(); ++k)
      wrong = difference(parts[k], c.out[k], cases, t);
  } catch (const std::exception& error) {
    wrong = std::string("it throws: ") + error.what();
  }
  if (wrong.empty()) return wrong;
  const int processes = mesh->shape().processes();
  const std::string start = s.mpi ? "mpiexec -n " + std::to_string(processes) + " " : "";
  return "case " + c.line + "\n  on process " + std::to_string(mesh->process()) + " of mesh " +
         text_of(mesh->shape()) + ", shardings" + r.chosen + "\n  " + wrong +
         "\n  again: " + start + "differential_cases " + s.folder + (s.mpi ? " --mpi" : "") +
         " --seed " + std::to_string(s.seed) + " --case " + std::to_string(c.number) + " --mesh " +
         text_of(mesh->shape()) + "\n";
}

/// A line on a terminal that is drawn again and again.
class Bar {
 public:
  Bar(long total, bool speaks) : total_(total), speaks_(speaks && ::isatty(STDERR_FILENO) != 0) {}
  void step() {
    ++done_;
    const int percent = static_cast<int>(100 * done_ / total_);
    if (!speaks_ || percent == shown_) return;
    shown_ = percent;
    const std::string filled(static_cast<std::size_t>(percent / 4), '=');
    std::fprintf(stderr, "\rcases [%-25s] %3d %%%s", filled.c_str(), percent,
                 done_ == total_ ? "\n" : "");
  }

 private:
  long total_, done_ = 0;
  int shown_ = -1;
  bool speaks_;
};

/// What went wrong, of all processes of a loopback or of this one.
struct Report {
  std::mutex mutex;
  long most = 12;  ///< are told in full
  long wrong = 0;
  long runs = 0;
  std::vector<std::string> first;
  void add(const std::string& text) {
    const std::lock_guard lock(mutex);
    if (++wrong <= most) first.push_back(text);
  }
};

bool chosen(const Settings& s, const Case& c, std::size_t mesh, std::size_t meshes) {
  if (s.only >= 0) return c.number == s.only;
  return !s.sparse || detail::mix(s.seed, static_cast<std::uint64_t>(c.number)) % meshes == mesh;
}

/// Runs the cases on each mesh in turn; `on(shape, body)` calls body(transport) on all processes.
template <class On>
void run_all(const Settings& s, const Cases& cases, const Table& table,
             const std::vector<MeshShape>& shapes, bool speaks, Report& report, const On& on) {
  long total = 0;
  for (std::size_t m = 0; m < shapes.size(); ++m)
    for (const Case& c : cases.all) total += chosen(s, c, m, shapes.size());
  if (total == 0) give_up("no case is chosen");
  Bar bar(total, speaks);
  for (std::size_t m = 0; m < shapes.size(); ++m) {
    MeshOptions options;
    support::Random machine(s.seed + m);
    options.machine = support::some_machine(machine);
    on(shapes[m], [&](const std::shared_ptr<Transport>& world) {
      const auto mesh =
          make_mesh_core(world, shapes[m], support::axis_names(shapes[m].rank()), options);
      for (const Case& c : cases.all) {
        if (!chosen(s, c, m, shapes.size())) continue;
        if (mesh->process() == 0) {
          bar.step();
          ++report.runs;
        }
        if (const std::string text = run_case(s, c, cases, table, mesh); !text.empty())
          report.add(text);
      }
    });
  }
}

int result(const Report& report, const Settings& s, bool speaks) {
  for (const std::string& text : report.first) std::fprintf(stderr, "%s", text.c_str());
  if (report.wrong > static_cast<long>(report.first.size()))
    std::fprintf(stderr, "and %ld more\n", report.wrong - static_cast<long>(report.first.size()));
  if (speaks)
    std::printf("differential: %ld runs of cases in %s, seed %llu: %s\n", report.runs,
                s.folder.c_str(), static_cast<unsigned long long>(s.seed),
                report.wrong == 0 ? "nothing differs" : "see above");
  return report.wrong == 0 ? 0 : 1;
}

Settings settings_of(int argc, char** argv) {
  Settings s;
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    const auto next = [&] {
      if (i + 1 == argc) give_up(word + " needs a value");
      return std::string(argv[++i]);
    };
    if (word == "--tell")
      s.tell = std::stol(next());
    else if (word == "--seed") {
      s.seed = std::stoull(next());
      s.seeded = true;
    } else if (word == "--case")
      s.only = std::stol(next());
    else if (word == "--mesh")
      s.mesh = next();
    else if (word == "--mpi")
      s.mpi = true;
    else if (word == "--sparse")
      s.sparse = true;
    else if (word.rfind("--", 0) == 0)
      give_up("there is no option " + word);
    else
      s.folder = word;
  }
  if (s.folder.empty())
    give_up(
        "name the folder of the cases: differential FOLDER [--mpi] [--seed N] [--sparse] "
        "[--case N] [--mesh 2x2]");
  return s;
}

int run(Settings s, int argc, char** argv) {
  const Cases cases(s.folder);
  if (!s.seeded) s.seed = cases.seed;
  Table table;
  add_moves(table);
  add_products(table);
  add_reductions(table);
  add_elementwise(table);
  add_gradients(table);
  Report report;
  report.most = s.tell;
  if (s.mpi) {
    Environment environment(argc, argv);
    const auto& world = environment.world();
    std::vector<MeshShape> shapes;
    for (int axes = 1; axes <= 3; ++axes)
      for (const MeshShape& shape : support::meshes_of(world->size(), axes))
        if (axes == 1 || shape[0] > 1) shapes.push_back(shape);
    if (!s.mesh.empty()) shapes = {shape_of(s.mesh)};
    const bool speaks = world->process() == 0;
    run_all(s, cases, table, shapes, speaks, report,
            [&](const MeshShape&, const auto& body) { body(world); });
    return result(report, s, speaks);
  }
  const Kokkos::ScopeGuard kokkos(argc, argv);
  std::vector<MeshShape> shapes{MeshShape{1},    MeshShape{2},    MeshShape{2, 2},   MeshShape{3},
                                MeshShape{3, 2}, MeshShape{1, 4}, MeshShape{2, 2, 2}};
  if (!s.mesh.empty()) shapes = {shape_of(s.mesh)};
  run_all(s, cases, table, shapes, true, report,
          [](const MeshShape& shape, const auto& body) { run_loopback(shape.processes(), body); });
  return result(report, s, true);
}

}  // namespace
}  // namespace differential

int main(int argc, char** argv) {
  try {
    return differential::run(differential::settings_of(argc, argv), argc, argv);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "differential: %s\n", error.what());
    return 2;
  }
}
