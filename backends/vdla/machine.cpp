#include "backends/vdla/machine.h"

#include <algorithm>
#include <cstring>

namespace tw::vdla {
namespace {

uint32_t little32(const uint8_t* p) {
  return p[0] | p[1] << 8 | p[2] << 16 | static_cast<uint32_t>(p[3]) << 24;
}
uint64_t little64(const uint8_t* p) {
  return little32(p) | static_cast<uint64_t>(little32(p + 4)) << 32;
}
int32_t wrap_add(int32_t a, int32_t b) {
  return static_cast<int32_t>(static_cast<uint32_t>(a) + static_cast<uint32_t>(b));
}

}  // namespace

uint64_t steps_of(const Instruction& instruction) {
  struct Steps {
    uint64_t operator()(const Load& i) {
      return uint64_t{i.z} * (i.pad_y0 + i.y + i.pad_y1) *
             static_cast<uint64_t>(i.pad_x0 + i.x + i.pad_x1);
    }
    uint64_t operator()(const Store& i) { return uint64_t{i.y} * i.x; }
    uint64_t operator()(const Gemm& i) {
      return uint64_t{i.loops[0].count} * i.loops[1].count * i.loops[2].count;
    }
    uint64_t operator()(const Alu& i) {
      return uint64_t{i.loops[0].count} * i.loops[1].count * i.loops[2].count;
    }
    uint64_t operator()(const Sync&) { return 1; }
    uint64_t operator()(const Finish&) { return 1; }
  };
  return std::visit(Steps{}, instruction);
}

Machine::Machine(const Config& config, std::span<uint8_t> dram,
                 const std::array<uint64_t, kBases>& bases)
    : config_(config),
      dram_(dram),
      bases_(bases),
      inp_(static_cast<size_t>(config.inp_depth) * config.block_in),
      wgt_(static_cast<size_t>(config.wgt_depth) * config.block_in * config.block_out),
      acc_(static_cast<size_t>(config.acc_depth) * config.block_out),
      prm_(static_cast<size_t>(config.prm_depth) * config.block_out) {}

bool Machine::execute(const Instruction& instruction) {
  return std::visit(
      [this](const auto& i) {
        if constexpr (requires { run(i); }) return run(i);
        else return true;
      },
      instruction);
}

uint8_t* Machine::dram_at(uint64_t address, uint64_t bytes) {
  if (bytes > dram_.size() || address > dram_.size() - bytes) return nullptr;
  return dram_.data() + address;
}

void Machine::load_element(Space scope, uint64_t element, const uint8_t* from) {
  size_t bytes = static_cast<size_t>(element_bytes(config_, scope));
  if (scope == Space::inp) std::memcpy(&inp_[element * bytes], from, bytes);
  if (scope == Space::wgt) std::memcpy(&wgt_[element * bytes], from, bytes);
  for (int lane = 0; lane < config_.block_out; ++lane) {
    size_t at = element * config_.block_out + lane;
    if (scope == Space::acc) acc_[at] = static_cast<int32_t>(little32(from + 4 * lane));
    if (scope == Space::prm) prm_[at] = unpack(little64(from + 8 * lane));
  }
  touch(scope, element, 1, true);
}

bool Machine::run(const Load& i) {
  uint64_t element = i.sram, bytes = static_cast<uint64_t>(element_bytes(config_, i.scope));
  auto pad = [&](uint64_t count) {
    if (count == 0) return;
    std::fill_n(inp_.begin() + static_cast<ptrdiff_t>(element * config_.block_in),
                count * config_.block_in, i.pad_value);
    touch(Space::inp, element, count, true);
    element += count;
  };
  uint64_t columns = i.pad_x0 + i.x + i.pad_x1;
  for (int z = 0; z < i.z; ++z) {
    pad(i.pad_y0 * columns);
    for (int y = 0; y < i.y; ++y) {
      uint64_t row = bases_[i.base] + i.offset +
                     static_cast<uint64_t>(int64_t{z} * i.z_stride + int64_t{y} * i.y_stride);
      pad(i.pad_x0);
      for (int x = 0; x < i.x; ++x, ++element) {
        uint64_t address = row + static_cast<uint64_t>(x) * i.x_step * bytes;
        const uint8_t* from = dram_at(address, bytes);
        if (!from) return false;
        touch(Space::dram, address, bytes, false);
        load_element(i.scope, element, from);
        read_bytes += bytes;
      }
      pad(i.pad_x1);
    }
    pad(i.pad_y1 * columns);
  }
  return true;
}

void Machine::store_element(const Store& i, uint64_t element, uint8_t* to) {
  for (int lane = 0; lane < config_.block_out; ++lane) {
    int32_t value = acc_[element * config_.block_out + lane];
    if (i.mode == StoreMode::q8) {
      const RequantParams& params = prm_[static_cast<size_t>(i.prm) * config_.block_out + lane];
      to[lane] = static_cast<uint8_t>(requantize(value, params, i.zero_point, i.low, i.high));
    } else if (i.mode == StoreMode::sat) {
      to[lane] = static_cast<uint8_t>(saturate(value, i.zero_point, i.low, i.high));
    } else {
      for (int b = 0; b < 4; ++b)
        to[4 * lane + b] = static_cast<uint8_t>(static_cast<uint32_t>(value) >> 8 * b);
    }
  }
}

bool Machine::run(const Store& i) {
  uint64_t bytes = static_cast<uint64_t>(i.mode == StoreMode::raw ? 4 : 1) * config_.block_out;
  if (i.mode == StoreMode::q8) touch(Space::prm, i.prm, 1, false);
  for (int y = 0; y < i.y; ++y) {
    uint64_t row = bases_[i.base] + i.offset + static_cast<uint64_t>(int64_t{y} * i.y_stride);
    for (int x = 0; x < i.x; ++x) {
      uint64_t element = i.acc + static_cast<uint64_t>(y) * i.acc_y_stride +
                         static_cast<uint64_t>(x);
      uint64_t address = row + static_cast<uint64_t>(x) * bytes;
      uint8_t* to = dram_at(address, bytes);
      if (!to) return false;
      touch(Space::acc, element, 1, false);
      touch(Space::dram, address, bytes, true);
      store_element(i, element, to);
      written_bytes += bytes;
    }
  }
  return true;
}

bool Machine::run(const Gemm& i) {
  const auto& [a, b, c] = i.loops;
  int in = config_.block_in, out = config_.block_out;
  for (int n0 = 0; n0 < a.count; ++n0)
    for (int n1 = 0; n1 < b.count; ++n1)
      for (int n2 = 0; n2 < c.count; ++n2) {
        int dst = i.acc + n0 * a.acc + n1 * b.acc + n2 * c.acc,
            src = i.inp + n0 * a.inp + n1 * b.inp + n2 * c.inp;
        int wgt = i.wgt + n0 * a.wgt + n1 * b.wgt + n2 * c.wgt;
        bool first = !((i.reduce & 1 && n0) || (i.reduce & 2 && n1) || (i.reduce & 4 && n2));
        const int8_t* x = &inp_[static_cast<size_t>(src) * in];
        const int8_t* w = &wgt_[static_cast<size_t>(wgt) * in * out];
        int32_t* d = &acc_[static_cast<size_t>(dst) * out];
        for (int o = 0; o < out; ++o) {
          int32_t sum = 0;
          for (int k = 0; k < in; ++k) sum += int32_t{x[k]} * w[o * in + k];
          d[o] = wrap_add(i.overwrite && first ? 0 : d[o], sum);
        }
        touch(Space::inp, src, 1, false);
        touch(Space::wgt, wgt, 1, false);
        touch(Space::acc, dst, 1, true);
        ++gemm_steps;
      }
  return true;
}

bool Machine::run(const Alu& i) {
  const auto& [a, b, c] = i.loops;
  size_t lanes = config_.block_out;
  for (int n0 = 0; n0 < a.count; ++n0)
    for (int n1 = 0; n1 < b.count; ++n1)
      for (int n2 = 0; n2 < c.count; ++n2) {
        size_t dst = i.dst + n0 * a.dst + n1 * b.dst + n2 * c.dst,
               src = i.src + n0 * a.src + n1 * b.src + n2 * c.src;
        bool first = !((i.reduce & 1 && n1) || (i.reduce & 2 && n2));
        for (size_t lane = 0; lane < lanes; ++lane) {
          int32_t value = i.from_inp ? inp_[src * lanes + lane] : acc_[src * lanes + lane];
          int32_t& d = acc_[dst * lanes + lane];
          if (i.overwrite && first) d = value;
          else d = i.op == AluOp::add ? wrap_add(d, value) : std::max(d, value);
        }
        touch(i.from_inp ? Space::inp : Space::acc, src, 1, false);
        touch(Space::acc, dst, 1, true);
        ++alu_steps;
      }
  return true;
}

}  // namespace tw::vdla
