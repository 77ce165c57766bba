// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// The calls of a function as it runs, with what their adjoints will need; played backwards, they
/// give the gradients. Calls are carried out, or listed, or taken by an outer tape, as without it.
///
///     Tape tape;
///     const int x = tape.follow(input);
///     { const TakenBy scope(&tape);  loss = f(input); }
///     tape.run_back(loss, ones);
///     tape.gradient(x);
///
/// Laws: it keeps no tensor that no adjoint reads; an adjoint's operators belong to the layer of
/// their call, and name its place; a tensor that was overwritten meanwhile is an error, never a
/// wrong gradient; a tensor that was gathered gets its gradient under the sharding that it was
/// gathered from (grad/adjoint/wanted.hpp); gradients of one value that are left unfinished
/// (grad/adjoint/open_sums.hpp) are added as they are, and finished once, when all are there.
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include <tessera/base/compiled.hpp>
#include <tessera/grad/adjoint.hpp>
#include <tessera/run/list/listing.hpp>
#include <tessera/run/request.hpp>
#include <tessera/tensor/view_watch.hpp>

namespace tessera::detail {

/// When the gradients of one value are finished: where it saves payload all at once, or each by
/// itself, to compare with.
enum class FinishSums : std::uint8_t { together, each };

inline const Storage* memory_of(const TensorCore& x) { return x.storage()->root(); }

class Tape final : public Taker, public ViewWatch {
 public:
  explicit Tape(FinishSums finish = FinishSums::together)
      : Taker(taker_of_thread), outer_watch_(watch_of_thread), finish_(finish) {}

  /// Follows a tensor: what depends on it has gradients. Returns its number. `under`: the sharding
  /// of its gradient; null: its own. Throws UsageError when it is followed already.
  TESSERA_FUNCTION int follow(const TensorCore& x, Where where, const Sharding* under = nullptr);
  /// Runs a call, and keeps what its adjoint needs.
  TESSERA_FUNCTION TensorCore take(const Request& r) override;
  TESSERA_FUNCTION void refuse(CallSite site) const override;
  bool takes_all() const override { return true; }
  Tape* tape() override { return this; }
  TESSERA_FUNCTION void pin(const TensorCore& x, const OpenSharding& to, Where where) override;
  Taker* beneath() override { return outer_; }
  void record_stated(const GradientBack& back, const TensorCore& x, const TensorCore& y,
                     CallSite site, Stated stated) override {
    record(back, {x}, {y}, {}, site, stated);
  }
  ViewWatch* outer_watch() const { return outer_watch_; }
  /// Notes a view of a followed tensor, and one through which another tensor may be written: what
  /// is written there may depend on an argument, by a kernel that nobody differentiates.
  TESSERA_FUNCTION void viewed(const TensorCore& x, bool writes, Where where) override;

  using Back = GradientBack;
  /// Records a call whose adjoint is given, and reads the tensors `kept`.
  TESSERA_FUNCTION void record(const Back& back, const std::vector<TensorCore>& arguments,
                               const std::vector<TensorCore>& results,
                               const std::vector<TensorCore>& kept, CallSite site,
                               Stated stated = Stated::made);
  /// Returns whether a tensor, or another one in its memory, is followed.
  TESSERA_FUNCTION bool follows(const TensorCore& x) const;

  /// Returns the number of a tensor that depends on a followed one; -1 where it does not.
  TESSERA_FUNCTION int number_of(const TensorCore& x);
  /// States the gradient of tensor `number`, or a part of it.
  TESSERA_FUNCTION void seed(int number, const TensorCore& gradient);
  /// Carries out the adjoints of all calls on which the seeded tensors depend. Once. Communication:
  /// that of the adjoints. Collective over the mesh.
  TESSERA_FUNCTION void run_back();
  /// Returns the gradient of a followed tensor, or zeros.
  TESSERA_FUNCTION TensorCore gradient(int number, const TensorCore& of, Where where);

