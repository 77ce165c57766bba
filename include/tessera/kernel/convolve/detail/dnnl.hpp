// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// oneDNN's C interface, of versions 2 and 3, as far as convolutions need it: layouts, primitives
/// and their execution by the calling thread. (The C++ interface costs 0.7 s for each source file,
/// this one 0.03 s.)
///
///     const DnnlLayout user = DnnlLayout::strided(dnnl_f32, dims, strides);
///     const DnnlPrimitive to_packed = make_dnnl_reorder(user, packed);
///     to_packed.run({{DNNL_ARG_FROM, &user, from}, {DNNL_ARG_TO, &packed, to}});
///
/// Laws: many threads at once may run a primitive; a failure while it is made gives an empty
/// primitive.
#if defined(TESSERA_HAVE_DNNL)
#include <cstddef>
#include <initializer_list>
#include <memory>
#include <new>
#include <string>
#include <string_view>
#include <utility>

#include <oneapi/dnnl/dnnl.h>

#include <tessera/base/error.hpp>
#include <tessera/base/fixed_vector.hpp>
#include <tessera/base/math.hpp>

namespace tessera::detail {

/// N, C and spatial extents, or for a kernel perhaps G, then O, C and the spatial ones.
using DnnlDims = FixedVector<Index, 6>;

inline void check_dnnl(dnnl_status_t status, const char* call) {
  if (status == dnnl_success) return;
  if (status == dnnl_out_of_memory)
    throw MemoryError(std::string(call) + " failed: oneDNN could not have the memory it wanted");
  throw Error(std::string(call) + " failed with oneDNN's status " + std::to_string(status));
}

/// The CPU engine; never destroyed, since primitives may live longer than any order of destruction
/// allows.
inline dnnl_engine_t dnnl_host() {
  static const dnnl_engine_t engine = [] {
    dnnl_engine_t made = nullptr;
    check_dnnl(dnnl_engine_create(&made, dnnl_cpu, 0), "dnnl_engine_create");
    return made;
  }();
  return engine;
}

/// How elements of a type lie.
class DnnlLayout {
 public:
#if DNNL_VERSION_MAJOR >= 3
  using Handle = const_dnnl_memory_desc_t;
  DnnlLayout() = default;
  explicit DnnlLayout(Handle handle) {
    dnnl_memory_desc_t copy = nullptr;
    check_dnnl(dnnl_memory_desc_clone(&copy, handle), "dnnl_memory_desc_clone");
    desc_.reset(copy, dnnl_memory_desc_destroy);
  }
  Handle handle() const { return desc_.get(); }
  explicit operator bool() const { return desc_ != nullptr; }
#else
  using Handle = const dnnl_memory_desc_t*;
  DnnlLayout() = default;
  explicit DnnlLayout(Handle handle) : desc_(*handle) {}
  Handle handle() const { return &desc_; }
  explicit operator bool() const { return desc_.ndims > 0; }
#endif

  /// Returns an empty layout where oneDNN does not support it.
  static DnnlLayout strided(dnnl_data_type_t type, const DnnlDims& dims, const DnnlDims& strides) {
    DnnlLayout made;
#if DNNL_VERSION_MAJOR >= 3
    dnnl_memory_desc_t desc = nullptr;
    if (dnnl_memory_desc_create_with_strides(&desc, dims.size(), dims.data(), type,
                                             strides.data()) == dnnl_success)
      made.desc_.reset(desc, dnnl_memory_desc_destroy);
#else
    if (dnnl_memory_desc_init_by_strides(&made.desc_, dims.size(), dims.data(), type,
                                         strides.data()) != dnnl_success)
      made.desc_ = {};
#endif
    return made;
  }
  /// Returns the layout that lets the primitive choose.
  static DnnlLayout any(dnnl_data_type_t type, const DnnlDims& dims) {
    DnnlLayout made;
#if DNNL_VERSION_MAJOR >= 3
    dnnl_memory_desc_t desc = nullptr;
    check_dnnl(dnnl_memory_desc_create_with_tag(&desc, dims.size(), dims.data(), type,
                                                dnnl_format_tag_any),
               "dnnl_memory_desc_create_with_tag");
    made.desc_.reset(desc, dnnl_memory_desc_destroy);
#else
    check_dnnl(dnnl_memory_desc_init_by_tag(&made.desc_, dims.size(), dims.data(), type,
                                            dnnl_format_tag_any),
               "dnnl_memory_desc_init_by_tag");
#endif
    return made;
  }

