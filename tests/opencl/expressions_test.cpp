// Every operator and cast of every element type, over the corners of the type, on OpenCL against
// the interpreter.
#include <cmath>
#include <cstring>
#include <limits>

#include "ir/kernel/interpreter.h"
#include "tests/opencl/session.h"

using namespace tw;

namespace {

using Bytes = std::vector<std::byte>;

constexpr int64_t kPoints = 144;

double number(DType t, int64_t i) {
  static const double kReals[] = {0.0,  -0.0, 1.0,  -1.0,     0.5,       2.5,
                                  -3.5, 7.25, 19.0, INFINITY, -INFINITY, NAN};
  return is_float(t) ? kReals[i % 12] : 0;
}

int64_t integer(DType t, int64_t i) {
  const int bits = dtype_bytes(t) * 8;
  const bool sign = is_signed_int(t);
  // Indices are i64, and code assumes that their differences do not overflow.
  const uint64_t most = t == DType::i64 ? uint64_t{1} << 61
                        : sign          ? (uint64_t{1} << (bits - 1)) - 1
                                        : ~uint64_t{0} >> (64 - bits);
  const int64_t least = sign ? -static_cast<int64_t>(most) - 1 : 1,
                corners[] = {static_cast<int64_t>(most),
                             least,
                             1,
                             2,
                             3,
                             7,
                             100,
                             sign ? -1 : 5,
                             sign ? -2 : 6,
                             sign ? -100 : 8,
                             33,
                             64};
  return t == DType::boolean ? i & 1 : corners[i % 12];
}

void put(Bytes& bytes, DType t, int64_t at, double real, int64_t whole) {
  const float single = static_cast<float>(real);
  const uint16_t half = t == DType::f16 ? f32_to_f16(single) : f32_to_bf16(single);
  const void* from = &whole;
  if (t == DType::f32) from = &single;
  if (t == DType::f64) from = &real;
  if (t == DType::f16 || t == DType::bf16) from = &half;
  std::memcpy(bytes.data() + at * dtype_bytes(t), from, static_cast<size_t>(dtype_bytes(t)));
}

double get(DType t, const Bytes& bytes, size_t at) {
  const std::byte* from = bytes.data() + at * static_cast<size_t>(dtype_bytes(t));
  const auto as = [&]<class T>(T v) {
    std::memcpy(&v, from, sizeof v);
    return v;
  };
  if (t == DType::f32) return double(as(float{}));
  if (t == DType::f64) return as(double{});
  if (t == DType::f16) return double(f16_to_f32(as(uint16_t{})));
  return double(bf16_to_f32(as(uint16_t{})));
}

struct Case {
  Kernel kernel;
  std::vector<std::string> names;  // operator of each output
  std::vector<Bytes> before, after;
};

// Builds one kernel with an output for each operator. x and z have all pairs of corners, r has
// values that every type holds.
Case case_of(DType t) {
  Case c;
  Kernel& k = c.kernel;
  k.name = std::string("all_") + dtype_name(t);
  for (const char* name : {"x", "z", "r"})
    k.buffers.push_back({name, t, {Expr(kPoints)}, BufferRole::input});
  const auto at = [&](int b) { return load(BufferId{b}, t, {var("i")}); };
  const Expr x = at(0), z = at(1), r = at(2);
  std::vector<Stmt> stores;
  const auto add = [&](const std::string& name, const Expr& value) {
    stmt::Store s;
    s.label = "y" + std::to_string(c.names.size());
    s.buffer = BufferId{static_cast<int32_t>(k.buffers.size())};
    s.indices = {var("i")};
    s.value = value;
    k.buffers.push_back({s.label, value.type(), {Expr(kPoints)}, BufferRole::output});
    c.names.push_back(name);
    stores.push_back(make_store(std::move(s)));
  };
  for (int op = 0; op < kUnaryOpCount; ++op)
    if (!operand_error(static_cast<UnaryOp>(op), t))
      add(op_name(static_cast<UnaryOp>(op)), unary(static_cast<UnaryOp>(op), x));
  for (int op = 0; op < kBinaryOpCount; ++op)
    if (!operand_error(static_cast<BinaryOp>(op), t, t))
      add(op_name(static_cast<BinaryOp>(op)), binary(static_cast<BinaryOp>(op), x, z));
  if (t != DType::boolean)
    add("product and sum", x * z + r), add("choice", select(lt(x, z), x * z, z));
  for (int to = 0; to < kArithmeticDTypeCount; ++to) {
    const DType u = static_cast<DType>(to);
    if (u == t) continue;
    add(std::string("cast to ") + dtype_name(u), cast(u, is_float(t) && is_int(u) ? r : x));
    if (is_int(u) && t != DType::boolean)
      add(std::string("sat.") + dtype_name(u), cast(u, x, true));
  }
  k.body = make_loop("i", Expr(kPoints), make_sequence(std::move(stores)), LoopKind::bind);
  stmt::Loop loop = get<stmt::Loop>(k.body);
  loop.axis = "thread.x";
  k.body = make_stmt(std::move(loop));
  for (const Buffer& b : k.buffers)
    c.before.emplace_back(static_cast<size_t>(kPoints * dtype_bytes(b.dtype)));
  for (int64_t i = 0; i < kPoints; ++i) {
    put(c.before[0], t, i, number(t, i), integer(t, i));
    put(c.before[1], t, i, number(t, i / 12), integer(t, i / 12));
    put(c.before[2], t, i, static_cast<double>(i) * 1.75 - 120,
        is_unsigned_int(t)    ? i
        : t == DType::boolean ? i & 1
                              : i % 100 - 50);
  }
  return c;
}

double tolerance(DType t) {
  return t == DType::f16 ? 2e-3 : t == DType::bf16 ? 1.6e-2 : t == DType::f32 ? 3e-6 : 1e-13;
}

std::string difference(const Case& c, const std::vector<Bytes>& got) {
  std::string all;
  for (size_t b = 3; b < got.size(); ++b) {
    const DType t = c.kernel.buffers[b].dtype;
    const auto size = static_cast<size_t>(dtype_bytes(t));
    for (size_t i = 0; i < static_cast<size_t>(kPoints); ++i) {
      bool same = std::memcmp(got[b].data() + i * size, c.after[b].data() + i * size, size) == 0;
      std::string values;
      if (is_float(t)) {
        const double want = get(t, c.after[b], i), is = get(t, got[b], i);
        same |= want == is || (std::isnan(want) && std::isnan(is)) ||
                std::fabs(want - is) <= tolerance(t) * std::max(1.0, std::fabs(want));
        values = ": " + std::to_string(is) + ", not " + std::to_string(want);
      }
      if (same) continue;
      all += c.kernel.name + " " + c.names[b - 3] + ", point " + std::to_string(i) + values + "\n";
      break;
    }
  }
  return all;
}

}  // namespace

