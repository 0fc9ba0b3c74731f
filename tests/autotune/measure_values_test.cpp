// The parts of measuring that need no process: messages, contents of parameters, comparisons, and
// the end of sampling.
#include <doctest/doctest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <set>

#include "autotune/measure/data.h"
#include "autotune/measure/device.h"
#include "autotune/measure/job_memory.h"
#include "autotune/measure/message.h"
#include "autotune/measure/sampler.h"

using namespace tw;

namespace {

MeasureJob some_job() {
  MeasureJob job;
  job.library = std::string(
      "\x7f"
      "ELF\0and so on",
      14);
  job.symbol = "candidate";
  job.buffers = {{64, DType::f32, true, false},
                 {128, DType::i8, false, true},
                 {256, DType::bf16, false, false}};
  job.workspace_bytes = 4096;
  job.symbols = {7, -1};
  job.seed = 0xfedcba9876543210;
  job.limits = {1.5, 0.25, 0.125, 9, 0.5};
  job.expected = {std::byte{1}, std::byte{255}};
  job.tolerance = 0.001;
  job.return_outputs = true;
  return job;
}

MeasureResult some_result() {
  return {Status::timeout, {0.5, 1e-9}, "took too long", "a machine", true, {std::byte{3}}};
}

template <class T>
std::string text_of(Expected<T> value) {
  return value ? "" : error_text(value.takeError());
}

template <class T>
std::vector<std::byte> bytes_of(std::initializer_list<T> values) {
  std::vector<std::byte> bytes(values.size() * sizeof(T));
  std::memcpy(bytes.data(), std::data(values), bytes.size());
  return bytes;
}

// An invented machine, where a run takes `run` seconds.
struct Invented {
  double run = 1e-3;
  int64_t disturbed_probes = 0;  // blocks that see another involuntary switch
  double noise = 0;
  double sentinel = 1e-5;
  int64_t slow_probe = -1;  // number of the probe whose sentinel takes a fifth longer; -1: none
  int64_t runs = 0, switches = 0, probes = 0;
  std::mt19937 random{1};

  Samples take(const MeasureLimits& limits) {
    const auto go = [&](int64_t n) {
      runs += n;
      return static_cast<double>(n) * run *
             (1 + noise * std::uniform_real_distribution<double>(-1, 1)(random));
    };
    const auto probe = [&]() -> Probe {
      if (disturbed_probes-- > 0) ++switches;
      return {sentinel * (probes++ == slow_probe ? 1.2 : 1.0), switches};
    };
    return take_samples(limits, go(1), 1e-5, go, probe);
  }
};

}  // namespace

TEST_CASE(
    "a gain of times in turns is the median of their ratios, and six turns give an interval") {
  // The machine becomes twice as fast in the middle; the second schedule is 1.25 times as fast.
  const std::vector<double> first = {10, 10, 10, 5, 5, 5}, second = {8, 8, 8, 4, 4, 4.5};
  const PairedGain gain = paired_gain(first, second);
  CHECK(gain.ratio == doctest::Approx(1.25));
  CHECK(gain.interval.low == doctest::Approx(5 / 4.5));
  CHECK(gain.interval.high == doctest::Approx(1.25));
  CHECK(std::isinf(paired_gain({2, 2}, {1, 1}).interval.high));
}

TEST_CASE("messages: jobs and results come back whole") {
  const MeasureJob job = some_job();
  Expected<MeasureJob> back = job_from_bytes(to_bytes(job));
  REQUIRE_MESSAGE(bool(back), error_text(back.takeError()));
  CHECK(to_bytes(*back) == to_bytes(job));
  CHECK(back->library == job.library);
  CHECK(back->buffers[1].constant);
  CHECK(back->buffers[2].dtype == DType::bf16);
  CHECK(back->symbols == job.symbols);
  CHECK(back->limits.best == 0.5);
  CHECK(back->expected == job.expected);
  CHECK(back->return_outputs);
  const MeasureResult result = some_result();
  Expected<MeasureResult> other = result_from_bytes(to_bytes(result));
  REQUIRE_MESSAGE(bool(other), error_text(other.takeError()));
  CHECK(to_bytes(*other) == to_bytes(result));
  CHECK(other->status == Status::timeout);
  CHECK(other->seconds == result.seconds);
  CHECK(other->contended);
}

