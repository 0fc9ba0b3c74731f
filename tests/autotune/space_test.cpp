// Spaces: counting, sampling and walking. Each legal point of both kinds of spaces computes what
// its kernel does.
#include <doctest/doctest.h>

#include <algorithm>
#include <set>

#include "autotune/space.h"
#include "ir/kernel/sharing.h"
#include "kernels/arranged.h"
#include "kernels/default_schedule.h"
#include "tests/autotune/kernels.h"
#include "tests/backends/harness.h"
#include "tests/ir/parsed.h"

using namespace tw;
using namespace tw::test;

namespace {

const GraphCase kCases[] = {
    {"conv 3x3", "%x: f32[1, 16, 6, 7] = input\n%w: f32[16, 16, 3, 3] = input",
     "%y: f32[1, 16, 6, 7] = conv(%x, %w) strides=[1,1] dilations=[1,1] pads=[1,1,1,1]"},
    {"conv 3x3 chain", "%x: f32[1, 16, 5, 6] = input\n%w: f32[16, 16, 3, 3] = input",
     "%a: f32[1, 16, 5, 6] = conv(%x, %w) strides=[1,1] dilations=[1,1] pads=[1,1,1,1]\n%b: f32[1, "
     "16, 5, 6] = unary(%a) function=tanh\n%y: f32[1, 16, 5, 6] = conv(%b, %w) strides=[1,1] "
     "dilations=[1,1] pads=[1,1,1,1]"},
    {"conv 1x1, residual",
     "%x: f32[1, 32, 6, 7] = input\n%w: f32[48, 32, 1, 1] = input\n%r: f32[1, 48, 6, 7] = input",
     "%a: f32[1, 48, 6, 7] = conv(%x, %w) strides=[1,1] dilations=[1,1] pads=[0,0,0,0]\n%y: f32[1, "
     "48, 6, 7] = binary(%a, %r) function=add"},
    {"conv stride 2", "%x: f32[1, 3, 11, 11] = input\n%w: f32[32, 3, 3, 3] = input",
     "%y: f32[1, 32, 6, 6] = conv(%x, %w) strides=[2,2] dilations=[1,1] pads=[1,1,1,1]"},
    {"depthwise", "%x: f32[1, 32, 9, 10] = input\n%w: f32[32, 1, 3, 3] = input",
     "%y: f32[1, 32, 9, 10] = conv(%x, %w) strides=[1,1] dilations=[1,1] pads=[1,1,1,1] group=32"},
    {"matmul", "%x: f32[12, 40] = input\n%w: f32[40, 48] = input\n%r: f32[12, 48] = input",
     "%a: f32[12, 48] = matmul(%x, %w)\n%y: f32[12, 48] = binary(%a, %r) function=add"},
    {"matmul, one row", "%x: f32[1, 64] = input\n%w: f32[64, 40] = input",
     "%y: f32[1, 40] = matmul(%x, %w)"},
    {"matmul, even", "%x: f32[16, 32] = input\n%w: f32[32, 64] = input",
     "%y: f32[16, 64] = matmul(%x, %w)"},
    {"batched matmul", "%x: f32[3, 6, 20] = input\n%z: f32[3, 20, 17] = input",
     "%y: f32[3, 6, 17] = matmul(%x, %z)"},
    {"matmul, free batch", "%x: f32[batch, 20] = input\n%w: f32[20, 35] = input",
     "%y: f32[batch, 35] = matmul(%x, %w)", 5},
    {"softmax", "%x: f32[5, 48] = input", "%y: f32[5, 48] = softmax(%x) axis=1"},
    {"layer norm", "%x: f32[6, 64] = input\n%s: f32[64] = input\n%b: f32[64] = input",
     "%y: f32[6, 64] = layer_norm(%x, %s, %b) axis=1"},
    {"sum of the first axis", "%x: f32[16, 24] = input",
     "%y: f32[1, 24] = reduce(%x) kind=sum axes=[0]"},
    {"mean of planes", "%x: f32[1, 16, 5, 5] = input",
     "%y: f32[1, 16, 1, 1] = reduce(%x) kind=mean axes=[2,3]"},
    {"max pool", "%x: f32[1, 16, 11, 11] = input",
     "%y: f32[1, 16, 6, 6] = pool(%x) kind=max kernel=[3,3] strides=[2,2] dilations=[1,1] "
     "pads=[1,1,1,1]"},
    {"conv, max pool", "%x: f32[1, 3, 8, 12] = input\n%w: f32[16, 3, 3, 3] = input",
     "%a: f32[1, 16, 8, 12] = conv(%x, %w) strides=[1,1] dilations=[1,1] pads=[1,1,1,1]\n%y: "
     "f32[1, 16, 4, 6] = pool(%a) kind=max kernel=[2,2] strides=[2,2] dilations=[1,1] "
     "pads=[0,0,0,0]"},
    {"attention",
     "%q: f32[1, 2, 12, 16] = input\n%k: f32[1, 2, 20, 16] = input\n%v: f32[1, 2, 20, 16] = input",
     "%a: f32[1, 2, 12, 20] = matmul(%q, %k) trans_b=true\n%p: f32[1, 2, 12, 20] = softmax(%a) "
     "axis=3\n%y: f32[1, 2, 12, 16] = matmul(%p, %v)"},
    {"lstm", "%x: f32[3, 2, 96] = input\n%w: f32[1, 96, 24] = input",
     "%y: f32[3, 2, 24] = recurrent(%x, %w) kind=lstm f=sigmoid g=tanh h=tanh"},
    {"gru", "%x: f32[3, 1, 48] = input\n%w: f32[1, 48, 16] = input",
     "%y: f32[3, 1, 16] = recurrent(%x, %w) kind=gru f=sigmoid g=tanh"},
    {"elementwise", "%x: f32[7, 5, 19] = input\n%z: f32[5, 1] = input",
     "%a: f32[7, 5, 19] = binary(%x, %z) function=mul\n%y: f32[7, 5, 19] = unary(%a) "
     "function=sigmoid"},
    {"transpose", "%x: f32[2, 9, 37] = input", "%y: f32[2, 37, 9] = transpose(%x) perm=[0,2,1]"},
};

constexpr int kWidths[] = {128, 256, 512};

Sketch small_sketch(const char* name, std::vector<int> counts) {
  Sketch sketch;
  sketch.name = name;
  for (size_t i = 0; i < counts.size(); ++i) {
    sketch.knobs.push_back({"k" + std::to_string(i), {}});
    for (int v = 0; v < counts[i]; ++v) sketch.knobs.back().values.push_back({v + 1, 2 * v});
  }
  sketch.fill = [](const std::vector<int>& choice) -> Expected<Schedule> {
    if (choice[0] == 1)
      return make_error(DiagCode::illegal_schedule, "the second value is illegal");
    return Schedule{};
  };
  return sketch;
}

Space small_space() {
  return Space({small_sketch("a", {3, 2}), small_sketch("b", {5}), small_sketch("c", {2, 1, 4})});
}

struct Tally {
  int legal = 0, sampled = 0;
  std::set<std::string> texts;
};

// Samples points. The legal ones must compute what the kernel does.
void check_points(const GraphCase& c, const Task& task, const Space& space, const Target& target,
                  int samples, bool compiled, Tally& tally) {
  std::vector<std::vector<KernelArgument>> inputs, outputs;
  for (const Variant& variant : task.variants) {
    const Kernel& lowered = variant.lowered.kernel;
    const Kernel defined = require_value(
        apply(lowered, require_value(laid_out(variant.lowered, target))));
    inputs.push_back(random_arguments(defined, c.symbol, 11));
    outputs.push_back(inputs.back());
    REQUIRE(error_text(interpret(defined, outputs.back(), symbols_of(defined, c.symbol))) == "");
  }
  std::mt19937_64 random(5);
  for (int i = 0; i < samples; ++i) {
    const Point point = space.sample(random);
    ++tally.sampled;
    Expected<Schedule> schedule = space.schedule(point);
    if (!schedule) {
      for (const Diag& d : take_diags(schedule.takeError()))
        CHECK_MESSAGE(d.code == DiagCode::illegal_schedule, d.message);
      continue;
    }
    CAPTURE(space.print(point));
    const auto v = static_cast<size_t>(space.sketches()[static_cast<size_t>(point.sketch)].variant);
    const Kernel& kernel = task.variants[v].lowered.kernel;
    Expected<Kernel> scheduled = apply(kernel, *schedule, &target);
    // The schedule of a point is legal as a whole.
    REQUIRE_MESSAGE(bool(scheduled), error_text(scheduled.takeError()) << print(*schedule));
    REQUIRE(error_text(verify(*scheduled)) == "");
    ++tally.legal;
    if (!tally.texts.insert(space.print(point).substr(0, 3) + print(*schedule)).second) continue;
    std::vector<KernelArgument> got = inputs[v];
    if (!compiled) {
      REQUIRE_MESSAGE(error_text(interpret(*scheduled, got, symbols_of(kernel, c.symbol))) == "",
                      print(*schedule));
    } else {
      const RunKernel run = take_out_constant_stages(*scheduled);
      Expected<LoadedKernel> loaded = LoadedKernel::compile(target, run.kernel);
      REQUIRE_MESSAGE(bool(loaded), error_text(loaded.takeError()));
      std::vector<std::vector<std::byte>> packed;  // contents that stay until the call
      std::vector<void*> buffers;
      for (const ParameterSource& source : run.sources) {
        KernelArgument& given = got[source.parameter];
        buffers.push_back(given.bytes.data());
        if (!source.pack) continue;
        const auto kept = std::make_shared<const std::vector<std::byte>>(given.bytes);
        Expected<std::vector<std::byte>> made = contents({{kept, *kept}, source.pack});
        REQUIRE_MESSAGE(bool(made), error_text(made.takeError()));
        packed.push_back(std::move(*made));
        buffers.back() = packed.back().data();
      }
      std::vector<int64_t> symbols(kernel.symbols.size(), c.symbol);
      const auto bytes = static_cast<size_t>(eval_int(
          workspace_layout(run.kernel).bytes, [&](std::string_view) { return int64_t{c.symbol}; }));
      std::unique_ptr<void, decltype(&std::free)> workspace(
          std::aligned_alloc(64, (bytes + 127) / 64 * 64), &std::free);
      (*loaded)(buffers, workspace.get(), symbols.data());
    }
    const std::string off = difference(kernel, outputs[v], got);
    REQUIRE_MESSAGE(off == "", off << "\n" << print(*schedule));
  }
}

Space must_space(SketchSource sketches, const Task& task, const Target& target, bool rules) {
  Expected<Space> space = search_space(task, target, {rules, sketches});
  if (!space) FAIL(error_text(space.takeError()));
  return std::move(*space);
}

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define TW_SLOW_BUILD 1
#endif
#endif
#ifdef TW_SLOW_BUILD
constexpr bool kAllWidths = false;  // each case has one width; other builds run all widths
#else
constexpr bool kAllWidths = true;
#endif

void check_space(SketchSource sketches, const char* kind, bool rules, int samples,
                 double least_legal) {
  const std::string title = std::string(kind) + (rules ? ", rules on" : ", rules off");
  Tally all;
  for (const GraphCase& c : kCases) {
    CAPTURE(std::string(c.name));
    Tally tally;
    for (const int bits : kWidths) {
      if (rules ? !kAllWidths &&
                      bits !=
                          kWidths[static_cast<size_t>(&c - std::begin(kCases)) % std::size(kWidths)]
                : bits != kWidths[1])
        continue;
      const Target target = vector_target(bits);
      CAPTURE(bits);
      for (const Task& task : tasks_of_case(c, target))
        check_points(c, task, must_space(sketches, task, target, rules), target, samples, false,
                     tally);
    }
    MESSAGE(title, ", ", std::string(c.name), ": ", tally.legal, " of ", tally.sampled, " legal, ",
            tally.texts.size(), " different");
    CHECK(tally.legal > 0);
    all.legal += tally.legal;
    all.sampled += tally.sampled;
  }
  MESSAGE(title, ": ", 100.0 * all.legal / all.sampled, " % legal");
  CHECK(all.legal > least_legal * all.sampled);
}

}  // namespace

