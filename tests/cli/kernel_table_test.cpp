#include "cli/text/kernel_table.h"

#include <doctest/doctest.h>

#include <limits>

#include "frontend/frontend.h"

using namespace tw;

namespace {
const Peaks kPeaks = {
    100,
    200,
    {{"L2", 1 << 20, 80}, {"L3", 32 << 20, 40}, {"DRAM", std::numeric_limits<int64_t>::max(), 20}}};
}

TEST_CASE(
    "the roof is the slower of arithmetic and memory, each stream from the level that holds it") {
  Roof roof = roof_of(kPeaks, DType::f32, 2e9, 3e9, 1e6, 1e6, 1e6);
  CHECK(roof.bound == "fma");
  CHECK(roof.seconds == doctest::Approx(0.02));
  roof = roof_of(kPeaks, DType::f32, 2e9, 5e9, 1e6, 1e6, 1e6);
  CHECK(roof.bound == "L1");
  CHECK(roof.seconds == doctest::Approx(0.025));
  roof = roof_of(kPeaks, DType::f32, 1e6, 9e6, 8e6, 0.8e6,
                 10e6);  // weights from L3, activations from L2
  CHECK(roof.bound == "L3");
  CHECK(roof.seconds == doctest::Approx(8e6 / 40e9 + 0.8e6 / 80e9));
  roof = roof_of(kPeaks, DType::f32, 1e6, 9e6, 8e6, 0.8e6, 100e6);
  CHECK(roof.bound == "DRAM");
  CHECK(roof_of(kPeaks, DType::f32, 0, 0, 1e3, 2e6, 1e3).bound == "L3");
}

TEST_CASE("of two probes the larger rates count") {
  Peaks busy = kPeaks;
  busy.gflops /= 2, busy.levels.back().gbs /= 2;
  Peaks other = kPeaks;
  other.l1_gbs /= 2;
  for (const Peaks& peaks : {larger_of(busy, other), larger_of(other, busy)})
    CHECK(to_string(peaks) == to_string(kPeaks));
}

TEST_CASE("arithmetic counts by the target's rate for the type that is multiplied") {
  Peaks peaks = kPeaks;
  peaks.rates.f32 = 16, peaks.rates.bf16 = 32;
  CHECK(peaks.gflops_of(DType::bf16) == doctest::Approx(200));
  CHECK(peaks.gflops_of(DType::i8) == doctest::Approx(100));  // no rate is given for i8
  CHECK(roof_of(peaks, DType::bf16, 2e9, 0, 0, 0, 0).seconds == doctest::Approx(0.01));
  CHECK(to_string(peaks).starts_with("100.0 GFLOP/s (bf16 200); L1 200 GB/s"));
  Manifest m;
  m.arena_bytes = "0";
  m.kernels = {{"a_0", ""}};
  m.kernels[0].multiplies = DType::bf16;
  m.calls = {{0, "first", "1000000000", "0", "0", "0"}};
  Expected<KernelTable> table = kernel_table(m, {}, peaks, {10});
  REQUIRE(bool(table));
  CHECK(*to_json(*table).items()[0]["peak_percent"].real() == doctest::Approx(50));
}

TEST_CASE("counts with symbols, slowest call first, sums last") {
  Manifest m;
  m.arena_bytes = "n * 64";
  m.weight_bytes = 1000;
  m.kernels = {{"a_0", "", 0, 1, 2}, {"b_1", "", 0, 0, 0}};
  m.calls = {{0, "first", "n * 1000000", "500", "n * 4", "n * 4000000"},
             {1, "second", "0", "0", "n * 8", ""}};
  Expected<KernelTable> table = kernel_table(m, {{"n", 10}}, kPeaks, {0.2, 0.5});
  REQUIRE(bool(table));
  CHECK(table->rows[0].flops == 1e7);
  CHECK(table->rows[0].tensor_bytes == 40);
  CHECK(table->rows[0].loaded_bytes == 4e7);
  CHECK(table->rows[0].roof.bound == "L1");
  CHECK(table->rows[0].spills == 3);
  CHECK(table->rows[1].tensor_bytes == 80);
  const Json json = to_json(*table);
  CHECK(*json.items()[0]["gflops"].real() == doctest::Approx(50));
  CHECK(*json.items()[0]["roof_percent"].real() == doctest::Approx(100));
  const std::string text = to_string(*table);
  CHECK(text.find("second") < text.find("first"));
  CHECK(text.find("in 2 calls") != std::string::npos);

  m.calls[1].flops = "batch * 2";
  table = kernel_table(m, {{"n", 10}}, kPeaks, {0.2, 0.5});
  REQUIRE(!table);
  CHECK(error_text(table.takeError()).find("batch * 2") != std::string::npos);
}

TEST_CASE("measured peaks are there for every level") {
  Expected<Target> target = load_target("x86-64-v2", {TW_SOURCE_DIR "/configs"});
  REQUIRE(bool(target));
  Expected<Peaks> peaks = measure_peaks(*target, 1);
  REQUIRE_MESSAGE(bool(peaks), error_text(peaks.takeError()));
  CHECK(peaks->gflops > 0.1);
  CHECK(peaks->l1_gbs > 0.1);
  REQUIRE(peaks->levels.size() >= 2);
  for (const MemoryLevel& level : peaks->levels) CHECK(level.gbs > 0.1);
  CHECK(peaks->levels.back().bytes == std::numeric_limits<int64_t>::max());
}