  std::size_t bytes() const { return *this ? dnnl_memory_desc_get_size(handle()) : 0; }
  bool operator==(const DnnlLayout& other) const {
    return dnnl_memory_desc_equal(handle(), other.handle()) != 0;
  }

 private:
#if DNNL_VERSION_MAJOR >= 3
  std::shared_ptr<dnnl_memory_desc> desc_;
#else
  dnnl_memory_desc_t desc_{};
#endif
};

/// Memory aligned to cache lines that grows and is kept, one for each purpose and thread.
class DnnlMemory {
 public:
  std::byte* get(std::size_t bytes) {
    if (bytes > size_) {
      memory_.reset();
      size_ = 0;
      memory_.reset(static_cast<std::byte*>(::operator new (bytes, std::align_val_t{64})));
      size_ = bytes;
    }
    return memory_.get();
  }

 private:
  struct Free {
    void operator()(std::byte* p) const { ::operator delete (p, std::align_val_t{64}); }
  };
  std::unique_ptr<std::byte, Free> memory_;
  std::size_t size_ = 0;
};

/// One argument of a primitive.
struct DnnlArgument {
  int which;
  const DnnlLayout* layout;
  const void* memory;
};

/// A computation that oneDNN has compiled.
class DnnlPrimitive {
 public:
  DnnlPrimitive() = default;
  /// Takes over the descriptor.
  explicit DnnlPrimitive(dnnl_primitive_desc_t desc) : desc_(desc, dnnl_primitive_desc_destroy) {
    dnnl_primitive_t made = nullptr;
    if (dnnl_primitive_create(&made, desc) != dnnl_success) return;
    primitive_.reset(made, dnnl_primitive_destroy);
    scratch_ = layout(dnnl_query_scratchpad_md);
  }
  explicit operator bool() const { return primitive_ != nullptr; }

  DnnlLayout layout(dnnl_query_t which) const {
    const DnnlLayout::Handle found = dnnl_primitive_desc_query_md(desc_.get(), which, 0);
    return found == nullptr ? DnnlLayout() : DnnlLayout(found);
  }
  /// Returns whether oneDNN is better than plain loops, or a matrix product of copies.
  bool is_fast() const {
    const char* name = "";
    dnnl_primitive_desc_query(desc_.get(), dnnl_query_impl_info_str, 0, static_cast<void*>(&name));
    const std::string_view implementation(name);
    return !implementation.starts_with("ref") &&
           implementation.find("gemm:") == std::string_view::npos;
  }

  /// Runs on this thread or, when called outside of oneDNN's threads, on those.
  void run(std::initializer_list<DnnlArgument> arguments) const {
    thread_local const Stream stream;
    thread_local DnnlMemory scratch;
    Memories memories;
    for (const DnnlArgument& a : arguments) memories.add(a);
    const std::size_t bytes = scratch_.bytes();
    if (bytes > 0) memories.add({DNNL_ARG_SCRATCHPAD, &scratch_, scratch.get(bytes)});
    check_dnnl(
        dnnl_primitive_execute(primitive_.get(), stream.handle, memories.count, memories.arguments),
        "dnnl_primitive_execute");
    check_dnnl(dnnl_stream_wait(stream.handle), "dnnl_stream_wait");
  }

