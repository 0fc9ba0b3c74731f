// Layers through the compiler: the device's form, the schedule and the stream, run on the
// simulator.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>

#include "backends/backend.h"
#include "backends/vdla/config.h"
#include "backends/vdla/rtl_core.h"
#include "backends/vdla/timing.h"
#include "ir/kernel/interpreter.h"
#include "ir/text.h"
#include "tests/ir/graph_testing.h"
#include "tests/vdla/layers.h"

using namespace tw;
using namespace tw::vdla;
using test::must;

namespace {

struct Ran {
  LoweredGroup formed;
  Kernel kernel;
  LayerRun run;
};

// Runs the kernel on the simulator with its race checker, and compares the output.
LayerRun check_run(const LayerCase& layer, LoweredGroup& formed, const Kernel& kernel,
                   const Target& target) {
  LayerRun run = placed(layer, formed, kernel, target);
  Expected<Outcome> outcome = simulate(Config{}, run.dram, run.launch);
  if (!outcome) FAIL(error_text(outcome.takeError()));
  if (!outcome->ok()) FAIL(text_of(describe(*outcome, run.dram, run.launch)));
  CHECK(first_difference(layer, run) == "");
  return run;
}

Ran check(const LayerCase& layer, int threads) {
  const Target& target = device_target(threads);
  Ran ran{layer.group, {}, {}};
  ran.kernel = scheduled(ran.formed, target);
  ran.run = check_run(layer, ran.formed, ran.kernel, target);
  return ran;
}

}  // namespace

TEST_CASE("a convolution is compiled to a stream without races") {
  for (int threads : {1, 2}) {
    Layer layer;
    layer.channels = 32, layer.outputs = 32;
    layer.zero_in = -3, layer.zero_out = 5;
    check(conv_case(layer, 1), threads);
  }
}

TEST_CASE("products of matrices") {
  check(product_case(1, 128, 64, 0, 1), 2);
  check(product_case(24, 64, 32, 7, 2), 2);
}

TEST_CASE("maxima") {
  Layer layer;
  layer.channels = 32;
  layer.kernel = {2, 2}, layer.strides = {2, 2}, layer.before = layer.after = {0, 0};
  check(pool_case(layer, 1), 2);
  layer.kernel = {3, 3}, layer.before = {1, 1}, layer.after = {1, 0};
  layer.in = {9, 7};
  check(pool_case(layer, 1), 2);
}

namespace {

// Returns the device with this instruction in place of the maximum.
Target with_instruction(const char* semantics, const char* emit) {
  Target target = device_target(2);
  Intrinsic& last = target.intrinsics.back();
  last.name = "of.the.test", last.semantics = semantics, last.kernel = nullptr;
  last.emit = must(parse_emit({emit}, Location{"board.yaml", 7, 9}));
  return target;
}

}  // namespace

TEST_CASE("an instruction that the description alone knows") {
  const Target target = with_instruction(
      R"(kernel @sum(from: in i8[16], total: out i32[16]) {
           for o in 16 { acc: total[o] += i32(from[o]) }
         })",
      "alu.add(total, from)");
  constexpr int kRows = 6, kSummed = 8, kLanes = 16;
  LayerCase layer;
  layer.group.kernel = must(parse_kernel(R"(kernel @sums(x: in i8[6, 8, 16], y: out i8[6, 16]) {
    temp acc: i32[6, 16]
    for i in 6 { for k in 8 reduce { for l in 16 {
      acc: acc[i, l] += i32(x[i, k, l]) init 0
    } } }
    for n in 6 { for m in 16 { y: y[n, m] = sat.i8(round(f32(acc[n, m]) * 0.25)) } }
  })"));
  layer.group.arguments.resize(2);
  Random random(1);
  for (int i = 0; i < kRows * kSummed * kLanes; ++i)
    layer.input.push_back(static_cast<int8_t>(pick(random, -128, 127)));
  for (int i = 0; i < kRows; ++i)
    for (int l = 0; l < kLanes; ++l) {
      int sum = 0;
      for (int k = 0; k < kSummed; ++k)
        sum += layer.input[static_cast<size_t>((i * kSummed + k) * kLanes + l)];
      layer.expected.push_back(
          static_cast<int8_t>(std::clamp(std::nearbyint(sum * 0.25), -128.0, 127.0)));
    }
  layer.real.assign(layer.expected.size(), true);
  const Schedule schedule = must(parse_schedule(R"(schedule {
    compute_at acc n
    cache_read x acc -> xp sram.inp
    compute_at xp n
    set_scope acc sram.acc
    reorder k acc_l
    decompose_reduction acc k
    tensorize acc_l of.the.test -> block
    roles n 1 load = xp, compute = acc.init acc, store = y
  })"));
  const Kernel kernel = must(tw::apply(layer.group.kernel, schedule, &target));
  const LayerRun run = check_run(layer, layer.group, kernel, target);
  CHECK(std::ranges::any_of(run.stream.instructions, [](const Instruction& i) {
    const Alu* alu = std::get_if<Alu>(&i);
    return alu && alu->op == AluOp::add;
  }));
}

