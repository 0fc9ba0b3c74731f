// The host side of a CUDA device on the fake driver: runs recorded and replayed as graphs, runs on
// a caller's stream, and the rules of the API.
#include <doctest/doctest.h>

#include <cstring>

#include "tests/cli/compiled.h"
#include "tests/cuda/fake.h"
#include "tests/ir/parsed.h"
#include "tests/passes/random_graph.h"

using namespace tw;

namespace {

using test::emulated, test::FakeCounts, test::FakeCuda;

// A graph of several launches, with a symbolic number of rows
const char* kRows =
    "graph @g(batch) {\n%x: f32[batch, 16] = input\n%w: f32[16, 16] = input\n%a: f32[batch, 16] = "
    "matmul(%x, %w)\n"
    "%s: f32[batch, 16] = softmax(%a) axis=1\n%y: f32[batch, 16] = matmul(%s, %w)\noutput "
    "%y\noutput %s\n}\n";

std::vector<Tensor> rows_inputs(int64_t rows, int seed, int64_t width = 16) {
  std::vector<Tensor> inputs = {Tensor::zeros(DType::f32, {rows, width}),
                                Tensor::zeros(DType::f32, {width, width})};
  for (Tensor& t : inputs)
    for (int64_t i = 0; i < t.size(); ++i)
      t.set(i, static_cast<double>((i * 7 + seed * 13) % 29 - 14) / 16);
  return inputs;
}

const LoadedModel& rows_on_device() {
  FakeCuda::get();
  static const LoadedModel loaded = test::compile_for(test::parsed_graph(kRows), emulated());
  return loaded;
}

struct Running {
  const LoadedModel& loaded;
  tw_context* context = nullptr;
  tw_status created = TW_OK;
  Graph graph;

  explicit Running(const LoadedModel& model, const tw_queue* queue = nullptr,
                   const char* text = kRows)
      : loaded(model), graph(test::parsed_graph(text)) {
    tw_options options{};
    options.size = sizeof options;
    options.threads = 1;
    options.queue = queue;
    created = api().create(&options, &context);
  }
  Running(const Running&) = delete;
  ~Running() { api().destroy(context); }
  const tw_api& api() const { return loaded.api(); }

  std::vector<Tensor> expected(const std::vector<Tensor>& inputs) const {
    Expected<std::vector<Tensor>> outputs = evaluate(graph, inputs);
    REQUIRE(bool(outputs));
    return std::move(*outputs);
  }
  // Checks the outputs of a run against the reference.
  void run(std::vector<Tensor> inputs) const {
    std::vector<Tensor> want = expected(inputs), got;
    for (const Tensor& t : want) got.push_back(Tensor::zeros(t.dtype, t.shape));
    std::vector<tw_tensor> in, out;
    for (Tensor& t : inputs) in.push_back(test::describe(t));
    for (Tensor& t : got) out.push_back(test::describe(t));
    REQUIRE(api().run(context, in.data(), out.data()) == TW_OK);
    for (size_t i = 0; i < want.size(); ++i)
      CHECK(test::relative_difference(want[i], got[i]) < 1e-4);
  }
};

// A caller with a stream and memory of its own on the device.
struct Caller {
  FakeCuda& fake = FakeCuda::get();
  void* stream = nullptr;
  std::vector<uint64_t> memory;

  Caller() { REQUIRE(fake.find<int32_t(void**, uint32_t)>("cuStreamCreate")(&stream, 1) == 0); }
  Caller(const Caller&) = delete;
  ~Caller() {
    for (const uint64_t at : memory) fake.find<int32_t(uint64_t)>("cuMemFree")(at);
    fake.find<int32_t(void*)>("cuStreamDestroy")(stream);
  }
  void wait() const { REQUIRE(fake.find<int32_t(void*)>("cuStreamSynchronize")(stream) == 0); }
  // Returns the tensor with its bytes copied to memory on the device.
  tw_tensor moved(Tensor& t) {
    tw_tensor out = test::describe(t);
    memory.emplace_back();
    REQUIRE(fake.find<int32_t(uint64_t*, size_t)>("cuMemAlloc")(&memory.back(), out.bytes) == 0);
    out.data = reinterpret_cast<void*>(memory.back());
    std::memcpy(out.data, t.bytes.data(), out.bytes);  // the fake's device memory is the host's
    return out;
  }
  static Tensor fetched(const Tensor& like, const tw_tensor& from) {
    Tensor t = Tensor::zeros(like.dtype, like.shape);
    return std::memcpy(t.bytes.data(), from.data, t.bytes.size()), t;
  }
};

}  // namespace

