// If and Loop with their kernels on the fake driver: results, the recorded launches around them,
// and the rules of the API.
#include <doctest/doctest.h>

#include <fstream>
#include <iterator>

#include "driver/compile/dump.h"
#include "tests/cli/compiled.h"
#include "tests/cuda/fake.h"
#include "tests/ir/parsed.h"
#include "tests/passes/random_graph.h"
#include "tests/test_folder.h"

using namespace tw;

namespace {

using test::emulated, test::FakeCounts, test::FakeCuda;

// Products around a branch and within it. The device makes the condition.
const char* kChoice = R"(graph @g(batch) {
  %x: f32[batch, 16] = input
  %w: f32[16, 16] = input
  %limit: f32[] = input
  %a: f32[batch, 16] = matmul(%x, %w)
  %most: f32[] = reduce(%a) kind=max axes=[0, 1] keep=false
  %c: bool[] = binary(%limit, %most) function=lt
  %b: f32[batch, 16] = if(%c, %a, %w, %x) then_branch=graph @then(batch) {
      %p: f32[batch, 16] = input
      %by: f32[16, 16] = input
      %q: f32[batch, 16] = matmul(%p, %by)
      %r: f32[batch, 16] = softmax(%q) axis=1
      %s: f32[batch, 16] = matmul(%r, %by)
      output %s
    } else_branch=graph @else(batch) {
      %p: f32[batch, 16] = input
      output %p
    }
  %y: f32[batch, 16] = matmul(%b, %w)
  output %y
}
)";

// A convolution and a product in a loop that its condition ends, with a loop of fixed length inside
const char* kLoop = R"(graph @g(batch) {
  %x: f32[batch, 4, 6, 6] = input
  %k: f32[4, 4, 3, 3] = input
  %w: f32[36, 36] = input
  %limit: f32[] = input
  %yes: bool[] = const [1]
  %h: f32[batch, 4, 6, 6] = unary(%x) function=tanh
  %last: f32[batch, 4, 6, 6], %n: i64[] = loop(%yes, %h, %k, %w, %limit) trip=[9] carried=1 conditional=true body=graph @body(batch) {
      %v: f32[batch, 4, 6, 6] = input
      %kk: f32[4, 4, 3, 3] = input
      %ww: f32[36, 36] = input
      %most: f32[] = input
      %c: f32[batch, 4, 6, 6] = conv(%v, %kk) strides=[1,1] dilations=[1,1] pads=[1,1,1,1] group=1
      %t: f32[batch, 4, 6, 6] = unary(%c) function=tanh
      %f: f32[batch, 4, 36] = reshape(%t) shape=[batch,4,36]
      %d: f32[batch, 4, 36], %rows: f32[2, batch, 4] = loop(%f, %ww) trip=[2] carried=1 turn="turn.0" body=graph @inner(batch, turn.0) {
          %u: f32[batch, 4, 36] = input
          %m: f32[36, 36] = input
          %p: f32[batch, 4, 36] = matmul(%u, %m)
          %q: f32[batch, 4, 36] = unary(%p) function=tanh
          %r: f32[batch, 4] = reduce(%q) kind=sum axes=[2] keep=false
          output %q
          output %r
        }
      %s: f32[batch, 4] = reduce(%rows) kind=sum axes=[0] keep=false
      %sum: f32[] = reduce(%s) kind=sum axes=[0, 1] keep=false
      %go: bool[] = binary(%sum, %most) function=lt
      %e: f32[batch, 4, 6, 6] = reshape(%d) shape=[batch,4,6,6]
      output %go
      output %e
    }
  %z: f32[] = cast(%n) to=f32
  %y: f32[batch, 4, 6, 6] = binary(%last, %z) function=add
  output %y
}
)";

// A loop that only its length ends. It reads and writes rows.
const char* kScan = R"(graph @g(batch) {
  %h: f32[batch, 16] = input
  %x: f32[12, batch, 16] = input
  %w: f32[16, 16] = input
  %limit: f32[] = input
  %last: f32[batch, 16], %rows: f32[12, batch, 16] = loop(%h, %x, %w) trip=[12] carried=1 sliced=1 turn="turn.0" body=graph @body(batch, turn.0) {
      %v: f32[batch, 16] = input
      %row: f32[batch, 16] = input
      %by: f32[16, 16] = input
      %p: f32[batch, 16] = matmul(%v, %by)
      %s: f32[batch, 16] = binary(%p, %row) function=add
      %t: f32[batch, 16] = softmax(%s) axis=1
      %q: f32[batch, 16] = matmul(%t, %by)
      output %t
      output %q
    }
  %sum: f32[batch, 16] = binary(%last, %limit) function=add
  output %sum
  output %rows
}
)";

