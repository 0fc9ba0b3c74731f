#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>

#include "autotune/explorers/draft_model.h"
#include "autotune/explorers/seen.h"
#include "autotune/models/linear_head.h"
#include "autotune/models/predictor.h"
#include "driver/tune/predictor_files.h"
#include "ir/text.h"
#include "support/temporary_folder.h"
#include "tests/autotune/synthetic.h"
#include "tests/ir/parsed.h"

using namespace tw;
using namespace tw::test;

namespace {

const char* const kSums =
    "kernel @m(x: in f32[8, 4], w: const f32[4, 16], y: out f32[8, 16]) {"
    "  for i in 8 { for j in 16 { for k in 4 reduce { c: y[i, j] += x[i, k] * w[k, j] init 0 } } }"
    "}";

Candidate candidate_with(const Kernel& kernel, const std::string& steps) {
  Schedule schedule = llvm::cantFail(parse_schedule("schedule {\n" + steps + "}\n"));
  RunKernel run = llvm::cantFail(apply_to_run(kernel, schedule));
  return {{-1, {}}, std::move(schedule), std::make_shared<const RunKernel>(std::move(run)), 0};
}

// A library's interface with a network written by hand. Batches have 4 candidates, each of up to 3
// steps. A step has a 1 in one of its first 21 columns, so the score is the number of steps. The
// embedding is the score and 1.
namespace fake {
constexpr int64_t kSteps[] = {4, 3, 43}, kScore[] = {4}, kEmbedding[] = {4, 2};
const tw_tensor_info kInputs[] = {{"steps", TW_F32, 3, kSteps}};
const tw_tensor_info kOutputs[] = {{"score", TW_F32, 1, kScore},
                                   {"embedding", TW_F32, 2, kEmbedding}};
int contexts = 0;

tw_status create(const tw_options*, tw_context** context) {
  ++contexts;
  *context = reinterpret_cast<tw_context*>(&contexts);
  return TW_OK;
}
void destroy(tw_context*) { --contexts; }
tw_status run(tw_context*, const tw_tensor* inputs, const tw_tensor* outputs) {
  const auto* steps = static_cast<const float*>(inputs[0].data);
  auto* score = static_cast<float*>(outputs[0].data);
  auto* embedding = static_cast<float*>(outputs[1].data);
  for (int b = 0; b < 4; ++b) {
    float rows = 0;
    for (int i = 0; i < 3 * 43; ++i) rows += i % 43 < 21 ? steps[b * 129 + i] : 0;
    score[b] = embedding[2 * b] = rows, embedding[2 * b + 1] = 1;
  }
  return TW_OK;
}
const char* text(tw_status) { return "a status"; }
const char* last_error(const tw_context*) { return ""; }

tw_api api() {
  tw_api api{};
  api.version = TW_ABI_VERSION, api.size = sizeof api, api.name = "fake";
  api.input_count = 1, api.inputs = kInputs, api.output_count = 2, api.outputs = kOutputs;
  api.create = create, api.destroy = destroy, api.run = run, api.status_text = text;
  api.last_error = last_error;
  return api;
}
}  // namespace fake

std::unique_ptr<Predictor> fake_predictor() {
  return llvm::cantFail(Predictor::create(std::make_shared<const tw_api>(fake::api()),
                                          {{"kind", "fake"}}, "fake.so"));
}

PredictedTask predicted(const Kernel& kernel) {
  return predicted_task({std::make_shared<const Kernel>(kernel)}, baseline_target(Arch::x86_64), 1);
}

std::string refusal(tw_api api, const Predictor::Metadata& metadata = {{"kind", "fake"}}) {
  Expected<std::unique_ptr<Predictor>> made = Predictor::create(std::make_shared<const tw_api>(api),
                                                                metadata, "fake.so");
  REQUIRE(!made);
  return error_text(made.takeError());
}

}  // namespace

