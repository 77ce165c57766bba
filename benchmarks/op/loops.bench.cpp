// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// processes: 2 4
// Products in rounds beside the same products with gathered operands or a scattered result, in the
// same run, in turns: a mesh whose limit of workspace is kept by loops beside one without a limit.
// Below each row: the workspace of both, and how much of a loop's time is spent in MPI while it
// waits. Where the same cores copy the messages, transfers and products add up; a ratio of 1 says
// that rounds cost nothing.
#include <mpi.h>

#include <cstdio>
#include <string>
#include <vector>

#include <tessera/tessera.hpp>

#include "support/turns.hpp"

namespace {
double waited = 0;  // seconds in MPI_Test and MPI_Wait

template <class Call> int timed_call(const Call& call) {
  const double start = MPI_Wtime();
  const int error = call();
  waited += MPI_Wtime() - start;
  return error;
}
}  // namespace

extern "C" int MPI_Test(MPI_Request* request, int* flag, MPI_Status* status) {
  return timed_call([&] { return PMPI_Test(request, flag, status); });
}
extern "C" int MPI_Wait(MPI_Request* request, MPI_Status* status) {
  return timed_call([&] { return PMPI_Wait(request, status); });
}

namespace {
using namespace tessera;

struct Row {
  const char* name;
  const char* equation;
  Extents a;
  Sharding sa;
  Extents b;
  Sharding sb, out;
  MeshShape mesh;
  Index limit;
};

DynamicTensor some(const std::shared_ptr<MeshCore>& mesh, const Extents& extents,
                   const Sharding& s) {
  tessera::detail::use_element<float>();
  const TensorCore core = TensorCore::make(mesh, {DType::f32, extents, s});
  tessera::detail::fill(
      core.data<float>(),
      tessera::detail::block_volume(extents, s, mesh->shape(), mesh->coordinates()), 0.5F);
  return DynamicTensor(core);
}

void run(const Row& row, Environment& env, Shared shared) {
  const std::string name =
      std::string("loops/") + row.name + (shared == Shared::off ? "/messages" : "/shared");
  if (!tessera_bench::wanted(name)) return;
  MeshOptions plain, limited;
  plain.shared = limited.shared = shared;
  limited.workspace_limit = row.limit;
  std::vector<std::function<void()>> bodies;
  std::vector<Index> workspaces;
  std::vector<std::shared_ptr<MeshCore>> meshes;
  for (const MeshOptions& options : {plain, limited}) {
    const auto mesh = make_mesh_core(env.world(), row.mesh, {"x", "y"}, options);
    meshes.push_back(mesh);
    const DynamicTensor x = some(mesh, row.a, row.sa), y = some(mesh, row.b, row.sb);
    const auto body = [=] { (void)einsum(row.equation, x, y, row.out); };
    body();
    const Index held = mesh->arena().in_use();
    mesh->arena().reset_peak();
    body();
    workspaces.push_back(mesh->arena().peak() - held);
    bodies.emplace_back(body);
  }
  double inside = 0;
  int times = 0;
  const auto looped = bodies[1];
  bodies[1] = [&] {
    waited = 0;
    looped();
    inside += waited;
    ++times;
  };
  const std::vector<double> t = tessera_bench::in_turns(bodies, {2.0, 21, 401});
  tessera_bench::note(name, {{"looped", t[1]}, {"gathered", t[0]}});
  if (meshes[0]->process() == 0)
    std::printf(
        "%-34s looped %9.2f ms, gathered %9.2f ms, ratio %.3f\n"
        "%-34s workspace and result %s, gathered %s; waiting %.2f ms (%.1f %%)\n",
        name.c_str(), t[1] * 1e3, t[0] * 1e3, t[1] / t[0], "",
        tessera::detail::bytes_text(workspaces[1]).c_str(),
        tessera::detail::bytes_text(workspaces[0]).c_str(), inside / times * 1e3,
        inside / times / t[1] * 100);
}
}  // namespace

int main(int argc, char** argv) {
  return run_main(argc, argv, [&](Environment& env) {
    tessera_bench::start(argc, argv);
    const int n = env.world()->size();
    const Index mib = Index{1} << 20;
    const MeshShape line{n, 1};
    const Sharding rows{{0}, {}}, columns{{}, {0}};
    std::vector<Row> all{{"gather, free letter",
                          "ik,jk->ij",
                          {2048, 1024},
                          rows,
                          {2048, 1024},
                          rows,
                          rows,
                          line,
                          7 * mib},
                         {"gather, summed letter",
                          "ik,kj->ij",
                          {4096, 1024},
                          rows,
                          {1024, 1024},
                          rows,
                          rows,
                          line,
                          3 * mib},
                         {"reduce-scatter",
                          "ik,kj->ij",
                          {1024, 4096},
                          columns,
                          {4096, 1024},
                          rows,
                          rows,
                          line,
                          3 * mib}};
    if (n == 4)
      all.push_back({"both operands, 2 x 2",
                     "ik,kj->ij",
                     {1024, 1024},
                     {{0}, {1}},
                     {1024, 1024},
                     {{0}, {1}},
                     {{0}, {1}},
                     MeshShape{2, 2},
                     2 * mib});
    for (const Row& row : all)
      for (const Shared shared : {Shared::off, Shared::on}) run(row, env, shared);
    return tessera_bench::finish();
  });
}