// A loop of many iterations. The processor decides after each one.
const char* kMany = R"(graph @g(batch) {
  %h: f32[batch, 4] = input
  %x: f32[600, batch, 4] = input
  %w: f32[4, 4] = input
  %limit: f32[] = input
  %yes: bool[] = const [1]
  %last: f32[batch, 4], %n: i64[] = loop(%yes, %h, %x, %w, %limit) trip=[600] carried=1 sliced=1 conditional=true turn="turn.0" body=graph @body(batch, turn.0) {
      %v: f32[batch, 4] = input
      %row: f32[batch, 4] = input
      %by: f32[4, 4] = input
      %most: f32[] = input
      %p: f32[batch, 4] = matmul(%v, %by)
      %s: f32[batch, 4] = binary(%p, %row) function=add
      %t: f32[batch, 4] = unary(%s) function=tanh
      %sum: f32[] = reduce(%t) kind=sum axes=[0, 1] keep=false
      %go: bool[] = binary(%sum, %most) function=lt
      output %go
      output %t
    }
  %z: f32[] = cast(%n) to=f32
  %y: f32[batch, 4] = binary(%last, %z) function=add
  output %y
}
)";

// A cache that grows by a row in each iteration, so its number of rows is the iteration's.
const char* kGrowing = R"(graph @g() {
  %h: f32[1, 16] = input
  %c: f32[1, 16] = input
  %w: f32[16, 16] = input
  %last: f32[1, 16], %all: f32[31, 16] = loop(%h, %c, %w) trip=[30] carried=2 turn="turn.0" body=graph @body(turn.0) {
      %v: f32[1, 16] = input
      %cache: f32[turn.0, 16] = input
      %by: f32[16, 16] = input
      %q: f32[1, 16] = matmul(%v, %by)
      %s: f32[1, turn.0] = matmul(%q, %cache) trans_b=true
      %p: f32[1, turn.0] = softmax(%s) axis=1
      %a: f32[1, 16] = matmul(%p, %cache)
      %n: f32[1, 16] = unary(%a) function=tanh
      %longer: f32[turn.0 + 1, 16] = concat(%cache, %n) axis=0
      output %n
      output %longer
    }
  output %last
  output %all
}
)";

// Inputs for `batch` rows. The last one is the limit.
std::vector<Tensor> inputs_for(const Graph& graph, int64_t batch, double limit, int seed) {
  std::vector<Tensor> inputs;
  for (const ValueId v : graph.inputs()) {
    std::vector<int64_t> shape;
    for (const Expr& e : graph.value(v).type.shape)
      shape.push_back(eval_int(e, [&](std::string_view) { return batch; }));
    Tensor t = Tensor::zeros(DType::f32, shape);
    for (int64_t i = 0; i < t.size(); ++i)
      t.set(i, static_cast<double>((i * 7 + seed * 13) % 29 - 14) / 32);
    inputs.push_back(std::move(t));
  }
  inputs.back().set(0, limit);
  return inputs;
}

struct Running {
  Graph graph;
  LoadedModel loaded;
  tw_context* context = nullptr;

  explicit Running(const char* text)
      : graph(test::parsed_graph(text)), loaded(test::compile_for(graph, emulated())) {
    tw_options options{};
    options.size = sizeof options;
    options.threads = 1;
    REQUIRE(loaded.api().create(&options, &context) == TW_OK);
  }
  Running(const Running&) = delete;
  ~Running() { loaded.api().destroy(context); }

  // fails: number of the driver's call that fails; 0: none. Returns true if that call was made.
  bool run(int64_t batch, double limit, int seed, int fails = 0) const {
    std::vector<Tensor> inputs = inputs_for(graph, batch, limit, seed);
    Expected<std::vector<Tensor>> want = evaluate(bind_symbols(graph, {{"batch", batch}}), inputs);
    REQUIRE(bool(want));
    std::vector<Tensor> got;
    for (const Tensor& t : *want) got.push_back(Tensor::zeros(t.dtype, t.shape));
    std::vector<tw_tensor> in, out;
    for (Tensor& t : inputs) in.push_back(test::describe(t));
    for (Tensor& t : got) out.push_back(test::describe(t));
    const FakeCuda& fake = FakeCuda::get();
    fake.fail_call(fails);
    const tw_status status = loaded.api().run(context, in.data(), out.data());
    if (fake.fail_call(0) == 0 && fails > 0) {
      CHECK(status == TW_E_DEVICE);
      const std::string said = loaded.api().last_error(context);
      CAPTURE(said);
      CHECK(said.starts_with("device "));
      CHECK(said.find(": error ") != std::string::npos);
      return true;
    }
    REQUIRE(status == TW_OK);
    for (size_t i = 0; i < want->size(); ++i)
      CHECK(test::relative_difference((*want)[i], got[i]) < 1e-4);
    return false;
  }
};

