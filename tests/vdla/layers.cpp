#include "tests/vdla/layers.h"

#include <doctest/doctest.h>

#include <cmath>
#include <cstring>

#include "backends/vdla/config.h"
#include "frontend/frontend.h"
#include "kernels/default_schedule.h"
#include "kernels/device/tensor_form.h"

namespace tw::vdla {
namespace {

template <class FamilyStages>
FamilyStages already_arranged() {
  FamilyStages stages;
  stages.arranged = true;
  return stages;
}

template <class T>
T must(Expected<T> value) {
  if (!value) FAIL(error_text(value.takeError()));
  return std::move(*value);
}

int blocks(int channels) { return (channels + 15) / 16; }
std::string str(int64_t n) { return std::to_string(n); }

template <class T>
std::vector<std::byte> bytes_of(const std::vector<T>& values) {
  std::vector<std::byte> out(values.size() * sizeof(T));
  std::memcpy(out.data(), values.data(), out.size());
  return out;
}

int8_t random_byte(Random& random) { return static_cast<int8_t>(pick(random, -128, 127)); }

int8_t requantized(int64_t sum, float scale, int zero, int low) {
  const float scaled = static_cast<float>(static_cast<int32_t>(sum)) * scale;
  return static_cast<int8_t>(std::clamp<double>(std::nearbyint(scaled) + zero, low, 127));
}

struct Constants {
  std::vector<int32_t> bias;
  std::vector<float> scale;
};
Constants random_constants(Random& random, int channels, double size) {
  Constants c;
  for (int o = 0; o < channels; ++o) {
    c.bias.push_back(pick(random, -20000, 20000));
    c.scale.push_back(
        static_cast<float>(std::ldexp(0.4 + 0.001 * pick(random, 0, 1000), 1) / size));
  }
  return c;
}

void bind_constant(LayerCase& layer, size_t parameter, std::vector<std::byte> bytes,
                   const std::string& pack = "") {
  layer.constants.push_back(std::move(bytes));
  LoweredArgument& argument = layer.group.arguments[parameter];
  argument.constant = true;
  auto owner = std::make_shared<std::vector<std::byte>>(layer.constants.back());
  argument.blob = {owner, *owner};
  if (!pack.empty()) argument.pack = std::make_shared<const Kernel>(must(parse_kernel(pack)));
}

std::string spatial_list(const std::vector<int>& extents, const std::string& before,
                         const std::string& after) {
  std::string out = before;
  for (int e : extents) out += str(e) + ", ";
  return out + after;
}

// Returns the heads of nested loops, each with an open brace.
std::string loops(const std::vector<std::pair<std::string, int>>& list,
                  const std::string& role = "") {
  std::string out;
  for (const auto& [name, extent] : list)
    out += "for " + name + " in " + str(extent) + role + " { ";
  return out;
}

}  // namespace

std::vector<int> Layer::out() const {
  std::vector<int> extents;
  for (size_t d = 0; d < in.size(); ++d)
    extents.push_back((in[d] + before[d] + after[d] - kernel[d]) / strides[d] + 1);
  return extents;
}

namespace {

struct Texts {
  // at: indices of x behind the block; where: conditions of the padding; spatial_acc, spatial_y:
  // indices of the sums and of y
  std::string x, where, at, spatial_acc, spatial_y;
  std::vector<std::pair<std::string, int>> acc, taps, y;
};

Texts texts_of(const Layer& l) {
  Texts t;
  const std::vector<int> out = l.out();
  for (size_t d = 0; d < l.in.size(); ++d) {
    const std::string a = "as" + str(static_cast<int>(d)), k = "k" + str(static_cast<int>(d)),
                      s = "s" + str(static_cast<int>(d));
    const std::string at = a + " * " + str(l.strides[d]) + (l.kernel[d] > 1 ? " + " + k : "") +
                           " - " + str(l.before[d]);
    t.at += at + ", ";
    if (l.before[d] > 0) t.where += (t.where.empty() ? "" : " && ") + ("0 <= " + at);
    if (l.before[d] + l.after[d] > 0)
      t.where += (t.where.empty() ? "" : " && ") + (at + " < " + str(l.in[d]));
    t.acc.emplace_back(a, out[d]), t.y.emplace_back(s, out[d]);
    if (l.kernel[d] > 1) t.taps.emplace_back(k, l.kernel[d]);
    t.spatial_acc += a + ", ", t.spatial_y += s + ", ";
  }
  return t;
}

// Calls fn(output point, input point, tap) for all taps of all windows that lie in the input.
template <class Fn>
void windows(const Layer& l, const Fn& fn) {
  const std::vector<int> out = l.out();
  const size_t rank = l.in.size();
  std::vector<int> o(rank), k(rank);
  const std::function<void(size_t)> walk = [&](size_t d) {
    if (d == 2 * rank) {
      int64_t to = 0, from = 0, tap = 0;
      for (size_t i = 0; i < rank; ++i) {
        const int at = o[i] * l.strides[i] + k[i] - l.before[i];
        if (at < 0 || at >= l.in[i]) return;
        to = to * out[i] + o[i], from = from * l.in[i] + at, tap = tap * l.kernel[i] + k[i];
      }
      return fn(to, from, tap);
    }
    int& i = d < rank ? o[d] : k[d - rank];
    for (i = 0; i < (d < rank ? out[d] : l.kernel[d - rank]); ++i) walk(d + 1);
  };
  walk(0);
}

int64_t product(const std::vector<int>& extents) {
  int64_t n = 1;
  for (int e : extents) n *= e;
  return n;
}

}  // namespace

LayerCase conv_case(const Layer& l, unsigned seed) {
  const int ib = blocks(l.channels), ob = blocks(l.outputs);
  const std::vector<int> out = l.out();
  const Texts t = texts_of(l);
  const std::string taps = spatial_list(l.kernel, "", "");
  std::string tap_index, tap_loops, pack_at;
  for (size_t d = 0; d < l.kernel.size(); ++d)
    tap_index += (l.kernel[d] > 1 ? "k" + str(static_cast<int>(d)) : "0") + ", ",
        tap_loops += "for wk" + str(static_cast<int>(d)) + " in " + str(l.kernel[d]) + " { ",
        pack_at += ", wk" + str(static_cast<int>(d));
  const std::string minus = l.zero_in
                                ? "(i32(x[an, rc, " + t.at + "rl]) - " + str(l.zero_in) + ":i32)"
                                : "i32(x[an, rc, " + t.at + "rl])";
  std::string y = "round(f32(acc[n, c, " + t.spatial_y + "l]" +
                  (l.bias ? " + bias[c * 16 + l]" : "") + ") * k[0, c * 16 + l, 0, 0])";
  if (l.zero_out) y = y + " + " + str(l.zero_out) + ".0";
  if (l.low > -128) y = "max(" + y + ", " + str(l.low) + ".0)";
  std::string text = "kernel @conv(x: in i8[" + str(l.batch) + ", " + str(ib) + ", " +
                     spatial_list(l.in, "", "16], w: const i8[") + str(ob) + ", " + str(ib) + ", " +
                     taps + "16, 16], " +
                     (l.bias ? "bias: const i32[" + str(16 * ob) + "], " : "") +
                     "k: const f32[1, " + str(16 * ob) + ", 1, 1], y: out i8[" + str(l.batch) +
                     ", " + str(ob) + ", " + spatial_list(out, "", "16]) {\n") + "temp acc: i32[" +
                     str(l.batch) + ", " + str(ob) + ", " + spatial_list(out, "", "16]\n");
  std::vector<std::pair<std::string, int>> acc = {{"an", l.batch}, {"ac", ob}},
                                           nest_y = {{"n", l.batch}, {"c", ob}};
  acc.insert(acc.end(), t.acc.begin(), t.acc.end()),
      nest_y.insert(nest_y.end(), t.y.begin(), t.y.end());
  acc.emplace_back("al", 16), nest_y.emplace_back("l", 16);
  std::vector<std::pair<std::string, int>> reduce = {{"rc", ib}};
  reduce.insert(reduce.end(), t.taps.begin(), t.taps.end());
  reduce.emplace_back("rl", 16);
  text += loops(acc) + loops(reduce, " reduce") + "\nacc: acc[an, ac, " + t.spatial_acc +
          "al] += " + minus + " * i32(w[ac, rc, " + tap_index + "rl, al])" +
          (t.where.empty() ? "" : " where " + t.where) + " init 0\n" +
          std::string(acc.size() + reduce.size(), '}') + "\n";
  text += loops(nest_y) + "\ny: y[n, c, " + t.spatial_y + "l] = sat.i8(" + y + ")\n" +
          std::string(nest_y.size(), '}') + "\n}\n";
  const std::string pack = "kernel @pack(s: in i8[" + str(l.outputs) + ", " + str(l.channels) +
                           ", " + taps.substr(0, taps.size() - 2) + "], p: out i8[" + str(ob) +
                           ", " + str(ib) + ", " + taps + "16, 16]) {\nfor wc in " + str(ob) +
                           " { for wr in " + str(ib) + " { " + tap_loops +
                           "for wi in 16 { for wl in 16 {\np: p[wc, wr" + pack_at +
                           ", wi, wl] = select(wc * 16 + wl < " + str(l.outputs) +
                           " && wr * 16 + wi < " + str(l.channels) +
                           ", s[wc * 16 + wl, wr * 16 + wi" + pack_at + "], 0:i8)\n" +
                           std::string(4 + l.kernel.size(), '}') + "\n}\n";
  LayerCase layer;
  layer.group.kernel = must(parse_kernel(text));
  layer.group.stages = already_arranged<ConvStages>();
  layer.group.arguments.resize(l.bias ? 5 : 4);
  Random random(seed);
  const int64_t pixels_in = product(l.in), pixels_out = product(out), window = product(l.kernel);
  std::vector<int8_t> weights(static_cast<size_t>(l.outputs * l.channels * window));
  for (int8_t& w : weights) w = random_byte(random);
  layer.input.resize(static_cast<size_t>(l.batch * ib * pixels_in * 16));
  for (int8_t& x : layer.input) x = random_byte(random);
  Constants c = random_constants(random, l.outputs,
                                 60 * std::sqrt(static_cast<double>(l.channels * window)));
  if (!l.bias) c.bias.assign(c.bias.size(), 0);
  layer.expected.resize(static_cast<size_t>(l.batch * ob * pixels_out * 16));
  layer.real.resize(layer.expected.size());
  for (int n = 0; n < l.batch; ++n)
    for (int o = 0; o < l.outputs; ++o) {
      std::vector<int64_t> sums(static_cast<size_t>(pixels_out), c.bias[static_cast<size_t>(o)]);
      windows(l, [&](int64_t to, int64_t from, int64_t tap) {
        for (int i = 0; i < l.channels; ++i)
          sums[static_cast<size_t>(to)] +=
              (layer.input[static_cast<size_t>(((n * ib + i / 16) * pixels_in + from) * 16 +
                                               i % 16)] -
               l.zero_in) *
              int64_t{weights[static_cast<size_t>((o * l.channels + i) * window + tap)]};
      });
      for (int64_t p = 0; p < pixels_out; ++p) {
        const size_t at = static_cast<size_t>(((n * ob + o / 16) * pixels_out + p) * 16 + o % 16);
        layer.real[at] = true;
        layer.expected[at] = requantized(sums[static_cast<size_t>(p)],
                                         c.scale[static_cast<size_t>(o)], l.zero_out, l.low);
      }
    }
  c.bias.resize(static_cast<size_t>(16 * ob)), c.scale.resize(static_cast<size_t>(16 * ob), 1.0f);
  bind_constant(layer, 1, bytes_of(weights), pack);
  if (l.bias) bind_constant(layer, 2, bytes_of(c.bias));
  bind_constant(layer, l.bias ? 3 : 2, bytes_of(c.scale));
  return layer;
}

LayerCase product_case(int rows, int depth, int columns, int zero_in, unsigned seed) {
  const std::string m = str(rows), k = str(depth), n = str(columns),
                    panels = str((columns + 31) / 32), wide = str((columns + 31) / 32 * 32);
  const std::string left = zero_in ? "(i32(x[ai, k]) - " + str(zero_in) + ":i32)" : "i32(x[ai, k])";
  LayerCase layer;
  layer.group.kernel = must(parse_kernel(
      "kernel @matmul(x: in i8[" + m + ", " + k + "], w: const i8[" + panels + ", " + k +
      ", 32], b: const i32[" + n + "], s: const f32[" + n + "], y: out i8[" + m + ", " + n +
      "]) {\n temp acc: i32[" + m + ", " + wide + "]\n for ai in " + m + " { for aj in " + wide +
      " { for k in " + k + " reduce {\n acc: acc[ai, aj] += " + left +
      " * i32(w[aj // 32, k, aj % 32]) init 0\n }}}\n for i in " + m + " { for j in " + n +
      " {\n y: y[i, j] = sat.i8(round(f32(acc[i, j] + b[j]) * s[j]) + 3.0)\n}}\n}\n"));
  layer.group.stages = already_arranged<MatMulStages>();
  layer.group.arguments.resize(5);
  Random random(seed);
  std::vector<int8_t> weights(static_cast<size_t>(depth * columns));
  for (int8_t& w : weights) w = random_byte(random);
  layer.input.resize(static_cast<size_t>(rows * depth));
  for (int8_t& x : layer.input) x = random_byte(random);
  const Constants c = random_constants(random, columns, 60 * std::sqrt(depth));
  for (int i = 0; i < rows; ++i)
    for (int j = 0; j < columns; ++j) {
      int64_t sum = c.bias[static_cast<size_t>(j)];
      for (int q = 0; q < depth; ++q)
        sum += (layer.input[static_cast<size_t>(i * depth + q)] - zero_in) *
               int64_t{weights[static_cast<size_t>(q * columns + j)]};
      layer.expected.push_back(requantized(sum, c.scale[static_cast<size_t>(j)], 3, -128));
    }
  layer.real.assign(layer.expected.size(), true);
  bind_constant(layer, 1, bytes_of(weights),
                "kernel @pack(s: in i8[" + k + ", " + n + "], p: out i8[" + panels + ", " + k +
                    ", 32]) {\n for wp in " + panels + " { for wk in " + k +
                    " { for wl in 32 {\n p: p[wp, wk, wl] = select(wp * 32 + wl < " + n +
                    ", s[wk, wp * 32 + wl], 0:i8)\n}}}\n}\n");
  bind_constant(layer, 2, bytes_of(c.bias));
  bind_constant(layer, 3, bytes_of(c.scale));
  return layer;
}

LayerCase pool_case(const Layer& l, unsigned seed) {
  const int cb = blocks(l.channels);
  const std::vector<int> out = l.out();
  const Texts t = texts_of(l);
  std::vector<std::pair<std::string, int>> acc = {{"an", l.batch}, {"ac", cb}},
                                           y = {{"i0", l.batch}, {"i1", cb}};
  acc.insert(acc.end(), t.acc.begin(), t.acc.end()), y.insert(y.end(), t.y.begin(), t.y.end());
  acc.emplace_back("al", 16), y.emplace_back("l", 16);
  const std::string head = str(l.batch) + ", " + str(cb) + ", ";
  const std::string text = "kernel @pool(x: in i8[" + head +
                           spatial_list(l.in, "", "16], y: out i8[") + head +
                           spatial_list(out, "", "16]) {\n temp acc: i8[") + head +
                           spatial_list(out, "", "16]\n") + loops(acc) + loops(t.taps, " reduce") +
                           "\nacc: acc[an, ac, " + t.spatial_acc + "al] max= x[an, ac, " + t.at +
                           "al]" + (t.where.empty() ? "" : " where " + t.where) +
                           " init -128:i8\n" + std::string(acc.size() + t.taps.size(), '}') + "\n" +
                           loops(y) + "\ny: y[i0, i1, " + t.spatial_y + "l] = acc[i0, i1, " +
                           t.spatial_y + "l]\n" + std::string(y.size(), '}') + "\n}\n";
  LayerCase layer;
  layer.group.kernel = must(parse_kernel(text));
  layer.group.stages = PoolStages{};
  layer.group.arguments.resize(2);
  Random random(seed);
  const int64_t pixels_in = product(l.in), pixels_out = product(out);
  layer.input.resize(static_cast<size_t>(l.batch * cb * pixels_in * 16));
  for (int8_t& x : layer.input) x = random_byte(random);
  layer.expected.assign(static_cast<size_t>(l.batch * cb * pixels_out * 16), -128);
  layer.real.assign(layer.expected.size(), true);
  for (int64_t c = 0; c < l.batch * cb; ++c)
    for (int64_t lane = 0; lane < 16; ++lane)
      windows(l, [&](int64_t to, int64_t from, int64_t) {
        int8_t& most = layer.expected[static_cast<size_t>((c * pixels_out + to) * 16 + lane)];
        most = std::max(most, layer.input[static_cast<size_t>((c * pixels_in + from) * 16 + lane)]);
      });
  return layer;
}

const Target& device_target(int virtual_threads) {
  static std::map<int, Target> targets;
  const auto found = targets.find(virtual_threads);
  if (found != targets.end()) return found->second;
  Target target = must(load_target("vdla-16x16", {std::string(TW_SOURCE_DIR) + "/configs"}));
  target.devices[0].virtual_threads = virtual_threads;
  return targets[virtual_threads] = target.devices[0];
}

Kernel scheduled(LoweredGroup& group, const Target& target) {
  to_tensor_form(group, target);
  if (Error error = verify(group.kernel)) FAIL(error_text(std::move(error)));
  const Schedule schedule = must(default_schedule(group, target));
  return must(tw::apply(group.kernel, schedule, &target));
}

LayerRun placed(const LayerCase& layer, LoweredGroup& formed, const Kernel& kernel,
                const Target& target) {
  const Device device = must(device_of(target));
  LayerRun run;
  run.stream = must(compile_stream(kernel, device, target));
  std::vector<Constant> constants;
  for (const LoweredArgument& argument : formed.arguments)
    constants.push_back(argument.constant ? Constant{argument.blob, argument.pack} : Constant{});
  auto place = [&](const void* bytes, size_t size) {
    const uint64_t at = run.dram.size();
    run.dram.resize((at + size + 63) / 64 * 64);
    if (bytes) std::memcpy(&run.dram[at], bytes, size);
    return at;
  };
  const std::vector<uint8_t> code = to_bytes(run.stream.instructions);
  run.launch.instructions = place(code.data(), code.size());
  run.launch.count = static_cast<uint32_t>(run.stream.instructions.size());
  for (size_t b = 0; b < run.stream.parts.bases.size(); ++b) {
    const int index = run.stream.parts.bases[b];
    std::vector<std::byte> bytes;
    if (index == kNoBuffer) bytes = must(requant_table(kernel, run.stream.parts, constants));
    else if (constants[static_cast<size_t>(index)].source.owner)
      bytes = must(contents(constants[static_cast<size_t>(index)]));
    const bool output = index >= 0 &&
                        kernel.buffers[static_cast<size_t>(index)].role == BufferRole::output;
    if (output) run.output = run.launch.bases[b] = place(nullptr, layer.expected.size());
    else
      run.launch.bases[b] = bytes.empty() ? place(layer.input.data(), layer.input.size())
                                          : place(bytes.data(), bytes.size());
  }
  return run;
}

std::string first_difference(const LayerCase& layer, const LayerRun& run) {
  for (size_t i = 0; i < layer.expected.size(); ++i)
    if (layer.real[i] && static_cast<int8_t>(run.dram[run.output + i]) != layer.expected[i])
      return "element " + str(static_cast<int64_t>(i)) + " is " +
             str(static_cast<int8_t>(run.dram[run.output + i])) + ", not " + str(layer.expected[i]);
  return "";
}

}  // namespace tw::vdla
