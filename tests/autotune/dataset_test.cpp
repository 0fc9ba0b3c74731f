// Data sets: layers drawn from a prior, tasks that are alike, the content of a file, and the folder
// that a set is exchanged as.
#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>

#include "autotune/dataset/dataset.h"
#include "autotune/dataset/prior.h"
#include "autotune/dataset/split.h"
#include "driver/dataset/exchange.h"
#include "driver/dataset/report.h"
#include "driver/dataset/tasks.h"
#include "frontend/frontend.h"
#include "passes/fuse_groups.h"
#include "passes/pass.h"
#include "tests/ir/graph_testing.h"
#include "tests/test_folder.h"

using namespace tw;

namespace {

using test::must;
void must(Error error) {
  if (error) FAIL(error_text(std::move(error)));
}

// The task that passes and fusion make of a layer alone
ParsedTask task_of(const Layer& layer, const Target& target) {
  Graph graph = must(graph_of(layer));
  PassContext context{target};
  must(run_passes(graph, context, default_pipeline()));
  const std::vector<Group> groups = fuse_groups(graph);
  const Group* group = group_of_layer(graph, groups);
  REQUIRE(group);
  return must(parse_task(must(print_task(graph, *group))));
}

const std::vector<Layer>& some_layers() {
  static const std::vector<Layer> layers = {
      {LayerKind::conv, {1, 56, 56, 64, 64, 3, 1, 1, 1}},
      {LayerKind::conv, {1, 56, 56, 64, 128, 3, 2, 1, 1}},
      {LayerKind::conv, {1, 28, 28, 128, 128, 3, 1, 1, 5}},
      {LayerKind::conv, {1, 14, 14, 256, 1024, 1, 1, 1, 6}},
      {LayerKind::conv, {4, 14, 14, 128, 128, 3, 1, 32, 1}},
      {LayerKind::depthwise, {1, 112, 112, 32, 3, 1, 2}},
      {LayerKind::depthwise, {1, 28, 28, 144, 5, 2, 3}},
      {LayerKind::matmul, {128, 768, 3072, 0, 4}},
      {LayerKind::matmul, {1, 512, 1000, 1, 0}},
      {LayerKind::batch_matmul, {12, 128, 64, 128, 1}},
      {LayerKind::pool, {1, 64, 112, 112, 3, 2, 0}},
      {LayerKind::softmax, {1536, 128}},
      {LayerKind::layer_norm, {128, 768}},
      {LayerKind::mean, {1, 512, 7, 7}},
      {LayerKind::add, {1, 256, 56, 56}},
  };
  return layers;
}

LearningTask sample_task(int number) {
  LearningTask t;
  t.key = "000000000000000" + std::string(1, static_cast<char>('a' + number));
  t.name = "conv", t.kind = "conv", t.network = "resnet", t.lowered_for = "x86-64-v3";
  t.text = "task", t.kernel = t.key, t.kernel_text = "kernel", t.flops = 1e6;
  return t;
}

std::vector<LearningProgram> sample_programs(const LearningTask& task, int count) {
  std::vector<LearningProgram> out;
  for (int i = 0; i < count; ++i) {
    const std::string text = "schedule " + std::to_string(i);
    out.push_back(
        {program_id(task, text), i ? ProgramSource::uniform : ProgramSource::standard, text});
  }
  return out;
}

Label label(int64_t program, double seconds, int pass = 0) {
  return {program, pass, Status::ok, seconds * 0.9, seconds, 7, false, "c0de", 1'700'000'000};
}

}  // namespace

TEST_CASE("a layer is found again in the task that it becomes") {
  const Target target = must(load_target("x86-64-v3", {TW_SOURCE_DIR "/configs"}));
  std::set<LayerKind> kinds;
  for (const Layer& layer : some_layers()) {
    CAPTURE(std::string(layer_kind_name(layer.kind)));
    kinds.insert(layer.kind);
    CHECK(layer.values.size() == attributes_of(layer.kind).size());
    const ParsedTask task = task_of(layer, target);
    CHECK(must(lower_task(task, target)).flops > 0);
    const std::optional<Layer> found = layer_of(task);
    REQUIRE(found);
    CHECK(found->kind == layer.kind);
    for (size_t i = 0; i < layer.values.size(); ++i) {
      CAPTURE(std::string(attributes_of(layer.kind)[i]));
      CHECK(found->values[i] == layer.values[i]);
    }
  }
  CHECK(kinds.size() == kLayerKindCount);
  for (const Layer& impossible : {Layer{LayerKind::conv, {1, 8, 8, 6, 8, 3, 1, 4, 0}},
                                  Layer{LayerKind::pool, {1, 8, 2, 2, 3, 1, 0}}}) {
    Expected<Graph> graph = graph_of(impossible);
    CHECK_FALSE(bool(graph));
    llvm::consumeError(graph.takeError());
  }
}

TEST_CASE(
    "the prior draws layers that no network has, most of them possible, by what goes together") {
  const Prior prior(some_layers());
  std::mt19937_64 random(3);
  const auto known = [&](const Layer& layer) {
    return std::ranges::count(some_layers(), layer) > 0;
  };
  std::map<LayerKind, int> kinds;
  std::set<std::vector<int64_t>> different;
  int fresh = 0, possible = 0, fresh_sizes = 0;
  constexpr int kDrawn = 2000;
  for (int i = 0; i < kDrawn; ++i) {
    const Layer layer = prior.sample(random);
    ++kinds[layer.kind];
    different.insert(layer.values);
    fresh += !known(layer);
    Expected<Graph> graph = graph_of(layer);
    if (graph) ++possible;
    else llvm::consumeError(graph.takeError());
    for (size_t a = 0; a < layer.values.size(); ++a) {
      CHECK(layer.values[a] >= 0);
      const bool seen = std::ranges::any_of(some_layers(), [&](const Layer& other) {
        return other.kind == layer.kind && other.values[a] == layer.values[a];
      });
      if (!is_size(layer.kind, a)) CHECK(seen);
      else fresh_sizes += !seen;
    }
  }
  CHECK(kinds.size() == kLayerKindCount);
  CHECK(different.size() > kDrawn / 4);
  CHECK(fresh > kDrawn / 4);
  CHECK(fresh_sizes > kDrawn / 20);
  CHECK(possible > kDrawn / 2);
  // Without back-off, samples come from the table alone, as in the published code.
  const Prior table(some_layers(), {0, 0});
  for (int i = 0; i < 200; ++i) CHECK(known(table.sample(random)));
  std::mt19937_64 one(5), other(5);
  for (int i = 0; i < 50; ++i) CHECK(prior.sample(one) == prior.sample(other));
}

TEST_CASE("near duplicates: one kind, and every extent within half a power of two") {
  const Target target = must(load_target("x86-64-v3", {TW_SOURCE_DIR "/configs"}));
  const auto shape = [&](const Layer& layer) { return shape_of(task_of(layer, target)); };
  const TaskShape a = shape({LayerKind::matmul, {128, 768, 3072, 0, 0}});
  CHECK(near_duplicates(a, a));
  CHECK(near_duplicates(a, shape({LayerKind::matmul, {100, 1024, 3072, 0, 0}})));
  CHECK_FALSE(near_duplicates(a, shape({LayerKind::matmul, {64, 768, 3072, 0, 0}})));
  CHECK_FALSE(near_duplicates(a, shape({LayerKind::softmax, {128, 768}})));
  CHECK_FALSE(near_duplicates(shape({LayerKind::conv, {4, 14, 14, 128, 128, 3, 1, 32, 1}}),
                              shape({LayerKind::conv, {4, 14, 14, 128, 128, 3, 1, 1, 1}})));
}

TEST_CASE("families are the letters that a file's name begins with") {
  CHECK(network_family("models/resnet50.onnx") == "resnet");
  CHECK(network_family("mobilenet_v2_b4.onnx") == "mobilenet");
  CHECK(network_family("7.onnx") == "7");
}

TEST_CASE("a set keeps tasks, programs and labels once") {
  const TestFolder folder;
  DataSet set = must(DataSet::open(folder / "set.db", sql::Mode::write));
  CHECK(must(set.add(sample_task(0))));
  CHECK_FALSE(must(set.add(sample_task(0))));
  CHECK(must(set.add(sample_task(1))));
  std::vector<LearningTask> tasks = must(set.tasks());
  REQUIRE(tasks.size() == 2);
  CHECK(tasks[0].text.empty());
  CHECK(must(set.task(tasks[0].id)).text == "task");
  CHECK(must(set.task(tasks[1].id)).kernel_text == "kernel");
  must(set.set_split(tasks[0].id, Split::test));
  must(set.set_complete(tasks[0].id));
  tasks = must(set.tasks());
  CHECK(tasks[0].split == Split::test);
  CHECK(tasks[0].complete);
  CHECK_FALSE(tasks[1].complete);

  const std::vector<LearningProgram> programs = sample_programs(tasks[0], 4);
  must(set.add_programs(tasks[0].id, programs));
  must(set.add_programs(tasks[0].id, programs));
  CHECK(must(set.programs(tasks[0].id)).size() == 4);
  CHECK(must(set.program(programs[2].id)).program.schedule == "schedule 2");
  CHECK(program_id(tasks[0], "b") != program_id(tasks[0], "c"));
  CHECK(programs[0].id > 0);

  const Platform platform{0, "x86-64-v3", "0123456789abcdef", "a machine", 1};
  const int64_t id = must(set.platform(platform));
  CHECK(must(set.platform(platform)) == id);
  Platform two = platform;
  two.threads = 2;
  CHECK(must(set.platform(two)) != id);
  must(set.add_labels(id, {label(programs[0].id, 2), label(programs[1].id, 1)}));
  must(set.add_labels(id, {label(programs[0].id, 5), label(programs[0].id, 2.5, 1)}));
  const std::vector<Label> first = must(set.labels(id, tasks[0].id, 0));
  REQUIRE(first.size() == 2);
  for (const Label& l : first) CHECK(l.median <= 2);
  CHECK(must(set.labels(id, tasks[0].id, 1)).size() == 1);
  CHECK(must(set.label_counts(id, 0)) == std::map<int64_t, int64_t>{{tasks[0].id, 2}});
}

TEST_CASE("a layer by another algorithm is another task, with programs of its own") {
  const TestFolder folder;
  const Target target = must(load_target("x86-64-v3", {TW_SOURCE_DIR "/configs"}));
  DataSet set = must(DataSet::open(folder / "set.db", sql::Mode::write));
  for (const Layer& layer : some_layers()) {
    const ParsedTask parsed = task_of(layer, target);
    const Task lowered = must(lower_task(parsed, target));
    LearningTask task;
    task.key = lowered.key, task.name = lowered.name, task.kind = layer_kind_name(layer.kind);
    task.network = "resnet", task.lowered_for = "x86-64-v3", task.split = Split::test;
    task.text = must(print_task(parsed.graph, parsed.group));
    task.kernel = lowered.key, task.kernel_text = print(lowered.variants.front().lowered.kernel);
    must(set.add(task).takeError());
  }
  const std::vector<Algorithm> wanted = {Algorithm::winograd_f2, Algorithm::winograd_f4};
  const std::vector<std::string> configs = {TW_SOURCE_DIR "/configs"};
  DataSet others = must(DataSet::open(folder / "others.db", sql::Mode::write));
  // The convolutions of 3x3 without groups: the first three layers
  CHECK(must(add_algorithms(others, set, wanted, configs)) == 6);
  CHECK(must(add_algorithms(others, set, wanted, configs)) == 0);
  CHECK(must(add_algorithms(set, set, wanted, configs)) == 6);
  const std::vector<LearningTask> tasks = must(set.tasks());
  REQUIRE(tasks.size() == some_layers().size() + 6);
  const LearningTask &direct = tasks.front(), &other = must(set.task(tasks.back().id));
  CHECK(tasks[some_layers().size()].key == direct.key);
  CHECK(other.algorithm == Algorithm::winograd_f4);
  CHECK(other.split == Split::test);
  CHECK(other.kind == "winograd");
  CHECK(other.name.ends_with(", winograd_f4"));
  CHECK(other.flops == must(lower_task(must(parse_task(other.text)), target)).flops);
  LearningTask same = direct;
  same.algorithm = Algorithm::winograd_f2;
  CHECK(program_id(same, "schedule") != program_id(direct, "schedule"));

  for (const LearningTask& task : {direct, other})
    must(set.add_programs(task.id, sample_programs(task, 3)));
  must(export_set(set, folder / "out").takeError());
  DataSet copy = must(DataSet::open(folder / "copy.db", sql::Mode::write));
  must(import_set(copy, folder / "out", {}).takeError());
  for (const LearningTask& task : must(copy.tasks())) {
    const bool has = task.key == direct.key
                         ? task.algorithm == Algorithm::direct
                         : task.key == other.key && task.algorithm == other.algorithm;
    CHECK(must(copy.programs(task.id)).size() == (has ? 3 : 0));
  }
  CHECK(
      error_text(
          lower_task(task_of(some_layers()[3], target), target, Algorithm::winograd_f2).takeError())
          .find("winograd_f2 does not apply to 'conv") != std::string::npos);
}

TEST_CASE("a task belongs to whoever claimed it, until the time is over") {
  const TestFolder folder;
  DataSet set = must(DataSet::open(folder / "set.db", sql::Mode::write));
  DataSet other = must(DataSet::open(folder / "set.db", sql::Mode::write));
  CHECK(must(set.claim(1, 1, "a", 100, 60)));
  CHECK(must(set.claim(1, 1, "a", 110, 60)));
  CHECK_FALSE(must(other.claim(1, 1, "b", 120, 60)));
  CHECK(must(other.claim(2, 1, "b", 120, 60)));
  CHECK(must(other.claim(1, 1, "b", 171, 60)));
  must(set.release(1, 1, "a"));  // a's claim has run out, so this releases nothing
  CHECK_FALSE(must(set.claim(1, 1, "a", 172, 60)));
  must(other.release(1, 1, "b"));
  CHECK(must(set.claim(1, 1, "a", 173, 60)));
}

TEST_CASE("a set that is exchanged as a folder comes back whole, and damage is seen") {
  const TestFolder folder;
  DataSet set = must(DataSet::open(folder / "set.db", sql::Mode::write));
  const Platform platform{0, "x86-64-v3", "0123456789abcdef", "a machine", 1};
  const int64_t id = must(set.platform(platform));
  for (int t = 0; t < 3; ++t) {
    must(set.add(sample_task(t)).takeError());
    const LearningTask task = must(set.tasks()).back();
    if (t != 1) must(set.set_complete(task.id));
    const std::vector<LearningProgram> programs = sample_programs(task, 5);
    must(set.add_programs(task.id, programs));
    for (size_t i = 0; i < programs.size(); ++i)
      must(set.add_labels(id, {label(programs[i].id, 1e-6 * static_cast<double>(i + 1)),
                               label(programs[i].id, 1.1e-6 * static_cast<double>(i + 1), 1)}));
  }
  const ExchangeCounts written = must(export_set(set, folder / "out"));
  CHECK(written.tasks == 3);
  CHECK(written.programs == 15);
  CHECK(written.labels == 30);
  DataSet copy = must(DataSet::open(folder / "copy.db", sql::Mode::write));
  const ExchangeCounts read = must(import_set(copy, folder / "out", {}));
  CHECK(read.labels == 30);
  must(import_set(copy, folder / "out", {}).takeError());
  must(export_set(copy, folder / "again").takeError());
  const auto bytes = [&](const std::string& file) {
    std::ifstream in(folder / file, std::ios::binary);
    return std::string(std::istreambuf_iterator<char>(in), {});
  };
  for (const auto& entry : std::filesystem::directory_iterator(folder / "out")) {
    const std::string name = entry.path().filename().string();
    CAPTURE(name);
    CHECK(bytes("again/" + name) == bytes("out/" + name));
  }
  const std::string labels = bytes("out/labels-1.jsonl.gz");
  std::ofstream(folder / "out/labels-1.jsonl.gz", std::ios::binary)
      << labels.substr(0, labels.size() - 1) + "x";
  DataSet third = must(DataSet::open(folder / "third.db", sql::Mode::write));
  CHECK(error_text(import_set(third, folder / "out", {}).takeError()).find("is damaged") !=
        std::string::npos);
  CHECK(must(third.tasks()).empty());
}

TEST_CASE("statistics: spread, noise, what the first labels choose, how alike platforms are") {
  const TestFolder folder;
  DataSet set = must(DataSet::open(folder / "set.db", sql::Mode::write));
  must(set.add(sample_task(0)).takeError());
  const LearningTask task = must(set.tasks()).front();
  const std::vector<LearningProgram> programs = sample_programs(task, 9);
  must(set.add_programs(task.id, programs));
  const int64_t a = must(set.platform({0, "x86-64-v3", "0123456789abcdef", "a machine", 1})),
                b = must(set.platform({0, "x86-64-v2", "0123456789abcdee", "a machine", 1}));
  for (size_t i = 0; i < programs.size(); ++i) {
    const auto n = static_cast<double>(i);
    must(set.add_labels(
        a, {label(programs[i].id, 9 - n), label(programs[i].id, i == 8 ? 2 : 9 - n, 1)}));
    must(set.add_labels(b, {label(programs[i].id, n + 1)}));
  }
  Label failed = label(programs[0].id, 0, 2);
  failed.status = Status::crashed;
  const SetStat stat = must(statistics(set));
  REQUIRE(stat.platforms.size() == 2);
  const FamilyStat& all = stat.platforms[0].all;
  CHECK(all.programs == 9);
  CHECK(all.spread == doctest::Approx(5));
  CHECK(all.standard == doctest::Approx(9));
  CHECK(all.noise == doctest::Approx(0));
  CHECK(all.top1 == doctest::Approx(1));  // 2 / 2: the first choice is among the best
  REQUIRE(stat.likeness.size() == 1);
  CHECK(stat.likeness[0].correlation == doctest::Approx(-1));
  CHECK_FALSE(stat.likeness[0].trivial());
  CHECK(rank_correlation({1, 2, 3}, {2, 4, 5}) == doctest::Approx(1));
  CHECK(rank_correlation({1, 2, 2, 3}, {1, 3, 3, 2}) == doctest::Approx(0.3333).epsilon(0.01));
}
