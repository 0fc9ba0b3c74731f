#include <algorithm>
#include <cmath>
#include <map>

#include "autotune/features/features.h"
#include "autotune/features/statements.h"
#include "autotune/models/gbt.h"
#include "ir/text.h"
#include "tests/autotune/synthetic.h"
#include "tests/ir/parsed.h"

using namespace tw;
using namespace tw::test;

namespace {

// A kernel with 8 x 16 sums of 4 products: i on threads, j in vectors
const char* const kProduct =
    "kernel @m(x: in f32[8, 4], w: const f32[4, 16], y: out f32[8, 16]) {"
    "  for i in 8 parallel { for k in 4 reduce { for j in 16 vector { c: y[i, j] += x[i, k] * w[k, "
    "j] init 0 } } }"
    "}";

double named(const FeatureRow& row, const std::vector<std::string>& names,
             const std::string& name) {
  const auto at = std::find(names.begin(), names.end(), name);
  REQUIRE_MESSAGE(at != names.end(), name);
  REQUIRE(row.size() == names.size());
  return row[static_cast<size_t>(at - names.begin())];
}

doctest::Approx logged(double x) { return doctest::Approx(std::log2(x + 1)); }

}  // namespace

TEST_CASE("itervar features of a product by hand") {
  const Kernel kernel = parsed_kernel(kProduct);
  std::vector<std::string> names;
  const FeatureRow row = itervar_row(kernel, &names);
  const auto f = [&](const std::string& name) { return named(row, names, name); };
  CHECK(f("i.length") == logged(8));
  CHECK(f("i.parallel") == 1);
  CHECK(f("i.serial") == 0);
  CHECK(f("k.nest_level") == 1);
  CHECK(f("k.reduce") == 1);
  CHECK(f("k.topdown") == logged(32));
  CHECK(f("k.bottomup") == logged(64));
  CHECK(f("k.adds") == 1);
  CHECK(f("k.muls") == 1);
  CHECK(f("k.divs") == 0);
  CHECK(f("k.c.x_0.stride") == logged(1));
  CHECK(f("k.c.x_0.count") == logged(4));
  CHECK(f("k.c.x_0.reuse") == logged(16));
  CHECK(f("k.c.w_0.stride") == logged(16));
  CHECK(f("i.c.w_0.stride") == 0);
  CHECK(f("i.c.w_0.count") == logged(64));
  CHECK(f("i.c.w_0.reuse") == logged(8));
  CHECK(f("i.c.w_0.thread_reuse") == logged(8));
  CHECK(f("i.c.x_0.thread_count") == logged(8));
  CHECK(f("i.c.x_0.thread_reuse") == logged(1));
}

TEST_CASE("curve features of a product by hand") {
  // Buffer y under the loops i, k, j: 128, 16, 16 elements touched; reuse 4, 4, 1; 8, 32, 512
  // iterations
  const FeatureRow row = curve_row(parsed_kernel(kProduct));
  const std::vector<std::string> names = curve_feature_names();
  const auto f = [&](const std::string& name) { return named(row, names, name); };
  CHECK(f("buffer0.reuse_of_count[0]") == 0);
  CHECK(f("buffer0.reuse_of_count[4]") == 2);
  CHECK(f("buffer0.reuse_of_count[4].behind") == 0);
  CHECK(f("buffer0.reuse_of_count[6]") == 2);
  CHECK(f("buffer0.reuse_of_count[6].behind") == 2);
  CHECK(f("buffer0.count_of_topdown[6]") == 4);
  CHECK(f("buffer0.count_of_topdown[6].behind") == 1);
  CHECK(f("buffer0.topdown_of_count[19]") == 9);
  CHECK(f("buffer0.topdown_of_count[19].behind") == 12);
  CHECK(std::isnan(f("buffer3.reuse_of_count[0]")));  // there are three buffers
}

