// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Jobs in which one process does something else than the others, dies, leaves or does not come:
/// each must end by itself, on every process, with a failure and the right sentence, once.
///
///     mismatch --drive 0 4 mpiexec.mpich -n @    // the first of four parts of the jobs
///     mpiexec.mpich -n 4 mismatch <name>         // one job
#include <mpi.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <random>
#include <stdexcept>
#include <thread>

#include <tessera/op/compile.hpp>

#include "mismatch/divergence.hpp"
#include "support/pmpi.hpp"

using namespace mismatch;

namespace {

struct Job {
  std::string name;
  int processes = 2;
  std::function<void(Environment&)> run;
  std::vector<std::string> says;
  int code = 1;       ///< -1: any failure; 0 to 255
  int messages = 1;   ///< lines that begin with Tessera's mark; -1: any number
  bool bare = false;  ///< without run_main
};

void sleep(double seconds) { std::this_thread::sleep_for(std::chrono::duration<double>(seconds)); }

/// Calls until some process does not: `odd` is done by the last process after a few of them.
template <class F> void call_until(Environment& env, F odd, MeshOptions options = {}) {
  const bool last = env.process() == env.size() - 1;
  const auto mesh = make_mesh<Grid>(env, sizes<Grid>(env.size(), 1), options);
  const auto x = matrix(mesh, DType::f32, {256, 256});  // large enough for shared memory
  for (int step = 0;; ++step) {
    if (step == 3 && last) odd(mesh);
    reduce<Sum>("ij->j", x, whole(1));
    reshard(x, whole(2));
  }
}
/// Makes calls from process to process, spinning, until some process does not.
template <class F> void exchange_until(Environment& env, F odd) {
  MeshOptions options;
  options.wait = Wait::spin;
  options.time_limit = 20;
  const auto mesh = make_mesh<Grid>(env, sizes<Grid>(env.size(), 1), options);
  std::int64_t mine = env.process();
  std::int64_t others = 0;
  Call call;
  call.kind = Collective::exchange;
  call.type = DType::i64;
  call.group = AxisSet{0};
  call.own = env.process();
  call.members = 2;
  call.send = call.receive = {{1 - env.process(), 0, 1}};
  for (int step = 0;; ++step) {
    if (step == 3 && env.process() == 1) odd();
    mesh.core()->collective(call, &mine, &others, "exchange", Where::here());
  }
}
MeshOptions limit(double seconds, Wait wait = Wait::automatic, Shared shared = Shared::automatic) {
  MeshOptions options;
  options.time_limit = seconds;
  options.wait = wait;
  options.shared = shared;
  return options;
}

struct Thrower {
  template <class I> float operator()(const I&) const { throw std::runtime_error("in a kernel"); }
};
void throw_planted() { throw std::runtime_error("planted"); }
void never_throws() noexcept { throw_planted(); }

/// The driver counts the time from here to the end of the job.
void diverges() {
  std::printf("diverges at %lld\n", static_cast<long long>(detail::steady_nanoseconds()));
  std::fflush(stdout);
}

std::vector<Job> all_jobs() {
  std::vector<Job> jobs;
  // ---- other calls, other meshes: the program is the same as on loopback
  const MeshSizes<Grid> meshes[] = {sizes<Grid>(2, 1), sizes<Grid>(1, 3), sizes<Grid>(2, 2)};
  int turn = 0;
  const auto add = [&](const Deviation& d) {
    const MeshSizes<Grid> size = meshes[turn % 3];
    const int processes = size.shape.processes();
    const int odd = turn % 2 == 0 ? processes - 1 : 0;
    ++turn;
    jobs.push_back({std::string(d.name),
                    processes,
                    [d, size, odd](Environment& env) {
                      d.run({env.world(), size, env.process() == odd});
                    },
                    {"^[tessera] process 0 calls ", std::string(odd == 0 ? d.odd : d.regular),
                     ", but process " + std::to_string(odd == 0 ? 1 : odd) + " calls ",
                     std::string(odd == 0 ? d.regular : d.odd), "(at cases.hpp:"}});
  };
  for (const Deviation& d : different_calls) add(d);
  for (const Deviation& d : different_meshes) {
    add(d);
    jobs.back().says.pop_back();  // typed make_mesh of sizes has no place
  }

  // ---- the same by default, where nobody has asked for checks: a sample of what loopback does
  std::mt19937 random(11);
  for (int i = 0; i < 18; ++i) {
    Divergence d{static_cast<Way>(i % 6), static_cast<int>(random() % divergence_length)};
    d.regular = static_cast<int>(random() % kind_count);
    d.odd = (d.regular + 1 + static_cast<int>(random() % (kind_count - 1))) % kind_count;
    const int processes = i < 6 ? 2 : 2 + static_cast<int>(random() % 7);
    const int odd = static_cast<int>(random() % static_cast<unsigned>(processes));
    const Wait wait = i % 4 == 3 ? Wait::spin : Wait::nap;
    const Shared shared = random() % 2 == 0 ? Shared::on : Shared::off;
    const auto words = words_of(d);
    jobs.push_back({"default: " + std::string(way_names[static_cast<std::size_t>(d.way)]) + " at " +
                        std::to_string(d.at) + " of " + std::to_string(processes) +
                        ", shared memory " + std::string(name_of(shared)) + ", " +
                        std::string(name_of(wait)),
                    processes,
                    [=](Environment& env) {
                      run(d,
                          {env.world(), sizes<Grid>(processes, 1), env.process() == odd,
                           Check::normal, shared, wait},
                          [] { diverges(); });
                    },
                    {"^[tessera] process ", words[0], words[1], "(at divergence.hpp:"}});
  }

  // ---- compiled functions: a new structure on one process, and others where the rest have one
  const auto compiled = [&](std::string name, auto f, std::vector<std::string> says, int code) {
    jobs.push_back({"compiled: " + std::move(name), 3,
                    [f](Environment& env) {
                      const auto mesh = make_mesh<Grid>(env, sizes<Grid>(3, 1), limit(20));
                      const auto x = matrix(mesh, DType::f32, {24, 6});
                      auto step = compile([&](bool odd) { return f(x, odd); });
                      for (int i = 0; i < 4; ++i) (void)step(i == 3 && env.process() == 1);
                    },
                    std::move(says), code});
  };
  compiled(
      "other operators on one process",
      [](const DynamicTensor& x, bool odd) {
        return reduce<Sum>("ij->j", odd ? reshard(x, whole(2)) : x, whole(1));
      },
      {"^[tessera] process ", "sum ij->j of", "the compiled function of 2 operators"}, 1);
  compiled(
      "an exception on one process",
      [](const DynamicTensor& x, bool odd) {
        if (odd) throw std::runtime_error("planted");
        return reduce<Sum>("ij->j", x, whole(1));
      },
      {"^[tessera] process 1: planted"}, 1);

  // ---- a process that throws, dies or leaves
  const auto ends = [&](std::string name, auto odd, std::vector<std::string> says, int code,
                        int messages, bool bare = false) {
    const Wait wait = ++turn % 2 == 0 ? Wait::nap : Wait::spin;
    jobs.push_back({std::move(name), 2,
                    [odd, wait](Environment& env) { call_until(env, odd, limit(20, wait)); },
                    std::move(says), code, messages, bare});
  };
  using Mesh = ProcessMesh<Grid>;
  ends(
      "throws", [](const Mesh&) { throw_planted(); }, {"^[tessera] process 1: planted"}, 1, 1);
  ends(
      "throws what is not a std::exception", [](const Mesh&) { throw 42; },
      {"process 1: an exception that is not a std::exception"}, 1, 1);
  ends(
      "throws a user's error", [](const Mesh&) { throw UsageError("planted"); },
      {"process 1: planted"}, 2, 1);
  ends(
      "throws where nothing may be thrown", [](const Mesh&) { never_throws(); },
      {"process 1: planted"}, 1, 1);
  ends(
      "throws in a kernel",
      [](const Mesh& mesh) {
        from_function<ShardedTensor<float, Grid, P<rows, _>>>(mesh, {4, 4}, Thrower{});
      },
      {"process 1: in a kernel"}, 1, 1);
  ends(
      "throws without run_main", [](const Mesh&) { throw_planted(); }, {"process 1: planted"}, 1, 1,
      true);
  ends(
      "terminates", [](const Mesh&) { std::terminate(); }, {"process 1: std::terminate"}, 1, 1);
  ends(
      "exits with success", [](const Mesh&) { std::exit(0); },
      {"process 1: the program has called exit while"}, 1, 1);
  ends(
      "exits", [](const Mesh&) { std::exit(7); }, {"process 1: the program has called exit while"},
      1, 1);
  ends(
      "exits quickly", [](const Mesh&) { std::quick_exit(0); },
      {"process 1: the program has called exit while"}, 1, 1);
  jobs.push_back({"throws, and MPI_Abort hangs",
                  2,
                  [](Environment& env) {
                    support::pmpi::hang_in_abort();
                    call_until(env, [](const Mesh&) { throw_planted(); });
                  },
                  {"process 1: planted"}});
  // These leave a process no word, and the launcher ends the others: another process tells.
  const std::vector<std::string> without_a_word{"ended first on its node, without a word",
                                                "process 0: ", "process 1: "};
  ends(
      "exits at once", [](const Mesh&) { _exit(5); }, without_a_word, -1, 1);
  ends(
      "aborts", [](const Mesh&) { std::abort(); }, without_a_word, -1, 1);
  ends(
      "is killed", [](const Mesh&) { raise(SIGKILL); }, without_a_word, -1, 1);
  ends(
      "is told to end", [](const Mesh&) { raise(SIGTERM); }, without_a_word, -1, 1);
  ends(
      "crashes",
      [](const Mesh&) {
        signal(SIGSEGV, SIG_DFL);
        raise(SIGSEGV);
      },
      without_a_word, -1, 1);
  ends(
      "aborts MPI", [](const Mesh&) { MPI_Abort(MPI_COMM_WORLD, 9); }, {}, 9,
      -1);  // MPI says which process it is, and MPICH's launcher may drop what others say
  ends(
      "closes its mesh", [](const Mesh& mesh) { mesh.core()->close(); },
      {"process 1: the mesh rows=2 x columns=1 cannot be used: it is closed"}, 2, 1);
  ends(
      "runs out of memory", [](const Mesh& mesh) { mesh.arena().allocate(max_int64 / 2); },
      {"process 1: "}, 1, 1);
  ends(
      "has an empty tensor", [](const Mesh&) { reduce<Sum>("ij->j", DynamicTensor(), whole(1)); },
      {"process 1: ", "an empty tensor is used", "(at mismatch.cpp:"}, 2, 1);
  ends(
      "gives a tensor of another mesh",
      [](const Mesh& mesh) {
        const auto x = matrix(mesh);
        const auto y = matrix(dry_mesh<Grid>(2, 1));
        einsum("ik,kj->ij", x, y, whole(2));
      },
      {"operand 1 lives on a mesh rows=2 x columns=1",
       "(at mismatch.cpp:", "on process 1: rows=1, columns=0)"},
      2, 1);

  // ---- a process that does not come
  const auto late = [&](std::string name, auto odd, std::string last, MeshOptions options) {
    jobs.push_back({std::move(name),
                    2,
                    [odd, options](Environment& env) { call_until(env, odd, options); },
                    {"^[tessera] process 0 has waited longer than the limit of 1 s",
                     "process 0: waits in ", "process 1: " + last, "TESSERA_TIME_LIMIT"}});
  };
  const auto sleeps = [](const Mesh&) { sleep(60); };
  const auto works = [](const Mesh&) {
    for (volatile double x = 1;;) x = std::sqrt(x + 1);
  };
  late("never calls (nap)", sleeps, "left ", limit(1, Wait::nap));
  late("never calls (spin)", sleeps, "left ", limit(1, Wait::spin));
  late("never calls (nap, shared)", sleeps, "left ", limit(1, Wait::nap, Shared::on));
  late("never calls (spin, shared)", sleeps, "left ", limit(1, Wait::spin, Shared::on));
  late("computes for ever", works, "left ", limit(1));
  late(
      "waits for a signal", [](const Mesh&) { pause(); }, "left ", limit(1));
  late(
      "ends MPI", [](const Mesh&) { MPI_Finalize(); }, "left ", limit(1));
  jobs.push_back(
      {"returns early",
       3,
       [](Environment& env) {
         const auto x = matrix(make_mesh<Grid>(env, sizes<Grid>(3, 1), limit(100)));
         if (env.process() == 1) {
           diverges();
           return;
         }
         reshard(x, whole(2));
       },
       {"^[tessera] process 1 has ended, but process ", "process 1: has ended; ",
        "process 0: waits in ", "(at mismatch.cpp:", "reshard of float 6x6 P<rows,_> to P<_,_>"}});
  jobs.push_back({"makes a mesh more",
                  2,
                  [](Environment& env) {
                    const auto mesh = make_mesh<Grid>(env, sizes<Grid>(2, 1), limit(100));
                    const auto x = matrix(mesh);
                    if (env.process() == 1) {
                      diverges();
                      make_mesh<Grid>(env, sizes<Grid>(2, 1), limit(100));
                    }
                    reshard(x, whole(2));
                  },
                  {"^[tessera] process ", "stands in another call than process ",
                   "process 0: waits in ", "process 1: waits in the making of a mesh"}});
  jobs.push_back({"makes no mesh",
                  2,
                  [](Environment& env) {
                    TransportSettings settings = env.world()->settings();
                    settings.time_limit = 1;
                    const auto transport = env.world()->duplicate(settings);
                    if (env.process() == 0) make_mesh<Grid>(transport, sizes<Grid>(2, 1));
                    if (env.process() == 1) sleep(60);
                  },
                  {"process 0 has waited longer than the limit of 1 s"}});
  jobs.push_back({"makes its mesh of another communicator",
                  3,
                  [](Environment& env) {  // two of them wait for the third, which is on its own
                    MPI_Comm two = MPI_COMM_NULL;
                    MPI_Comm_split(MPI_COMM_WORLD, env.process() < 2 ? 0 : 1, 0, &two);
                    TransportSettings settings = env.world()->settings();
                    settings.time_limit = 1;
                    const auto transport =
                        env.process() < 2 ? mpi_transport(two, settings) : nullptr;
                    if (env.process() < 2)
                      make_mesh<Grid>(transport, sizes<Grid>(2, 1)).core()->barrier();
                    const auto all = env.world()->duplicate(settings);
                    if (env.process() == 0)
                      transport->barrier();
                    else
                      all->barrier();
                  },
                  {"has waited longer than the limit of 1 s"}});

  // ---- MPI fails on one process
  for (const char* function : {"MPI_Iallreduce", "MPI_Allreduce", "MPI_Allgather", "MPI_Iallgather",
                               "MPI_Wait", "MPI_Test", "MPI_Comm_idup", "MPI_Comm_create_group"}) {
    const std::string name = function;
#if !defined(MPICH_VERSION)  // then every reduction is nonblocking (comm/mpi/detail/group.hpp)
    if (name == "MPI_Allreduce") continue;
#endif
    const bool making = name.starts_with("MPI_Comm");
    const bool spins = name == "MPI_Allreduce" || name == "MPI_Allgather" || name == "MPI_Wait";
    jobs.push_back({name + " fails on one process",
                    making ? 4 : 2,
                    [=](Environment& env) {
                      const auto plant = [=] { support::pmpi::fail(function, MPI_ERR_INTERN); };
                      if (making && env.process() == 1) plant();
                      if (making)
                        make_mesh<Grid>(env, sizes<Grid>(2, 2)).core()->group(AxisSet{0});
                      else if (name == "MPI_Wait")
                        exchange_until(env, [=] { plant(); });
                      else
                        call_until(
                            env, [=](const Mesh&) { plant(); },
                            limit(20, spins ? Wait::spin : Wait::nap, Shared::off));
                    },
                    {"^[tessera] ", "process 1: ", name + " failed with code ", " of class "}});
    if (name == "MPI_Test") jobs.back().says[2] = " failed with code ";
  }

  // ---- where nobody compares operators: wrong, and still never for ever
  const auto unchecked = [&](std::string name, void (*odd)(const DynamicTensor&, bool)) {
    jobs.push_back({std::move(name),
                    2,
                    [odd](Environment& env) {
                      MeshOptions options = limit(1);
                      options.check = Check::light;
                      const auto mesh = make_mesh<Grid>(env, sizes<Grid>(2, 1), options);
                      odd(matrix(mesh, DType::f32, {64, 6}), env.process() == 1);
                      mesh.core()->barrier();
                    },
                    {"^[tessera] ", "process "},
                    1,
                    1});
  };
  unchecked("unchecked: an operator more", [](const DynamicTensor& x, bool odd) {
    if (odd) reshard(x, whole(2));
  });
  unchecked("unchecked: more elements", [](const DynamicTensor& x, bool odd) {
    reduce<Sum>(odd ? "ij->ij" : "ij->j", odd ? x : x, odd ? whole(2) : whole(1));
  });
  // ---- each collective compared within its group
  jobs.push_back({"heavy: other counts in one collective",
                  2,
                  [](Environment& env) {
                    MeshOptions options;
                    options.check = Check::heavy;
                    const auto mesh = make_mesh<Grid>(env, sizes<Grid>(2, 1), options);
                    std::vector<std::int64_t> x(10);
                    Call call = detail::control_all_reduce(mesh.core()->group(AxisSet{0}),
                                                           Reduction::sum, env.process() + 1);
                    call.group = AxisSet{0};
                    mesh.core()->collective(call, x.data(), x.data(), "sum", Where::here());
                  },
                  {"^[tessera] ", "sum: all-reduce", "(at mismatch.cpp:"}});
  return jobs;
}

// ---- the driver
// -----------------------------------------------------------------------------------

struct Outcome {
  double since = 0;  ///< seconds from where a process said that it diverges to the end
  int code = 0;
  bool in_time = true;
  std::string output;
};

/// Runs a command; whatever it started is ended with it.
Outcome run(std::vector<std::string> words, double seconds) {
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  int ends[2];
  if (pipe(ends) != 0) throw std::runtime_error("pipe");
  const pid_t child = fork();
  if (child == 0) {
    setpgid(0, 0);
    dup2(ends[1], 1);
    dup2(ends[1], 2);
    close(ends[0]);
    close(ends[1]);
    execvp(argv[0], argv.data());
    _exit(127);
  }
  close(ends[1]);
  Outcome outcome;
  const auto start = std::chrono::steady_clock::now();
  const auto left = [&] {
    return seconds -
           std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  };
  for (;;) {
    pollfd ready{ends[0], POLLIN, 0};
    if (left() <= 0 && outcome.in_time) {
      outcome.in_time = false;
      kill(child, SIGTERM);  // mpiexec ends its processes
      seconds += 5;
    } else if (left() <= 0) {
      kill(-child, SIGKILL);
    }
    if (poll(&ready, 1, 100) <= 0) continue;
    char buffer[4096];
    const auto count = read(ends[0], buffer, sizeof buffer);
    if (count <= 0) break;
    outcome.output.append(buffer, static_cast<std::size_t>(count));
  }
  close(ends[0]);
  int status = 0;
  waitpid(child, &status, 0);
  constexpr std::string_view mark = "diverges at ";
  if (const auto at = outcome.output.find(mark); at != std::string::npos)
    outcome.since = 1e-9 * static_cast<double>(detail::steady_nanoseconds() -
                                               std::stoll(outcome.output.substr(at + mark.size())));
  outcome.code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return outcome;
}

/// Each process of a job writes its number here as it starts.
std::string process_file() {
  const char* path = std::getenv("TESSERA_TEST_PROCESSES");
  return path == nullptr ? "" : path;
}

/// A process that nobody has waited for yet does not run.
bool runs(pid_t pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/stat");
  std::string text;
  std::getline(file, text);
  const auto name = text.rfind(") ");
  return name != std::string::npos && text[name + 2] != 'Z' && text[name + 2] != 'X';
}

/// Returns whether of a job's processes some did not start, or still run after a grace of ten
/// seconds, which a loaded machine may need.
std::string survivors(const std::string& path, int expected) {
  std::vector<pid_t> pids;
  std::ifstream file(path);
  for (long pid = 0; file >> pid;) pids.push_back(static_cast<pid_t>(pid));
  if (static_cast<int>(pids.size()) != expected)
    return std::to_string(pids.size()) + " processes started";
  for (int attempt = 0; attempt < 100; ++attempt) {
    bool alive = false;
    for (const pid_t pid : pids) alive = alive || runs(pid);
    if (!alive) return {};
    sleep(0.1);
  }
  return "a process still runs";
}

/// Returns what is wrong with how a job ended, or nothing.
std::string wrong(const Job& job, const Outcome& outcome, const std::string& path) {
  if (!outcome.in_time) return "it did not end";
  if (outcome.since > 5) return "it took too long after it diverged";
  if (job.code >= 0 ? outcome.code != job.code : outcome.code == 0)
    return "it ended with code " + std::to_string(outcome.code);
  int messages = 0;
  for (std::size_t at = 0; (at = outcome.output.find("[tessera] ", at)) != std::string::npos; ++at)
    if (at == 0 || outcome.output[at - 1] == '\n') ++messages;
  if (job.messages >= 0 && messages != job.messages) return std::to_string(messages) + " messages";
  for (const std::string& part : job.says) {
    const bool first = part[0] == '^';
    const std::string text = part.substr(first ? 1 : 0);
    if (outcome.output.find(first ? "\n" + text : text) == std::string::npos &&
        !(first && outcome.output.starts_with(text)))
      return "it does not say: " + part;
  }
  return survivors(path, job.processes);
}

int drive(const std::string& self, int part, int parts, const std::vector<std::string>& launcher) {
  const std::vector<Job> jobs = all_jobs();
  char path[] = "/tmp/tessera_mismatch_XXXXXX";
  close(mkstemp(path));
  setenv("TESSERA_TEST_PROCESSES", path, 1);
  int failed = 0;
  int count = 0;
  for (std::size_t i = static_cast<std::size_t>(part); i < jobs.size();
       i += static_cast<std::size_t>(parts)) {
    std::ofstream(path, std::ios::trunc).flush();
    std::vector<std::string> words = launcher;
    for (std::string& word : words)
      if (word == "@") word = std::to_string(jobs[i].processes);
    words.push_back(self);
    words.push_back(jobs[i].name);
    const auto start = std::chrono::steady_clock::now();
    const Outcome outcome = run(words, 30);
    const double seconds =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    const std::string text = wrong(jobs[i], outcome, path);
    std::printf("%-45s %4.1f s  %s", jobs[i].name.c_str(), seconds,
                text.empty() ? "as it should" : text.c_str());
    if (outcome.since > 0) std::printf(", %.2f s after it diverged", outcome.since);
    std::printf("\n");
    if (!text.empty()) std::printf("%s\n", outcome.output.c_str());
    std::fflush(stdout);
    failed += text.empty() ? 0 : 1;
    ++count;
  }
  unlink(path);
  std::printf("%d jobs, %d ended wrong\n", count, failed);
  return count > 0 && failed == 0 ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  const std::vector<std::string> words(argv, argv + argc);
  if (words.size() > 4 && words[1] == "--drive")
    return drive(words[0], std::stoi(words[2]), std::stoi(words[3]),
                 {words.begin() + 4, words.end()});
  const std::string name = words.size() > 1 ? words[1] : "";
  for (const Job& job : all_jobs()) {
    if (job.name != name) continue;
    if (const std::string path = process_file(); !path.empty()) {
      std::ofstream file(path, std::ios::app);
      file << (std::to_string(getpid()) + "\n") << std::flush;
    }
    if (!job.bare) return run_main(argc, argv, job.run);
    Environment env(argc, argv);
    job.run(env);
    return 0;
  }
  for (const Job& job : all_jobs()) std::printf("%s\n", job.name.c_str());
  return 0;
}
