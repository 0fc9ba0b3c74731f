// Compiled kernels against the interpreter: every statement and loop kind, access pattern and
// element type.
#include "ir/storage_types.h"
#include "tests/backends/oracle.h"

using namespace tw;

namespace {
std::string with(std::string text, const std::vector<std::pair<std::string, std::string>>& parts) {
  for (const auto& [key, value] : parts)
    for (size_t at; (at = text.find("$" + key)) != std::string::npos;)
      text.replace(at, key.size() + 1, value);
  return text;
}
}  // namespace

TEST_CASE("an unscheduled kernel with every part") {
  check_text(
      R"(kernel @dense(x: in f32[7, 12], w: const f32[12, 9], b: const f32[9], y: out f32[7, 9]) {
    temp c: f32[7, 9]
    for i in 7 { for j in 9 { for k in 12 reduce {
      c: c[i, j] += x[i, k] * w[k, j] where k < 11 || i < 3 init 0.5
    } } }
    for i1 in 7 { for j1 in 9 { y: y[i1, j1] = max(0.0, c[i1, j1] + b[j1]) } }
  })");
}

TEST_CASE("register tiles of several shapes") {
  const char* text =
      R"(kernel @gemm(x: in f32[24, 20], w: const f32[2, 20, $N], y: out f32[24, $T]) {
    temp c: f32[$M, $N] register
    for io in $I parallel { for jo in 2 {
      for i0 in $M unroll { for j0 in $V unroll { for l0 in $L vector { c0: c[i0, j0 * $L + l0] = 0.0 } } }
      for k in 20 reduce { for i in $M unroll { for j in $V unroll { for l in $L vector {
        c: c[i, j * $L + l] += x[io * $M + i, k] * w[jo, k, j * $L + l]
      } } } }
      for i2 in $M unroll { for j2 in $V unroll { for l2 in $L vector {
        y: y[io * $M + i2, jo * $N + j2 * $L + l2] = max(0.0, c[i2, j2 * $L + l2])
      } } }
    } }
  })";
  struct Shape {
    int m, v, l;
  };
  for (Shape s : {Shape{4, 2, 16}, Shape{3, 1, 8}, Shape{6, 4, 4}, Shape{2, 1, 64}, Shape{1, 3, 7},
                  Shape{4, 1, 24}})
    check_text(with(text, {{"M", std::to_string(s.m)},
                           {"I", std::to_string(24 / s.m)},
                           {"V", std::to_string(s.v)},
                           {"L", std::to_string(s.l)},
                           {"N", std::to_string(s.v * s.l)},
                           {"T", std::to_string(2 * s.v * s.l)}}));
}

TEST_CASE("register buffers read and written in pieces of other widths") {
  check_text(R"(kernel @pieces(x: in f32[32], y: out f32[32], z: out f32[8]) {
    temp r: f32[32] register
    for a in 32 vector { r0: r[a] = x[a] }
    for b in 4 unroll { for l in 8 vector { r1: r[b * 8 + l] += x[31 - (b * 8 + l)] } }
    for c in 8 unroll { r2: r[c * 3] *= 2.0 }
    for d in 8 vector { z: z[d] = r[d * 4 + 1] }
    for e in 32 vector { y: y[e] = r[e] }
  })");
}

TEST_CASE("tails are masked, whole vectors or by conditions on lanes") {
  const char* text = R"(kernel @tail(x: in $T[37, 3], y: out $T[37, 2], s: out $T[1]) {
    for f in 37 { y9: y[f, 1] = x[f, 2] }
    for i in 3 { for l in 16 vector {
      if i * 16 + l < 37 { y: y[i * 16 + l, 0] = x[i * 16 + l, 0] + x[i * 16 + l, 1] }
    } }
    for j in 3 reduce { for m in 16 vector reduce {
      s: s[0] max= x[36 - (j * 16 + m), 0] where j * 16 + m <= 36 init x[0, 0]
    } }
  })";
  for (const char* t : {"f32", "f64", "i32", "i8", "u8", "i64", "f16", "bf16", "u16"})
    check_text(with(text, {{"T", t}}), {}, 1e-2);
}

