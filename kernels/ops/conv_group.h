// The parts that all algorithms of a convolution share: its shape, the group's tensors, and the
// last stage with bias and followers.
#pragma once
#include "kernels/common/group_builder.h"
#include "kernels/conv/conv.h"

namespace tw {

struct ConvShape {
  int64_t group, c, m, cg, mg;  // channels in and out, then both for each group
  Ints kernel, strides, dilations, pads_begin;
  // Spatial extents. Before a pool, `out` lacks the pixels that no window covers.
  Shape in, out;
  Expr n;
  bool padded = false, pointwise = true;
};

// Errors: symbolic channels or kernel sizes
Expected<ConvShape> conv_shape(GroupBuilder& b, const Node& node);

// The shape of a transposed convolution: output pixels and weights in terms of a convolution.
// Errors: symbolic channels or kernel sizes.
Expected<ConvShape> conv_transpose_shape(const GroupBuilder& b, const Node& node);
// True: the output has equally many pixels of each phase (remainder by the strides), and each phase
// has taps of its own.
bool has_phases(const ConvShape& transposed);

// The lowering of a convolution's group. A 1x1 convolution with stride 1 and no pool behind it has
// all its spatial axes joined into one.
class ConvGroup {
 public:
  ConvGroup(GroupBuilder& builder, const Node& conv, ConvShape shape);

 protected:
  size_t rank() const { return s_.kernel.size(); }
  std::string axis(const char* prefix, size_t i) const { return prefix + std::to_string(i); }
  Expr widen(const Expr& e) const { return e.type() == acc_type_ ? e : cast(acc_type_, e); }

  // Pointwise: declares the inputs of the group with their spatial axes joined.
  void declare_inputs();
  // Axes of a tensor of the output's shape, named with a prefix: n, c, s0, ..
  std::vector<Axis> output_axes(const std::string& prefix) const;
  // Adds stage y, which applies bias and followers to sum(index of the output). With a pool, a
  // stage conv comes before it and y applies the windows.
  ConvOutput write_output(const std::function<Expr(const Index& at)>& sum);
  // The bias's parameter, once the output is written; none: there is none, or it is a number
  BufferName bias_parameter() const;
  // Adds zeros for taps of axes that were collapsed, because the weights keep their spatial rank.
  void pad_rank(Index& at) const;

  GroupBuilder& b_;
  const Node& node_;
  ConvShape s_;
  TensorType x_type_, y_type_;
  DType acc_type_;
  Expr pixels_;                 // pointwise: number of pixels on the joined axis
  const Node* pool_ = nullptr;  // pool behind the convolution (passes/fuse_pools.cpp)

 private:
  Index output_index(const Index& logical) const;
  Index logical_index(const Index& at) const;
  void define_sums(const std::function<Expr(const Index& at)>& sum);
  Stage write_windows(const std::vector<Axis>& axes);
  // Adds a stage that stores, at each point of the axes, the value's element at this index.
  Stage store(const std::string& stage, const std::vector<Axis>& axes, const Index& index,
              BufferId buffer, ValueId value);
};

}  // namespace tw