TEST_CASE("loop features of a product by hand") {
  const std::vector<FeatureRow> rows = loop_rows(parsed_kernel(kProduct));
  REQUIRE(rows.size() == 1);
  const std::vector<std::string> names = loop_feature_names();
  const auto f = [&](const std::string& name) { return named(rows[0], names, name); };
  CHECK(f("float_mad") == logged(512));
  CHECK(f("float_mul") == 0);
  CHECK(f("int_mul") == 0);
  CHECK(f("vector.loops") == logged(1));
  CHECK(f("vector.product") == logged(16));
  CHECK(f("vector.inner_spatial") == 1);
  CHECK(f("unroll.none") == 1);
  CHECK(f("parallel.innermost") == logged(8));
  CHECK(f("parallel.outer_spatial") == 1);
  // Buffers come in order of their cache lines: y, w, x.
  CHECK(f("buffer0.read_write") == 1);
  CHECK(f("buffer0.bytes") == logged(2048));
  CHECK(f("buffer0.unique_bytes") == logged(512));
  CHECK(f("buffer0.unique_lines") == logged(8));
  CHECK(f("buffer0.reuse_loop") == 1);
  CHECK(f("buffer0.reuse_count") == logged(4));
  CHECK(f("buffer0.reuse_distance") == logged(16));
  CHECK(f("buffer0.reuse_distance_bytes") == logged(64 + 4 + 64));
  CHECK(f("buffer1.read") == 1);
  CHECK(f("buffer1.lines") == logged(32));
  CHECK(f("buffer1.unique_lines") == logged(4));
  CHECK(f("buffer1.reuse_count") == logged(8));
  CHECK(f("buffer1.reuse_distance") == logged(64));
  CHECK(f("buffer1.reuse_distance_bytes") == logged(64 + 16 + 256));
  CHECK(f("buffer1.bytes_by_reuse") == logged(2048 / 8));
  CHECK(f("buffer2.unique_lines") == logged(2));
  CHECK(f("buffer2.stride") == logged(1));
  CHECK(f("buffer3.bytes") == 0);
  CHECK(f("intensity[9]") == doctest::Approx(std::log2(1024.0 / 896)));
  CHECK(f("alloc.bytes") == 0);
  CHECK(f("iterations") == logged(512));
  CHECK(f("loops") == logged(3));
  CHECK(f("guards") == 0);
}

TEST_CASE("loop features: registers, statements that share a buffer, guards, windows") {
  const Kernel kernel = parsed_kernel(
      "kernel @w(x: in f32[20], y: out f32[9]) {"
      "  temp c: f32[9] register"
      "  for i in 9 { for k in 3 reduce { if i + k < 11 { c: c[i] += x[i * 2 + k] init 0 } } }"
      "  for i1 in 9 { y: y[i1] = exp(c[i1]) }"
      "}");
  const std::vector<features::Statement> all = features::statements_of(kernel);
  REQUIRE(all.size() == 2);
  // Elements 0 to 2 * 8 + 2
  CHECK(features::elements(kernel, all[0], all[0].touches[1], 0) == 19);
  CHECK(features::elements(kernel, all[0], all[0].touches[1], 1) == 3);
  CHECK(features::stride(kernel, all[0], all[0].touches[1].uses[0], 0) == 2);
  const std::vector<FeatureRow> rows = loop_rows(kernel);
  const std::vector<std::string> names = loop_feature_names();
  CHECK(named(rows[0], names, "guards") == logged(1));
  CHECK(named(rows[0], names, "alloc.bytes") == logged(36));
  CHECK(named(rows[1], names, "float_math") == logged(9));
  const std::string c = named(rows[1], names, "buffer0.register") == 1 ? "buffer0." : "buffer1.";
  CHECK(named(rows[1], names, c + "register") == 1);
  CHECK(named(rows[1], names, c + "reuse_serial") == 1);
  CHECK(named(rows[1], names, c + "reuse_count") == logged(1));
}

TEST_CASE("knob features: a sketch's knobs have columns of their own") {
  const Space space = power_space(2, 3, 2);
  const std::vector<std::string> names = knob_feature_names(space);
  const FeatureRow row = knob_features(space).rows({{1, {0, 2}}, {}, nullptr, 0}).front();
  CHECK(named(row, names, "s0") == 0);
  CHECK(named(row, names, "s1") == 1);
  CHECK(named(row, names, "s1.t0[0]") == 1);
  CHECK(named(row, names, "s1.t1[0]") == 4);
  CHECK(std::isnan(named(row, names, "s0.t0[0]")));
}

TEST_CASE("a kernel without loops has features") {
  const Kernel kernel = parsed_kernel(
      "kernel @s(x: in f32[], y: out f32[]) { y: y[] = x[] + 1.0 }");
  CHECK(loop_rows(kernel).size() == 1);
  CHECK(curve_row(kernel).size() == curve_feature_names().size());
  CHECK_FALSE(itervar_row(kernel).empty());
}

