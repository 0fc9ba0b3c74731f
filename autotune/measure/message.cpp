#include "autotune/measure/message.h"

#include <bit>
#include <cmath>
#include <cstring>

#include "ir/storage_types.h"

namespace tw {
namespace {

static_assert(std::endian::native == std::endian::little);

constexpr uint32_t kVersion = 3;
constexpr std::string_view kJob = "TWMJ", kResult = "TWMR";
constexpr int kMostSamples = 1000000, kMostThreads = 1024;
constexpr double kMostSeconds = 1e6;

class Writer {
 public:
  explicit Writer(std::string_view magic) : bytes_(magic) { put(kVersion); }
  template <class T>
  void put(T value) {
    bytes_.append(reinterpret_cast<const char*>(&value), sizeof value);
  }
  void put_flag(bool value) { put<uint8_t>(value ? 1 : 0); }
  template <class T>
  void put_list(const T& list) {  // takes lists of bytes or numbers
    put<uint64_t>(list.size());
    bytes_.append(reinterpret_cast<const char*>(list.data()), list.size() * sizeof(*list.data()));
  }
  std::string take() { return std::move(bytes_); }

 private:
  std::string bytes_;
};

// Reads fields in order. After the first mistake all values are zero, and `finish` reports the
// mistake.
class Reader {
 public:
  Reader(std::string_view bytes, std::string_view magic) : rest_(bytes) {
    if (rest_.starts_with(magic)) rest_.remove_prefix(magic.size());
    else fail("does not begin with its mark");
    if (get<uint32_t>() != kVersion) fail("is of another version");
  }
  template <class T>
  T get() {
    T value{};
    if (rest_.size() < sizeof value) {
      fail("ends too early");
      return value;
    }
    std::memcpy(&value, rest_.data(), sizeof value);
    rest_.remove_prefix(sizeof value);
    return value;
  }
  template <class T>
  T get(T least, T most, const char* name) {  // NaN is in no range
    const T value = get<T>();
    if (value >= least && value <= most) return value;
    fail(name);
    return least;
  }
  bool get_flag(const char* name) { return get<uint8_t>(0, 1, name) != 0; }
  template <class T>
  T get_list() {
    using Item = std::remove_cvref_t<decltype(*std::declval<T>().data())>;
    const uint64_t count = get_count(sizeof(Item));
    T list;
    list.resize(count);
    if (count > 0) std::memcpy(list.data(), rest_.data(), count * sizeof(Item));
    rest_.remove_prefix(count * sizeof(Item));
    return list;
  }
  // Reads the length of a list whose items take at least `least` bytes each.
  uint64_t get_count(size_t least) {
    const uint64_t count = get<uint64_t>();
    if (count <= rest_.size() / least) return count;
    fail("ends too early");
    return 0;
  }
  void fail(const char* problem) {
    if (!problem_) problem_ = problem;
    rest_ = {};
  }
  Error finish(const char* what) {
    if (!problem_ && !rest_.empty()) problem_ = "has bytes left over";
    if (!problem_) return Error::success();
    return make_error(DiagCode::parse, "a message with a {0} to measure: {1}", what, problem_);
  }