TEST_CASE("steps as rows: the primitive, numbers as they are, names by their first appearance") {
  const Candidate made = candidate_with(parsed_kernel(kSums),
                                        "  split j 8 -> jo jv\n  reorder i jo k jv\n"
                                        "  vectorize jv\n");
  const std::vector<FeatureRow> rows = step_rows(made.schedule);
  const std::vector<std::string> names = step_feature_names();
  REQUIRE(rows.size() == 3);
  const auto at = [&](size_t row, const std::string& name) {
    return rows[row][static_cast<size_t>(std::ranges::find(names, name) - names.begin())];
  };
  CHECK(at(0, "split") == 1);
  CHECK(at(0, "reorder") == 0);
  CHECK(at(0, "p0") == 1);  // j
  CHECK(at(0, "p1") == 8);
  CHECK(at(0, "p2") == 2);  // jo
  CHECK(at(0, "p3") == 3);  // jv
  CHECK(at(0, "p4") == 0);
  CHECK(at(1, "reorder") == 1);
  CHECK(at(1, "p0") == 4);  // i
  CHECK(at(1, "p1") == 2);
  CHECK(at(1, "p3") == 3);
  CHECK(at(2, "vectorize") == 1);
  CHECK(at(2, "p0") == 3);
}

TEST_CASE("the task's row is of its lowered kernel alone, One-Shot Tuner's has 748 numbers") {
  const Kernel kernel = parsed_kernel(kSums);
  const FeatureRow row = task_row(kernel);
  const std::vector<std::string> names = task_feature_names();
  REQUIRE(row.size() == names.size());
  const auto at = [&](const std::string& name) {
    return row[static_cast<size_t>(std::ranges::find(names, name) - names.begin())];
  };
  CHECK(at("mad") == doctest::Approx(std::log2(1 + 512)));
  CHECK(at("bytes.constant") == doctest::Approx(std::log2(1 + 256)));
  CHECK(at("main.spatial[0]") == doctest::Approx(std::log2(1 + 16)));
  CHECK(at("main.reduce[0]") == doctest::Approx(std::log2(1 + 4)));

  const Candidate made = candidate_with(kernel,
                                        "  split j 8 -> jo jv\n  reorder k jv\n  vectorize jv\n");
  const FeatureRow shot = one_shot_row(kernel, made.schedule, made.run->kernel);
  REQUIRE(shot.size() == 748);
  CHECK(one_shot_feature_names().size() == 748);
  CHECK(shot[739] == 8);  // the last knob: the factor of the split
  CHECK(std::vector<float>(shot.begin() + 740, shot.end()) ==
        std::vector<float>{0, 0, 8, 4, 0, 0, 4, 16});
  CHECK(std::ranges::count_if(shot, [](float v) { return std::isnan(v); }) == 0);
}

TEST_CASE("a predictor scores batches of any number, and refuses what it is not") {
  const Kernel kernel = parsed_kernel(kSums);
  const Candidate one = candidate_with(kernel, "  reorder k j\n"),
                  two = candidate_with(kernel, "  reorder k j\n  vectorize j\n");
  const PredictedTask task = predicted(kernel);
  {
    const auto predictor = fake_predictor();
    const std::vector<Candidate> candidates = {one, two, two, one, two};
    const std::vector<Prediction> all = llvm::cantFail(predictor->predict(task, candidates, 2));
    REQUIRE(all.size() == 5);
    CHECK(all[0].score == 1);
    CHECK(all[2].score == 2);
    CHECK(all[4].score == 2);
    CHECK(all[4].embedding == std::vector<float>{2, 1});
    CHECK(fake::contexts == 1);
  }
  CHECK(fake::contexts == 0);

  CHECK(refusal(fake::api(), {}).find("what kind") != std::string::npos);
  tw_api wrong = fake::api();
  const int64_t dims[] = {4, 3, 42};
  const tw_tensor_info inputs[] = {{"steps", TW_F32, 3, dims}};
  wrong.inputs = inputs;
  CHECK(refusal(wrong).find("'steps' is not [batch, rows, 43]") != std::string::npos);
  wrong = fake::api();
  wrong.output_count = 0;
  CHECK(refusal(wrong).find("scores nothing") != std::string::npos);
  const tw_tensor_info unknown[] = {{"pixels", TW_F32, 3, dims}};
  wrong = fake::api();
  wrong.inputs = unknown;
  CHECK(refusal(wrong).find("'pixels', which nobody knows") != std::string::npos);
}

