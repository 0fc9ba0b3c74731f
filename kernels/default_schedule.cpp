#include "kernels/default_schedule.h"

#include "kernels/device/tensor_form.h"
#include "kernels/families.h"

namespace tw {
namespace {

Expected<Schedule> family_schedule(const Kernel& kernel, KernelFamily family, const Target& target,
                                   Choices* choices) {
  if (!target.axes.empty())
    return family == KernelFamily::tiles ? tiled_schedule(kernel, target)
                                         : bound_schedule(kernel, target, choices);
  if (tensor_instruction(target, true)) return tensor_schedule(kernel, target, choices);
  ScheduleBuilder s(kernel, target, choices);
  switch (family) {
    case KernelFamily::elementwise: schedule_elementwise(s); break;
    case KernelFamily::conv:
    case KernelFamily::depthwise: schedule_conv(s); break;
    case KernelFamily::winograd: schedule_winograd(s); break;
    case KernelFamily::strassen: schedule_strassen(s); break;
    case KernelFamily::matmul: schedule_matmul(s); break;
    case KernelFamily::tiles: break;  // of targets with axes alone
    case KernelFamily::reduce: schedule_reduce(s); break;
    case KernelFamily::pool: schedule_pool(s); break;
    case KernelFamily::attention: schedule_attention(s); break;
    case KernelFamily::recurrent: schedule_recurrent(s); break;
  }
  return s.finish();
}

}  // namespace

Expected<Schedule> default_schedule(const Kernel& kernel, KernelFamily family,
                                    const Target& target) {
  return family_schedule(kernel, family, target, nullptr);
}

Expected<Schedule> chosen_schedule(const Kernel& kernel, KernelFamily family, const Target& target,
                                   Choices& choices) {
  return family_schedule(kernel, family, target, &choices);
}

}  // namespace tw