TEST_CASE("the second run of a kind makes graphs, later ones replay them") {
  FakeCuda& fake = FakeCuda::get();
  const FakeCounts before = fake.counts();
  {
    const Running model(rows_on_device());
    REQUIRE(model.created == TW_OK);
    const FakeCounts start = fake.counts();
    model.run(rows_inputs(3, 1));
    const FakeCounts first = fake.counts();
    const int launches = first.launches - start.launches;
    CHECK(launches >= 3);
    CHECK(first.instantiations == start.instantiations);
    // Other tensors at other addresses replay the same graph.
    for (int n = 0; n < 3; ++n) model.run(rows_inputs(3, 2 + n));
    const FakeCounts third = fake.counts();
    CHECK(third.instantiations - start.instantiations == 1);
    CHECK(third.replays - start.replays == 3);
    CHECK(third.launches - first.launches == 3 * launches);
    CHECK(third.executables - start.executables == 1);
    CHECK(third.graphs == start.graphs);  // the graph is gone, its executable stays
  }
  CHECK(fake.counts().same_objects(before));
  CHECK(fake.breaches() == "");
}

TEST_CASE("other shapes and a larger arena record anew") {
  FakeCuda& fake = FakeCuda::get();
  const FakeCounts before = fake.counts();
  {
    const Running model(rows_on_device());
    REQUIRE(model.created == TW_OK);
    for (const int64_t rows : {2, 2, 70, 70, 70, 2, 2, 5, 2})
      model.run(rows_inputs(rows, static_cast<int>(rows)));
    CHECK(fake.counts().instantiations - before.instantiations == 3);
    CHECK(fake.counts().replays - before.replays == 4);
  }
  CHECK(fake.counts().same_objects(before));
  CHECK(fake.breaches() == "");
}

TEST_CASE("a model split over device and processor is replayed in parts") {
  const char* text =
      "graph @g(batch) {\n%x: f32[batch, 256] = input\n%w: f32[256, 256] = input\n%a: f32[batch, "
      "256] = matmul(%x, %w)\n"
      "%s: f32[batch, 256] = softmax(%a) axis=1 log=true\n%y: f32[batch, 256] = matmul(%s, "
      "%w)\noutput %y\n}\n";
  Target target = emulated();
  // With these rates, products are worth a launch, and the softmax between them is not.
  target.devices[0].take_all = false;
  target.devices[0].rates = {1e15, 1e15, 1e15, 1e-5, 0};
  FakeCuda& fake = FakeCuda::get();
  const FakeCounts before = fake.counts();
  {
    const LoadedModel loaded = test::compile_for(test::parsed_graph(text), target);
    const Running model(loaded, nullptr, text);
    REQUIRE(model.created == TW_OK);
    for (int n = 0; n < 3; ++n) model.run(rows_inputs(3, n, 256));
    CHECK(fake.counts().instantiations - before.instantiations == 2);
    CHECK(fake.counts().replays - before.replays == 4);
    const std::vector<Tensor> inputs = rows_inputs(3, 1, 256);
    std::vector<Tensor> copies = inputs, outputs = {Tensor::zeros(DType::f32, {3, 256})};
    const tw_tensor in[] = {test::describe(copies[0]), test::describe(copies[1])},
                    out[] = {test::describe(outputs[0])};
    CHECK(model.api().run_async(model.context, in, out, nullptr) == TW_E_UNSUPPORTED);
    CHECK(std::string(model.api().last_error(model.context)).find("calls need the processor") !=
          std::string::npos);
  }
  CHECK(fake.counts().same_objects(before));
  CHECK(fake.breaches() == "");
}

TEST_CASE("a profile launches one by one, and what was recorded stays") {
  FakeCuda& fake = FakeCuda::get();
  const Running model(rows_on_device());
  REQUIRE(model.created == TW_OK);
  for (int n = 0; n < 2; ++n) model.run(rows_inputs(4, n));
  const FakeCounts before = fake.counts();
  std::vector<Tensor> inputs = rows_inputs(4, 5), outputs = {Tensor::zeros(DType::f32, {4, 16}),
                                                             Tensor::zeros(DType::f32, {4, 16})};
  std::vector<tw_tensor> in, out;
  for (Tensor& t : inputs) in.push_back(test::describe(t));
  for (Tensor& t : outputs) out.push_back(test::describe(t));
  std::vector<uint64_t> ns(static_cast<size_t>(model.api().call_count));
  REQUIRE(model.api().profile(model.context, in.data(), out.data(), ns.data()) == TW_OK);
  CHECK(fake.counts().replays == before.replays);
  CHECK(test::relative_difference(model.expected(inputs)[0], outputs[0]) < 1e-4);
  model.run(rows_inputs(4, 6));
  CHECK(fake.counts().replays == before.replays + 1);
  CHECK(fake.counts().instantiations == before.instantiations);
  CHECK(fake.breaches() == "");
}