TEST_CASE(
    "messages: what is cut, longer, changed or something else is an error or another message, "
    "never more") {
  const std::string job = to_bytes(some_job()), result = to_bytes(some_result());
  for (size_t n = 0; n < job.size(); ++n)
    CHECK(!text_of(job_from_bytes(std::string_view(job).substr(0, n))).empty());
  for (size_t n = 0; n < result.size(); ++n)
    CHECK(!text_of(result_from_bytes(std::string_view(result).substr(0, n))).empty());
  CHECK(!text_of(job_from_bytes(job + "x")).empty());
  CHECK(!text_of(job_from_bytes(result)).empty());
  CHECK(!text_of(result_from_bytes(job)).empty());
  std::mt19937 random(1);
  for (int i = 0; i < 20000; ++i) {
    std::string a = job, b = result;
    for (int k = 0; k < 3; ++k) {
      a[random() % a.size()] = static_cast<char>(random());
      b[random() % b.size()] = static_cast<char>(random());
    }
    (void)text_of(job_from_bytes(a));
    (void)text_of(result_from_bytes(b));
  }
  MeasureResult odd = some_result();
  for (const double bad : {0.0, -1.0, std::nan(""), std::numeric_limits<double>::infinity()}) {
    odd.seconds = {bad};
    CHECK(!text_of(result_from_bytes(to_bytes(odd))).empty());
  }
  MeasureJob strange = some_job();
  strange.limits.timeout = std::nan("");
  CHECK(!text_of(job_from_bytes(to_bytes(strange))).empty());
}

TEST_CASE("data: the same contents for the same seed, others for others, of a good size") {
  for (int d = 0; d < kArithmeticDTypeCount; ++d) {
    const auto dtype = static_cast<DType>(d);
    CAPTURE(dtype_name(dtype));
    std::vector<std::byte> a(512), b(512), c(512), e(512);
    fill_parameter(a, dtype, 1, 0);
    fill_parameter(b, dtype, 1, 0);
    fill_parameter(c, dtype, 2, 0);
    fill_parameter(e, dtype, 1, 1);
    CHECK(a == b);
    CHECK(a != c);
    CHECK(a != e);
  }
  std::vector<float> f(10000);
  fill_parameter(std::as_writable_bytes(std::span(f)), DType::f32, 3, 0);
  for (const float x : f) REQUIRE((x >= -1 && x < 1));
  CHECK(std::set<float>(f.begin(), f.end()).size() > 9900);
  std::vector<int32_t> n(10000);
  fill_parameter(std::as_writable_bytes(std::span(n)), DType::i32, 3, 0);
  for (const int32_t x : n) REQUIRE((x >= -1000 && x <= 1000));
}

TEST_CASE("data: differences") {
  const float inf = std::numeric_limits<float>::infinity(), nan = std::nanf("");
  const auto differ = [](std::initializer_list<float> got, std::initializer_list<float> want) {
    return output_difference(bytes_of(got), bytes_of(want), DType::f32, 1e-3);
  };
  CHECK(differ({1, 2, 3}, {1, 2, 3}) == "");
  CHECK(differ({1, 2, 3.002F}, {1, 2, 3}) == "");
  CHECK(differ({1, 2.5, 3.01F}, {1, 2, 3}).find("element 1 is 2.5, expected 2") == 0);
  CHECK(differ({inf, nan, 1}, {inf, nan, 1}) == "");
  CHECK(!differ({1, nan}, {1, 2}).empty());
  CHECK(!differ({1, 2}, {1, nan}).empty());
  CHECK(!differ({1, -inf}, {1, inf}).empty());
  CHECK(!differ({0.001F}, {0}).empty());
  CHECK(output_difference(bytes_of<int8_t>({1, 2}), bytes_of<int8_t>({1, 2}), DType::i8, 1) == "");
  CHECK(
      !output_difference(bytes_of<int8_t>({1, 3}), bytes_of<int8_t>({1, 2}), DType::i8, 1).empty());
  CHECK(!output_difference(bytes_of<int64_t>({(int64_t{1} << 60) + 1}),
                           bytes_of<int64_t>({int64_t{1} << 60}), DType::i64, 1)
             .empty());
  CHECK(output_difference(bytes_of<uint16_t>({0x3c00}), bytes_of<uint16_t>({0x3c00}), DType::f16,
                          0) == "");
  CHECK(
      !output_difference(bytes_of<uint16_t>({0x3c01}), bytes_of<uint16_t>({0x3c00}), DType::f16, 0)
           .empty());
  CHECK(!output_difference(bytes_of<float>({1}), bytes_of<float>({1, 2}), DType::f32, 1).empty());
}