struct Placed {
  std::vector<std::string> host_reasons;
  std::string program;
};

Placed placed(const char* text) {
  const TestFolder folder;
  CompileOptions options;
  options.emit = Emit::scheduled;
  options.dump_dir = folder.path();
  CompileReport report = test::report_of(test::parsed_graph(text), emulated(), options);
  std::ifstream file(dump_path(folder.path(), DumpStage::program));
  return {std::move(report.host_reasons), {std::istreambuf_iterator<char>(file), {}}};
}

std::string region(const std::string& program, int number) {
  const auto begin = [&](int n) { return program.find("  region " + std::to_string(n) + " "); };
  REQUIRE(begin(number) != std::string::npos);
  const size_t end = std::min(begin(number + 1), program.find("\n}\n"));
  return program.substr(begin(number), end - begin(number));
}

size_t count(const std::string& text, const std::string& word) {
  size_t n = 0;
  for (size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + 1)) ++n;
  return n;
}

}  // namespace

TEST_CASE("branches run on the device, and what is around them is replayed") {
  FakeCuda& fake = FakeCuda::get();
  const FakeCounts before = fake.counts();
  {
    const Running model(kChoice);
    const FakeCounts start = fake.counts();
    // The first branch is recorded, and later runs replay, also with the other branch.
    for (const double limit : {-1e3, 1e3, -1e3, 1e3, 1e3}) model.run(3, limit, 1);
    const FakeCounts after = fake.counts();
    const int parts = after.instantiations - start.instantiations;
    CHECK(parts >= 2);  // before and behind the branch
    CHECK(after.replays - start.replays == 4 * parts);
    for (const int64_t batch : {5, 5, 2}) model.run(batch, -1e3, 2);
  }
  CHECK(fake.counts().same_objects(before));
  CHECK(fake.breaches() == "");
}

TEST_CASE("loops run on the device, as often as the data say") {
  FakeCuda& fake = FakeCuda::get();
  const FakeCounts before = fake.counts();
  {
    const Running model(kLoop);
    for (const double limit : {-1e3, 1e3, -0.5, 0.1, 1e3, -1e3}) model.run(2, limit, 1);
    for (const double limit : {1e3, -1e3}) model.run(3, limit, 2);
  }
  CHECK(fake.counts().same_objects(before));
  CHECK(fake.breaches() == "");
}

TEST_CASE("the launches of a loop's body are chains, replayed where they were launched before") {
  FakeCuda& fake = FakeCuda::get();
  const FakeCounts before = fake.counts();
  {
    const Running model(kLoop);
    model.run(3, -1e3, 5);  // the largest size first, so that the arena stays
    model.run(2, -1e3, 1);  // one iteration: all launches are new
    const FakeCounts start = fake.counts();
    model.run(2, 1e3, 1);  // nine iterations: carried values alternate between two memories
    const FakeCounts first = fake.counts();
    const int made = first.instantiations - start.instantiations;
    CHECK(made >= 2);
    model.run(2, 1e3, 2);
    const FakeCounts second = fake.counts();
    CHECK(second.replays - first.replays >= 9);
    model.run(2, 0.1, 3);  // another number of iterations, but no new launches
    model.run(2, 1e3, 4);
    const FakeCounts last = fake.counts();
    CHECK(last.instantiations - second.instantiations <= 1);
    CHECK(last.replays - second.replays >= 9);
    model.run(3, 1e3, 5);  // another size has chains of its own; the old ones stay
    const FakeCounts other = fake.counts();
    model.run(2, 1e3, 6);
    CHECK(fake.counts().instantiations == other.instantiations);
    model.run(4, 1e3, 7);  // another arena, which has no chains
    model.run(2, 1e3, 8);
  }
  CHECK(fake.counts().same_objects(before));
  CHECK(fake.breaches() == "");
}

TEST_CASE("a loop in which the processor asks for nothing is one chain") {
  FakeCuda& fake = FakeCuda::get();
  const FakeCounts before = fake.counts();
  {
    const Running model(kScan);
    model.run(2, 1, 1);
    model.run(2, 1, 2);
    const FakeCounts start = fake.counts();
    model.run(2, 1, 3);
    const FakeCounts again = fake.counts();
    CHECK(again.instantiations == start.instantiations);
    CHECK(again.replays - start.replays <= 3);  // one replay for 12 iterations
    CHECK(again.launches - start.launches >= 36);
  }
  CHECK(fake.counts().same_objects(before));
  CHECK(fake.breaches() == "");
}