// Rows are stored from the last to the first: a store beyond its row's end spoils one that is done.
TEST_CASE("a tail of one lane stores no more than its narrow element") {
  const char* text = R"(kernel @one(x: in $W[4, 17], y: out $N[4, 17]) {
    for i in 4 unroll { for j in 2 unroll { for l in 16 vector {
      if j * 16 + l < 17 { y: y[3 - i, j * 16 + l] = $N(x[3 - i, j * 16 + l]) }
    } } }
  })";
  for (auto [wide, narrow] : {std::pair{"i32", "i8"},
                              {"i32", "i16"},
                              {"i64", "i32"},
                              {"i64", "i8"},
                              {"u16", "u8"},
                              {"f32", "i8"},
                              {"f64", "f32"},
                              {"f32", "f16"}})
    check_text(with(text, {{"W", wide}, {"N", narrow}}), {}, 1e-2);
}

TEST_CASE("a select keeps its loads inside the buffer") {
  const char* text = R"(kernel @pad(x: in f32[10, 18], y: out f32[12, 20]) {
    for i in 12 { for j in 20 $K {
      y: y[i, j] = select(1 <= i && i < 11 && 1 <= j && j < 19, x[i - 1, j - 1], -1.5)
    } }
  })";
  for (const char* kind : {"", "vector", "unroll"}) check_text(with(text, {{"K", kind}}));
  check_text(R"(kernel @shift(x: in f32[16], y: out f32[16], z: out f32[16]) {
    for i in 16 vector { y: y[i] = select(i < 3, -1.0, x[i - 3] * 2.0) }
    for j in 16 vector { z: z[j] = select(13 <= j, 7.0, select(j < 2, x[j], x[j + 3])) }
  })");
}

TEST_CASE("access patterns of lanes") {
  const char* text =
      R"(kernel @access(x: in $T[64, 3], p: in i64[16], y: out $T[16, 2], r: out $T[16], g: out $T[16], b: out $T[16], t: out $T[8, 16], q: out $T[16]) {
    for i in 16 vector { y0: y[i, 0] = x[i * 2, 1] }
    for i1 in 16 vector { y1: y[i1, 1] = x[i1, i1 % 3] }
    for i2 in 16 vector { r: r[15 - i2] = x[i2 + 3, 0] }
    for i3 in 16 vector { g: g[i3] = x[mod(p[i3], 8) + 8, 2] }
    for i4 in 16 vector { b: b[i4] = x[40, 1] }
    for o in 8 { for i5 in 16 vector { t: t[o, i5] = x[i5 // 4 * 8 + o, 0] } }
    for i6 in 8 vector { q: q[i6 * 2] = x[i6 * 2, 0] + x[i6 * 2 + 1, 0] }
    for i7 in 8 vector { q1: q[i7 * 2 + 1] = x[63 - i7, 2] }
  })";
  for (const char* t : {"f32", "f64", "i32", "i8", "u16", "f16"})
    check_text(with(text, {{"T", t}}), {}, 1e-3);
}

TEST_CASE("copies that turn columns into rows") {
  for (const char* n : {"16", "8", "4", "2"})
    for (const char* type : {"f32", "i8", "f64"}) {
      std::string text = R"(kernel @turn(x: in TYPE[3, 32, 37], y: out TYPE[3, 2, 32, N]) {
        for p in 3 parallel { for a in 2 { for j in N unroll { for i in N vector {
          y: y[p, a, j + 3, i] = x[p, i + a * N, j + 5]
        } } } }
      })";
      auto replace_all = [&](const std::string& from, const std::string& to) {
        for (size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size())
          text.replace(at, from.size(), to);
      };
      replace_all("TYPE", type);
      replace_all("N", n);
      check_text(text.c_str());
    }
}

TEST_CASE("lanes that meet in one element are combined one after the other") {
  check_text(R"(kernel @histogram(x: in f32[32], h: out f32[5]) {
    for a in 5 { z: h[a] = 1.0 }
    for i in 32 vector reduce { h: h[i // 7] += x[i] where 2 <= i }
  })");
}

TEST_CASE("reductions over lanes") {
  for (const char* combiner : {"+=", "*=", "min=", "max="})
    for (const char* count : {"16", "7", "1", "24"})
      check_text(with(R"(kernel @rows(x: in f32[6, 24], y: out f32[6], m: out f32[6]) {
        temp s: f32[1] register
        for i in 6 {
          s0: s[0] = 0.75
          for k in $N vector reduce { s: s[0] $C x[i, k] }
          y: y[i] = s[0]
        }
        for i1 in 6 { for k1 in $N vector reduce { m: m[i1] $C x[i1, k1] where k1 != 2 init 0.5 } }
      })",
                      {{"C", combiner}, {"N", count}}),
                 {}, 1e-4);
}