TEST_CASE("spaces: counting equals enumeration") {
  const Space space = small_space();
  CHECK(space.size() == 19);
  std::set<Point> seen;
  for (double i = 0; i < space.size(); ++i) seen.insert(space.at(i));
  CHECK(seen.size() == 19);
  CHECK(space.at(0) == Point{0, {0, 0}});
  CHECK(space.at(1) == Point{0, {0, 1}});
  CHECK(space.at(6) == Point{1, {0}});
  CHECK(space.at(18) == Point{2, {1, 0, 3}});
}

TEST_CASE("spaces: every point may be drawn, more often near the usual one") {
  const Space space = small_space();
  std::mt19937_64 random(3);
  std::map<Point, int> counts;
  constexpr int kSamples = 19000;
  for (int i = 0; i < kSamples; ++i) ++counts[space.sample(random)];
  CHECK(counts.size() == 19);
  // Sketch "a" is drawn with a chance of a third, and a knob of n values has its first one with
  // the mean over u = 0, 8/16, 13/16 of u + (1 - u) / n.
  const auto first = [](double u, double n) { return u + (1 - u) / n; };
  double chance = 0;
  for (const double u : {0.0, 0.5, 13.0 / 16}) chance += first(u, 3) * first(u, 2) / 9;
  CHECK(counts[Point{0, {0, 0}}] == doctest::Approx(chance * kSamples).epsilon(0.05));
}

