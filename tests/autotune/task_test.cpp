// Tasks: their keys, and the algorithms that can compute them.
#include <doctest/doctest.h>

#include <algorithm>
#include <set>

#include "autotune/task.h"
#include "autotune/task_text.h"
#include "frontend/frontend.h"
#include "passes/choose/choose_algorithms.h"
#include "passes/fuse_groups.h"
#include "passes/pass.h"

using namespace tw;

namespace {

template <class T>
T must(Expected<T> value) {
  if (!value) FAIL(error_text(value.takeError()));
  return std::move(*value);
}

// A convolution with a bias and relu, and a matrix product of its pooled result
std::string network(const std::string& prefix, const std::string& symbol,
                    const std::string& more = "") {
  auto v = [&](const std::string& name) { return "%" + prefix + name; };
  const std::string n = symbol;
  return "graph @" + prefix + "g(" + n + ") {\n" + v("x") + ": f32[" + n + ", 2, 8, 8] = input\n" +
         v("w") + ": f32[2, 2, 1, 1] = const [1.5, 2.0, 3.0, 4.0]\n" + v("zero") +
         ": f32[] = const [" + (more == "six" ? "6.0" : "0.0") + "]\n" + v("c") + ": f32[" + n +
         ", 2, 8, 8] = conv(" + v("x") + ", " + v("w") +
         ") strides=[1,1] dilations=[1,1] pads=[0,0,0,0] node=\"" + prefix + "conv\"\n" + v("y") +
         ": f32[" + n + ", 2, 8, 8] = binary(" + v("c") + ", " + v("zero") +
         ") function=max node=\"" + prefix + "relu\"\n" + "output " + v("y") + "\n}\n";
}

struct Made {
  Graph graph;
  std::vector<Group> groups;
};
Made made_of(const std::string& text) {
  Made m{must(parse_graph(text)), {}};
  m.groups = fuse_groups(m.graph);
  return m;
}
std::string key_of(const Made& m) {
  REQUIRE(m.groups.size() == 1);
  return task_key(m.graph, m.groups[0]);
}

}  // namespace

TEST_CASE("a task's key does not depend on names, layouts or the algorithm") {
  Made m = made_of(network("", "batch"));
  const std::string key = key_of(m);
  CHECK(key.size() == 16);
  CHECK(key_of(made_of(network("other_", "batch"))) == key);
  CHECK(key_of(made_of(network("a", "n"))) == key);
  for (size_t i = 0; i < m.graph.value_count(); ++i) {
    TensorType& type = m.graph.value(ValueId{static_cast<int32_t>(i)}).type;
    if (type.shape.size() == 4 && !m.graph.is_constant(ValueId{static_cast<int32_t>(i)}))
      type.layout = {1, 2};
  }
  m.groups[0].algorithm = Algorithm::strassen;
  CHECK(key_of(m) == key);
}

TEST_CASE("it does depend on shapes, attributes and constants of one element") {
  const std::string key = key_of(made_of(network("", "batch")));
  CHECK(key_of(made_of(network("", "batch", "six"))) != key);
  std::string text = network("", "batch");
  for (size_t at; (at = text.find("8, 8]")) != std::string::npos;) text.replace(at, 5, "9, 9]");
  CHECK(key_of(made_of(text)) != key);
  text = network("", "batch");
  text.replace(text.find("function=max"), 12, "function=min");
  CHECK(key_of(made_of(text)) != key);
}

TEST_CASE("symbols count by their position, not by their names' order") {
  auto product = [](const std::string& first, const std::string& second) {
    return "graph @g(" + first + ", " + second + ") {\n%a: f32[" + first +
           ", 4] = input\n%b: f32[" + second + ", 4] = input\n" + "%c: f32[" + first + ", " +
           second + "] = matmul(%a, %b) trans_b=true\noutput %c\n}\n";
  };
  CHECK(key_of(made_of(product("a", "b"))) == key_of(made_of(product("b", "a"))));
  CHECK(key_of(made_of(product("rows", "columns"))) == key_of(made_of(product("a", "b"))));
}