TEST_CASE("an instruction that the core has not, or that does something else") {
  const char* const sum = R"(kernel @sum(from: in i8[16], total: out i32[16]) {
    for o in 16 { acc: total[o] += i32(from[o]) }
  })";
  const auto refusal = [&](const char* semantics, const char* emit) {
    return error_text(device_of(with_instruction(semantics, emit)).takeError());
  };
  for (const char* emit :
       {"alu.mul(total, from)", "alu.add(total, from, from)", "store.q8(total)"}) {
    CAPTURE(std::string(emit));
    const std::string text = refusal(sum, emit);
    CHECK(text.find("board.yaml:7:9") != std::string::npos);
    CHECK(text.find("known here: gemm(OUT, IN, WEIGHT), alu.add(OUT, IN) and alu.max(OUT, IN)") !=
          std::string::npos);
  }
  for (const char* emit :
       {"alu.max(total, from)", "alu.add(from, total)", "gemm(total, from, from)"}) {
    CAPTURE(std::string(emit));
    const std::string text = refusal(sum, emit);
    CHECK(text.find("board.yaml:7:9") != std::string::npos);
    CHECK(text.find("its semantics are not what emit") != std::string::npos);
  }
}

namespace {

Layer square(int channels, int outputs, int size, int kernel, int stride, int before, int after) {
  Layer l;
  l.channels = channels, l.outputs = outputs;
  l.in = {size, size}, l.kernel = {kernel, kernel}, l.strides = {stride, stride},
  l.before = {before, before}, l.after = {after, after};
  return l;
}

std::vector<Layer> sweep() {
  std::vector<Layer> list;
  unsigned i = 0;
  for (int kernel : {1, 3, 5, 7})
    for (int stride : {1, 2, 3}) {
      Layer l = square(16 + 16 * (i % 2), 16 + 16 * (i % 3), 13, kernel, stride, kernel / 2,
                       kernel / 2);
      l.zero_in = static_cast<int>(i % 5) - 2, l.zero_out = static_cast<int>(i % 7) - 3;
      l.bias = i++ % 4 != 1;
      list.push_back(l);
    }
  // Asymmetric pads, odd extents, and another kernel extent on each side
  Layer uneven = square(32, 48, 11, 3, 2, 0, 1);
  uneven.in = {9, 14}, uneven.kernel = {5, 3}, uneven.before = {2, 0}, uneven.after = {1, 1},
  uneven.zero_in = 100, uneven.low = 4, uneven.zero_out = 4;
  list.push_back(uneven);
  Layer tails = square(20, 37, 7, 3, 1, 1, 1);  // these channels do not fill blocks
  tails.zero_in = -128, tails.batch = 2;
  list.push_back(tails);
  Layer flat = square(48, 32, 1, 1, 1, 0, 0);  // a pointwise convolution whose axes are one
  flat.in = {77}, flat.kernel = {1}, flat.strides = {1}, flat.before = {0}, flat.after = {0};
  list.push_back(flat);
  list.push_back(square(64, 256, 40, 3, 1, 1, 1));  // more weights than the memory holds
  list.push_back(square(512, 32, 9, 3, 1, 1, 1));   // input channels go in steps
  return list;
}

uint64_t cycles_of(const Ran& ran) {
  return llvm::cantFail(predict_cycles(Config{}, ran.run.stream.instructions, DramModel{})).total;
}

}  // namespace