TEST_CASE("symbolic extents, strides and a workspace") {
  const char* text =
      R"(kernel @symbolic[m, n](x: in f32[m, n], w: const f32[16], y: out f32[m, n], s: out f32[n, m]) {
    temp t: f32[m, n]
    temp u: f32[n]
    for i in m parallel { for jo in (n + 15) // 16 { for jl in 16 vector {
      t: t[i, jo * 16 + jl] = x[i, jo * 16 + jl] * w[jl] where jo * 16 + jl < n
    } } }
    for j0 in n { u: u[j0] = 0.0 }
    for i1 in m reduce { for j1 in n { u1: u[j1] += t[i1, j1] } }
    for i2 in m parallel { for j2 in n {
      y: y[i2, j2] = t[i2, j2] + u[n - 1 - j2]
      s: s[j2, i2] = x[i2, j2]
    } }
  })";
  for (auto [m, n] : {std::pair<int64_t, int64_t>{1, 1}, {3, 16}, {5, 33}, {2, 15}})
    check_text(text, {{"m", m}, {"n", n}}, 1e-4);
}

TEST_CASE("stack buffers of a parallel loop's body") {
  check_text(R"(kernel @stack(x: in f32[6, 40], y: out f32[6, 40]) {
    temp row: f32[40] stack
    temp total: f32[1] stack
    for i in 6 parallel {
      for j in 40 { row: row[j] = exp(x[i, j]) }
      t0: total[0] = 0.0
      for k in 40 reduce { t: total[0] += row[k] }
      for o in 5 { for l in 8 vector { y: y[i, o * 8 + l] = row[o * 8 + l] / total[0] } }
    }
  })");
}

TEST_CASE("scans run in order") {
  check_text(R"(kernel @scan(x: in f32[9, 8], y: out f32[9, 8]) {
    temp h: f32[8]
    for a in 8 vector { h0: h[a] = 0.0 }
    for t in 9 scan {
      for j in 8 vector { h: h[j] += x[t, j] * 0.5 }
      for j1 in 8 vector { y: y[t, j1] = tanh(h[j1]) }
    }
  })");
}

TEST_CASE("conditions: uniform, of lanes, and combined") {
  check_text(
      R"(kernel @conditions(x: in f32[4, 16], p: in bool[4, 16], y: out f32[4, 16], n: out i32[4]) {
    for i0 in 4 { for j0 in 16 vector { y0: y[i0, j0] = -7.0 } }
    for i in 4 {
      if i != 2 { for j in 16 vector {
        if p[i, j] {
          a: y[i, j] = x[i, j]
          if 0.0 < x[i, j] { for k in 3 reduce { b: y[i, j] += x[k, j] where k <= i } }
        }
      } }
    }
    for i1 in 4 { for k1 in 16 vector reduce { n: n[i1] += select(p[i1, k1], 1:i32, 0:i32) where 0.0 < x[i1, k1] init 3:i32 } }
  })");
}

TEST_CASE("integer arithmetic of every type") {
  const char* text = R"(kernel @integers(x: in $T[40], z: in $T[40], y: out $T[14, 40]) {
    for i in 40 $K {
      y0: y[0, i] = x[i] + z[i] * 3
      y1: y[1, i] = x[i] / z[i]
      y2: y[2, i] = x[i] // z[i]
      y3: y[3, i] = x[i] % z[i]
      y4: y[4, i] = mod(x[i], z[i])
      y5: y[5, i] = min(x[i], z[i]) - max(x[i], z[i])
      y6: y[6, i] = x[i] & z[i] | (x[i] ^ 5)
      y7: y[7, i] = x[i] << (z[i] & 7)
      y8: y[8, i] = x[i] >> (z[i] & 7)
      y9: y[9, i] = select(x[i] < z[i], ~x[i], x[i] // 4)
      y10: y[10, i] = x[i] % 8 + x[i] % 7
      y11: y[11, i] = x[i] // 7 - x[i] / 7
      y12: y[12, i] = pow(x[i], z[i] & 3)
      y13: y[13, i] = select(x[i] != z[i] && !(z[i] <= 3), x[i] >> z[i], z[i] << x[i])
    }
  })";
  for (const char* kind : {"", "vector"})
    for (const char* t : {"i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64"})
      check_text(with(text, {{"T", t}, {"K", kind}}));
}