TEST_CASE("a task's text stands alone: the same key, the same kernels") {
  const Target target = must(load_target("x86-64-v3", {TW_SOURCE_DIR "/configs"}));
  int tasks = 0;
  for (const std::string name : {"digits/digits", "digits/digits_int8"}) {
    Model model = must(import_onnx(TW_SOURCE_DIR "/examples/" + name + ".onnx"));
    PassContext context{target};
    if (Error error = run_passes(model.graph, context, default_pipeline()))
      FAIL(error_text(std::move(error)));
    for (const Group& group : fuse_groups(model.graph)) {
      if (is_extern(model.graph, group)) continue;
      const std::string text = must(print_task(model.graph, group));
      CAPTURE(text);
      const ParsedTask parsed = must(parse_task(text, "task"));
      CHECK(parsed.key() == task_key(model.graph, group));
      CHECK(must(print_task(parsed.graph, parsed.group)).substr(text.find('\n')) ==
            text.substr(text.find('\n')));
      const Task task = must(lower_task(parsed, target));
      CHECK(definition_hash(task.variants.front().lowered) ==
            definition_hash(must(lower_group(model.graph, group, target))));
      ++tasks;
    }
  }
  CHECK(tasks > 8);
}

TEST_CASE("constants that kernels depend on are in a task's text") {
  Graph g;
  const ValueId x = g.add_input("x", {DType::f32, {Expr(4), Expr(40)}, {}});
  Tensor mask = Tensor::zeros(DType::f32, {4, 40}), table = Tensor::zeros(DType::f32, {4, 40});
  for (int64_t i = 0; i < mask.size(); ++i) mask.set(i, i % 3 ? 0 : -1e9), table.set(i, 0.5 * i);
  const ValueId masked = must(g.add(op::Binary{BinaryOp::add}, {x, g.add_constant("m", mask)}));
  g.add_output(must(g.add(op::Binary{BinaryOp::mul}, {masked, g.add_constant("t", table)})), "y");
  const std::string text = must(print_task(g, fuse_groups(g).front()));
  const ParsedTask parsed = must(parse_task(text));
  std::vector<Tensor> constants;
  for (size_t i = 0; i < parsed.graph.value_count(); ++i)
    if (const ValueId id{static_cast<int32_t>(i)}; parsed.graph.is_constant(id))
      constants.push_back(parsed.graph.constant_tensor(id));
  REQUIRE(constants.size() == 2);
  CHECK(constants[0].bytes == mask.bytes);
  CHECK(constants[1].bytes != table.bytes);
  const auto error_of = [&](const std::string& from, const std::string& to) {
    std::string changed = text;
    changed.replace(changed.find(from), from.size(), to);
    return error_text(parse_task(changed, "task").takeError());
  };
  CHECK(error_of("anchor=", "anchor=9").find("anchor") != std::string::npos);
  CHECK(error_of("bytes \"", "bytes \"0").find("not known") != std::string::npos);
  CHECK(error_of("\" \"eJ", "\" \"*J").find("base 64") != std::string::npos);
  CHECK(error_of("task ", "tusk ").find("expected 'task'") != std::string::npos);
}

TEST_CASE("a task's text that puts a product within another operator's kernel is refused") {
  const std::string text =
      "task anchor=1 weights_between=0\ngraph @task() {\n  %x: f32[4, 8] = input\n"
      "  %w: f32[8, 4] = input\n  %p: f32[4, 4] = matmul(%x, %w)\n"
      "  %y: f32[4, 4] = unary(%p) function=neg\n  output %y\n}\n";
  const Target target = must(load_target("x86-64-v3", {TW_SOURCE_DIR "/configs"}));
  const std::string problem = error_text(lower_task(must(parse_task(text)), target).takeError());
  CHECK(problem.find("matmul is not computed element by element") != std::string::npos);
}