TEST_CASE("every operator and cast of every type on OpenCL") {
  const Target target = test::device_target("opencl-generic");
  std::vector<Case> cases;
  std::vector<OpenClSource> sources;
  for (int t = 0; t < kArithmeticDTypeCount; ++t) {
    Case c = case_of(static_cast<DType>(t));
    std::vector<KernelArgument> arguments;
    for (const Bytes& bytes : c.before) arguments.push_back({bytes});
    REQUIRE(error_text(interpret(c.kernel, arguments)) == "");
    for (KernelArgument& a : arguments) c.after.push_back(std::move(a.bytes));
    Expected<OpenClSource> source = emit_opencl(c.kernel, target, c.kernel.name);
    if (!source) FAIL(error_text(source.takeError()));
    sources.push_back(std::move(*source));
    cases.push_back(std::move(c));
  }
  test::OpenClHost* host = test::shared_host();
  if (!host) return;
  std::string log;
  const auto built = host->build(opencl_program(sources), log);
  if (!built) FAIL(log << opencl_program(sources));
  for (size_t i = 0; i < cases.size(); ++i) {
    std::vector<Bytes> buffers = cases[i].before;
    CHECK(host->run(*built, cases[i].kernel, sources[i], buffers, {}) == "");
    CHECK(difference(cases[i], buffers) == "");
  }
}
