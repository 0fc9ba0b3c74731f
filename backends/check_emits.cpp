#include "backends/backend.h"

namespace tw {

Error check_emits(const Target& target, const std::string& forms,
                  const std::function<bool(const Intrinsic&)>& is_written) {
  std::vector<Diag> problems;
  for (const Intrinsic& intrinsic : target.intrinsics)
    if (!is_written(intrinsic))
      problems.push_back({DiagCode::unsupported,
                          "intrinsic '" + intrinsic.name + "': no code is known for emit '" +
                              intrinsic.emit.text() + "'",
                          intrinsic.emit.at,
                          {"known here: " + forms}});
  return make_error(std::move(problems));
}

}  // namespace tw