TEST_CASE("a predictor knows which tasks are like those of its training") {
  const Kernel kernel = parsed_kernel(kSums);
  const PredictedTask task = predicted(kernel);
  const auto seen = [&](float least, float most) {
    std::string low, high;
    for (const float value : task_row(kernel)) {
      low += (low.empty() ? "" : ",") + std::to_string(value + least);
      high += (high.empty() ? "" : ",") + std::to_string(value + most);
    }
    return llvm::cantFail(
               Predictor::create(std::make_shared<const tw_api>(fake::api()),
                                 {{"kind", "fake"}, {"task_least", low}, {"task_most", high}},
                                 "fake.so"))
        ->has_seen(task);
  };
  CHECK(seen(0, 0));
  CHECK(seen(0.25f, 1));
  CHECK(!seen(0.75f, 1));
  CHECK(!seen(-1, -0.75f));
  CHECK(fake_predictor()->has_seen(task));
  CHECK(refusal(fake::api(), {{"kind", "fake"}, {"task_least", "1,2"}}).find("other numbers") !=
        std::string::npos);
}

TEST_CASE("the error of a gain is the less the more alike two candidates are") {
  const auto made = [](const std::string& variance) {
    return llvm::cantFail(Predictor::create(std::make_shared<const tw_api>(fake::api()),
                                            {{"kind", "fake"}, {"gain_variance", variance}},
                                            "fake.so"));
  };
  const Prediction a{1, 3, {1, 2}}, near{1.5, 4, {1, 2}}, far{2, 4, {4, 1}};
  CHECK(fake_predictor()->gain_variance(a, near) == 25);  // nothing says how alike errors are
  const auto knows = made("0.25,0.5,2,3");
  CHECK(knows->gain_variance(a, a) == 0.25);
  CHECK(knows->gain_variance(a, near) == 0.25 + 0.5 * 0.25);
  CHECK(knows->gain_variance(a, far) == 0.25 + 0.5 + 2 * 9 + 3);
  CHECK(refusal(fake::api(), {{"kind", "fake"}, {"gain_variance", "1,2"}}).find("embedding") !=
        std::string::npos);
}

TEST_CASE("a set is the mean of its members; heads add to their scores") {
  const Kernel kernel = parsed_kernel(kSums);
  const std::vector<Candidate> candidates = {
      candidate_with(kernel, "  reorder k j\n  vectorize j\n")};
  const PredictedTask task = predicted(kernel);
  std::vector<std::unique_ptr<Predictor>> members;
  members.push_back(fake_predictor());
  members.push_back(fake_predictor());
  const PredictorSet set(std::move(members), PredictorHeads{{{1, 0}, {0, 5}}, {1, 0.5}, 0.25});
  const std::vector<Prediction> all = llvm::cantFail(set.predict(task, candidates, 1));
  // The heads give 2 + 2 and 0.5 * 2 + 5; the set's score is their mean.
  CHECK(all[0].score == doctest::Approx(5));
  CHECK(all[0].spread == doctest::Approx(std::hypot(0.25, 1.0)));
  CHECK(llvm::cantFail(set.predict(task, candidates, 1, 1))[0].score == doctest::Approx(4));
  const std::vector<Candidate> two = {candidates[0], candidate_with(kernel, "  reorder k j\n")};
  const std::vector<PredictedGain> gains = llvm::cantFail(set.gains(task, two, 1));
  // A step less makes the first member's score 2 less and the second's a half.
  CHECK(gains[0].score == 0);
  CHECK(gains[1].score == doctest::Approx(-1.25));
  CHECK(gains[1].spread == doctest::Approx(std::hypot(std::hypot(0.25, 0.25), 0.75)));
}

