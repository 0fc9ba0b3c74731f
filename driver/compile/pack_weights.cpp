// Weight packing: the distinct pack kernels become one small library for this host, which is loaded
// for the duration of the call.
#include <llvm/TargetParser/Host.h>

#include <atomic>
#include <cstring>
#include <map>
#include <mutex>

#include "backends/backend.h"
#include "driver/compile/pack_weights.h"
#include "packager/loaded_library.h"
#include "support/file_pages.h"
#include "support/parallel.h"

namespace tw {
namespace {

using PackFunction = void (*)(void* const* buffers, void* workspace, const int64_t* symbols);

// Compiles the pack kernels into one library, in their order.
Expected<LoadedLibrary> load_kernels(const std::vector<Kernel>& kernels) {
  Arch host = arch_from_triple(llvm::sys::getProcessTriple()).value_or(Arch::x86_64);
  TW_ASSIGN(std::unique_ptr<Backend> backend, make_backend(baseline_target(host)));
  LinkRequest request;
  for (const Kernel& kernel : kernels) {
    TW_ASSIGN(std::string object, backend->compile_kernel(kernel));
    request.objects.push_back(std::move(object));
    request.exports.push_back(kernel.name);
  }
  TW_ASSIGN(LinkedImage image, link_shared(request));
  return LoadedLibrary::load(image);
}

// Model files do not align their payloads. Pack kernels assume at most the alignment of an element.
// If the host's loads need no alignment, they read the mapped file in place.
#if defined(__x86_64__) || defined(__aarch64__)
constexpr bool kAlignedLoadsOnly = false;
#else
constexpr bool kAlignedLoadsOnly = true;
#endif

// Larger sources are packed one at a time. Packing reads a source in another order than it is
// stored in, so all of it is in memory.
constexpr size_t kLargeBytes = 256 << 20;

void run_pack(PackFunction pack, const Blob& source, std::span<std::byte> out) {
  const void* in = source.bytes.data();
  std::vector<std::byte> aligned;
  if (kAlignedLoadsOnly && reinterpret_cast<uintptr_t>(in) % 8 != 0) {
    aligned.assign(source.bytes.begin(), source.bytes.end());
    in = aligned.data();
  }
  void* buffers[2] = {const_cast<void*>(in), out.data()};
  pack(buffers, nullptr, nullptr);
}

}  // namespace

Error pack_weights(const Program& program, FillWeights fill, int jobs) {
  std::vector<Kernel> kernels;
  std::map<std::string, size_t> known;
  std::vector<size_t> kernel_of(program.weights.size());
  for (size_t i = 0; i < program.weights.size(); ++i) {
    if (!program.weights[i].pack) continue;
    auto [entry, added] = known.emplace(print(*program.weights[i].pack), kernels.size());
    if (added) {
      kernels.push_back(*program.weights[i].pack);
      kernels.back().name = "pack_" + std::to_string(entry->second);
    }
    kernel_of[i] = entry->second;
  }
  std::optional<LoadedLibrary> library;
  std::vector<PackFunction> functions;
  if (!kernels.empty()) {
    TW_ASSIGN(LoadedLibrary loaded, load_kernels(kernels));
    library.emplace(std::move(loaded));
    for (const Kernel& kernel : kernels)
      functions.push_back(reinterpret_cast<PackFunction>(library->symbol(kernel.name)));
  }

  std::mutex large;
  std::atomic<bool> failed = false;
  return parallel_for(jobs, program.weights.size(), [&](size_t i) -> Error {
    if (failed) return Error::success();
    const WeightPiece& piece = program.weights[i];
    std::unique_lock one_at_a_time(large, std::defer_lock);
    if (piece.source.bytes.size() > kLargeBytes) one_at_a_time.lock();
    Error error = fill(piece.offset, piece.size, [&](std::span<std::byte> out) -> Error {
      if (piece.pack) run_pack(functions[kernel_of[i]], piece.source, out);
      else
        std::memcpy(out.data(), piece.source.bytes.data(),
                    std::min(out.size(), piece.source.bytes.size()));
      return Error::success();
    });
    let_pages_go(piece.source.bytes);
    if (error) failed = true;
    return error;
  });
}

}  // namespace tw