namespace {

// The space of a product of 64 x 64 x 64 with split loops, in two orders: real kernels, and a cost
// that depends on their tiles.
Space split_space() {
  Sketch sketch{
      "product", 0, {{"i", {}}, {"j", {}}, {"k", {}}, {"order", {{0}, {1}}}}, nullptr, {}};
  for (int k = 0; k < 3; ++k)
    for (const int64_t v : {2, 4, 8, 16, 32})
      sketch.knobs[static_cast<size_t>(k)].values.push_back({v});
  sketch.fill = [knobs = sketch.knobs](const std::vector<int>& choice) -> Expected<Schedule> {
    const auto value = [&](size_t k) { return knobs[k].values[static_cast<size_t>(choice[k])][0]; };
    Schedule s;
    s.steps.push_back(step::Split{"i", value(0), Tail::guard, "i0", "i1"});
    s.steps.push_back(step::Split{"j", value(1), Tail::guard, "j0", "j1"});
    s.steps.push_back(step::Split{"k", value(2), Tail::guard, "k0", "k1"});
    if (value(3)) s.steps.push_back(step::Reorder{{"i0", "j0", "k0", "k1", "i1", "j1"}});
    else s.steps.push_back(step::Reorder{{"j0", "i0", "k0", "i1", "k1", "j1"}});
    s.steps.push_back(step::Vectorize{"j1"});
    return s;
  };
  return Space({sketch});
}

const char* const kLowered =
    "kernel @m(x: in f32[64, 64], w: const f32[64, 64], y: out f32[64, 64]) {"
    "  for i in 64 { for j in 64 { for k in 64 reduce { y: y[i, j] += x[i, k] * w[k, j] init 0 } } "
    "}"
    "}";

double split_cost(const Point& p) {
  const double i = std::exp2(p.choice[0] + 1), j = std::exp2(p.choice[1] + 1),
               k = std::exp2(p.choice[2] + 1);
  const double tile = i * j + k * (i + j);  // elements of a block
  return 1e-3 * (1 + 16 / j + (tile > 600 ? tile / 600 : 600 / tile) + (p.choice[3] ? 0 : 1.5));
}

}  // namespace

TEST_CASE("features of kernels let trees rank schedules that they have not seen") {
  const Space space = split_space();
  const Kernel lowered = parsed_kernel(kLowered);
  std::vector<Candidate> train, test;
  for (double i = 0; i < space.size(); ++i) {
    const Point point = space.at(i);
    Schedule schedule = require_value(space.schedule(point));
    RunKernel run = require_value(apply_to_run(lowered, schedule));
    (static_cast<int>(i) % 3 ? train : test)
        .push_back(
            {point, std::move(schedule), std::make_shared<const RunKernel>(std::move(run)), 0});
  }
  std::vector<double> seconds;
  for (const Candidate& c : train) seconds.push_back(split_cost(c.point));
  for (const Features& features :
       {knob_features(space), itervar_features(), curve_features(), loop_features()}) {
    CAPTURE(features.name);
    for (const Objective objective : {Objective::rank, Objective::regression}) {
      GbtOptions options;
      options.objective = objective;
      GbtModel model(features, options);
      model.fit(train, seconds);
      const std::vector<double> scores = model.score(test);
      double right = 0, pairs = 0;
      for (size_t a = 0; a < test.size(); ++a)
        for (size_t b = 0; b < test.size(); ++b) {
          if (!(split_cost(test[a].point) < 0.95 * split_cost(test[b].point))) continue;
          ++pairs;
          right += scores[a] > scores[b];
        }
      CHECK(right / pairs > 0.8);
    }
  }
}

TEST_CASE(
    "a search by kernels' features finds the least, and builds a kernel for its score and for its "
    "measurement only") {
  const Space space = split_space();
  const Kernel lowered = parsed_kernel(kLowered);
  std::map<Point, int> built;
  Search search{space, split_cost};
  search.kernel = [&](const Point& point) {
    ++built[point];
    return std::make_shared<const RunKernel>(
        require_value(apply_to_run(lowered, require_value(space.schedule(point)))));
  };
  GbtModel model(loop_features(), {});
  AnnealingOptions annealing;
  annealing.chains = 16, annealing.iterations = 20, annealing.random_first = 16;
  const std::unique_ptr<Explorer> explorer = annealing_explorer(
      space, 1, annealing, score_points(search.builder(), model, 1));
  TuneOptions options;
  options.batch = 16;
  TaskTuner tuner("product", space, *explorer, &model, search, options);
  REQUIRE(bool(tuner.run(96)));
  double least = kFailed;
  for (double i = 0; i < space.size(); ++i) least = std::min(least, split_cost(space.at(i)));
  CHECK(tuner.best_seconds() == least);
  for (const auto& [point, times] : built) CHECK(times <= 2);  // for its score, for its time
}
