// The artifact in this process: good and bad uses of the C ABI.
#include <doctest/doctest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <memory>
#include <thread>

#include "packager/loaded_model.h"
#include "tests/packager/fake_artifact.h"

namespace {

struct Library {  // one artifact for all cases of this file
  ScratchDir dir;
  std::unique_ptr<tw::LoadedModel> model;
  Library() {
    write_fake(dir / "fake.so", "fake.x86_64");
    auto loaded = tw::LoadedModel::open(dir / "fake.so");
    if (!loaded) FAIL(tw::error_text(loaded.takeError()));
    model = std::make_unique<tw::LoadedModel>(std::move(*loaded));
  }
};
const tw_api& api() {
  static Library library;
  return library.model->api();
}

struct Run {  // arguments of a good run with n rows; tests spoil one thing
  explicit Run(int64_t n) : rows{n, 4}, twice{2 * n}, a(n * 4), b(n * 4), c(2 * n), y(n * 4, -1) {
    for (size_t i = 0; i < a.size(); ++i) a[i] = float(i), b[i] = 1000 * float(i);
    for (size_t i = 0; i < c.size(); ++i) c[i] = 0.5f * float(i);
    inputs[0] = {a.data(), a.size() * 4, TW_F32, 2, rows};
    inputs[1] = {b.data(), b.size() * 4, TW_F32, 2, rows};
    inputs[2] = {c.data(), c.size() * 4, TW_F32, 1, twice};
    outputs[0] = {y.data(), y.size() * 4, TW_F32, 2, nullptr};
    outputs[1] = {&count, 8, TW_I64, 0, nullptr};
  }
  bool right() const {
    for (size_t i = 0; i < y.size(); ++i)
      if (y[i] != a[i] + b[i] + 100.0f * float(i % 4 + 1) + c[i / 4 * 2]) return false;
    return count == rows[0];
  }
  int64_t rows[2], twice[1];
  std::vector<float> a, b, c, y;
  int64_t count = -1;
  tw_tensor inputs[3], outputs[2];
};

struct Context {
  explicit Context(int threads) {
    tw_options o = {};
    o.size = sizeof o;
    o.threads = threads;
    REQUIRE(api().create(&o, &c) == TW_OK);
  }
  ~Context() { api().destroy(c); }
  tw_context* c = nullptr;
};

void expect(Run& run, tw_status status, const char* text) {
  Context context(1);
  CHECK(api().run(context.c, run.inputs, run.outputs) == status);
  CHECK(std::string(api().last_error(context.c)) == text);
}

}  // namespace

TEST_CASE("the table describes the model") {
  CHECK(api().version == TW_ABI_VERSION);
  CHECK(api().size == sizeof(tw_api));
  CHECK(std::string(api().name) == "fake");
  CHECK(std::string(api().manifest) == "{\"model\": \"fake\"}");
  CHECK(api().input_count == 3);
  CHECK(std::string(api().inputs[1].name) == "b");
  CHECK(api().call_count == 2);
  const int64_t n = 5;
  CHECK(api().arena_bytes(&n) == 128);
  for (int s = TW_OK; s <= TW_E_BUSY; ++s)
    CHECK(std::string(api().status_text(tw_status(s))) != "unknown status");
  CHECK(std::string(api().last_error(nullptr)).empty());
}

TEST_CASE("runs with any number of threads, growing") {
  for (int threads : {0, 1, 2, 3, 7, 200}) {
    Context context(threads);
    for (int64_t n : {1, 2, 5, 64, 1000, 3}) {
      Run run(n);
      CHECK(api().run(context.c, run.inputs, run.outputs) == TW_OK);
      CHECK(run.right());
    }
  }
}

TEST_CASE("no options are all threads") {
  tw_context* c = nullptr;
  REQUIRE(api().create(nullptr, &c) == TW_OK);
  Run run(9);
  CHECK(api().run(c, run.inputs, run.outputs) == TW_OK);
  CHECK(run.right());
  api().destroy(c);
  api().destroy(nullptr);
}