TEST_CASE("chains of which there are too many") {
  FakeCuda& fake = FakeCuda::get();
  const FakeCounts before = fake.counts();
  {
    const Running model(kMany);
    const auto added = [&](int64_t batch) {
      const FakeCounts start = fake.counts();
      model.run(batch, 1e3, 1);
      const FakeCounts end = fake.counts();
      return std::pair(end.instantiations - start.instantiations, end.replays - start.replays);
    };
    constexpr int kMost = 512;  // limit of chains; the loop has 600 iterations
    model.run(2, 1e3, 1);
    CHECK(added(1).second < 10);             // another size finds no room
    const auto [made, replayed] = added(1);  // this run makes room for it
    CHECK(made < 10);
    CHECK(replayed < 10);
    CHECK(added(1).first >= kMost);
    const auto [more, again] = added(1);
    CHECK(more < 10);
    CHECK(again >= kMost);
    CHECK(again < kMost + 10);
  }
  CHECK(fake.counts().same_objects(before));
  CHECK(fake.breaches() == "");
}

TEST_CASE("a call of the driver that fails, whichever it is, fails its run and no other") {
  FakeCuda& fake = FakeCuda::get();
  const FakeCounts before = fake.counts();
  int failed = 0;
  for (const char* text : {kChoice, kLoop, kScan}) {
    const double limit = text == kLoop ? 0.1 : 1e3;
    for (const int runs : {0, 1, 2}) {  // runs before the failing one
      const Running model(text);
      for (int n = 0; n < runs; ++n) model.run(2, limit, 1);
      for (int call = 1; model.run(2, limit, 2, call); ++call) {
        ++failed;
        model.run(2, limit, 3);
      }
    }
  }
  CHECK(failed >= 40);
  CHECK(fake.counts().same_objects(before));
  CHECK(fake.breaches() == "");
}

TEST_CASE("what grows with the iteration stays on the device") {
  const Placed growing = placed(kGrowing);
  CHECK(growing.host_reasons.size() == 1);  // the loop itself
  CHECK(count(region(growing.program, 0), "call @") == 0);
  CHECK(count(region(growing.program, 0), "move ") == count(region(growing.program, 0), "move on"));
  FakeCuda& fake = FakeCuda::get();
  const FakeCounts before = fake.counts();
  {
    const Running model(kGrowing);
    for (const int seed : {1, 2, 3}) model.run(1, 1, seed);
  }
  CHECK(fake.counts().same_objects(before));
  CHECK(fake.breaches() == "");
}

TEST_CASE("of regions the processor keeps what decides, and carried values stay on the device") {
  const Placed loop = placed(kLoop);
  REQUIRE(loop.host_reasons.size() == 2);
  CHECK(loop.host_reasons[0].find("last (loop) on the processor: ") == 0);
  CHECK(loop.host_reasons[1].find("d (loop) in last (loop) on the processor: ") == 0);
  const std::string inner = region(loop.program, 0), outer = region(loop.program, 1);
  CHECK(count(inner, "call on 1") > 0);
  CHECK(count(inner, "move ") == 0);
  // Only the condition of the outer body moves.
  CHECK(count(outer, "move 1 to 0") == 1);
  CHECK(count(outer, "move 0 to 1") == 0);
  CHECK(count(outer, "call @") == 0);
  const Placed choice = placed(kChoice);
  CHECK(choice.host_reasons.size() == 1);
  CHECK(count(region(choice.program, 0), "call on 1") > 0);
  CHECK(count(region(choice.program, 1), "move on 1") == 1);
}

TEST_CASE("a profile of a model with regions") {
  FakeCuda& fake = FakeCuda::get();
  const FakeCounts before = fake.counts();
  {
    const Running model(kChoice);
    std::vector<Tensor> inputs = inputs_for(model.graph, 3, -1e3, 1);
    Tensor out = Tensor::zeros(DType::f32, {3, 16});
    std::vector<tw_tensor> in;
    for (Tensor& t : inputs) in.push_back(test::describe(t));
    const tw_tensor made = test::describe(out);
    std::vector<uint64_t> ns(64);
    REQUIRE(model.loaded.api().profile(model.context, in.data(), &made, ns.data()) == TW_OK);
    model.run(3, 1e3, 1);
  }
  CHECK(fake.counts().same_objects(before));
  CHECK(fake.breaches() == "");
}
