#include "autotune/measure/job_memory.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <limits>

#include "autotune/measure/data.h"

namespace tw {
namespace {

// Parameters begin at different offsets in their pages, as in an arena. Equal offsets would make
// loads wait for unrelated stores whose addresses look the same.
constexpr uint64_t kStagger = 1088, kPage = 4096, kLine = 64;
uint64_t stagger(size_t index) { return index * kStagger % kPage; }
uint64_t round_up(uint64_t bytes, uint64_t unit) { return (bytes + unit - 1) / unit * unit; }
// Safe for memory that exists: Mapping::create has checked that it can be addressed.
size_t in_memory(uint64_t bytes) { return static_cast<size_t>(bytes); }
bool is_output(const BufferSpec& b) { return !b.input && !b.constant; }

}  // namespace

Expected<Mapping> Mapping::create(uint64_t bytes) {
  const uint64_t page = static_cast<uint64_t>(::sysconf(_SC_PAGESIZE)),
                 size = round_up(std::max<uint64_t>(bytes, 1), page) + page;
  if (size > std::numeric_limits<size_t>::max() / 2)
    return make_error(DiagCode::limit, "{0} bytes are more than this machine can address", bytes);
  void* base = ::mmap(nullptr, in_memory(size), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
                      -1, 0);
  if (base == MAP_FAILED)
    return make_error(DiagCode::limit, "no memory for {0} bytes: {1}", bytes, std::strerror(errno));
  Mapping mapping(static_cast<std::byte*>(base), size);
  ::madvise(base, size, MADV_NOHUGEPAGE);
  ::mprotect(mapping.base_ + size - page, page, PROT_NONE);
  return mapping;
}

Mapping& Mapping::operator=(Mapping&& other) noexcept {
  std::swap(base_, other.base_);
  std::swap(size_, other.size_);
  return *this;
}

Mapping::~Mapping() {
  if (base_) ::munmap(base_, size_);
}

void Mapping::make_read_only() {
  const uint64_t page = static_cast<uint64_t>(::sysconf(_SC_PAGESIZE));
  ::mprotect(base_, size_ - page, PROT_READ);
}

Expected<JobMemory> JobMemory::create(const MeasureJob& job, uint64_t cold_bytes,
                                      const std::vector<PackFunction>& packs) {
  uint64_t total = 0;
  for (const BufferSpec& buffer : job.buffers) {
    const uint64_t source = buffer.source_bytes;
    if (buffer.bytes > kMostBytes || source > kMostBytes ||
        (total += buffer.bytes + source) > kMostBytes)
      return make_error(DiagCode::limit, "the parameters take more than {0} bytes", kMostBytes);
  }
  JobMemory memory;
  memory.buffers_ = job.buffers;
  memory.seed_ = job.seed;
  memory.weights_between_ = job.weights_between;
  TW_TRY(memory.map(
      job.weights_between == 0 ? cold_bytes : std::min(cold_bytes, job.weights_between), packs));
  return memory;
}

Error JobMemory::map(uint64_t cold_bytes, const std::vector<PackFunction>& packs) {
  mappings_.resize(buffers_.size());
  pointers_.resize(buffers_.size());
  offsets_.resize(buffers_.size());
  for (size_t i = 0; i < buffers_.size(); ++i) {
    if (buffers_[i].constant) {
      offsets_[i] = copy_bytes_;
      copy_bytes_ += round_up(buffers_[i].bytes, kLine) + kLine;
      continue;
    }
    TW_ASSIGN(mappings_[i], Mapping::create(stagger(i) + buffers_[i].bytes));
    pointers_[i] = mappings_[i].data() + stagger(i);
    if (!buffers_[i].input) continue;
    fill_parameter({static_cast<std::byte*>(pointers_[i]), in_memory(buffers_[i].bytes)},
                   buffers_[i].dtype, seed_, buffers_[i].contents);
    mappings_[i].make_read_only();
  }
  if (copy_bytes_ == 0) return Error::success();
  copies_ = (cold_bytes + copy_bytes_ - 1) / copy_bytes_;
  copies_ = std::max<uint64_t>(copies_, 1);
  TW_ASSIGN(constants_, Mapping::create(copies_ * copy_bytes_));
  fill_constants(packs);
  return Error::success();
}

void JobMemory::fill_constants(const std::vector<PackFunction>& packs) {
  for (size_t i = 0; i < buffers_.size(); ++i) {
    const BufferSpec& buffer = buffers_[i];
    if (!buffer.constant) continue;
    std::byte* const place = constants_.data() + offsets_[i];
    if (buffer.pack.empty()) {
      fill_parameter({place, in_memory(buffer.bytes)}, buffer.dtype, seed_, buffer.contents);
      continue;
    }
    std::vector<std::byte> source(in_memory(buffer.source_bytes));
    fill_parameter(source, buffer.source_dtype, seed_, buffer.contents);
    void* both[2] = {source.data(), place};
    packs[i](both, nullptr, nullptr);
  }
  for (uint64_t copy = 1; copy < copies_; ++copy)
    std::memcpy(constants_.data() + copy * copy_bytes_, constants_.data(), copy_bytes_);
  constants_.make_read_only();
}

bool JobMemory::serves(const MeasureJob& job) const {
  return seed_ == job.seed && weights_between_ == job.weights_between && buffers_ == job.buffers;
}

Error JobMemory::prepare(uint64_t workspace_bytes) {
  if (workspace_bytes > kMostBytes)
    return make_error(DiagCode::limit, "the workspace takes more than {0} bytes", kMostBytes);
  if (workspace_bytes > workspace_bytes_ || !workspace_.data()) {
    TW_ASSIGN(workspace_, Mapping::create(workspace_bytes));
    workspace_bytes_ = workspace_bytes;
  }
  if (workspace_bytes > 0) std::memset(workspace_.data(), 0xff, workspace_bytes);
  for (size_t i = 0; i < buffers_.size(); ++i)
    if (is_output(buffers_[i]) && buffers_[i].bytes > 0)
      std::memset(pointers_[i], 0xff, buffers_[i].bytes);
  return Error::success();
}

void* const* JobMemory::parameters(uint64_t run) {
  const uint64_t copy = run % copies_ * copy_bytes_;
  for (size_t i = 0; i < buffers_.size(); ++i)
    if (buffers_[i].constant) pointers_[i] = constants_.data() + copy + offsets_[i];
  return pointers_.data();
}

std::span<const std::byte> JobMemory::output(size_t buffer) const {
  return {static_cast<const std::byte*>(pointers_[buffer]), in_memory(buffers_[buffer].bytes)};
}

}  // namespace tw
