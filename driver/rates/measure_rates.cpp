// All rates are in cycles. A chain of dependent operations counts cycles: an addition or an
// exclusive or of integers takes one on every chip. Each figure is the best of several rounds, so
// that moments in which another program ran do not count.
#include "driver/rates/measure_rates.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <thread>

#include "autotune/measure/team.h"
#include "driver/run/probes.h"
#include "driver/run/roofline.h"

namespace tw {
namespace {

constexpr int kRounds = 5;
constexpr int64_t kChainSteps = 4000, kChainLength = 16;  // operations of a step
constexpr int64_t kProductSteps = 4000;
constexpr int64_t kStoreBlocks = 16, kStoreSteps = 500;  // blocks of eight vectors: they fit in L1
constexpr int64_t kStreams = 8;                          // vectors of a block
constexpr int kForks = 2000;                             // forks of one sample

using Numbers = std::vector<std::pair<std::string, int64_t>>;

// Replaces each $name in the text by its number.
std::string filled(std::string text, const Numbers& numbers) {
  for (const auto& [name, value] : numbers)
    for (size_t at; (at = text.find("$" + name)) != std::string::npos;)
      text.replace(at, name.size() + 1, std::to_string(value));
  return text;
}

// A kernel of operations that each take the result of the one before
std::string chain_text() {
  std::string value = "c[i1]";
  for (int64_t i = 0; i < kChainLength / 2; ++i) value = "((" + value + " + x[1]) ^ x[0])";
  return filled(R"(kernel @probe_chain(x: in i32[2], y: out i32[1]) {
  temp c: i32[1] register
  for i0 in 1 { start: c[i0] = x[0] }
  for k in $steps scan { for i1 in 1 { c: c[i1] = )" +
                    value + R"( } }
  for i2 in 1 { y: y[i2] = c[i2] }
})",
                {{"steps", kChainSteps}});
}

constexpr const char* kDoubles = R"(kernel @probe_doubles(x: in f64[3, $l], y: out f64[$sums, $l]) {
  temp c: f64[$sums, $l] register
  for i0 in $sums unroll { for l0 in $l vector { start: c[i0, l0] = x[0, l0] + f64(i0) } }
  for k in $steps scan { for i1 in $sums unroll { for l1 in $l vector {
    c: c[i1, l1] = c[i1, l1] * x[1, l1] + x[2, l1] } } }
  for i2 in $sums unroll { for l2 in $l vector { y: y[i2, l2] = c[i2, l2] } }
})";
constexpr const char* kStore = R"(kernel @probe_store(x: in f32[$l], y: out f32[$n, 8, $l]) {
  for r in $steps scan { for k in $n { for i in 8 unroll { for l in $l vector {
    y: y[k, i, l] = x[l] } } } }
})";
constexpr const char* kCopy = R"(kernel @probe_copy[n](x: in f32[n, 8, $l], y: out f32[n, 8, $l]) {
  for k in n { for i in 8 unroll { for l in $l vector { y: y[k, i, l] = x[k, i, l] + 1.0 } } }
})";
constexpr const char* kScatter = R"(kernel @probe_scatter[n](x: in f32[n, n], y: out f32[n, n]) {
  for i in n { for j in n { y: y[j, i] = x[i, j] } }
})";

// Seconds of the fastest run of a kernel on one thread
double fastest(ProbeKernel probe, std::vector<void*> buffers, int64_t symbol = 0) {
  return 1 / passes_per_second(1, [&](int) { probe(buffers.data(), nullptr, &symbol); });
}

// Seconds of an empty loop that all threads of a team share while they are awake
double fork_join_seconds(int threads) {
  const std::vector<int> cores = last_cores(threads);
  if (cores.size() < 2) return 0;
  double best = 0;
  // A team pins the thread that makes it, so a new thread makes this one.
  std::thread([&] {
    using Clock = std::chrono::steady_clock;
    Team team(cores);
    team.begin();
    const tw_parallel* pool = team.parallel(team.size());
    for (int round = 0; round < 4 * kRounds; ++round) {
      const auto before = Clock::now();
      for (int i = 0; i < kForks; ++i)
        pool->parallel_for(pool->pool, [](void*, int32_t) {}, nullptr, team.size());
      const double each = std::chrono::duration<double>(Clock::now() - before).count() / kForks;
      best = round == 0 ? each : std::min(best, each);
    }
    team.end();
  }).join();
  return best;
}

class Measuring {
 public:
  Measuring(const Target& target, const Probes& probes) : target_(target), probes_(probes) {}

  void clock() {
    int32_t in[2] = {12345, 678}, out = 0;
    const double seconds = fastest(probes_.find("probe_chain"), {in, &out});
    best(rates.clock, static_cast<double>(kChainSteps * kChainLength) / seconds);
  }

