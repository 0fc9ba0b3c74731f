// The text form of schedules: each step prints to one line, which parses back to the same step.
#include <doctest/doctest.h>

#include "ir/schedule/schedule.h"

namespace {

const char* const kAllSteps =
    "schedule {\n"
    "  split i 14 -> i0 i1\n"
    "  split j 64 shift -> j0 j1\n"
    "  fuse i0 j0 -> f\n"
    "  reorder f k i1 j1\n"
    "  vectorize j1\n"
    "  unroll i1\n"
    "  parallel f\n"
    "  compute_at c f\n"
    "  compute_inline t\n"
    "  cache_write y -> yc register\n"
    "  cache_read x c -> xc stack\n"
    "  pack c right -> wp constant [j // 16, k, j % 16] wj wk wl\n"
    "  block y 1 8 -> l m\n"
    "  flatten y -> f\n"
    "  narrow c left u8\n"
    "  retype c f32\n"
    "  recount c left -128 -> e constant\n"
    "  unguard c left\n"
    "  widen c i j 4 8 max\n"
    "  skew k 16 [m // 4 % 4 * 4]\n"
    "  set_scope c register\n"
    "  decompose_reduction c k\n"
    "  partition f 1 2 -> a z\n"
    "  peel i 2 -> b\n"
    "  tile i j 4 16 -> i0 j0 i1 j1\n"
    "  reverse_compute_at y i0\n"
    "  compute_root c\n"
    "  rfactor c k1 -> cf\n"
    "  replicate m t 4 [i % 4] -> a b\n"
    "  hoist v k\n"
    "  storage_align c 0 32 16\n"
    "  pad k 4\n"
    "  layout t r c -> [c // 16, r, c % 16]\n"
    "  prefetch w j 1 over k 2\n"
    "  annotate f grain 4\n"
    "  virtual_thread v\n"
    "  bind f block.x\n"
    "  blockize i tile\n"
    "  tensorize i x86.dot4 -> dot\n"
    "  async_copy xs\n"
    "  pipeline k 3 xs ws\n"
    "  roles k 2 load = xs ws, compute = c\n"
    "  specialize i 1 m n -> one\n"
    "  peel i 3 back -> e\n"
    "  block x 1 8\n"
    "  pad k 4 min\n"
    "}\n";

std::string parse_failure(const char* text) {
  llvm::Expected<tw::Schedule> schedule = tw::parse_schedule(text, "s.txt");
  return schedule ? "" : tw::error_text(schedule.takeError());
}

bool has(const std::string& text, const char* part) { return text.find(part) != std::string::npos; }

}  // namespace

TEST_CASE("schedule: parse(print(s)) == s for every primitive") {
  llvm::Expected<tw::Schedule> schedule = tw::parse_schedule(kAllSteps);
  REQUIRE_MESSAGE(bool(schedule), tw::error_text(schedule.takeError()));
  // Split occurs with both tails, peel with both ends, block with and without loops, pad with and without a combiner.
  CHECK(schedule->steps.size() == std::variant_size_v<tw::Step> + 4);
  CHECK(tw::print(*schedule) == kAllSteps);
  for (size_t i = 1; i + 3 < schedule->steps.size(); ++i)
    CHECK(schedule->steps[i].index() == i - 1);
  CHECK(std::get<tw::step::Peel>(schedule->steps[schedule->steps.size() - 3]).back);
  CHECK(std::get<tw::step::Split>(schedule->steps[1]).tail == tw::Tail::shift);
  CHECK(std::get<tw::step::Reorder>(schedule->steps[3]).loops.size() == 4);
  CHECK(std::get<tw::step::CacheRead>(schedule->steps[10]).scope == "stack");
}

TEST_CASE("schedule: the hash is that of the text") {
  llvm::Expected<tw::Schedule> a = tw::parse_schedule("schedule { vectorize j }");
  llvm::Expected<tw::Schedule> b = tw::parse_schedule("schedule {\n\n   vectorize   j\n}\n");
  llvm::Expected<tw::Schedule> c = tw::parse_schedule("schedule { vectorize k }");
  REQUIRE((a && b && c));
  CHECK(tw::schedule_hash(*a) == tw::schedule_hash(*b));
  CHECK(tw::schedule_hash(*a) != tw::schedule_hash(*c));
}

TEST_CASE("schedule: text errors say what and where") {
  CHECK(has(parse_failure("schedule {\n  splat i 4 -> a b\n}"), "s.txt:2:3: "));
  CHECK(has(parse_failure("schedule {\n  splat i 4 -> a b\n}"), "unknown step 'splat'"));
  CHECK(has(parse_failure("schedule {\n  split i x -> a b\n}"), "s.txt:2:11: "));
  CHECK(has(parse_failure("schedule {\n  pack c both -> wp constant [k] wk\n}"), "left or right"));
  CHECK(has(parse_failure("schedule {\n  narrow c left u7\n}"), "a type"));
  CHECK(has(parse_failure("schedule {\n  split i 4 a b\n}"), "'->'"));
  CHECK(has(parse_failure("schedule {\n  split i 4 -> a b c\n}"), "s.txt:2:20: "));
  CHECK(has(parse_failure("schedule {\n  split i 4 -> a\n  unroll a\n}"), "s.txt:"));
  CHECK(has(parse_failure("schedule {\n  pad k 4 max min\n}"), "the end of the line, found 'min'"));
  CHECK(has(parse_failure("schedule {\n  pad k 4 most\n}"),
            "repeat, max, min, mul or the end of the line, found 'most'"));
  CHECK(
      has(parse_failure("schedule {\n  split i 4 shft -> a b\n}"), "shift or '->', found 'shft'"));
  CHECK(has(parse_failure("schedule {\n  prefetch x i 1 ovr k\n}"), "over or a locality"));
  CHECK(parse_failure("schedule {\n  unroll a\n") != "");
  CHECK(parse_failure("schedule { } schedule") != "");
}

TEST_CASE("an inlined temp takes its prefetches along, and nothing of what stands beside them") {
  auto kernel = tw::parse_kernel(
      "kernel @k(x: in f32[4], y: out f32[4]) { temp t: f32[4] temp c: f32[4] "
      "for a in 4 { t: t[a] = x[a] * 2 } for i in 4 { c: c[i] = t[i] + 1 } "
      "for j in 4 { y: y[j] = c[j] } }");
  REQUIRE(bool(kernel));
  auto schedule = tw::parse_schedule("schedule {\n  prefetch t i 1\n  compute_inline t\n}\n");
  REQUIRE(bool(schedule));
  auto result = tw::apply(*kernel, *schedule);
  REQUIRE(bool(result));
  CHECK(tw::print(*result) ==
        "kernel @k(x: in f32[4], y: out f32[4]) {\n  temp c: f32[4]\n  for i in 4 {\n    c: c[i] = "
        "x[i] * 2.0 + 1.0\n  }\n  for j in 4 {\n    y: y[j] = c[j]\n  }\n}\n");
}