 private:
  /// A tensor that an adjoint reads, and how often its memory had been written by then.
  struct Kept {
    AdjointValue as;
    TensorCore tensor;
    int writes = 0;
  };
  struct Node {
    Adjoint adjoint;
    Back back;                            ///< in place of it
    Stated stated = Stated::made;         ///< what the call is then
    std::vector<int> operands;            ///< their numbers; -1: followed by nobody
    std::vector<int> results;             ///< the same
    std::vector<TensorDesc> given, made;  ///< what the operands and results are
    std::vector<Kept> kept;
    std::string label;
    Where where;
    std::unique_ptr<LayerPath> layers;
    std::shared_ptr<MeshCore> mesh;
  };
  /// A tensor that is seen there: one for each description, mesh, and axes over which it differs.
  struct Seen {
    TensorDesc desc;
    const MeshCore* mesh;
    AxisSet varies;
    int number;

    bool is(const TensorCore& x) const {
      return mesh == x.mesh().get() && varies == x.storage()->varies() && desc == x.desc();
    }
  };
  /// The memory of followed tensors, and the tensors that are seen in it.
  struct Memory {
    std::weak_ptr<const Storage> storage;  ///< so that no other has its address
    std::vector<Seen> seen;
  };

  TESSERA_FUNCTION TensorCore take_one(const Request& r);
  TESSERA_FUNCTION TensorCore take_epilogue(const Request& r);
  /// A call with further results that writes a destination: it is made anew, and copied.
  TESSERA_FUNCTION TensorCore take_copied(const Request& r);
  TESSERA_FUNCTION void record(const Request& r, const std::vector<TensorCore>& results,
                               unsigned wanted);
  int add_value(const TensorCore& x, const Sharding* under = nullptr);
  /// A tensor that a kernel may have written from followed ones: its gradient is an error. Returns
  /// its number; -1: it is none.
  int number_of_written(const TensorCore& x);
  void add_node(Node node, CallSite site);
  static TensorDesc desc_of(const Node& node, AdjointValue v);
  static TensorDescs reads_of(const Node& node, const AdjointStep& step);
  /// Returns the operand to which a node passes an unfinished sum on, as it comes; -1: it does not.
  static int passes_to(const Node& node);
  struct Passage;
  /// Changes the adjoints of products whose sums are finished together.
  TESSERA_FUNCTION void leave_sums_open();
  TESSERA_FUNCTION void run_back(Node& node, std::size_t number_of_node);
  TESSERA_FUNCTION void run_stated(const Node& node, std::size_t number_of_node,
                                   const std::vector<TensorCore>& cotangents, CallSite site);
  void require_unwritten(const Node& node, const Kept& kept);
  /// Adds a gradient of a value; `last`: no other follows.
  void add_gradient(int number, const TensorCore& given, CallSite site, bool left_open = false,
                    bool last = false);
  /// Returns whether the gradient by an operand of a node is the last of that operand's value.
  bool gives_last(const Node& node, std::size_t number_of_node, std::size_t operand) const;
  /// Returns the sum of all gradients of a value that have come, finished as it is wanted;
  /// undefined where none has.
  TESSERA_FUNCTION TensorCore total(int number, CallSite site);
  /// Returns a bit for each operand that has a gradient.
  unsigned followed(const OperandList& operands);

  /// A tensor whose memory was viewed to be written, or adopted.
  struct Written {
    std::weak_ptr<const Storage> storage;  ///< so that no other has its address
    Where where;
  };

  ViewWatch* outer_watch_;
  FinishSums finish_;
  bool read_ = false;  ///< a followed tensor has been viewed, last at read_at_
  Where read_at_;
  std::unordered_map<const Storage*, Written> written_;
  std::unordered_map<const Storage*, Memory> memories_;
  std::unordered_map<const Storage*, int> writes_;
  std::vector<Node> nodes_;
  std::vector<std::vector<TensorCore>> sums_;  ///< each number's gradients: one for a sharding
  std::vector<DType> types_;                   ///< the type of each number's gradient
  /// Over which axes of the whole mesh each number differs, in manual mode: a gradient that differs
  /// over others is a part of a sum over these; and whether what made it takes such parts.
  std::vector<AxisSet> varies_;
  std::vector<bool> takes_parts_;
  std::vector<Sharding> wanted_;  ///< under which each number's gradient is, perhaps unfinished
  std::vector<std::size_t> last_reader_;  ///< the node that gives each number's last gradient
};

}  // namespace tessera::detail

#if TESSERA_BODIES
#include <tessera/grad/detail/tape.hpp>
#endif