 private:
  struct Stream {
    dnnl_stream_t handle = nullptr;
    Stream() {
      check_dnnl(dnnl_stream_create(&handle, dnnl_host(), dnnl_stream_default_flags),
                 "dnnl_stream_create");
    }
    Stream(const Stream&) = delete;
    Stream& operator=(const Stream&) = delete;
    ~Stream() { dnnl_stream_destroy(handle); }
  };
  struct Memories {
    dnnl_exec_arg_t arguments[4];
    int count = 0;
    Memories() = default;
    Memories(const Memories&) = delete;
    Memories& operator=(const Memories&) = delete;
    void add(const DnnlArgument& a) {
      dnnl_memory_t made = nullptr;
      check_dnnl(
          dnnl_memory_create(&made, a.layout->handle(), dnnl_host(), const_cast<void*>(a.memory)),
          "dnnl_memory_create");
      arguments[count++] = {a.which, made};
    }
    ~Memories() {
      for (int i = 0; i < count; ++i) dnnl_memory_destroy(arguments[i].memory);
    }
  };
  std::shared_ptr<dnnl_primitive_desc> desc_;
  std::shared_ptr<dnnl_primitive> primitive_;
  DnnlLayout scratch_;
};

/// Attributes: Tessera owns the scratch memory, so that threads can share a primitive.
inline const_dnnl_primitive_attr_t dnnl_attributes() {
  static const dnnl_primitive_attr_t attributes = [] {
    dnnl_primitive_attr_t made = nullptr;
    check_dnnl(dnnl_primitive_attr_create(&made), "dnnl_primitive_attr_create");
    check_dnnl(dnnl_primitive_attr_set_scratchpad_mode(made, dnnl_scratchpad_mode_user),
               "dnnl_primitive_attr_set_scratchpad_mode");
    return made;
  }();
  return attributes;
}

/// Returns the primitive that copies from one layout to another, empty where it would be slow.
inline DnnlPrimitive make_dnnl_reorder(const DnnlLayout& from, const DnnlLayout& to) {
  dnnl_primitive_desc_t desc = nullptr;
  if (dnnl_reorder_primitive_desc_create(&desc, from.handle(), dnnl_host(), to.handle(),
                                         dnnl_host(), dnnl_attributes()) != dnnl_success)
    return {};
  return DnnlPrimitive(desc);
}

/// A convolution's spatial settings; dilations count from 1.
struct DnnlWindow {
  DnnlDims strides, dilations, low, high;
};

/// Returns a forward convolution.
inline DnnlPrimitive make_dnnl_convolution(const DnnlLayout& in, const DnnlLayout& kernel,
                                           const DnnlLayout& out, const DnnlWindow& w) {
  DnnlDims between = w.dilations;
  for (Index& d : between) --d;
  dnnl_primitive_desc_t desc = nullptr;
#if DNNL_VERSION_MAJOR >= 3
  const dnnl_status_t status = dnnl_convolution_forward_primitive_desc_create(
      &desc, dnnl_host(), dnnl_forward_inference, dnnl_convolution_direct, in.handle(),
      kernel.handle(), nullptr, out.handle(), w.strides.data(), between.data(), w.low.data(),
      w.high.data(), dnnl_attributes());
#else
  dnnl_convolution_desc_t settings;
  dnnl_status_t status = dnnl_dilated_convolution_forward_desc_init(
      &settings, dnnl_forward_inference, dnnl_convolution_direct, in.handle(), kernel.handle(),
      nullptr, out.handle(), w.strides.data(), between.data(), w.low.data(), w.high.data());
  if (status == dnnl_success)
    status = dnnl_primitive_desc_create(&desc, &settings, dnnl_attributes(), dnnl_host(), nullptr);
#endif
  return status == dnnl_success ? DnnlPrimitive(desc) : DnnlPrimitive();
}

/// Returns the gradient of such a convolution by its kernel, from the input and the gradient of the
/// result.
inline DnnlPrimitive make_dnnl_gradient(const DnnlLayout& in, const DnnlLayout& result,
                                        const DnnlLayout& kernel, const DnnlWindow& w) {
  DnnlDims between = w.dilations;
  for (Index& d : between) --d;
  dnnl_primitive_desc_t desc = nullptr;
#if DNNL_VERSION_MAJOR >= 3
  const dnnl_status_t status = dnnl_convolution_backward_weights_primitive_desc_create(
      &desc, dnnl_host(), dnnl_convolution_direct, in.handle(), kernel.handle(), nullptr,
      result.handle(), w.strides.data(), between.data(), w.low.data(), w.high.data(), nullptr,
      dnnl_attributes());
#else
  dnnl_convolution_desc_t settings;
  dnnl_status_t status = dnnl_dilated_convolution_backward_weights_desc_init(
      &settings, dnnl_convolution_direct, in.handle(), kernel.handle(), nullptr, result.handle(),
      w.strides.data(), between.data(), w.low.data(), w.high.data());
  if (status == dnnl_success)
    status = dnnl_primitive_desc_create(&desc, &settings, dnnl_attributes(), dnnl_host(), nullptr);
#endif
  return status == dnnl_success ? DnnlPrimitive(desc) : DnnlPrimitive();
}

}  // namespace tessera::detail
#endif