TEST_CASE("layers of many shapes, with one virtual thread and two, without races") {
  unsigned seed = 1;
  for (const Layer& layer : sweep()) {
    CAPTURE(seed);
    const LayerCase data = conv_case(layer, seed++);
    check(data, 1);
    check(data, 2);
  }
}

TEST_CASE("the interpreter runs the scheduled kernel, tokens and all, to the same bytes") {
  Layer layer = square(32, 32, 5, 3, 1, 1, 1);
  layer.zero_in = 7;
  const LayerCase data = conv_case(layer, 3);
  for (int threads : {1, 2}) {
    LoweredGroup formed = data.group;
    const Kernel kernel = scheduled(formed, device_target(threads));
    std::vector<KernelArgument> arguments;
    for (const LoweredArgument& argument : formed.arguments)
      arguments.push_back({argument.constant
                               ? llvm::cantFail(contents({argument.blob, argument.pack}))
                               : std::vector<std::byte>()});
    const auto* input = reinterpret_cast<const std::byte*>(data.input.data());
    arguments.front().bytes.assign(input, input + data.input.size());
    arguments.back().bytes.resize(data.expected.size());
    if (Error error = interpret(kernel, arguments)) FAIL(error_text(std::move(error)));
    for (size_t i = 0; i < data.expected.size(); ++i)
      REQUIRE(static_cast<int8_t>(arguments.back().bytes[i]) == data.expected[i]);
  }
}

TEST_CASE("no token of a compiled stream can be deleted") {
  const LayerCase data = conv_case(square(32, 32, 16, 3, 1, 1, 1), 5);
  for (int threads : {1, 2}) {
    Ran ran = check(data, threads);
    const std::vector<Instruction> stream = ran.run.stream.instructions;
    const auto outcome_of = [&](const std::vector<Instruction>& changed) {
      const std::vector<uint8_t> code = to_bytes(changed);
      std::copy(code.begin(), code.end(),
                ran.run.dram.begin() + static_cast<std::ptrdiff_t>(ran.run.launch.instructions));
      return llvm::cantFail(simulate(Config{}, ran.run.dram, ran.run.launch));
    };
    const std::vector<TokenPlace> tokens = tokens_in(stream);
    CHECK(tokens.size() >= 4);
    for (const TokenPlace& place : tokens) {
      const Outcome outcome = outcome_of(without(stream, {place}));
      CAPTURE(place.index);
      CHECK((!outcome.races.empty() || outcome.fault == Fault::deadlock ||
             outcome.fault == Fault::tokens_left));
    }
    // The counters stay balanced, so only the race checker notices.
    for (const auto& [push, pop] : token_pairs(stream)) {
      const Outcome outcome = outcome_of(without(stream, {push, pop}));
      CAPTURE(push.index);
      CHECK(outcome.fault == Fault::none);
      CHECK_FALSE(outcome.races.empty());
    }
  }
}

TEST_CASE("two virtual threads hide latency") {
  const LayerCase data = conv_case(square(64, 64, 28, 3, 1, 1, 1), 1);
  const Ran one = check(data, 1), two = check(data, 2);
  const double products = 4.0 * 4 * 9 * 28 * 28;
  MESSAGE("64 -> 64 channels, 3x3, 28x28: ", cycles_of(one), " cycles (array ",
          static_cast<int>(100 * products / static_cast<double>(cycles_of(one))), "%) with one, ",
          cycles_of(two), " (",
          static_cast<int>(100 * products / static_cast<double>(cycles_of(two))), "%) with two");
  CHECK(cycles_of(two) < cycles_of(one));
}

