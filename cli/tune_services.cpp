// Stand-ins for spaces and measuring: a space of two points a variant, times taken in this process.
#include "cli/tune_services.h"

#include <chrono>
#include <cstring>
#include <ctime>
#include <map>

#include "autotune/spaces/space.h"
#include "backends/backend.h"
#include "packager/loaded_library.h"

namespace tw {
namespace {

using KernelFunction = void (*)(void* const* buffers, void* workspace, const int64_t* symbols);
constexpr int kRuns = 5;

Space stand_in_space(const Task& task, const Target& target) {
  std::vector<Sketch> sketches;
  for (size_t v = 0; v < task.variants.size(); ++v) {
    const LoweredGroup* lowered = &task.variants[v].lowered;
    sketches.push_back({algorithm_name(task.variants[v].algorithm), static_cast<int>(v), {{"plain", {{0}, {1}}}},
                        [lowered, &target](const std::vector<int>& choice) {
                          return choice[0] ? plain_schedule(lowered->kernel, target) : default_schedule(lowered->kernel, lowered->family, target);
                        }});
  }
  return Space(std::move(sketches));
}

int64_t value_of(const Expr& e) {
  return eval_int(e, [](std::string_view) { return int64_t{1}; });
}

Expected<std::vector<double>> time_kernel(const Kernel& kernel, const Backend& backend) {
  TW_TRY(backend.supports(kernel));
  LinkRequest request;
  TW_ASSIGN(std::string object, backend.compile_kernel(kernel));
  request.objects.push_back(std::move(object));
  request.exports.push_back(kernel.name);
  TW_ASSIGN(const LinkedImage image, link_shared(request));
  TW_ASSIGN(const LoadedLibrary library, LoadedLibrary::load(image));
  const auto function = reinterpret_cast<KernelFunction>(library.symbol(kernel.name));
  std::vector<std::vector<std::max_align_t>> memory;
  std::vector<void*> arguments;
  const auto allocate = [&](int64_t bytes) {
    memory.emplace_back(static_cast<size_t>(bytes) / sizeof(std::max_align_t) + 9);
    const auto address = (reinterpret_cast<uintptr_t>(memory.back().data()) + 63) / 64 * 64;
    return reinterpret_cast<void*>(address);
  };
  for (const Buffer& buffer : kernel.buffers) {
    if (buffer.role == BufferRole::temp) continue;
    int64_t bytes = dtype_bytes(buffer.dtype);
    for (const Expr& extent : buffer.shape) bytes *= value_of(extent);
    arguments.push_back(allocate(bytes));
  }
  void* workspace = allocate(value_of(workspace_layout(kernel).bytes));
  const std::vector<int64_t> symbols(kernel.symbols.size() + 1, 1);
  std::vector<double> seconds;
  for (int run = 0; run < kRuns; ++run) {
    const auto start = std::chrono::steady_clock::now();
    function(arguments.data(), workspace, symbols.data());
    seconds.push_back(std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
  }
  return seconds;
}

MeasureResult measure_one(const Kernel& kernel, const Backend& backend) {
  MeasureResult result;
  Expected<std::vector<double>> seconds = time_kernel(kernel, backend);
  if (seconds) result.seconds = std::move(*seconds);
  else result.status = Status::compile_error, result.error = error_text(seconds.takeError());
  result.error = result.error.substr(0, result.error.find('\n'));
  return result;
}

}  // namespace

Expected<NetworkServices> tune_services(const Target& target, const TuneSources&, TuningLog* log, const std::atomic<bool>* stop) {
  TW_ASSIGN(std::unique_ptr<Backend> made, make_backend(target));
  const std::shared_ptr<Backend> backend = std::move(made);
  NetworkServices services;
  services.space = [&target](const Task& task) -> Expected<Space> { return stand_in_space(task, target); };
  services.measure = [backend, stop](const Task&, std::span<const Candidate> candidates) {
    std::vector<MeasureResult> out;
    for (const Candidate& c : candidates) {
      if (stop && stop->load(std::memory_order_relaxed)) break;
      out.push_back(measure_one(*c.kernel, *backend));
    }
    return out;
  };
  if (!log) return services;
  services.known = [log](const RecordKey& key) -> Expected<std::vector<Record>> {
    LogFilter filter;
    filter.task = key.task, filter.target = key.target, filter.threads = key.threads, filter.language = key.language;
    return log->all(filter);
  };
  services.store = [log](Record record) -> Error {
    record.tool = std::string("tilewright ") + TW_VERSION;
    record.time = static_cast<int64_t>(std::time(nullptr));
    if (record.device.empty()) record.device = "unknown";
    return log->add(record).takeError();
  };
  return services;
}

}  // namespace tw