TEST_CASE("tasks of a network: each once, with every algorithm that applies") {
  Model model = must(import_onnx(TW_SOURCE_DIR "/examples/digits/digits.onnx"));
  const Target target = must(load_target("x86-64-v3", {TW_SOURCE_DIR "/configs"}));
  PassContext context{target};
  if (Error error = run_passes(model.graph, context, default_pipeline()))
    FAIL(error_text(std::move(error)));
  std::vector<Group> groups = fuse_groups(model.graph);
  choose_algorithms(model.graph, groups, target, {});
  fuse_pools(model.graph, groups);
  const std::vector<Task> tasks = must(tasks_of(model.graph, groups, target));
  REQUIRE(!tasks.empty());
  std::set<std::string> keys, groups_keys;
  int64_t calls = 0;
  for (const Task& task : tasks) {
    CAPTURE(task.name);
    CHECK(keys.insert(task.key).second);
    CHECK(task.flops >= 0);
    calls += task.calls;
    REQUIRE(!task.variants.empty());
    std::set<std::string> kernels;
    for (const Variant& variant : task.variants)
      CHECK(kernels.insert(definition_hash(variant.lowered)).second);
  }
  CHECK(calls <= static_cast<int64_t>(groups.size()));
  bool winograd = false;
  for (const Group& group : groups) {
    const std::string key = task_key(model.graph, group);
    groups_keys.insert(key);
    const auto task = std::ranges::find(tasks, key, &Task::key);
    if (task == tasks.end()) continue;  // no kernel of its own
    CHECK(task->variants[0].algorithm == group.algorithm);
    CHECK(definition_hash(task->variants[0].lowered) ==
          definition_hash(must(lower_group(model.graph, group, target))));
    const std::vector<Algorithm> all = applicable_algorithms(model.graph, group, target);
    CHECK(task->variants.size() >= all.size());
    winograd |= std::ranges::count(all, Algorithm::winograd_f2) > 0;
  }
  CHECK(winograd);
  for (const std::string& key : keys) CHECK(groups_keys.contains(key));
}

TEST_CASE("a task of a small network is another one than that of a large one") {
  const auto task_of = [](int64_t mib) {  // the network holds `mib` MiB more
    Graph graph;
    const ValueId x = graph.add_input("x", {DType::f32, {Expr(1), Expr(64)}, {}}),
                  z = graph.add_input("z", {DType::f32, {Expr(mib), Expr(1 << 18)}, {}});
    const ValueId w = graph.add_constant("w", Tensor::zeros(DType::f32, {64, 64})),
                  c = graph.add_constant("c", Tensor::zeros(DType::f32, {mib, 1 << 18}));
    graph.add_output(must(graph.add(op::MatMul{}, {x, w})), "y");
    graph.add_output(must(graph.add(op::Binary{BinaryOp::add}, {z, c})), "s");
    const std::vector<Group> groups = fuse_groups(graph);
    const auto product = std::ranges::find_if(groups, [&](const Group& g) {
      return std::holds_alternative<op::MatMul>(graph.node(g.anchor).attrs);
    });
    REQUIRE(product != groups.end());
    return std::pair(weights_between(graph, *product), task_key(graph, *product));
  };
  CHECK(task_of(1).first == 2 << 20);
  CHECK(task_of(5).first == 8 << 20);
  CHECK(task_of(5) == task_of(6));
  CHECK(task_of(5).second != task_of(1).second);
  CHECK(task_of(40).first == 0);
  CHECK(task_of(40) == task_of(70));
}

TEST_CASE("a target's key is its instruction set and memory, not its name or budgets") {
  const Target target = must(load_target("x86-64-v3", {TW_SOURCE_DIR "/configs"}));
  Target other = target;
  other.name = "mine";
  other.accuracy = 0.1;
  other.cores = 64;
  CHECK(target_key(other) == target_key(target));
  other.l2_bytes *= 2;
  CHECK(target_key(other) != target_key(target));
  const Target accelerated = must(load_target("vdla-16x16", {TW_SOURCE_DIR "/configs"}));
  REQUIRE(!accelerated.devices.empty());
  Target device = accelerated.devices[0];
  CHECK(target_key(device) != target_key(accelerated));
  device.name = "mine";
  CHECK(target_key(device) == target_key(accelerated.devices[0]));
  device.local_bytes += 1024;
  CHECK(target_key(device) != target_key(accelerated.devices[0]));
}