TEST_CASE("spaces: sketches are drawn by their shares, whatever their sizes") {
  std::vector<Sketch> sketches = {small_sketch("a", {30, 20}), small_sketch("b", {5})};
  sketches[1].share = 3;
  const Space space(std::move(sketches));
  std::mt19937_64 random(3);
  int small = 0;
  for (int i = 0; i < 10000; ++i) small += space.sample(random).sketch == 1;
  CHECK(small > 7300);
  CHECK(small < 7700);
}

TEST_CASE("spaces: mutation and crossing stay inside") {
  const Space space = small_space();
  std::mt19937_64 random(4);
  std::set<Point> all;
  for (double i = 0; i < space.size(); ++i) all.insert(space.at(i));
  std::set<Point> reached;
  Point at = space.at(0);
  int other_sketch = 0;
  for (int i = 0; i < 4000; ++i) {
    const Point next = space.mutate(at, random);
    REQUIRE(all.contains(next));
    REQUIRE(next != at);
    int changed = 0;
    for (size_t k = 0; next.sketch == at.sketch && k < at.choice.size(); ++k)
      changed += next.choice[k] != at.choice[k];
    REQUIRE(changed <= 2);
    other_sketch += next.sketch != at.sketch;
    const Point child = space.cross(at, next, random);
    REQUIRE(child.sketch == at.sketch);
    for (size_t k = 0; k < child.choice.size(); ++k) {
      const bool taken = k < next.choice.size() && child.choice[k] == next.choice[k];
      REQUIRE((taken || child.choice[k] == at.choice[k]));
    }
    reached.insert(at = next);
  }
  CHECK(reached == all);
  CHECK(other_sketch > 100);
  CHECK(other_sketch < 1000);
}