TEST_CASE("every wrong argument has its status and text") {
  {
    Run r(2);
    r.inputs[0].dtype = TW_I64;
    expect(r, TW_E_DTYPE, "input 0 (a): element type is i64, expected f32");
  }
  {
    Run r(2);
    r.inputs[0].dtype = 99;
    expect(r, TW_E_DTYPE, "input 0 (a): element type is number 99, expected f32");
  }
  {
    Run r(2);
    r.inputs[0].rank = 1;
    expect(r, TW_E_SHAPE, "input 0 (a): rank is 1, expected 2");
  }
  {
    Run r(2);
    r.rows[1] = 3;
    expect(r, TW_E_SHAPE, "input 0 (a): dim 1 is 3, expected 4");
  }
  {
    Run r(2);
    r.rows[0] = 0;
    expect(r, TW_E_SHAPE,
           "input 0 (a): dim 0 is 0, expected at least 1 (n): one compiled with --dim n=0..MOST "
           "takes 0");
  }
  {
    Run r(2);
    r.rows[0] = -7;
    expect(r, TW_E_SHAPE, "input 0 (a): dim 0 is -7, expected at least 1 (n)");
  }
  {
    Run r(2);
    const int64_t d[] = {1, 4};
    r.inputs[1].dims = d;
    expect(r, TW_E_SHAPE, "input 1 (b): dim 0 is 1, expected n = 2");
  }
  {
    Run r(2);
    r.twice[0] = 3;
    expect(r, TW_E_SHAPE, "input 2 (c): dim 0 is 3, expected 4");
  }
  {
    Run r(2);
    r.rows[0] = INT64_MAX;
    expect(r, TW_E_SHAPE, "input 0 (a): the shape has more bytes than can be counted");
  }
  {
    Run r(2);
    r.inputs[1].bytes = 31;
    expect(r, TW_E_SIZE, "input 1 (b): buffer size in bytes is 31, expected 32");
  }
  {
    Run r(2);
    r.inputs[1].dims = nullptr;
    expect(r, TW_E_ARGUMENT, "input 1 (b): dims is null");
  }
  {
    Run r(2);
    r.inputs[1].data = nullptr;
    expect(r, TW_E_ARGUMENT, "input 1 (b): data is null");
  }
  {
    Run r(2);
    r.inputs[0].data = (char*)r.a.data() + 1;
    expect(r, TW_E_ARGUMENT, "input 0 (a): data is not aligned to the element size of 4");
  }
  {
    Run r(2);
    r.outputs[0].dtype = TW_F64;
    expect(r, TW_E_DTYPE, "output 0 (y): element type is f64, expected f32");
  }
  {
    Run r(2);
    r.outputs[0].bytes = 0;
    expect(r, TW_E_SIZE, "output 0 (y): buffer size in bytes is 0, expected 32");
  }
  {
    Run r(2);
    r.outputs[1].data = nullptr;
    expect(r, TW_E_ARGUMENT, "output 1 (count): data is null");
  }
  {
    Run r(2);
    const int64_t d[] = {2, 5};
    r.outputs[0].dims = d;
    expect(r, TW_E_SHAPE, "output 0 (y): dim 1 is 5, expected 4");
  }
}

TEST_CASE("null pointers and wrong options are errors") {
  Run run(2);
  Context context(1);
  CHECK(api().run(nullptr, run.inputs, run.outputs) == TW_E_ARGUMENT);
  CHECK(api().run(context.c, nullptr, run.outputs) == TW_E_ARGUMENT);
  CHECK(std::string(api().last_error(context.c)) == "inputs is null");
  CHECK(api().run(context.c, run.inputs, nullptr) == TW_E_ARGUMENT);
  CHECK(api().create(nullptr, nullptr) == TW_E_ARGUMENT);
  tw_context* c = context.c;
  tw_options o = {};
  CHECK(api().create(&o, &c) == TW_E_ARGUMENT);  // size is 0
  CHECK(c == nullptr);
  o.size = sizeof o;
  o.threads = -1;
  CHECK(api().create(&o, &c) == TW_E_ARGUMENT);
  o.threads = 1;
  alignas(64) static char arena[256];
  o.arena = arena + 1;
  o.arena_bytes = 64;
  CHECK(api().create(&o, &c) == TW_E_ARGUMENT);
  CHECK(std::string(api().last_error(nullptr)).empty());
  o.arena = nullptr;
  o.arena_bytes = 0;
  const int64_t none = 0;
  o.symbols = &none;
  CHECK(api().create(&o, &c) == TW_E_ARGUMENT);
  CHECK(std::string(api().last_error(nullptr)) ==
        "a dimension of 0, expected at least 1 (n): one compiled with --dim n=0..MOST takes 0");
}