  Error reading_and_products() {
    TW_ASSIGN(const Peaks peaks, measure_peaks(target_, 1));
    best(rates.f32, peaks.gflops * 1e9 / 2);
    best(rates.loads, peaks.l1_gbs * 1e9 / vector_bytes());
    const std::vector<MemoryLevel>& levels = peaks.levels;
    best(rates.l2_bytes, levels.front().gbs * 1e9);
    best(rates.memory_bytes, levels.back().gbs * 1e9);
    if (levels.size() > 2) best(rates.l3_bytes, levels[1].gbs * 1e9);
    return Error::success();
  }

  void doubles(int64_t sums) {
    std::vector<double> in(static_cast<size_t>(3 * target_.lanes(8)), 0.5);
    Pages out(sums * target_.lanes(8) / 8 + 1);
    const double seconds = fastest(probes_.find("probe_doubles"), {in.data(), out.data()});
    best(rates.f64, static_cast<double>(kProductSteps * sums * target_.lanes(8)) / seconds);
  }

  void writing() {
    const double vectors = static_cast<double>(kStoreBlocks * kStreams);
    Pages in(16), near(static_cast<int64_t>(vectors * vector_bytes()) / 64 + 1);
    best(rates.stores,
         vectors * kStoreSteps / fastest(probes_.find("probe_store"), {in.data(), near.data()}));
  }

  // Copies as much as the second-level cache holds, so that reads and writes take twice its size.
  void copying() {
    const int64_t blocks = target_.l2_bytes / block_bytes();
    Pages in(lines(blocks)), out(lines(blocks));
    const double seconds = fastest(probes_.find("probe_copy"), {in.data(), out.data()}, blocks);
    best(rates.tensor_bytes, static_cast<double>(2 * blocks * block_bytes()) / seconds);
  }

  // Transposes a matrix. Source and result fill half of the second-level cache; their rows do not
  // share sets of the first-level cache.
  void scattering() {
    const auto side = static_cast<int64_t>(std::sqrt(target_.l2_bytes / 16)) / 16 * 16 - 12;
    Pages in(side * side / 16 + 1), out(side * side / 16 + 1);
    const double seconds = fastest(probes_.find("probe_scatter"), {in.data(), out.data()}, side);
    best(scattered_a_second_, static_cast<double>(side * side) / seconds);
  }

  // Converts rates per second to rates per cycle.
  CoreRates in_cycles() const {
    CoreRates out = rates;
    for (double CoreRates::* rate : {&CoreRates::f32, &CoreRates::f64, &CoreRates::loads,
                                     &CoreRates::stores, &CoreRates::l2_bytes, &CoreRates::l3_bytes,
                                     &CoreRates::memory_bytes, &CoreRates::tensor_bytes})
      out.*rate /= rates.clock;
    out.scattered = rates.clock / scattered_a_second_;
    return out;
  }

  CoreRates rates;  // per second

 private:
  static void best(double& rate, double measured) { rate = std::max(rate, measured); }
  double vector_bytes() const { return target_.vector_bits / 8; }
  int64_t block_bytes() const { return kStreams * target_.vector_bits / 8; }
  int64_t lines(int64_t blocks) const { return blocks * block_bytes() / 64 + 1; }

  const Target& target_;
  const Probes& probes_;
  double scattered_a_second_ = 0;
};

// Rounds to three digits: the measurement is no more exact.
double rounded(double value) {
  if (value == 0) return 0;
  const double unit = std::pow(10, std::floor(std::log10(value)) - 2);
  return unit >= 1 ? std::round(value / unit) * unit
                   : std::round(value / unit) / std::round(1 / unit);
}

}  // namespace

Expected<CoreRates> measure_core_rates(const Target& target,
                                       const std::function<void(const std::string&)>& stage) {
  const int64_t sums = target.vector_registers >= 32 ? 24 : 12;
  const Numbers wide = {{"l", target.lanes(4)}, {"n", kStoreBlocks}, {"steps", kStoreSteps}};
  const Numbers narrow = {{"sums", sums}, {"l", target.lanes(8)}, {"steps", kProductSteps}};
  std::vector<std::string> kernels = {chain_text(), filled(kDoubles, narrow), kScatter};
  for (const char* text : {kStore, kCopy}) kernels.push_back(filled(text, wide));
  TW_ASSIGN(const Probes probes, Probes::load(target, kernels));
  Measuring measuring(target, probes);
  for (int round = 1; round <= kRounds; ++round) {
    stage("round " + std::to_string(round) + " of " + std::to_string(kRounds));
    measuring.clock();
    TW_TRY(measuring.reading_and_products());
    measuring.doubles(sums);
    measuring.writing();
    measuring.copying();
    measuring.scattering();
  }
  stage("sharing loops");
  CoreRates rates = measuring.in_cycles();
  rates.fork_join = fork_join_seconds(target.cores);
  for (const CoreRateKey& key : kCoreRateKeys) rates.*key.rate = rounded(rates.*key.rate);
  return rates;
}

}  // namespace tw