TEST_CASE("spaces: points print, and those of other spaces are errors") {
  const Space space = small_space();
  CHECK(space.print(Point{0, {2, 1}}) == "a{k0=3x4, k1=2x2}");
  CHECK(space.print(Point{1, {0}}) == "b{k0=1x0}");
  CHECK(!space.default_point());
  CHECK(error_text(space.schedule(Point{0, {1, 0}}).takeError())
            .find("the second value is illegal") != std::string::npos);
  for (const Point& strange :
       {Point{3, {}}, Point{0, {0}}, Point{0, {0, 2}}, Point{-1, {0, 0}}, Point{0, {-1, 0}}}) {
    Expected<Schedule> schedule = space.schedule(strange);
    REQUIRE(!schedule);
    CHECK(error_text(schedule.takeError()).find("another space") != std::string::npos);
  }
}

TEST_CASE("spaces: the template's default point is the default schedule") {
  int knobs = 0;
  for (const GraphCase& c : kCases) {
    CAPTURE(std::string(c.name));
    for (const int bits : kWidths) {
      const Target target = vector_target(bits);
      for (const bool rules : {true, false}) {
        for (const Task& task : tasks_of_case(c, target)) {
          const Space space = must_space(SketchSource::templates, task, target, rules);
          REQUIRE(space.default_point());
          CHECK(space.default_point()->sketch == 0);
          for (size_t v = 0; v < task.variants.size(); ++v) {
            const LoweredGroup& lowered = task.variants[v].lowered;
            Expected<Schedule> usual = default_schedule(lowered, target),
                               found = space.schedule(
                                   {static_cast<int>(v), *space.sketches()[v].usual});
            REQUIRE_MESSAGE(bool(usual), error_text(usual.takeError()));
            REQUIRE_MESSAGE(bool(found), error_text(found.takeError()));
            CHECK(print(*found) == print(*usual));
            knobs += static_cast<int>(space.sketches()[v].knobs.size());
          }
        }
      }
    }
  }
  CHECK(knobs > 400);
}