TEST_CASE("neighbouring products of narrow integers") {
  const char* text = R"(kernel @products(x: in $X[5, 12], w: in $W[3, $L, $N], y: out i32[5, $L]) {
    temp c: i32[5, $L] register
    for i0 in 5 unroll { for l0 in $L vector { c0: c[i0, l0] = 0:i32 } }
    for k in 3 reduce { for i in 5 unroll { for l in $L vector { c: c[i, l] += $S } } }
    for i1 in 5 unroll { for l1 in $L vector { y: y[i1, l1] = c[i1, l1] } }
  })";
  const auto check = [&](const char* x, const char* w, int together, const std::string& sum) {
    for (const char* lanes : {"4", "8", "16", "12"})
      check_text(with(
          text, {{"S", sum}, {"X", x}, {"W", w}, {"N", std::to_string(together)}, {"L", lanes}}));
  };
  const std::string first = "i32(x[i, k * 2]) * i32(w[k, l, 0]) + ";
  for (const char* w : {"i8", "u8", "i16"}) {
    check("i16", w, 2, first + "i32(x[i, k * 2 + 1]) * i32(w[k, l, 1])");
    check("i16", w, 2, first + "i32(w[k, l, 1]) * i32(x[i, k * 2 + 1])");
    check("i16", w, 2, first + "i32(x[i, k * 2]) * i32(w[k, l, 1])");  // no neighbours
    check("i16", w, 2, first + "i32(x[i, k * 2 + 1]) * i32(w[k, l, 0])");
  }
  const auto four = [](const std::vector<int>& at) {
    std::string sum;
    for (int p = 0; p < 4; ++p)
      sum += (p > 0 ? " + " : "") +
             ("i32(x[i, k * 4 + " + std::to_string(at[static_cast<size_t>(p)])) +
             "]) * i32(w[k, l, " + std::to_string(p) + "])";
    return sum;
  };
  for (const char* x : {"u8", "i8"})
    for (const char* w : {"i8", "u8"}) {
      check(x, w, 4, four({0, 1, 2, 3}));
      check(x, w, 4, four({0, 1, 3, 2}));
    }
}

TEST_CASE("conversions between all types") {
  const char* text = R"(kernel @convert(x: in $A[48], y: out $B[2, 48]) {
    for i in 48 $K {
      y: y[0, i] = $B(x[i])
      s: y[1, i] = $S
    }
  })";
  for (const char* kind : {"", "vector"})
    for (int a = 0; a < kDTypeCount; ++a)
      for (int b = 0; b < kDTypeCount; ++b) {
        DType from = static_cast<DType>(a), to = static_cast<DType>(b);
        bool saturates = (is_int(to) || is_small_float(to)) && from != DType::boolean;
        std::string s = saturates ? std::string("sat.") + dtype_name(to) + "(x[i])"
                                  : std::string(dtype_name(to)) + "(x[i])";
        std::string kernel = with(
            text, {{"A", dtype_name(from)}, {"S", s}, {"B", dtype_name(to)}, {"K", kind}});
        // One storage type becomes another by way of a float or an i8.
        if (from == to || (is_storage_only(from) && is_storage_only(to))) continue;
        check_text(kernel, {}, 0);
      }
}

TEST_CASE("floats beyond an integer's range, infinite and NaN, saturate") {
  const char* text = R"(kernel @saturate(x: in $F[48], y: out $T[4, 48]) {
    for i in 48 $K {
      a: y[0, i] = sat.$T(x[i] * 100.0:$F)
      b: y[1, i] = sat.$T(x[i] * 50000.0:$F)
      c: y[2, i] = sat.$T(x[i] / (x[i] - x[i]))
      d: y[3, i] = sat.$T((x[i] - x[i]) / (x[i] - x[i]))
    }
  })";
  for (const char* kind : {"", "vector"})
    for (const char* f : {"f32", "f64"})
      for (const char* t : {"i8", "u8", "i16", "u16", "i32", "u32", "i64", "u64"})
        check_text(with(text, {{"F", f}, {"T", t}, {"K", kind}}), {}, 0);
}