TEST_CASE(
    "a regression within groups finds the slope that each group hides by a level of its own") {
  std::vector<HeadGroup> groups;
  std::mt19937_64 random(5);
  for (int g = 0; g < 6; ++g) {
    HeadGroup& group = groups.emplace_back();
    for (int r = 0; r < 12; ++r) {
      const double a = unit(random), b = unit(random);
      group.rows.push_back({a, b});
      group.values.push_back(3 * a - 2 * b + 100 * g);
    }
  }
  const std::vector<double> weights = fit_within_groups(groups, 1e-9);
  CHECK(weights[0] == doctest::Approx(3));
  CHECK(weights[1] == doctest::Approx(-2));
  CHECK(error_within_groups(groups, weights) < 1e-6);
  const std::vector<double> held = fit_within_groups(groups, 1e9, {1, 1});
  CHECK(held[0] == doctest::Approx(1).epsilon(0.01));
  CHECK(fit_within_groups({}, 1).empty());
}

TEST_CASE("heads of a chip are read as they were written; damaged ones are refused") {
  const TemporaryFolder folder = llvm::cantFail(TemporaryFolder::create());
  const std::string path = folder.path() + "/chip.heads.json";
  ChipHeads chip;
  chip.kind = "ranker", chip.target = "key", chip.members = {"a", "b"};
  chip.heads = {{{0.5, -1e-17}, {3, 4}}, {1, 0.25}, 0.125};
  llvm::cantFail(write_heads(chip, path));
  const ChipHeads back = llvm::cantFail(read_heads(path));
  CHECK(back.heads.weights == chip.heads.weights);
  CHECK(back.heads.own_shares == chip.heads.own_shares);
  CHECK(back.members == chip.members);
  std::ifstream in(path);
  std::string text((std::istreambuf_iterator<char>(in)), {});
  text.replace(text.find("0.25"), 4, "0.26");
  std::ofstream(path) << text;
  Expected<ChipHeads> damaged = read_heads(path);
  REQUIRE(!damaged);
  CHECK(error_text(damaged.takeError()).find("is damaged") != std::string::npos);
  CHECK(heads_beside("boards/chip.yaml") == "boards/chip.heads.json");
}

TEST_CASE("a draft learns what each knob is worth, and that some values are illegal") {
  const Space space = power_space(4, 5);
  std::vector<Point> points;
  std::vector<double> scores;
  std::mt19937_64 random(3);
  const auto worth = [](const Point& p) {
    return p.choice[0] == 4 ? -std::numeric_limits<double>::infinity()
                            : 2.0 * p.choice[0] - std::abs(p.choice[1] - 2);
  };
  for (int i = 0; i < 200; ++i) {
    points.push_back(space.sample(random));
    scores.push_back(worth(points.back()));
  }
  DraftModel draft(space);
  CHECK(draft.score(points[0]) == 0);
  draft.fit(points, scores);
  CHECK(draft.score({0, {3, 2, 0, 0}}) > draft.score({0, {2, 2, 0, 0}}));
  CHECK(draft.score({0, {3, 2, 0, 0}}) > draft.score({0, {3, 0, 0, 0}}));
  CHECK(draft.score({0, {2, 2, 1, 1}}) > draft.score({0, {4, 2, 1, 1}}));
}

TEST_CASE("draft and verify proposes the best of a large space without a measurement") {
  const Space space = power_space(6, 8, 2);
  int scored = 0;
  const ScorePoints score = [&](std::span<const Point> points) {
    std::vector<double> scores;
    for (const Point& p : points) scores.push_back(-tiled_cost(p));
    scored += static_cast<int>(points.size());
    return scores;
  };
  const DraftOptions options;
  const auto explorer = draft_explorer(space, 7, options, score);
  const std::vector<Point> best = explorer->propose(16);
  REQUIRE(best.size() == 16);
  CHECK(scored <= options.first + options.rounds * options.verified);
  std::mt19937_64 random(7);
  double sampled = kFailed;
  for (int i = 0; i < scored; ++i) sampled = std::min(sampled, tiled_cost(space.sample(random)));
  CHECK(tiled_cost(best[0]) < sampled);
  CHECK(std::ranges::is_sorted(best, {}, [](const Point& p) { return tiled_cost(p); }));
  // An equal seed gives equal points, and no point is proposed twice.
  CHECK(draft_explorer(space, 7, options, score)->propose(16) == best);
  for (const Point& next : explorer->propose(16))
    CHECK(std::ranges::find(best, next) == best.end());
}
