// The families of kernels, a folder each: how a group is lowered, and how the kernel is scheduled.
#pragma once
#include "kernels/common/group_builder.h"
#include "kernels/schedule/builder.h"

namespace tw {

// The families. Each adds its stages and returns the finished group.
Expected<LoweredGroup> lower_conv(GroupBuilder& b, const Node& node);
// tile: 2, 4 or 6
Expected<LoweredGroup> lower_winograd(GroupBuilder& b, const Node& node, int tile);
Expected<LoweredGroup> lower_strassen(GroupBuilder& b, const Node& node);
Expected<LoweredGroup> lower_conv_transpose(GroupBuilder& b, const Node& node);
Expected<LoweredGroup> lower_matmul(GroupBuilder& b, const Node& node);
Expected<LoweredGroup> lower_matmul_nbits(GroupBuilder& b, const Node& node);
Expected<LoweredGroup> lower_pool(GroupBuilder& b, const Node& node);
Expected<LoweredGroup> lower_reduce(GroupBuilder& b, const Node& node);
Expected<LoweredGroup> lower_arg_reduce(GroupBuilder& b, const Node& node);
Expected<LoweredGroup> lower_softmax(GroupBuilder& b, const Node& node);
Expected<LoweredGroup> lower_layer_norm(GroupBuilder& b, const Node& node);
Expected<LoweredGroup> lower_attention(GroupBuilder& b, const Node& product);
Expected<LoweredGroup> lower_cumulate(GroupBuilder& b, const Node& node);
Expected<LoweredGroup> lower_recurrent(GroupBuilder& b, const Node& node);
Expected<LoweredGroup> lower_concat(GroupBuilder& b, const Node& node);
Expected<LoweredGroup> lower_elementwise(GroupBuilder& b);

void schedule_elementwise(ScheduleBuilder& s);
void schedule_conv(ScheduleBuilder& s);
void schedule_winograd(ScheduleBuilder& s);
void schedule_strassen(ScheduleBuilder& s);
void schedule_matmul(ScheduleBuilder& s);
void schedule_reduce(ScheduleBuilder& s);
void schedule_pool(ScheduleBuilder& s);
void schedule_attention(ScheduleBuilder& s);
void schedule_recurrent(ScheduleBuilder& s);

}  // namespace tw