TEST_CASE("memory: activations stay, constants change place, contents are the seed's") {
  MeasureJob job;
  job.buffers = {{4096, DType::f32, true, false},
                 {1000, DType::f32, false, true},
                 {4096, DType::f32, false, false}};
  Expected<JobMemory> made = JobMemory::create(job, 1 << 20, {});
  REQUIRE_MESSAGE(bool(made), error_text(made.takeError()));
  JobMemory& memory = *made;
  REQUIRE(error_text(memory.prepare(100)).empty());
  CHECK(memory.copies() * 1000 > (1 << 20) * 9 / 10);
  std::vector<std::byte> want(1000);
  fill_parameter(want, DType::f32, 0, 0);
  std::set<void*> places;
  void* const input = memory.parameters(0)[0];
  for (uint64_t run = 0; run < memory.copies(); ++run) {
    void* const* parameters = memory.parameters(run);
    places.insert(parameters[1]);
    CHECK(parameters[0] == input);
    CHECK(reinterpret_cast<uintptr_t>(parameters[1]) % 64 == 0);
    REQUIRE(std::memcmp(parameters[1], want.data(), want.size()) == 0);
  }
  CHECK(places.size() == memory.copies());
  CHECK(memory.serves(job));
  MeasureJob small = job;  // the job of a network with fewer weights
  small.weights_between = 1 << 18;
  CHECK_FALSE(memory.serves(small));
  Expected<JobMemory> less = JobMemory::create(small, 1 << 20, {});
  REQUIRE(bool(less));
  CHECK(less->copies() == doctest::Approx(static_cast<double>(memory.copies()) / 4).epsilon(0.02));
  CHECK(memory.parameters(memory.copies())[1] == memory.parameters(0)[1]);
  CHECK(memory.output(2)[4095] == std::byte{0xff});
  CHECK(memory.serves(job));
  job.seed = 1;
  CHECK(!memory.serves(job));
}

TEST_CASE("sampler: medians and their intervals") {
  CHECK(median_of({3, 1, 2}) == 2);
  CHECK(median_of({4, 1, 2, 3}) == 2.5);
  std::vector<double> samples;
  for (int i = 1; i <= 5; ++i) samples.push_back(i);
  CHECK(std::isinf(median_interval(samples).high));
  samples.push_back(6);
  CHECK(median_interval(samples).low == 1);
  CHECK(median_interval(samples).high == 6);
  for (int i = 7; i <= 20; ++i) samples.push_back(i);
  CHECK(median_interval(samples).low == 6);  // from tables of the sign test: n = 20, k = 6
  CHECK(median_interval(samples).high == 15);
  for (int i = 21; i <= 1000; ++i) samples.push_back(i);
  CHECK(median_interval(samples).low == doctest::Approx(469).epsilon(0.01));
}

