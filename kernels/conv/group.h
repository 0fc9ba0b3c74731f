// What every algorithm of a convolution shares: its shape, the group's tensors, and the last stage
// with bias and followers.
#pragma once
#include "kernels/common/group_builder.h"
#include "kernels/conv/conv.h"
#include "kernels/matmul/matmul.h"

namespace tw {

struct ConvShape {
  int64_t group, c, m, cg, mg;  // channels in and out, and per group
  Ints kernel, strides, dilations, pads_begin;
  // Spatial extents; before a pool without what no window covers
  Shape in, out;
  Expr n;
  bool padded = false, pointwise = true;
};

// Errors: symbolic channels or kernel sizes.
Expected<ConvShape> conv_shape(GroupBuilder& b, const Node& node);

// Of a transposed one: its output's pixels and its weights as those of a convolution. Errors: the
// same.
Expected<ConvShape> conv_transpose_shape(const GroupBuilder& b, const Node& node);
// Whether its output has as many pixels of each phase (rest by the strides), each with taps of its
// own.
bool has_phases(const ConvShape& transposed);

// 1x1 convolutions with stride 1 and no pool behind them see their spatial axes as one.
class ConvGroup {
 public:
  ConvGroup(GroupBuilder& builder, const Node& conv, ConvShape shape);

 protected:
  size_t rank() const { return s_.kernel.size(); }
  std::string axis(const char* prefix, size_t i) const { return prefix + std::to_string(i); }
  Expr widen(const Expr& e) const { return e.type() == acc_type_ ? e : cast(acc_type_, e); }

  // Pointwise: the inputs and followers with their spatial axes as one.
  void declare_inputs();
  // Index of the input's element in its layout.
  Index physical(const Expr& n, const Expr& channel, const Index& at) const;
  // Axes of a tensor of the output's physical shape, named with a prefix: n, c, s0.., l (the lane).
  std::vector<Axis> output_axes(const std::string& prefix) const;
  // Bias and followers on sum(physical index of the output). Stage y; with a pool stage conv in
  // front of it, and y takes the windows.
  ConvOutput write_output(const std::function<Expr(const Index& at)>& sum);
  // The same where the sums are a matrix of output pixels and channels, or several: one of each
  // group, and where there are phases (by spatial axis), one of the pixels with each such rest.
  // Stage y over groups "g", phases "p0".., rows "i" and columns "j", whose index sum is asked
  // for. No pool behind it, and has_rows().
  ProductOutput write_rows(const Ints& phases,
                           const std::function<Expr(const Index& at, const Expr& channel)>& sum);
  // Not where channels only fill the output's last block, which are no group's.
  bool has_rows() const { return s_.group == 1 || s_.m % block_ == 0; }
  // Rows of such a matrix: images and pixels of a phase.
  Shape row_shape(const Ints& phases) const;
  // The weights keep their spatial rank when the convolution's axes were collapsed: the missing
  // taps are 0.
  void pad_rank(Index& at) const;

  GroupBuilder& b_;
  const Node& node_;
  ConvShape s_;
  TensorType x_type_, y_type_;
  bool blocked_;
  int64_t block_;
  DType acc_type_;
  Expr pixels_;                 // pointwise: all spatial axes as one
  const Node* pool_ = nullptr;  // behind the convolution (passes/fuse_pools.cpp)
  BufferId bias_;               // packed, where the output is blocked

 private:
  Index output_index(const Index& logical) const;
  Index logical_index(const Index& at) const;
  void define_sums(const std::function<Expr(const Index& at)>& sum);
  Stage write_windows(const std::vector<Axis>& axes);
  // At each point of the axes the element of a value that lies at this index of the physical
  // output.
  Stage store(const std::string& stage, const std::vector<Axis>& axes, const Index& index,
              BufferId buffer, ValueId value);
};

}  // namespace tw