TEST_CASE("threads whose creates fail at the same time find their own texts") {
  std::atomic<int> wrong = 0;
  std::vector<std::thread> threads;
  for (int64_t t = 0; t < 8; ++t)
    threads.emplace_back([&wrong, t] {
      const int64_t size = -1 - t;
      tw_options o = {};
      o.size = sizeof o;
      o.symbols = &size;
      const std::string text = "a dimension of " + std::to_string(size) +
                               ", expected at least 1 (n)";
      for (int i = 0; i < 1000; ++i) {
        tw_context* c = nullptr;
        wrong += api().create(&o, &c) != TW_E_ARGUMENT || text != api().last_error(nullptr);
      }
    });
  for (std::thread& thread : threads) thread.join();
  CHECK(wrong == 0);
  // A thread without an error of its own gets the text of another one.
  std::string text;
  std::thread([&text] { text = api().last_error(nullptr); }).join();
  CHECK(text.starts_with("a dimension of "));
}

TEST_CASE("a caller's arena is used and never outgrown") {
  alignas(64) static char arena[256];
  tw_options o = {};
  o.size = sizeof o;
  o.threads = 1;
  o.arena = arena;
  o.arena_bytes = sizeof arena;
  tw_context* c = nullptr;
  REQUIRE(api().create(&o, &c) == TW_OK);
  Run small(16), large(17);
  CHECK(api().run(c, small.inputs, small.outputs) == TW_OK);
  CHECK(small.right());
  float first;
  std::memcpy(&first, arena + 4, 4);
  CHECK(first == small.a[1] + small.b[1]);
  CHECK(api().run(c, large.inputs, large.outputs) == TW_E_SIZE);
  CHECK(std::string(api().last_error(c)) == "the arena has 256 bytes, this run needs 320 bytes");
  api().destroy(c);
  const int64_t n = 17;
  o.symbols = &n;
  CHECK(api().create(&o, &c) == TW_E_SIZE);
  o.arena = nullptr;
  o.arena_bytes = 0;
  REQUIRE(api().create(&o, &c) == TW_OK);
  CHECK(api().run(c, large.inputs, large.outputs) == TW_OK);
  CHECK(large.right());
  api().destroy(c);
}

TEST_CASE("sizes that do not fit or cannot be counted are refused before anything is allocated") {
  tw_context* c = nullptr;
  REQUIRE(api().create(nullptr, &c) == TW_OK);
  Run refused(1013);
  CHECK(api().run(c, refused.inputs, refused.outputs) == TW_E_SHAPE);
  CHECK(std::string(api().last_error(c)) ==
        "the sizes do not fit: it has 1013 rows; here n = 1013");
  api().destroy(c);
  tw_options o = {};
  o.size = sizeof o;
  int64_t n = 1013;
  o.symbols = &n;
  CHECK(api().create(&o, &c) == TW_E_SHAPE);
  CHECK(std::string(api().last_error(nullptr)) ==
        "the sizes do not fit: it has 1013 rows; here n = 1013");
  n = INT64_MAX;
  CHECK(api().arena_bytes(&n) == UINT64_MAX);
  CHECK(api().create(&o, &c) == TW_E_MEMORY);
  CHECK(std::string(api().last_error(nullptr)) ==
        "no memory for an arena of more bytes than can be counted");
}

TEST_CASE("a caller's pool runs every index once, and nested loops stay out of it") {
  static std::atomic<int> calls;
  tw_parallel pool = {[](void*, void (*fn)(void*, int32_t), void* arg, int32_t count) {
                        ++calls;
                        for (int32_t i = count; i-- > 0;) fn(arg, i);
                      },
                      nullptr, 2};
  tw_options o = {};
  o.size = sizeof o;
  o.parallel = &pool;
  tw_context* c = nullptr;
  REQUIRE(api().create(&o, &c) == TW_OK);
  Run run(10);
  CHECK(api().run(c, run.inputs, run.outputs) == TW_OK);
  CHECK(run.right());
  CHECK(calls == 2);
  api().destroy(c);
  pool.threads = 0;
  CHECK(api().create(&o, &c) == TW_E_ARGUMENT);
}

TEST_CASE("a profile clocks every kernel call") {
  Context context(2);
  Run run(500);
  uint64_t ns[2] = {0, 0};
  CHECK(api().profile(context.c, run.inputs, run.outputs, ns) == TW_OK);
  CHECK(run.right());
  CHECK(ns[0] > 0);
  CHECK(ns[1] > 0);
  CHECK(api().profile(context.c, run.inputs, run.outputs, nullptr) == TW_E_ARGUMENT);
}

TEST_CASE("contexts come and go a hundred times") {
  for (int i = 0; i < 100; ++i) {
    Context first(3), second(2);
    Run run(50);
    CHECK(api().run(second.c, run.inputs, run.outputs) == TW_OK);
    CHECK(run.right());
  }
}