TEST_CASE("sampler: quiet ones end early, noisy ones at the limit, both after the least time") {
  Invented quiet{.run = 1e-2};
  const Samples few = quiet.take({.least_time = 0.02});
  CHECK(few.seconds.size() == 6);
  CHECK(!few.contended);
  CHECK(Invented{.run = 1e-2}.take({.least_time = 0.2}).seconds.size() == 20);
  CHECK(Invented{.run = 1e-2, .noise = 0.5}
            .take({.timeout = 100, .most_samples = 33})
            .seconds.size() == 33);
  Invented middle{.run = 1e-2, .noise = 0.05};
  const size_t count =
      middle.take({.timeout = 100, .relative_interval = 0.05, .most_samples = 1000}).seconds.size();
  CHECK(count > 6);
  CHECK(count < 1000);
}

TEST_CASE("sampler: short runs are several a sample and times are of one run") {
  Invented fast{.run = 1e-6};
  const Samples samples = fast.take({});
  CHECK(fast.runs > 10000);
  for (const double s : samples.seconds) CHECK(s == doctest::Approx(1e-6));
}

TEST_CASE("sampler: clearly slower candidates and long ones end early") {
  // a sample is a block
  const auto samples = [](double times) {
    return Invented{.run = 0.02}.take({.best = 0.02 / times}).seconds.size();
  };
  CHECK(samples(2.01) == 1);
  CHECK(samples(1.99) == 2);
  CHECK(samples(1.26) == 2);
  CHECK(samples(1.12) == 3);
  CHECK(samples(1.07) == 4);
  CHECK(samples(1.01) == 6);
  CHECK(samples(0.5) == 6);
  // Five runs fit. The first one and the one that finds out the time of a run are no samples.
  CHECK(Invented{.run = 1}.take({.timeout = 5}).seconds.size() == 3);
  Invented once{.run = 3};
  CHECK(once.take({.timeout = 5}).seconds == std::vector<double>{3});
  CHECK(once.runs == 1);
  CHECK(Invented{}.take({.most_samples = 0}).seconds.empty());
}

TEST_CASE("sampler: disturbed blocks are taken again, a few times") {
  Invented once{.run = 1e-3, .disturbed_probes = 3};  // the first probe is before all blocks
  const Samples samples = once.take({});
  CHECK(!samples.contended);
  const int64_t usual = [] {
    Invented quiet{.run = 1e-3};
    quiet.take({});
    return quiet.runs;
  }();
  CHECK(once.runs == usual + 10);
  Invented always{.run = 1e-3, .disturbed_probes = 1000000};
  const Samples all = always.take({});
  CHECK(all.contended);
  CHECK(all.seconds.size() >= 6);
  CHECK(always.runs < 200);
}

TEST_CASE(
    "sampler: a slow sentinel disturbs the blocks on both its sides, one that is slow throughout "
    "all of them") {
  Invented quiet{.run = 1e-3};
  quiet.take({});
  Invented once{.run = 1e-3, .slow_probe = 1};
  CHECK_FALSE(once.take({}).contended);
  CHECK(once.runs == quiet.runs + 10);
  Invented throttled{.run = 1e-3, .sentinel = 1.4e-5};  // against 1e-5 undisturbed
  CHECK(throttled.take({}).contended);
  Invented other_clock{.run = 1e-3, .sentinel = 1.2e-5};
  CHECK_FALSE(other_clock.take({}).contended);
}

TEST_CASE("device: a fingerprint and sizes that make sense") {
  CHECK(!device_fingerprint().empty());
  CHECK(device_fingerprint() == device_fingerprint());
  CHECK(device_fingerprint().find('\n') == std::string::npos);
  CHECK(cold_bytes() >= 4 << 20);
  CHECK(cold_bytes() >= 4 * cache_bytes(2));
}

TEST_CASE("a result of another machine with a time that is none is refused") {
  for (const double seconds : {0.0, -1.0, std::nan(""), std::numeric_limits<double>::infinity()}) {
    CAPTURE(seconds);
    MeasureResult result;
    result.seconds = {0.5, seconds};
    Expected<MeasureResult> read = result_from_bytes(to_bytes(result));
    REQUIRE(!read);
    CHECK(error_text(read.takeError()).find("not a positive number") != std::string::npos);
  }
}