TEST_CASE("casts of what an integer does not hold: the nearest of 32 or 64 bits, NaN 0") {
  const char* text = R"(kernel @wrapped(x: in $F[48], y: out $T[5, 48]) {
    for i in 48 $K {
      a: y[0, i] = $T(x[i] * 128.0:$F)
      b: y[1, i] = $T(x[i] * 4294967296.0:$F)
      c: y[2, i] = $T(x[i] * 36893488147419103232.0:$F)
      d: y[3, i] = $T(x[i] / (x[i] - x[i]))
      e: y[4, i] = $T((x[i] - x[i]) / (x[i] - x[i]))
    }
  })";
  for (const char* kind : {"", "vector"})
    for (const char* f : {"f32", "f64"})
      for (const char* t : {"i8", "u8", "i16", "u16", "i32", "u32", "i64", "u64"})
        check_text(with(text, {{"F", f}, {"T", t}, {"K", kind}}), {}, 0);
}

TEST_CASE("extremes of windows with NaN and infinities") {
  const char* text = R"(kernel @windows(x: in $F[80], y: out $F[4, 16]) {
    temp t: $F[80]
    temp m: $F[16] register
    for a in 80 { t: t[a] = select(a % 7 == 3, (x[a] - x[a]) / (x[a] - x[a]), select(a % 11 == 5, x[a] / (x[a] - x[a]), x[a])) }
    for k in 5 unroll reduce { for i in 16 vector { m: m[i] $O= t[k * 16 + i] init $I } }
    for l in 16 vector { y0: y[0, l] = m[l] }
    for j in 16 vector { y1: y[1, j] = $O($O(t[j], t[j + 16]), $O(t[j + 32], t[j + 5])) }
    for p in 16 { y2: y[2, p] = $O($O(0.5:$F, t[p]), t[p + 1]) }
    for q in 80 vector reduce { y3: y[3, 0] $O= select(is_nan(t[q]), $I, t[q]) init $I }
    for r in 15 { y4: y[3, r + 1] = 0.0:$F }
  })";
  for (const char* f : {"f32", "f64"})
    for (const bool larger : {false, true})
      check_text(with(text, {{"F", f},
                             {"O", larger ? "max" : "min"},
                             {"I", std::string(larger ? "-inf" : "inf") + ":" + f}}),
                 {}, 0);
}

// The interpreter rounds at stores alone, so products and sums must be exact here: factors are
// powers of two, and results are small or far beyond every integer.
TEST_CASE("rounded floats with an offset saturate, whatever they are") {
  const char* text = R"(kernel @offset(x: in $F[48], y: out $T[7, 48]) {
    for i in 48 $K {
      a: y[0, i] = sat.$T(round(x[i] * $S) + $C)
      b: y[1, i] = sat.$T($C + round(x[i] * 128.0:$F))
      ties: y[2, i] = sat.$T(round($F(i) * 0.5:$F + -7.0:$F) + $C)
      c: y[3, i] = sat.$T(round(x[i] * 1e30:$F) + $C)
      d: y[4, i] = sat.$T(round(x[i] / (x[i] - x[i])) + $C)
      e: y[5, i] = sat.$T(round((x[i] - x[i]) / (x[i] - x[i])) + $C)
      f: y[6, i] = sat.$T(round(x[i] * $S))
    }
  })";
  for (const char* kind : {"", "vector"})
    for (const char* f : {"f32", "f64"})
      for (const char* t : {"i8", "u8", "i16", "u16", "i32"})
        for (const char* offset : {"0.0", "129.0", "-128.0", "65536.0", "65537.0", "0.5"})
          for (const char* scale : {"256.0", "131072.0"})
            check_text(with(text, {{"F", f},
                                   {"T", t},
                                   {"K", kind},
                                   {"C", std::string(offset) + ":" + f},
                                   {"S", std::string(scale) + ":" + f}}),
                       {}, 0);
}