TEST_CASE("a run on the caller's stream is done when the stream is") {
  FakeCuda& fake = FakeCuda::get();
  const FakeCounts before = fake.counts();
  {
    Caller caller;
    const tw_queue queue{"cuda", caller.stream};
    const Running model(rows_on_device(), &queue);
    REQUIRE(model.created == TW_OK);
    for (int n = 0; n < 3; ++n) {  // the first run is recorded, the others are replayed
      std::vector<Tensor> inputs = rows_inputs(6, n);
      const std::vector<Tensor> want = model.expected(inputs);
      Tensor nothing = Tensor::zeros(DType::f32, {6, 16}), kept = nothing;
      // One input is on the device, one on the host.
      const tw_tensor in[] = {caller.moved(inputs[0]), test::describe(inputs[1])};
      const tw_tensor out[] = {caller.moved(nothing), test::describe(kept)};
      const uint8_t places[] = {TW_DEVICE, TW_HOST, TW_DEVICE, TW_HOST};
      REQUIRE(model.api().run_async(model.context, in, out, places) == TW_OK);
      CHECK(fake.counts().pending > 0);
      CHECK(Caller::fetched(want[0], out[0]).bytes == nothing.bytes);  // not yet
      if (n == 1) CHECK(model.api().wait(model.context) == TW_OK);
      else caller.wait();
      CHECK(fake.counts().pending == 0);
      CHECK(test::relative_difference(want[0], Caller::fetched(want[0], out[0])) < 1e-4);
      CHECK(test::relative_difference(want[1], kept) < 1e-4);
    }
    CHECK(fake.counts().replays - before.replays == 2);
    model.run(rows_inputs(6, 9));  // a blocking run uses the same stream
    CHECK(fake.counts().replays - before.replays == 3);
  }
  CHECK(fake.counts().same_objects(before));
  CHECK(fake.breaches() == "");
}

TEST_CASE("a caller captures a run into a graph of its own") {
  FakeCuda& fake = FakeCuda::get();
  const FakeCounts before = fake.counts();
  {
    Caller caller;
    const tw_queue queue{"cuda", caller.stream};
    const Running model(rows_on_device(), &queue);
    REQUIRE(model.created == TW_OK);
    std::vector<Tensor> inputs = rows_inputs(5, 1);
    Tensor nothing = Tensor::zeros(DType::f32, {5, 16});
    const tw_tensor in[] = {caller.moved(inputs[0]), caller.moved(inputs[1])},
                    out[] = {caller.moved(nothing), caller.moved(nothing)};
    const auto go = [&] {
      REQUIRE(model.api().run_async(model.context, in, out, nullptr) == TW_OK);
    };
    go();  // allocates the arena
    caller.wait();
    void *graph = nullptr, *executable = nullptr;
    REQUIRE(fake.find<int32_t(void*, uint32_t)>("cuStreamBeginCapture")(caller.stream, 0) == 0);
    go();
    REQUIRE(fake.find<int32_t(void*, void**)>("cuStreamEndCapture")(caller.stream, &graph) == 0);
    CHECK(fake.counts().pending == 0);
    REQUIRE(fake.find<int32_t(void**, void*, uint64_t)>("cuGraphInstantiateWithFlags")(
                &executable, graph, 0) == 0);
    std::vector<Tensor> others = rows_inputs(5, 8);
    for (size_t i = 0; i < 2; ++i) std::memcpy(in[i].data, others[i].bytes.data(), in[i].bytes);
    REQUIRE(fake.find<int32_t(void*, void*)>("cuGraphLaunch")(executable, caller.stream) == 0);
    caller.wait();
    const std::vector<Tensor> want = model.expected(others);
    for (size_t i = 0; i < 2; ++i)
      CHECK(test::relative_difference(want[i], Caller::fetched(want[i], out[i])) < 1e-4);
    fake.find<int32_t(void*)>("cuGraphExecDestroy")(executable);
    fake.find<int32_t(void*)>("cuGraphDestroy")(graph);
  }
  CHECK(fake.counts().same_objects(before));
  CHECK(fake.breaches() == "");
}

