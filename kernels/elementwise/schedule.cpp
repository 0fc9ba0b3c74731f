// Element-wise kernels: each store by itself.
#include "kernels/families.h"

namespace tw {

void schedule_elementwise(ScheduleBuilder& s) {
  std::vector<std::string> labels;
  for (const Stmt& store : stores_of(s.kernel().body)) labels.push_back(store->label);
  for (const std::string& label : labels) s.map_nest(label);
}

}  // namespace tw
