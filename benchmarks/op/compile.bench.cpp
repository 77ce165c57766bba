// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// processes: 1 2 4
// Functions compiled and not, in turns. What listing an operator and finding the list's
// Program cost, beside the operator itself on few elements; the feed-forward layer forward and
// backward, its six products, whose weights and activations are gathered twice where nothing is
// shared; a step of lesson 8's trainer (examples/08_gradients_by_hand.cpp), whose optimizer has its
// count of steps on the host; and passes over a Program of 10,000 operators on meshes of 4 and of
// 4,096 processes.
#include <cstdio>
#include <string>
#include <tuple>
#include <vector>

#include <tessera/op/compile.hpp>
#include <tessera/tessera.hpp>

#include "../../examples/gradients_by_hand/adam.hpp"
#include "support/turns.hpp"

namespace {
using namespace tessera;

namespace grid {
struct data : Axis<> {};
struct model : Axis<> {};
}  // namespace grid
using grid::data, grid::model;
using Grid = Mesh<data, model>;
template <class... D> using Tensor = ShardedTensor<float, Grid, P<D...>>;

bool first_process() {
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  return rank == 0;
}

/// A chain of operators that communicate nothing, each in a few nanoseconds but for its call.
template <class X> X chain(X x, const X& y, int operators) {
  for (int i = 0; i < operators; ++i) x = x + y;
  return x;
}

void small_operators(Environment& env) {
  const std::string name = "compile/an operator on 64 elements";
  if (!tessera_bench::wanted(name)) return;
  constexpr int operators = 500;
  const auto mesh = make_mesh<Grid>(env.world(), env.world()->size(), 1);
  const auto x = ones<Tensor<data>>(mesh, 64);
  const auto y = ones<Tensor<data>>(mesh, 64);
  auto compiled = compile(chain<Tensor<data>>);
  (void)compiled(x, y, operators);
  const auto t = tessera_bench::in_turns({[&] { (void)chain(x, y, operators); },
                                          [&] { (void)compiled(x, y, operators); },
                                          [&] {
                                            detail::Listing calls;
                                            const detail::TakenBy scope(&calls);
                                            (void)chain(x, y, operators);
                                          },
                                          [&] {
                                            detail::Listing calls;
                                            const detail::TakenBy scope(&calls);
                                            (void)chain(x, y, operators);
                                            (void)calls.structure();
                                            (void)calls.is(compiled.listed());
                                          }});
  tessera_bench::note(name, {{"tessera", t[1] / operators},
                             {"not compiled", t[0] / operators},
                             {"tessera, listed alone", t[2] / operators},
                             {"tessera, listed and looked up", t[3] / operators}});
  if (first_process())
    std::printf(
        "%s: compiled %.3f us, not compiled %.3f us, listed %.3f us, listed and looked up %.3f "
        "us\n",
        name.c_str(), t[1] / operators * 1e6, t[0] / operators * 1e6, t[2] / operators * 1e6,
        t[3] / operators * 1e6);
}

struct Backward {
  KOKKOS_FORCEINLINE_FUNCTION float operator()(float x, float by) const {
    return by * fn::GeluGradient{}(x);
  }
};

/// The layer's result, and the gradients of x and of both weights for a gradient of the result.
auto forward_and_backward(const Tensor<data, _, model>& x, const Tensor<data, model>& w_in,
                          const Tensor<model, data>& w_out, const Tensor<data, _, model>& dy) {
  const auto before = einsum<"bsm,mh->bsh">(x, w_in);
  const auto h = gelu(before);
  const auto y = einsum<"bsh,hm->bsm", P<data, _, model>>(h, w_out);
  const auto dh = einsum<"bsm,hm->bsh", P<data, _, model>>(dy, w_out);
  const auto dw_out = einsum<"bsh,bsm->hm", P<model, data>>(h, dy);
  const auto db = map(Backward{}, before, dh);
  const auto dx = einsum<"bsh,mh->bsm", P<data, _, model>>(db, w_in);
  const auto dw_in = einsum<"bsm,bsh->mh", P<data, model>>(x, db);
  return std::tuple(y, dx, dw_in, dw_out);
}

/// Notes the times of a function alone and compiled, and prints them; `peak` of `before` MiB.
template <class C>
void tell(const std::string& name, const std::vector<double>& t, const C& compiled,
          const char* peak_of, double peak, double before) {
  const auto mib = [](Index bytes) { return double(bytes) / (1 << 20); };
  tessera_bench::note(name, {{"tessera", t[1]}, {"not compiled", t[0]}},
                      {{"sent, MiB", mib(compiled.program().payload_bytes())},
                       {"sent, MiB, not compiled", mib(compiled.listed().payload_bytes())},
                       {"peak, MiB", peak},
                       {"peak, MiB, not compiled", before}});
  if (!first_process()) return;
  std::printf(
      "%s: compiled %.2f ms, not compiled %.2f ms, ratio %.3f; payload %.2f of %.2f MiB, peak %s "
      "%.2f of %.2f MiB\n",
      name.c_str(), t[1] * 1e3, t[0] * 1e3, t[1] / t[0], mib(compiled.program().payload_bytes()),
      mib(compiled.listed().payload_bytes()), peak_of, peak, before);
}

void feed_forward(Environment& env, int d, int m) {
  const std::string mesh_text = std::to_string(d) + "x" + std::to_string(m);
  const std::string name = "compile/feed-forward forward and backward/" + mesh_text;
  if (!tessera_bench::wanted(name)) return;
  constexpr Index batch = 8, sequence = 256, embed = 512, hidden = 2048;
  const auto mesh = make_mesh<Grid>(env.world(), d, m);
  using X = Tensor<data, _, model>;
  const auto x = random_normal<X>(mesh, {batch, sequence, embed}, 1);
  const auto dy = random_normal<X>(mesh, {batch, sequence, embed}, 4);
  const auto w_in = random_normal<Tensor<data, model>>(mesh, {embed, hidden}, 2, 0, 0.05);
  const auto w_out = random_normal<Tensor<model, data>>(mesh, {hidden, embed}, 3, 0, 0.05);
  auto compiled = compile(forward_and_backward);
  (void)compiled(x, w_in, w_out, dy);
  const auto t = tessera_bench::in_turns({[&] { (void)forward_and_backward(x, w_in, w_out, dy); },
                                          [&] { (void)compiled(x, w_in, w_out, dy); }},
                                         {.seconds = 2});
  tell(name, t, compiled, "memory", double(compiled.program().peak_bytes()) / (1 << 20),
       double(compiled.listed().peak_bytes()) / (1 << 20));
}

/// A step of the trainer: its time, what it sends, and its most memory beyond what was there.
void trainer(Environment& env, int d, int m) {
  const std::string name =
      "compile/a step of the trainer/" + std::to_string(d) + "x" + std::to_string(m);
  if (!tessera_bench::wanted(name)) return;
  const auto mesh = make_mesh<gradients_by_hand::Grid>(env.world(), d, m);
  const gradients_by_hand::Sizes n;
  const auto ids = [&](Index i) {
    return static_cast<gradients_by_hand::Id>((i * i + 7 * i) % 89);
  };
  std::vector<gradients_by_hand::Id> contexts, next;
  for (Index i = 0; i < n.batch * n.context; ++i) contexts.push_back(ids(i));
  for (Index i = 0; i < n.batch; ++i) next.push_back(ids(3 * i));
  const auto context =
      from_host<gradients_by_hand::Tensor<gradients_by_hand::Id, gradients_by_hand::data, _>>(
          mesh, {n.batch, n.context}, contexts);
  const auto target =
      from_host<gradients_by_hand::Tensor<gradients_by_hand::Id, gradients_by_hand::data>>(
          mesh, {n.batch}, next);
  struct Trained {
    gradients_by_hand::Weights<float> weights;
    gradients_by_hand::Adam<float> adam;
    explicit Trained(gradients_by_hand::Weights<float> w) : weights(w), adam(w) {}
  };
  Trained alone(gradients_by_hand::initial_weights<float>(mesh, n, 1));
  Trained kept(gradients_by_hand::initial_weights<float>(mesh, n, 1));
  const auto plain = [&] {
    return gradients_by_hand::train_step(alone.weights, alone.adam, context, target, 1e-3);
  };
  auto compiled = compile([&] {
    return gradients_by_hand::train_step(kept.weights, kept.adam, context, target, 1e-3);
  });
  (void)plain(), (void)compiled();
  const auto peak = [&](auto&& step) {
    const Index before = mesh.arena().in_use();
    mesh.arena().reset_peak();
    (void)step();
    return double(mesh.arena().peak() - before) / (1 << 20);
  };
  const double held = peak(plain), holds = peak(compiled);
  const auto t =
      tessera_bench::in_turns({[&] { (void)plain(); }, [&] { (void)compiled(); }}, {.seconds = 3});
  tell(name, t, compiled, "beyond the weights", holds, held);
}

/// A model of many layers that are alike, listed on a dry mesh and transformed.
void many_operators(int processes) {
  const std::string name =
      "compile/10,000 operators transformed/" + std::to_string(processes) + " processes";
  if (!tessera_bench::wanted(name) || !first_process()) return;
  int side = 1;
  while (side * side < processes) side *= 2;
  const auto mesh = dry_mesh<Grid>(side, side);
  const auto w = zeros<Tensor<data, model>>(mesh, 8192, 8192);
  const auto x = zeros<Tensor<data, model>>(mesh, 8192, 8192);
  detail::Listing calls;
  {
    const detail::TakenBy scope(&calls);
    Tensor<data, model> y = x;
    for (int layer = 0; layer < 2500; ++layer) {
      const auto h = einsum<"bi,ij->bj", P<data, model>>(y, w);
      y = tanh(einsum<"bj,ij->bi", P<data, model>>(h + h, w));
    }
  }
  const double begin = tessera_bench::seconds_now();
  const Program listed = calls.program();
  const PlanOptions options = plan_options(*mesh.core());
  const Sharing shared = share(listed, options);
  const Program all =
      overlap(reuse(join(shared.program, options).program, options).program, options).program;
  const double seconds = tessera_bench::seconds_now() - begin;
  tessera_bench::note(name, {{"tessera", seconds}});
  std::printf("%s: %d operators, %zu moves shared, %d operators after, %.3f s\n", name.c_str(),
              listed.size(), shared.moves.size(), all.size(), seconds);
}
}  // namespace

int main(int argc, char** argv) {
  Environment env(argc, argv);
  tessera_bench::start(argc, argv);
  const int processes = env.world()->size();
  small_operators(env);
  for (int d = 1; d <= processes; ++d)
    if (processes % d == 0 && (processes != 4 || d == 2)) {
      feed_forward(env, d, processes / d);
      trainer(env, d, processes / d);
    }
  if (processes == 1)
    for (const int n : {4, 4096}) many_operators(n);
  return tessera_bench::finish();
}
