#include "driver/compile/device_program.h"

#include <algorithm>

namespace tw {
namespace {

constexpr uint64_t kAlign = 256;  // alignment of buffers in the device's memory

Expected<int64_t> elements_of(const Buffer& buffer) {
  int64_t count = 1;
  for (const Expr& extent : buffer.shape) {
    const std::optional<int64_t> size = as_const(extent);
    if (!size)
      return make_error(DiagCode::unsupported,
                        "buffer '{0}' has an extent that is known at run time only", buffer.name);
    count *= *size;
  }
  return count;
}

Kernel copy_kernel(DType dtype, int64_t count) {
  Kernel copy;
  copy.name = "copy";
  copy.buffers = {{"x", dtype, {Expr(count)}, BufferRole::input, "global"},
                  {"y", dtype, {Expr(count)}, BufferRole::output, "global"}};
  copy.body = make_loop("i0", Expr(count),
                        make_store({.label = "y",
                                    .buffer = BufferId{1},
                                    .indices = {var("i0")},
                                    .value = load(BufferId{0}, dtype, {var("i0")})}));
  return copy;
}

class OneCall {
 public:
  explicit OneCall(const Kernel& kernel) {
    program_.name = "candidate";
    program_.kernels = {kernel};
    program_.devices.resize(1);
    call_.device = call_.from = 1;
    call_.name = kernel.name;
  }

  Error add(const Buffer& buffer, const Constant* constant, bool copied) {
    TW_ASSIGN(const int64_t count, elements_of(buffer));
    const uint64_t bytes = static_cast<uint64_t>(count * dtype_bytes(buffer.dtype));
    if (constant) {
      const uint64_t offset = add_weights(
          program_, 1, {0, bytes, constant->source, constant->pack, buffer.name});
      call_.arguments.push_back({Place::weights, 0, Expr(static_cast<int64_t>(offset))});
      return Error::success();
    }
    const Operand there{Place::arena, 0, Expr(reserve(bytes))};
    call_.arguments.push_back(there);
    if (!copied) return Error::success();
    const bool in = buffer.role == BufferRole::input;
    std::vector<TensorSpec>& tensors = in ? program_.inputs : program_.outputs;
    const Operand here{in ? Place::input : Place::output, static_cast<int>(tensors.size()),
                       Expr(0)};
    tensors.push_back({buffer.name, buffer.dtype, {Expr(count)}});
    KernelCall copy;
    copy.kernel = static_cast<int>(program_.kernels.size());
    copy.name = buffer.name;
    copy.device = in ? 1 : 0, copy.from = in ? 0 : 1;
    copy.arguments = in ? std::vector<Operand>{here, there} : std::vector<Operand>{there, here};
    program_.kernels.push_back(copy_kernel(buffer.dtype, count));
    (in ? before_ : behind_).push_back(std::move(copy));
    return Error::success();
  }

  Expected<Program> finish(const Expr& workspace) {
    const std::optional<int64_t> bytes = as_const(workspace);
    if (!bytes)
      return make_error(DiagCode::unsupported, "the workspace's size is known at run time only");
    call_.workspace = Expr(reserve(static_cast<uint64_t>(*bytes)));
    program_.calls = std::move(before_);
    program_.calls.push_back(std::move(call_));
    program_.calls.insert(program_.calls.end(), behind_.begin(), behind_.end());
    program_.devices[0].arena_bytes = Expr(static_cast<int64_t>(used_));
    return std::move(program_);
  }

 private:
  int64_t reserve(uint64_t bytes) {
    const uint64_t at = used_;
    used_ += (bytes + kAlign - 1) / kAlign * kAlign;
    return static_cast<int64_t>(at);
  }

  Program program_;
  KernelCall call_;
  std::vector<KernelCall> before_, behind_;
  uint64_t used_ = 0;
};

}  // namespace

Expected<Program> device_program(const Kernel& kernel, const std::vector<Constant>& constants,
                                 bool copies) {
  OneCall one(kernel);
  for (size_t i = 0; i < kernel.buffers.size() && kernel.buffers[i].role != BufferRole::temp; ++i) {
    const bool constant = i < constants.size() && !constants[i].source.bytes.empty();
    TW_TRY(one.add(kernel.buffers[i], constant ? &constants[i] : nullptr, copies));
  }
  return one.finish(workspace_layout(kernel).bytes);
}

}  // namespace tw