TEST_CASE("compiled streams on the core") {
#ifdef TW_VDLA_RTL
  const auto core = llvm::cantFail(RtlCore::open(TW_VDLA_RTL));
  std::vector<LayerCase> layers = {product_case(8, 128, 64, -3, 4),
                                   pool_case(square(32, 32, 8, 2, 2, 0, 0), 5)};
  Layer uneven = square(32, 32, 9, 3, 2, 1, 0);
  uneven.zero_in = 11;
  layers.push_back(conv_case(uneven, 6));
  layers.push_back(conv_case(square(32, 48, 8, 5, 1, 2, 2), 7));
  for (const LayerCase& data : layers) {
    LoweredGroup formed = data.group;
    const Kernel kernel = scheduled(formed, device_target(2));
    LayerRun run = placed(data, formed, kernel, device_target(2));
    Cycles cycles;
    const Outcome outcome = llvm::cantFail(core->run(run.dram, run.launch, {}, &cycles));
    REQUIRE_MESSAGE(outcome.fault == Fault::none, text_of(describe(outcome, run.dram, run.launch)));
    CHECK(first_difference(data, run) == "");
    const double predicted = static_cast<double>(
        llvm::cantFail(predict_cycles(Config{}, run.stream.instructions, DramModel{})).total);
    CAPTURE(predicted);
    CAPTURE(cycles.total);
    CHECK(std::abs(predicted / static_cast<double>(cycles.total) - 1) < 0.1);
  }
#else
  MESSAGE("SKIPPED: no Verilator on this machine (scripts/setup.sh vdla)");
#endif
}

namespace {

std::string reason(LayerCase data, const std::function<void(LoweredGroup&)>& change = {}) {
  if (change) change(data.group);
  const Target& target = device_target(2);
  const Kernel kernel = scheduled(data.group, target);
  const auto backend = llvm::cantFail(make_device_backend(target));
  if (Error error = backend->supports(kernel)) return error_text(std::move(error));
  std::vector<Constant> constants;
  for (const LoweredArgument& argument : data.group.arguments)
    constants.push_back(argument.constant ? Constant{argument.blob, argument.pack} : Constant{});
  return error_text(backend->accepts(kernel, constants));
}

void rescale(LoweredGroup& group, float scale) {
  auto values = std::make_shared<std::vector<float>>(group.arguments[3].blob.bytes.size() / 4,
                                                     scale);
  group.arguments[3].blob = {values, std::as_bytes(std::span(*values))};
}

}  // namespace

TEST_CASE("what the device cannot take is said") {
  const Layer layer = square(32, 32, 6, 3, 1, 1, 1);
  CHECK(reason(conv_case(layer, 1)) == "");
  CHECK(reason(conv_case(layer, 1), [](LoweredGroup& g) {
          rescale(g, 0x1p40f);
        }).find("channel 0: the scale") == 0);
  CHECK(reason(conv_case(layer, 1), [](LoweredGroup& g) {
          rescale(g, -1.0f);
        }).find("channel 0: the scale") == 0);
  // Sums beyond 2^24 that do not saturate: 4096 channels of weights up to 128.
  CHECK(reason(conv_case(square(4096, 16, 1, 1, 1, 0, 0), 1), [](LoweredGroup& g) {
          rescale(g, 0x1p-20f);
        }).find("may round differently in floats") != std::string::npos);
  CHECK(reason(product_case(4, 24, 32, 0, 1)) != "");  // the depth is no multiple of 16
}

TEST_CASE("the target's numbers make the device") {
  Target target = device_target(2);
  target.parameters.emplace_back("warp", 9);
  CHECK(error_text(make_device_backend(target).takeError()).find("unknown parameter 'warp'") !=
        std::string::npos);
  target = device_target(2);
  target.parameters.clear();
  CHECK(
      error_text(make_device_backend(target).takeError()).find("needs the parameter 'bus_bytes'") !=
      std::string::npos);
  target = device_target(2);
  target.scopes.pop_back();
  CHECK(error_text(make_device_backend(target).takeError())
            .find("needs the size of the memory 'sram.prm'") != std::string::npos);
}