TEST_CASE("what cannot be asynchronous is said in words") {
  FakeCuda& fake = FakeCuda::get();
  std::vector<Tensor> inputs = rows_inputs(2, 1);
  Tensor output = Tensor::zeros(DType::f32, {2, 16}), second = output;
  const tw_tensor in[] = {test::describe(inputs[0]), test::describe(inputs[1])},
                  out[] = {test::describe(output), test::describe(second)};
  Target processor = emulated();
  processor.devices.clear();
  const LoadedModel on_processor = test::compile_for(test::parsed_graph(kRows), processor);
  const Running host(on_processor);
  REQUIRE(host.created == TW_OK);
  CHECK(host.api().run_async(host.context, in, out, nullptr) == TW_E_UNSUPPORTED);
  CHECK(std::string(host.api().last_error(host.context)) ==
        "no asynchronous run: the model runs on the processor");
  CHECK(host.api().wait(host.context) == TW_OK);

  const tw_queue opencl{"opencl", nullptr};
  const Running other(rows_on_device(), &opencl);
  CHECK(other.created == TW_E_ARGUMENT);
  CHECK(std::string(other.api().last_error(nullptr)).find("its device's driver is cuda") !=
        std::string::npos);

  void *context = nullptr, *stream = nullptr, *popped = nullptr;
  REQUIRE(fake.find<int32_t(void**, uint32_t, int32_t)>("cuCtxCreate")(&context, 0, 0) == 0);
  REQUIRE(fake.find<int32_t(void**, uint32_t)>("cuStreamCreate")(&stream, 0) == 0);
  REQUIRE(fake.find<int32_t(void**)>("cuCtxPopCurrent")(&popped) == 0);
  const tw_queue elsewhere{"cuda", stream};
  const Running far(rows_on_device(), &elsewhere);
  CHECK(far.created == TW_E_DEVICE);
  CHECK(
      std::string(far.api().last_error(nullptr)) ==
      "device gpu: options.queue is a stream of another context than the primary one of device 0");
  fake.find<int32_t(void*)>("cuStreamDestroy")(stream);
  CHECK(fake.breaches() == "");
}

TEST_CASE("the fake driver knows broken rules") {
  FakeCuda& fake = FakeCuda::get();
  Caller caller;
  void *graph = nullptr, *executable = nullptr, *popped = nullptr;
  uint64_t at = 0;
  CHECK(fake.find<int32_t(void**, uint32_t)>("cuGraphCreate")(&graph, 0) == 0);
  CHECK(fake.find<int32_t(void**, void*, uint64_t)>("cuGraphInstantiateWithFlags")(&executable,
                                                                                   graph, 0) == 0);
  CHECK(fake.find<int32_t(void*)>("cuGraphDestroy")(graph) == 0);
  CHECK(fake.find<int32_t(void*)>("cuGraphDestroy")(graph) == 400);
  CHECK(fake.breaches() == "a graph that is none");
  CHECK(fake.find<int32_t(void*)>("cuGraphExecDestroy")(executable) == 0);
  CHECK(fake.find<int32_t(void*, void*)>("cuGraphLaunch")(executable, caller.stream) == 400);
  CHECK(fake.breaches() == "a executable graph that is none");
  REQUIRE(fake.find<int32_t(void*, uint32_t)>("cuStreamBeginCapture")(caller.stream, 0) == 0);
  CHECK(fake.find<int32_t(uint64_t*, size_t)>("cuMemAlloc")(&at, 64) == 900);
  CHECK(fake.find<int32_t(void*)>("cuStreamSynchronize")(caller.stream) == 900);
  REQUIRE(fake.find<int32_t(void*, void**)>("cuStreamEndCapture")(caller.stream, &graph) == 0);
  CHECK(fake.find<int32_t(void*)>("cuGraphDestroy")(graph) == 0);
  CHECK(fake.breaches() ==
        "cuMemAlloc while a stream captures; cuStreamSynchronize while a stream captures");
  REQUIRE(fake.find<int32_t(uint64_t*, size_t)>("cuMemAlloc")(&at, 64) == 0);
  CHECK(fake.find<int32_t(uint64_t, const void*, size_t, void*)>("cuMemcpyHtoDAsync")(
            at + 1, &at, 64, caller.stream) == 1);
  CHECK(fake.breaches() == "cuMemcpyHtoDAsync outside the device's memory");
  CHECK(fake.find<int32_t(uint64_t, const void*, size_t, void*)>("cuMemcpyHtoDAsync")(
            at, &at, 8, caller.stream) == 0);
  CHECK(fake.find<int32_t(uint64_t)>("cuMemFree")(at) == 0);
  CHECK(fake.breaches() == "memory goes while work waits");
  const FakeCounts before = fake.counts();
  CHECK(before.pending == 1);
  REQUIRE(fake.find<int32_t(void**)>("cuCtxPopCurrent")(&popped) == 0);
  CHECK(fake.find<int32_t(void*)>("cuStreamSynchronize")(caller.stream) == 201);
  REQUIRE(fake.find<int32_t(void*)>("cuCtxPushCurrent")(popped) == 0);
  CHECK(fake.breaches() == "cuStreamSynchronize without a context");
  caller.wait();
}