TEST_CASE("spaces: the same task gives the same space, rules narrow it") {
  const Target target = vector_target(256);
  for (const GraphCase& c : {kCases[0], kCases[5], kCases[16]}) {
    const std::vector<Task> tasks = tasks_of_case(c, target);
    for (const SketchSource sketches : {SketchSource::templates, SketchSource::generated}) {
      const Space one = must_space(sketches, tasks[0], target, true),
                  again = must_space(sketches, tasks[0], target, true),
                  wide = must_space(sketches, tasks[0], target, false);
      CHECK(one.size() == again.size());
      CHECK(one.size() < wide.size());
      std::mt19937_64 random(6);
      for (int i = 0; i < 20; ++i) {
        const Point point = one.sample(random);
        CHECK(one.print(point) == again.print(point));
      }
    }
  }
}

TEST_CASE(
    "spaces: by the template's rules no point leaves a core without work that the default gives "
    "some") {
  CHECK(sharing(3, 2) == 1.5);
  CHECK(sharing(1, 2) == 1);
  CHECK(sharing(7, 4) == 3.5);
  CHECK(sharing(12, 1) == 1);
  Target target = vector_target(256);
  const GraphCase pixels = {
      "one panel", "%x: f32[1, 32, 40, 40] = input\n%w: f32[16, 32, 1, 1] = input",
      "%y: f32[1, 16, 40, 40] = conv(%x, %w) strides=[1,1] dilations=[1,1] pads=[0,0,0,0]"};
  const auto least = [&](bool rules) {  // sharing of random points, divided by that of the default
    double share = 2;
    for (const Task& task : tasks_of_case(pixels, target)) {
      const Space space = must_space(SketchSource::templates, task, target, rules);
      const auto shared = [&](const Point& point) {
        Expected<Schedule> schedule = space.schedule(point);
        Expected<Kernel> kernel =
            schedule ? apply(task
                                 .variants[static_cast<size_t>(
                                     space.sketches()[static_cast<size_t>(point.sketch)].variant)]
                                 .lowered.kernel,
                             *schedule, &target)
                     : Expected<Kernel>(schedule.takeError());
        if (!kernel) {
          llvm::consumeError(kernel.takeError());
          return 2.0;
        }
        return sharing(*kernel, target.cores);
      };
      std::mt19937_64 random(8);
      for (int i = 0; i < 100; ++i)
        share = std::min(share, shared(space.sample(random)) / shared(*space.default_point()));
    }
    return share;
  };
  CHECK(least(true) > 0.9);
  CHECK(least(false) < 0.9);
  target.cores = 1;
  CHECK(least(true) == 1);
}

