#include "support/parallel.h"

#include <algorithm>
#include <atomic>
#include <thread>

namespace tw {

int threads_or_all(int asked) {
  return asked > 0 ? asked : std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
}

Error parallel_for(int jobs, size_t count, llvm::function_ref<Error(size_t)> body) {
  // Errors are kept by index, so that the report does not depend on the threads.
  std::vector<std::vector<Diag>> diags(count);
  std::atomic<size_t> next{0};
  auto work = [&] {
    for (size_t i; (i = next++) < count;)
      if (Error error = body(i)) diags[i] = take_diags(std::move(error));
  };
  std::vector<std::thread> helpers;
  for (size_t t = 1; t < std::min(static_cast<size_t>(std::max(jobs, 1)), count); ++t)
    helpers.emplace_back(work);
  work();
  for (std::thread& t : helpers) t.join();
  std::vector<Diag> all;
  for (std::vector<Diag>& list : diags) all.insert(all.end(), list.begin(), list.end());
  return make_error(std::move(all));
}

}  // namespace tw
