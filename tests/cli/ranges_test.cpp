// Ranges of activations from histograms.
#include <doctest/doctest.h>

#include "driver/quantize/ranges.h"

namespace tw {
namespace {

TEST_CASE("quantize: percentile leaves out as many values as it says") {
  Histogram histogram({0, 100}, 100);
  std::vector<float> values;
  for (int i = 0; i < 1000; ++i) values.push_back(static_cast<float>(i % 100) + 0.5f);
  histogram.add(values);
  CHECK(percentile_range(histogram, 100).least == 0);
  CHECK(percentile_range(histogram, 100).most == 100);
  CHECK(percentile_range(histogram, 90).least == 5);
  CHECK(percentile_range(histogram, 90).most == 95);
}

TEST_CASE("quantize: entropy clips a far outlier and keeps an even distribution") {
  std::vector<float> values;
  for (int i = 0; i < 100000; ++i) values.push_back(static_cast<float>(i % 1000) / 1000);
  Histogram even({0, 1}, 2048);
  even.add(values);
  CHECK(entropy_range(even).most > 0.9);
  values.push_back(8);
  Histogram with_outlier({0, 8}, 2048);
  with_outlier.add(values);
  CHECK(entropy_range(with_outlier).most < 4);
  CHECK(entropy_range(with_outlier).most >= 0.99);
}

// Numbers that look evenly spread, equal on all machines
std::vector<float> scattered(int count) {
  std::vector<float> values;
  uint32_t state = 1;
  for (int i = 0; i < count; ++i) {
    state = state * 1664525u + 1013904223u;
    values.push_back(static_cast<float>(state >> 8) / 0x1p24f);
  }
  return values;
}

TEST_CASE("quantize: few values, which scatter, are no reason for entropy to clip") {
  Histogram few({0, 1}, 2048);
  few.add(scattered(3000));
  CHECK(entropy_range(few).most > 0.9);
}

TEST_CASE("quantize: zeros, of which a Relu makes many, are no reason for entropy to clip") {
  std::vector<float> values = scattered(30000);
  values.resize(100000);
  Histogram histogram({0, 1}, 2048);
  histogram.add(values);
  CHECK(histogram.zeros == 70000);
  CHECK(entropy_range(histogram).most > 0.9);
}

TEST_CASE("quantize: mse clips where finer steps gain more than the outlier loses") {
  std::vector<float> values = scattered(1000000);
  Histogram even({0, 1}, 2048);
  even.add(values);
  CHECK(mse_range(even).most > 0.98);
  values.push_back(8);
  Histogram with_outlier({0, 8}, 2048);
  with_outlier.add(values);
  CHECK(mse_range(with_outlier).most < 6);
  CHECK(mse_range(with_outlier).most >= 1);
}

}  // namespace
}  // namespace tw