TEST_CASE("contexts run at once from several threads") {
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      for (int round = 0; round < 10; ++round) {
        tw_options o = {};
        o.size = sizeof o;
        o.threads = 1 + t;
        tw_context* c = nullptr;
        if (api().create(&o, &c) != TW_OK) ++wrong;
        for (int i = 0; i < 20; ++i) {
          Run run(1 + (i * 37 + t) % 200);
          if (api().run(c, run.inputs, run.outputs) != TW_OK || !run.right()) ++wrong;
        }
        api().destroy(c);
      }
    });
  for (std::thread& t : threads) t.join();
  CHECK(wrong == 0);
}

TEST_CASE("any number of contexts share the workers, and more runs than lanes go on alone") {
  constexpr int kContexts = 150;
  std::vector<std::unique_ptr<Context>> contexts;
  for (int i = 0; i < kContexts; ++i) contexts.push_back(std::make_unique<Context>(2));
  for (const auto& context : contexts) {
    Run run(50);
    CHECK(api().run(context->c, run.inputs, run.outputs) == TW_OK);
    CHECK(run.right());
  }
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (const auto& context : contexts)
    threads.emplace_back([&wrong, c = context->c] {
      for (int i = 0; i < 20; ++i) {
        Run run(1 + i * 11);
        if (api().run(c, run.inputs, run.outputs) != TW_OK || !run.right()) ++wrong;
      }
    });
  for (std::thread& t : threads) t.join();
  CHECK(wrong == 0);
}

TEST_CASE("a profiler is told of every call of every run, in their order") {
  struct Told {
    std::vector<int32_t> calls;
    std::vector<uint64_t> clock;
  } told;
  const tw_profiler profiler = {[](void* arg, int32_t call, uint64_t begin, uint64_t end) {
                                  auto& to = *static_cast<Told*>(arg);
                                  to.calls.push_back(call);
                                  to.clock.insert(to.clock.end(), {begin, end});
                                },
                                &told};
  tw_options o = {};
  o.size = sizeof o;
  o.profiler = &profiler;
  tw_context* c = nullptr;
  REQUIRE(api().create(&o, &c) == TW_OK);
  for (int i = 0; i < 2; ++i) {
    Run run(9);
    CHECK(api().run(c, run.inputs, run.outputs) == TW_OK);
    CHECK(run.right());
  }
  CHECK(told.calls == std::vector<int32_t>{0, 1, 0, 1});
  CHECK(std::ranges::is_sorted(told.clock));
  Run run(9);
  uint64_t ns[2] = {};
  CHECK(api().profile(c, run.inputs, run.outputs, ns) == TW_OK);  // it hears of profile() too
  CHECK(told.calls.size() == 6);
  CHECK(ns[0] == told.clock[9] - told.clock[8]);
  api().destroy(c);
  const tw_profiler nobody = {nullptr, nullptr};
  o.profiler = &nobody;
  CHECK(api().create(&o, &c) == TW_E_ARGUMENT);
}

TEST_CASE("a second run on a running context is refused") {
  static tw_context* c;
  static Run* inner;
  static tw_status status;
  tw_parallel pool = {[](void*, void (*fn)(void*, int32_t), void* arg, int32_t count) {
                        status = api().run(c, inner->inputs, inner->outputs);
                        for (int32_t i = 0; i < count; ++i) fn(arg, i);
                      },
                      nullptr, 2};
  tw_options o = {};
  o.size = sizeof o;
  o.parallel = &pool;
  REQUIRE(api().create(&o, &c) == TW_OK);
  Run run(4), other(4);
  inner = &other;
  CHECK(api().run(c, run.inputs, run.outputs) == TW_OK);
  CHECK(status == TW_E_BUSY);
  CHECK(run.right());
  api().destroy(c);
}

TEST_CASE("a forked child runs on alone") {
  Context context(3);
  Run run(100);
  REQUIRE(api().run(context.c, run.inputs, run.outputs) == TW_OK);
  const pid_t child = fork();
  if (child == 0) {
    Run mine(100), fresh(100);
    int wrong = api().run(context.c, mine.inputs, mine.outputs) != TW_OK || !mine.right();
    api().destroy(context.c);
    tw_options o = {};
    o.size = sizeof o;
    o.threads = 2;
    tw_context* c = nullptr;
    wrong += api().create(&o, &c) != TW_OK || api().run(c, fresh.inputs, fresh.outputs) != TW_OK ||
             !fresh.right();
    api().destroy(c);
    _exit(wrong);
  }
  int status = -1;
  waitpid(child, &status, 0);
  CHECK(status == 0);
  CHECK(api().run(context.c, run.inputs, run.outputs) == TW_OK);
}
