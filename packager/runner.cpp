#include "packager/runner.h"

#include "packager/lld.h"
#include "runtime/embedded.h"

namespace tw {

Expected<std::string> link_runner(std::string_view triple) {
  const std::string_view object = runner_object(triple);
  if (object.empty())
    return make_error(DiagCode::unsupported, "there is no runner for the triple '{0}'", triple);
  return run_lld({"-static", "-z", "max-page-size=65536", "-z", "noexecstack", "--build-id=none",
                  "--gc-sections", "--strip-all"},
                 {{{std::string(object)}, false}});
}

}  // namespace tw