 private:
  std::string_view rest_;
  const char* problem_ = nullptr;
};

void put_limits(Writer& w, const MeasureLimits& limits) {
  w.put(limits.timeout);
  w.put(limits.least_time);
  w.put(limits.relative_interval);
  w.put<int32_t>(limits.most_samples);
  w.put(limits.best);
}

MeasureLimits get_limits(Reader& r) {
  MeasureLimits limits;
  limits.timeout = r.get<double>(0, kMostSeconds, "its time limit is out of range");
  limits.least_time = r.get<double>(0, kMostSeconds, "its least time is out of range");
  limits.relative_interval = r.get<double>(0, kMostSeconds, "its interval is out of range");
  limits.most_samples = r.get<int32_t>(0, kMostSamples, "its number of samples is out of range");
  limits.best = r.get<double>(0, kMostSeconds, "its best time is out of range");
  return limits;
}

DType get_dtype(Reader& r) {
  return static_cast<DType>(r.get<uint8_t>(0, kDTypeCount - 1, "it has an unknown element type"));
}

BufferSpec get_buffer(Reader& r) {
  BufferSpec buffer;
  buffer.bytes = r.get<uint64_t>();
  buffer.dtype = get_dtype(r);
  buffer.input = r.get_flag("a flag is neither 0 nor 1");
  buffer.constant = r.get_flag("a flag is neither 0 nor 1");
  buffer.contents = r.get<uint32_t>();
  buffer.pack = r.get_list<std::string>();
  buffer.source_bytes = r.get<uint64_t>();
  buffer.source_dtype = get_dtype(r);
  return buffer;
}

}  // namespace

std::string to_bytes(const MeasureJob& job) {
  Writer w(kJob);
  w.put_list(job.library);
  w.put_list(job.symbol);
  w.put<uint64_t>(job.buffers.size());
  for (const BufferSpec& buffer : job.buffers) {
    w.put(buffer.bytes);
    w.put<uint8_t>(static_cast<uint8_t>(buffer.dtype));
    w.put_flag(buffer.input);
    w.put_flag(buffer.constant);
    w.put(buffer.contents);
    w.put_list(buffer.pack);
    w.put(buffer.source_bytes);
    w.put<uint8_t>(static_cast<uint8_t>(buffer.source_dtype));
  }
  w.put(job.workspace_bytes);
  w.put_list(job.symbols);
  w.put(job.seed);
  put_limits(w, job.limits);
  w.put_list(job.expected);
  w.put(job.tolerance);
  w.put_flag(job.return_outputs);
  w.put_flag(job.artifact);
  w.put<int32_t>(job.threads);
  w.put(job.weights_between);
  return w.take();
}

std::string to_bytes(const MeasureResult& result) {
  Writer w(kResult);
  w.put<uint8_t>(static_cast<uint8_t>(result.status));
  w.put_list(result.seconds);
  w.put_list(result.error);
  w.put_list(result.device);
  w.put_flag(result.contended);
  w.put_list(result.outputs);
  return w.take();
}

Expected<MeasureJob> job_from_bytes(std::string_view bytes) {
  Reader r(bytes, kJob);
  MeasureJob job;
  job.library = r.get_list<std::string>();
  job.symbol = r.get_list<std::string>();
  const uint64_t buffers = r.get_count(32);
  for (uint64_t i = 0; i < buffers; ++i) job.buffers.push_back(get_buffer(r));
  job.workspace_bytes = r.get<uint64_t>();
  job.symbols = r.get_list<std::vector<int64_t>>();
  job.seed = r.get<uint64_t>();
  job.limits = get_limits(r);
  job.expected = r.get_list<std::vector<std::byte>>();
  job.tolerance = r.get<double>(0, kMostSeconds, "its tolerance is out of range");
  job.return_outputs = r.get_flag("a flag is neither 0 nor 1");
  job.artifact = r.get_flag("a flag is neither 0 nor 1");
  job.threads = r.get<int32_t>(1, kMostThreads, "its number of threads is out of range");
  job.weights_between = r.get<uint64_t>();
  TW_TRY(r.finish("job"));
  return job;
}

Expected<MeasureResult> result_from_bytes(std::string_view bytes) {
  Reader r(bytes, kResult);
  MeasureResult result;
  result.status = static_cast<Status>(
      r.get<uint8_t>(0, kStatusCount - 1, "it has an unknown status"));
  result.seconds = r.get_list<std::vector<double>>();
  result.error = r.get_list<std::string>();
  result.device = r.get_list<std::string>();
  result.contended = r.get_flag("a flag is neither 0 nor 1");
  result.outputs = r.get_list<std::vector<std::byte>>();
  for (const double s : result.seconds)
    if (!(s > 0 && std::isfinite(s))) r.fail("a sample is not a positive number");
  TW_TRY(r.finish("result"));
  return result;
}

std::string one_line(std::string_view text) {
  std::string line;
  bool indent = false;
  for (const char c : text) {
    if (c == '\n') line += ' ';
    else if (c != ' ' || !indent) line += c;
    indent = c == '\n' || (indent && c == ' ');
  }
  return line;
}

}  // namespace tw