TEST_CASE("a parallel loop whose later iterations are behind a guard does not spread") {
  const Kernel rows = llvm::cantFail(
      parse_kernel(R"(kernel @rows(x: in f32[784, 8], y: out f32[784, 8]) {
    temp c: f32[784, 8]
    for i in 784 { for k in 8 { c: c[i, k] = x[i, k] + x[i, k] } }
    for s in 784 { for l in 8 { y: y[s, l] = max(c[s, l], 0) } }
  })"));
  const auto share = [&](const char* steps) {
    return sharing(llvm::cantFail(apply(rows, llvm::cantFail(parse_schedule(steps)), nullptr)), 2);
  };
  const std::string
      begin = "schedule {\n split s ",
      end = " -> wp wr\n split wr 4 -> w0 w1\n compute_at c w0\n fuse wp w0 -> yp\n parallel yp\n}";
  CHECK(share((begin + "784" + end).c_str()) == 2);
  CHECK(share((begin + "1568" + end).c_str()) == 1);  // 196 of 392 iterations do all the work
  CHECK(share((begin + "1176" + end).c_str()) == doctest::Approx(196.0 / 147));
}

TEST_CASE("spaces: generated sketches of one kernel differ in kind") {
  const Target target = vector_target(256);
  const Space space = must_space(SketchSource::generated, tasks_of_case(kCases[5], target)[0],
                                 target, true);
  std::set<std::string> words;  // words of all steps of a schedule
  std::mt19937_64 random(8);
  for (int i = 0; i < 200; ++i) {
    Expected<Schedule> schedule = space.schedule(space.sample(random));
    if (!schedule) {
      llvm::consumeError(schedule.takeError());
      continue;
    }
    std::string kinds;
    for (const Step& step : schedule->steps)
      kinds += print(step).substr(0, print(step).find(' ')) + " ";
    words.insert(kinds);
  }
  CHECK(space.sketches().size() >= 4);
  CHECK(words.size() > 20);
}

TEST_CASE("spaces: points of the template space compute what the kernel does") {
  check_space(SketchSource::templates, "template", true, 8, 0.3);
}
TEST_CASE("spaces: points of the template space without rules do, too") {
  check_space(SketchSource::templates, "template", false, 6, 0.2);
}
TEST_CASE("spaces: points of the generated space compute what the kernel does") {
  check_space(SketchSource::generated, "generated", true, 12, 0.3);
}
TEST_CASE("spaces: points of the generated space without rules do, too") {
  check_space(SketchSource::generated, "generated", false, 8, 0.1);
}

TEST_CASE("spaces: points compute the same when compiled") {
  const Target target = host_target();
  Tally tally;
  for (const GraphCase& c : kCases) {
    CAPTURE(std::string(c.name));
    for (const Task& task : tasks_of_case(c, target))
      for (const SketchSource sketches : {SketchSource::templates, SketchSource::generated})
        check_points(c, task, must_space(sketches, task, target, true), target, 3, true, tally);
  }
  CHECK(tally.legal > 60);
}
