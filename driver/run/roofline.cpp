#include "driver/run/roofline.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <limits>

#include "driver/run/probes.h"

namespace tw {
namespace {

constexpr int kPasses = 20000;  // iterations of the arithmetic probe
constexpr int kStreams = 8;     // vectors that the reading probes sum independently
// Blocks of the first-level probe: they fit in every first-level cache.
constexpr int kNearBlocks = 16;
constexpr int kNearPasses = 2000;  // passes over these blocks

std::string number(int64_t v) { return std::to_string(v); }

// `sums` independent multiply-adds again and again: enough to hide the latency, and on registers
// alone
std::string arithmetic_text(int sums, int lanes) {
  const std::string a = number(sums), l = number(lanes);
  return "kernel @probe_flops(x: in f32[3, " + l + "], y: out f32[" + a + ", " + l +
         "]) {\n"
         "  temp c: f32[" +
         a + ", " + l +
         "] register\n"
         "  for i0 in " +
         a + " unroll { for l0 in " + l +
         " vector { start: c[i0, l0] = x[0, l0] + f32(i0) } }\n"
         "  for k in " +
         number(kPasses) + " scan { for i1 in " + a + " unroll { for l1 in " + l +
         " vector {\n"
         "    c: c[i1, l1] = c[i1, l1] * x[1, l1] + x[2, l1] } } }\n"
         "  for i2 in " +
         a + " unroll { for l2 in " + l + " vector { y: y[i2, l2] = c[i2, l2] } }\n}\n";
}

// A kernel that reads n blocks once, or kNearBlocks again and again
std::string reading_text(int lanes, bool near) {
  const std::string a = number(kStreams), l = number(lanes);
  const std::string n = near ? number(kNearBlocks) : "n", again = number(near ? kNearPasses : 1);
  return "kernel @" + std::string(near ? "probe_near(" : "probe_read[n](") + "x: in f32[" + n +
         ", " + a + ", " + l + "], y: out f32[" + a + ", " + l +
         "]) {\n"
         "  temp c: f32[" +
         a + ", " + l +
         "] register\n"
         "  for i0 in " +
         a + " unroll { for l0 in " + l +
         " vector { start: c[i0, l0] = 0.0 } }\n"
         "  for r in " +
         again + " scan { for k in " + n + " reduce { for i1 in " + a + " unroll { for l1 in " + l +
         " vector { c: c[i1, l1] += x[k, i1, l1] } } } }\n"
         "  for i2 in " +
         a + " unroll { for l2 in " + l + " vector { y: y[i2, l2] = c[i2, l2] } }\n}\n";
}

double measure_gflops(ProbeKernel probe, int sums, int lanes, int threads) {
  Line half;
  std::fill(std::begin(half.values), std::end(half.values), 0.5f);
  std::vector<Line> in(16, half);
  std::vector<std::vector<Line>> out(static_cast<size_t>(threads), std::vector<Line>(256));
  const double rate = passes_per_second(threads, [&](int t) {
    void* arguments[] = {in.data(), out[static_cast<size_t>(t)].data()};
    probe(arguments, nullptr, nullptr);
  });
  return rate * 2 * kPasses * sums * lanes * 1e-9;
}

double measure_l1_gbs(ProbeKernel probe, int lanes, int threads) {
  std::vector<Line> in(static_cast<size_t>(kNearBlocks * kStreams * lanes * 4) / sizeof(Line) + 1);
  std::vector<std::vector<Line>> out(static_cast<size_t>(threads), std::vector<Line>(64));
  const double rate = passes_per_second(threads, [&](int t) {
    void* arguments[] = {in.data(), out[static_cast<size_t>(t)].data()};
    probe(arguments, nullptr, nullptr);
  });
  return rate * 4 * kNearPasses * kNearBlocks * kStreams * lanes * 1e-9;
}

double measure_gbs(ProbeKernel probe, int64_t bytes_each, int lanes, int threads) {
  const int64_t block = int64_t{kStreams} * lanes * 4;
  const int64_t blocks = std::max<int64_t>(1, bytes_each / block);
  std::vector<Pages> in;
  for (int t = 0; t < threads; ++t) in.emplace_back(blocks * block / 64 + 1);
  std::vector<std::vector<Line>> out(static_cast<size_t>(threads), std::vector<Line>(64));
  const double rate = passes_per_second(threads, [&](int t) {
    void* arguments[] = {in[static_cast<size_t>(t)].data(), out[static_cast<size_t>(t)].data()};
    probe(arguments, nullptr, &blocks);
  });
  return rate * static_cast<double>(blocks * block) * 1e-9;
}

// Types whose products are faster than those of f32.
std::vector<DType> faster_types(const Peaks& peaks) {
  std::vector<DType> types;
  for (const DType type : {DType::bf16, DType::f16, DType::i16, DType::i8})
    if (peaks.gflops_of(type) > peaks.gflops) types.push_back(type);
  return types;
}

const MemoryLevel& level_for(const Peaks& peaks, double bytes) {
  for (const MemoryLevel& level : peaks.levels)
    if (bytes <= static_cast<double>(level.bytes)) return level;
  return peaks.levels.back();
}

}  // namespace

double Peaks::gflops_of(DType operand) const {
  return rates.f32 > 0 ? gflops * rates.multiply_adds(operand) / rates.f32 : gflops;
}

Expected<Peaks> measure_peaks(const Target& target, int threads) {
  const int lanes = target.lanes(4), sums = target.vector_registers >= 32 ? 24 : 12;
  TW_ASSIGN(const Probes probes,
            Probes::load(target, {arithmetic_text(sums, lanes), reading_text(lanes, false),
                                  reading_text(lanes, true)}));
  const ProbeKernel flops = probes.find("probe_flops"), read = probes.find("probe_read"),
                    near_read = probes.find("probe_near");
  Peaks peaks;
  peaks.rates = core_rates(target);
  peaks.gflops = measure_gflops(flops, sums, lanes, threads);
  peaks.l1_gbs = measure_l1_gbs(near_read, lanes, threads);
  const int64_t near = target.l2_bytes * threads;
  peaks.levels.push_back({"L2", near, measure_gbs(read, target.l2_bytes / 2, lanes, threads)});
  const int64_t far = std::clamp<int64_t>(4 * std::max(near, target.l3_bytes), 64 << 20, 256 << 20);
  const double memory = measure_gbs(read, far / threads, lanes, threads);
  if (target.l3_bytes > near) {
    const int64_t bytes = std::clamp(target.l3_bytes / 4, std::min(2 * near, target.l3_bytes / 2),
                                     target.l3_bytes / 2);
    MemoryLevel level{"L3", target.l3_bytes, measure_gbs(read, bytes / threads, lanes, threads)};
    // Others may use the cache too, so its size is halved until reading that much is nearer to the
    // cache's rate than to the memory's.
    while (level.bytes / 2 >= bytes &&
           measure_gbs(read, level.bytes / threads, lanes, threads) < std::sqrt(level.gbs * memory))
      level.bytes /= 2;
    peaks.levels.push_back(level);
  }
  peaks.levels.push_back({"DRAM", std::numeric_limits<int64_t>::max(), memory});
  return peaks;
}

Peaks larger_of(Peaks first, const Peaks& second) {
  first.gflops = std::max(first.gflops, second.gflops);
  first.l1_gbs = std::max(first.l1_gbs, second.l1_gbs);
  for (size_t i = 0; i < std::min(first.levels.size(), second.levels.size()); ++i)
    first.levels[i].gbs = std::max(first.levels[i].gbs, second.levels[i].gbs);
  return first;
}

Roof roof_of(const Peaks& peaks, DType operand, double flops, double loaded_bytes,
             double weight_bytes, double tensor_bytes, double resident_bytes) {
  const MemoryLevel& weights = level_for(peaks, resident_bytes);
  const MemoryLevel& tensors = level_for(peaks, tensor_bytes);
  const double compute = flops / (peaks.gflops_of(operand) * 1e9);
  const double from_weights = weight_bytes / (weights.gbs * 1e9),
               from_tensors = tensor_bytes / (tensors.gbs * 1e9);
  const double loads = loaded_bytes / (peaks.l1_gbs * 1e9);
  if (std::max(compute, loads) >= from_weights + from_tensors)
    return compute >= loads ? Roof{compute, "fma"} : Roof{loads, "L1"};
  return {from_weights + from_tensors, from_weights > from_tensors ? weights.name : tensors.name};
}

Json to_json(const Peaks& peaks) {
  Json::Array levels;
  for (const MemoryLevel& l : peaks.levels)
    levels.push_back(Json::Object{{"name", l.name}, {"gbs", l.gbs}});
  Json::Object types;
  for (const DType type : faster_types(peaks))
    types.push_back({dtype_name(type), peaks.gflops_of(type)});
  return Json::Object{
      {"gflops", peaks.gflops}, {"gflops_of", types}, {"l1_gbs", peaks.l1_gbs}, {"levels", levels}};
}

std::string to_string(const Peaks& peaks) {
  char text[64];
  std::snprintf(text, sizeof text, "%.1f GFLOP/s", peaks.gflops);
  std::string out = text, types;
  for (const DType type : faster_types(peaks)) {
    std::snprintf(text, sizeof text, "%s %.0f", dtype_name(type), peaks.gflops_of(type));
    types += (types.empty() ? "" : ", ") + std::string(text);
  }
  if (!types.empty()) out += " (" + types + ")";
  std::snprintf(text, sizeof text, "; L1 %.0f GB/s", peaks.l1_gbs);
  out += text;
  for (const MemoryLevel& l : peaks.levels) {
    std::snprintf(text, sizeof text, ", %s %.0f GB/s", l.name.c_str(), l.gbs);
    out += text;
  }
  return out;
}

}  // namespace tw