TEST_CASE("floats of a byte and less: ties, subnormals, overflow, NaN") {
  const char* text = R"(kernel @small(x: in f32[48], y: out $T[6, 48], z: out $T[6, 48]) {
    for i in 48 $K {
      a: y[0, i] = $T(x[i] * 400.0)
      b: y[1, i] = $T(round(x[i] * 8.0) * 0.0625)
      c: y[2, i] = $T(x[i] * 0.0001)
      d: y[3, i] = $T(x[i] * 50000.0)
      e: y[4, i] = $T(round(x[i]) / 0.0)
      f: y[5, i] = $T(x[i] * 0.0)
      g: z[0, i] = sat.$T(x[i] * 400.0)
      h: z[1, i] = sat.$T(round(x[i] * 8.0))
      j: z[2, i] = sat.$T(x[i] * 0.00001)
      k: z[3, i] = sat.$T(x[i] * 50000.0)
      l: z[4, i] = sat.$T(round(x[i]) / 0.0)
      m: z[5, i] = sat.$T(f64(x[i]) * 1000.0:f64)
    }
  })";
  for (const char* kind : {"", "vector"})
    for (const char* t : {"f8e4m3fn", "f8e4m3fnuz", "f8e5m2", "f8e5m2fnuz", "f8e8m0", "f4e2m1"})
      check_text(with(text, {{"T", t}, {"K", kind}}), {}, 0);
}

TEST_CASE("float functions inside kernels of every float type") {
  const char* text = R"(kernel @functions(x: in $T[32], y: out $T[8, 32]) {
    for i in 32 $K {
      y0: y[0, i] = x[i] * sigmoid(x[i])
      y1: y[1, i] = 0.5:$T * x[i] * (1.0:$T + erf(x[i] * 0.70710678:$T))
      y2: y[2, i] = pow(abs(x[i]), 2.0:$T) + pow(abs(x[i]), 0.5:$T) - pow(abs(x[i]), 1.3:$T)
      y3: y[3, i] = floor(x[i] * 3.0:$T) + ceil(x[i]) * trunc(x[i] * 5.0:$T) - round(x[i] * 2.5:$T)
      y4: y[4, i] = sin(x[i]) * cos(x[i]) + atan(x[i])
      y5: y[5, i] = sign(x[i]) + sqrt(abs(x[i])) + rsqrt(abs(x[i]) + 1.0:$T) + log(abs(x[i]) + 0.5:$T)
      y6: y[6, i] = select(is_nan(x[i] / 0.0:$T), 1.0:$T, mod(x[i], 0.3:$T)) - x[i] * x[i]
      y7: y[7, i] = max(min(-x[i], 0.5:$T), tanh(x[i])) + (x[i] // 0.7:$T)
    }
  })";
  for (const char* kind : {"", "vector"})
    for (const char* t : {"f32", "f64", "f16", "bf16"})
      check_text(with(text, {{"T", t}, {"K", kind}}), {},
                 std::string(t) == "f16"    ? 4e-3
                 : std::string(t) == "bf16" ? 4e-2
                                            : 2e-6);
}

TEST_CASE("a convolution with padding, by register tiles") {
  check_text(
      R"(kernel @conv(x: in f32[2, 10, 10, 16], w: const f32[1, 2, 3, 3, 16, 16], b: const f32[16], y: out f32[1, 10, 10, 16]) {
    temp acc: f32[5, 16] register
    for h in 10 parallel { for wo in 2 {
      for p0 in 5 unroll { for o0 in 16 vector { a0: acc[p0, o0] = b[o0] } }
      for ib in 2 reduce { for kh in 3 reduce { for kw in 3 reduce { for ic in 16 reduce {
        for p in 5 unroll { for o in 16 vector {
          acc: acc[p, o] += x[ib, h + kh - 1, wo * 5 + p + kw - 1, ic] * w[0, ib, kh, kw, ic, o] where 1 <= h + kh && h + kh < 11 && 1 <= wo * 5 + p + kw && wo * 5 + p + kw < 11
        } }
      } } } }
      for p2 in 5 unroll { for o2 in 16 vector { y: y[0, h, wo * 5 + p2, o2] = max(0.0, acc[p2, o2]) } }
    } }
  })",
      {}, 1e-4);
}
