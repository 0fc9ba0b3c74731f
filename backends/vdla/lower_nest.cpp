#include "backends/vdla/lower_nest.h"

#include <algorithm>
#include <functional>

#include "backends/vdla/unsupported.h"
#include "ir/schedule/intrinsic.h"

namespace tw::vdla {
namespace {

template <class T>
bool fits_in(int64_t value) {
  return value >= std::numeric_limits<T>::min() && value <= std::numeric_limits<T>::max();
}

}  // namespace

NestLowering::NestLowering(const Kernel& kernel, const Device& device, const Target& target,
                           StreamParts& parts)
    : kernel_(kernel), device_(device), target_(target), parts_(parts) {}

std::optional<Space> NestLowering::space_of(const Buffer& buffer) {
  for (Space space : {Space::inp, Space::wgt, Space::acc})
    if (buffer.scope == scope_of(space)) return space;
  return std::nullopt;
}

bool NestLowering::is_nest(const Stmt& s) {
  std::vector<Expr> conditions;
  return nest_of(s, &conditions).has_value();
}

int NestLowering::base_of(int buffer) {
  const auto found = std::ranges::find(parts_.bases, buffer);
  if (found == parts_.bases.end()) parts_.bases.push_back(buffer);
  return static_cast<int>(std::ranges::find(parts_.bases, buffer) - parts_.bases.begin());
}

Error NestLowering::emit(Instruction instruction) {
  if (parts_.bases.size() > kBases)
    return unsupported("{0} parameters are too many", parts_.bases.size());
  TW_TRY(check_fields(instruction, device_.config));
  TW_TRY(check_range(instruction, device_.config));
  out_->push_back(instruction);
  return Error::success();
}

Error NestLowering::lower(const Stmt& s, const Values& values, const std::vector<int64_t>& sram,
                          std::vector<Instruction>& out) {
  values_ = &values, sram_ = &sram, out_ = &out;
  std::vector<Expr> conditions;
  std::optional<Nest> nest = nest_of(s, &conditions);
  TW_CHECK(nest, "no nest");
  for (const Expr& condition : conditions)
    if (!restrict(*nest, condition, values))
      return unsupported("a condition is of several loops of a nest");
  if (nest->empty) return Error::success();
  if (is<stmt::Block>(nest->leaf)) return intrinsic(*nest);
  const auto& leaf = get<stmt::Store>(nest->leaf);
  const Buffer& into = kernel_.buffer(leaf.buffer);
  if (into.role == BufferRole::output) return store(*nest);
  const std::optional<Space> space = space_of(into);
  if (!space)
    return unsupported(
        "stage '{0}' is computed in the memory '{1}', not by an instruction of the device",
        leaf.label, into.scope);
  if (leaf.combiner != Combiner::none || leaf.where.defined())
    return unsupported(
        "stage '{0}' combines values, which no instruction of the device does as it stands",
        leaf.label);
  if (*space == Space::acc) return begin_sums(*nest);
  if (const auto* from = as<expr::Load>(leaf.value)) return copy(*nest, false, 0, *from);
  const auto* choice = as<expr::Select>(leaf.value);
  const auto* from = choice ? as<expr::Load>(choice->then) : nullptr;
  const auto padding = choice ? as_const(choice->otherwise) : std::nullopt;
  if (!from || !padding || *space != Space::inp)
    return unsupported("stage '{0}' is no copy", leaf.label);
  if (!restrict(*nest, choice->condition, values))
    return unsupported("the padding of stage '{0}' is not along single axes", leaf.label);
  if (nest->empty)
    return unsupported("a tile of stage '{0}' lies in the padding as a whole", leaf.label);
  return copy(*nest, true, static_cast<int8_t>(*padding), *from);
}

Expected<NestLowering::Dims> NestLowering::dims_of(const Nest& nest,
                                                   const std::vector<Affine>& operands,
                                                   const std::vector<int64_t>& lanes,
                                                   size_t lane_operands) const {
  std::vector<size_t> inner, outer;
  for (size_t l = 0; l < nest.loops.size(); ++l) {
    if (nest.loops[l].extent == 1) continue;
    const int64_t stride = operands[0].strides[l];
    (lane_operands > 0 && stride != 0 && std::abs(stride) < lanes[0] ? inner : outer).push_back(l);
  }
  std::ranges::sort(inner, {}, [&](size_t l) { return operands[0].strides[l]; });
  int64_t dense = 1;
  Dims dims;
  for (const size_t l : inner) {
    const NestLoop& loop = nest.loops[l];
    for (size_t o = 0; o < lane_operands; ++o)
      if (operands[o].strides[l] != dense || loop.first != 0 || loop.end != loop.extent)
        return unsupported("the lanes of an element do not lie side by side");
    // A loop over several elements contains the lanes of each.
    const int64_t within = std::min(loop.extent, lanes[0] / dense);
    if (loop.extent % within == 0 && loop.extent > within) {
      Dim rest{loop.extent / within, 0, loop.extent / within};
      for (size_t o = 0; o < operands.size(); ++o) rest.stride[o] = operands[o].strides[l] * within;
      dims.push_back(rest);
    }
    dense *= within;
  }
  if (lane_operands > 0 && dense != lanes[0])
    return unsupported("an element of {0} values is not moved as a whole", lanes[0]);
  for (const size_t l : outer) {
    dims.push_back({nest.loops[l].extent, nest.loops[l].first, nest.loops[l].end});
    for (size_t o = 0; o < operands.size(); ++o) dims.back().stride[o] = operands[o].strides[l];
  }
  for (Dim& dim : dims)
    for (size_t o = 0; o < operands.size(); ++o) {
      if (dim.stride[o] % lanes[o] != 0)
        return unsupported("a loop steps within an element of {0} values", lanes[o]);
      dim.stride[o] /= lanes[o];
    }
  for (size_t o = 0; o < operands.size(); ++o)
    if (operands[o].base % lanes[o] != 0)
      return unsupported("a nest begins within an element of {0} values", lanes[o]);
  return dims;
}

void NestLowering::merge(Dims& dims) {
  const auto continues = [](const Dim& inner, const Dim& outer) {
    for (size_t o = 0; o < inner.stride.size(); ++o)
      if (outer.stride[o] != inner.stride[o] * inner.extent) return false;
    return inner.whole() && outer.whole();
  };
  for (size_t a = 0; a < dims.size(); ++a)
    for (size_t b = 0; b < dims.size(); ++b) {
      if (a == b || !continues(dims[a], dims[b])) continue;
      dims[a].extent = dims[a].end = dims[a].extent * dims[b].extent;
      dims.erase(dims.begin() + static_cast<std::ptrdiff_t>(b));
      return merge(dims);
    }
}

// Calls `fn` with the operands' places for all values of the loops from `from` on.
void NestLowering::for_each(const Dims& dims, size_t from,
                            const std::function<void(const std::array<int64_t, 3>&)>& fn) {
  const std::function<void(size_t, std::array<int64_t, 3>)> walk = [&](size_t d,
                                                                       std::array<int64_t, 3> at) {
    if (d == dims.size()) return fn(at);
    for (int64_t i = dims[d].first; i < dims[d].end; ++i) {
      std::array<int64_t, 3> next = at;
      for (size_t o = 0; o < next.size(); ++o) next[o] += i * dims[d].stride[o];
      walk(d + 1, next);
    }
  };
  walk(from, {});
}

// Takes x, y and z of a load out of `dims`. Rows follow each other in sram.
std::array<NestLowering::Dim, 3> NestLowering::take_loaded_box(Dims& dims, bool pads) {
  std::array<Dim, 3> box = {Dim{1, 0, 1}, Dim{1, 0, 1}, Dim{1, 0, 1}};
  int64_t dense = 1;
  for (size_t b = 0; b < 3 && !dims.empty(); ++b) {
    const bool cut = !dims[0].whole();
    if (dims[0].stride[0] != dense || (cut && (!pads || b == 2))) break;
    // x steps in elements, so these become rows of one element.
    if (b == 0 && (dims[0].stride[1] < 1 || dims[0].stride[1] > 255)) {
      dims.insert(dims.begin(), Dim{1, 0, 1, {1, 1, 0}});
    }
    box[b] = dims[0];
    dense *= box[b].extent;
    dims.erase(dims.begin());
  }
  return box;
}

// Takes x and y of a store out of `dims`. x is contiguous in both memories, y has any strides, and
// neither changes the parameters.
std::array<NestLowering::Dim, 2> NestLowering::take_stored_box(Dims& dims) {
  std::array<Dim, 2> box = {Dim{1, 0, 1}, Dim{1, 0, 1}};
  for (size_t b = 0; b < 2; ++b) {
    const auto suits = [&](const Dim& d) {
      return d.stride[2] == 0 &&
             (b == 1 ? fits_in<uint16_t>(d.stride[1]) : d.stride[0] == 1 && d.stride[1] == 1);
    };
    auto best = dims.end();
    for (auto d = dims.begin(); d != dims.end(); ++d)
      if (suits(*d) && (best == dims.end() || d->extent > best->extent)) best = d;
    if (best == dims.end()) continue;
    box[b] = *best;
    dims.erase(best);
  }
  return box;
}

// Lowers a copy: x, y and z of `dims` become the load's loops, and the rest is unrolled. The
// operands are the elements in sram and in memory.
Error NestLowering::copy(const Nest& nest, bool pads, int8_t pad_value, const expr::Load& from) {
  const auto& leaf = get<stmt::Store>(nest.leaf);
  const Buffer &into = kernel_.buffer(leaf.buffer), &source = kernel_.buffer(from.buffer);
  if (source.role == BufferRole::temp || source.dtype != DType::i8 || into.dtype != DType::i8)
    return unsupported("stage '{0}' copies no i8 parameter", leaf.label);
  const Space space = *space_of(into);
  const int64_t lanes = element_bytes(device_.config, space);
  const auto to = element(nest, 0, into, leaf.indices), at = element(nest, 1, source, from.indices);
  if (!to || !at)
    return unsupported("the addresses of stage '{0}' are no sums of multiples of its loops",
                       leaf.label);
  TW_ASSIGN(Dims dims, dims_of(nest, {*to, *at}, {lanes, lanes}, 2));
  // Elements that a condition excludes from a tile may hold anything.
  if (!pads && space == Space::inp) pads = true;
  merge(dims);
  std::ranges::sort(dims, {}, [](const Dim& d) { return d.stride[0]; });
  const auto [x, y, z] = take_loaded_box(dims, pads);
  for (const Dim& dim : dims)
    if (!dim.whole() && is<expr::Select>(leaf.value))
      return unsupported("stage '{0}' pads more than two axes", leaf.label);
  Load load;
  load.scope = space;
  load.base = static_cast<uint8_t>(base_of(from.buffer.index));
  load.pad_value = pad_value;
  load.x = static_cast<uint16_t>(x.end - x.first), load.y = static_cast<uint16_t>(y.end - y.first),
  load.z = static_cast<uint16_t>(z.extent);
  load.x_step = static_cast<uint8_t>(x.extent == 1 ? 1 : x.stride[1]);
  load.y_stride = static_cast<int32_t>(y.extent == 1 ? 0 : y.stride[1] * lanes),
  load.z_stride = static_cast<int32_t>(z.extent == 1 ? 0 : z.stride[1] * lanes);
  for (int64_t pad : {x.first, x.extent - x.end, y.first, y.extent - y.end})
    if (pad > 255)
      return unsupported("stage '{0}' pads by {1} elements; the device by 255", leaf.label, pad);
  load.pad_x0 = static_cast<uint8_t>(x.first), load.pad_x1 = static_cast<uint8_t>(x.extent - x.end);
  load.pad_y0 = static_cast<uint8_t>(y.first), load.pad_y1 = static_cast<uint8_t>(y.extent - y.end);
  if (!load.pad_x0 && !load.pad_x1 && !load.pad_y0 && !load.pad_y1) load.pad_value = 0;
  const int64_t first = at->base / lanes + x.first * x.stride[1] + y.first * y.stride[1];
  Error error = Error::success();
  for_each(dims, 0, [&](const std::array<int64_t, 3>& o) {
    load.sram = static_cast<uint16_t>((*sram_)[static_cast<size_t>(leaf.buffer.index)] +
                                      to->base / lanes + o[0]);
    const int64_t offset = (first + o[1]) * lanes;
    if (!error &&
        (x.extent > 65535 || y.extent > 65535 || z.extent > 65535 || !fits_in<uint32_t>(offset) ||
         !fits_in<int32_t>(y.stride[1] * lanes) || !fits_in<int32_t>(z.stride[1] * lanes)))
      error = unsupported("stage '{0}' copies more than an instruction can say", leaf.label);
    load.offset = static_cast<uint32_t>(offset);
    if (!error) error = emit(load);
  });
  return error;
}

Error NestLowering::begin_sums(const Nest& nest) {
  const auto& leaf = get<stmt::Store>(nest.leaf);
  const std::optional<int64_t> start = as_const(leaf.value);
  if (!start) return unsupported("stage '{0}' does not begin sums with a constant", leaf.label);
  const int64_t lanes = device_.config.block_out;
  const auto to = element(nest, 0, kernel_.buffer(leaf.buffer), leaf.indices);
  if (!to)
    return unsupported("the addresses of stage '{0}' are no sums of multiples of its loops",
                       leaf.label);
  TW_ASSIGN(Dims dims, dims_of(nest, {*to}, {lanes}, 1));
  const int64_t base = (*sram_)[static_cast<size_t>(leaf.buffer.index)] + to->base / lanes;
  for_each(dims, 0, [&](const std::array<int64_t, 3>& o) { begun_[base + o[0]] = *start; });
  return Error::success();
}

std::optional<Affine> NestLowering::element(const Nest& nest, size_t operand, const Buffer& buffer,
                                            const std::vector<Expr>& indices) {
  const auto [known, fresh] = sums_.try_emplace({nest.leaf.get(), operand});
  if (fresh) known->second = flat_sum(buffer, indices, nest);
  return known->second ? affine(*known->second, *values_, nest)
                       : flat_affine(buffer, indices, *values_, nest);
}

Expected<const NestLowering::Matched*> NestLowering::matched(const Nest& nest) {
  const auto& block = get<stmt::Block>(nest.leaf);
  const auto known = matched_.find(&block);
  if (known != matched_.end()) return &known->second;
  const Intrinsic* intrinsic = target_.find_intrinsic(block.intrinsic);
  if (!intrinsic) return unsupported("the device has no intrinsic '{0}'", block.intrinsic);
  TW_ASSIGN(Emitted emitted, emitted_by(*intrinsic));
  TW_ASSIGN(const std::shared_ptr<const Kernel> semantics, semantics_of(*intrinsic));
  TW_ASSIGN(IntrinsicMatch match,
            match_intrinsic(*intrinsic, *semantics, kernel_, block.body, nest.ranges));
  return &matched_.emplace(&block, Matched{intrinsic->name, std::move(emitted), std::move(match)})
              .first->second;
}

Error NestLowering::intrinsic(const Nest& nest) {
  TW_ASSIGN(const Matched* matched, this->matched(nest));
  const auto& [name, emitted, match] = *matched;
  for (const NestLoop& loop : nest.loops)
    if (loop.first != 0 || loop.end != loop.extent)
      return unsupported("a condition stands around '{0}'", name);
  std::vector<Affine> operands;
  std::vector<int64_t> lanes;
  std::array<int64_t, 3> base{};
  std::vector<std::pair<std::string, Space>> wanted = {{emitted.out, Space::acc},
                                                       {emitted.in, Space::inp}};
  if (!emitted.alu) wanted.emplace_back(emitted.weight, Space::wgt);
  for (const auto& [parameter, space] : wanted) {
    const auto found = match.find(parameter);
    TW_CHECK(found != match.end(), "'{0}' has no parameter '{1}'", name, parameter);
    const Buffer& buffer = kernel_.buffer(found->second.buffer);
    if (space_of(buffer) != space)
      return unsupported("'{0}' lies in {1}, '{2}' takes it from {3}", buffer.name, buffer.scope,
                         name, scope_of(space));
    const auto at = element(nest, operands.size(), buffer, found->second.at);
    if (!at)
      return unsupported("the addresses of '{0}' are no sums of multiples of its loops",
                         buffer.name);
    operands.push_back(*at);
    lanes.push_back(space == Space::wgt   ? element_bytes(device_.config, space)
                    : space == Space::inp ? device_.config.block_in
                                          : device_.config.block_out);
    base[operands.size() - 1] = (*sram_)[static_cast<size_t>(found->second.buffer.index)] +
                                at->base / lanes.back();
  }
  TW_ASSIGN(Dims dims, dims_of(nest, operands, lanes, 0));
  merge(dims);
  // The ALU can mark reductions in the inner loops only.
  std::ranges::sort(dims, {}, [&](const Dim& d) {
    return std::tuple(emitted.alu && d.stride[0] == 0, -d.extent, d.stride);
  });
  return emitted.alu ? combine(emitted, base, std::move(dims)) : products(base, std::move(dims));
}

// True if the instruction's first access to each accumulator is also the first since its sum was
// begun with `start`.
Expected<bool> NestLowering::overwrites(int64_t acc, const Dims& dims, int64_t start) {
  int64_t fresh = 0, all = 0;
  std::vector<int64_t> places;
  Dims spatial;
  for (const Dim& dim : dims)
    if (dim.stride[0] != 0) spatial.push_back(dim);
  bool other = false;
  for_each(spatial, 0, [&](const std::array<int64_t, 3>& o) {
    const auto found = begun_.find(acc + o[0]);
    ++all;
    if (found == begun_.end()) return;
    ++fresh, other |= found->second != start;
    places.push_back(acc + o[0]);
  });
  if (other) return unsupported("sums begin with another value than {0}", start);
  if (fresh != 0 && fresh != all)
    return unsupported("an instruction begins some of its sums and continues others");
  for (const int64_t place : places) begun_.erase(place);
  return fresh != 0;
}

Error NestLowering::products(const std::array<int64_t, 3>& base, Dims dims) {
  const size_t hardware = std::min<size_t>(dims.size(), 3);
  Gemm gemm;
  for (size_t l = 0; l < hardware; ++l) {
    const Dim& dim = dims[l];
    if (dim.extent > 65535 || !std::ranges::all_of(dim.stride, fits_in<int16_t>))
      return unsupported("a loop around a product is beyond an instruction");
    gemm.loops[l] = {static_cast<uint16_t>(dim.extent), static_cast<int16_t>(dim.stride[0]),
                     static_cast<int16_t>(dim.stride[1]), static_cast<int16_t>(dim.stride[2])};
  }
  Error error = Error::success();
  for_each(dims, hardware, [&](const std::array<int64_t, 3>& o) {
    if (error) return;
    Expected<bool> begins = overwrites(
        base[0] + o[0], Dims(dims.begin(), dims.begin() + static_cast<std::ptrdiff_t>(hardware)),
        0);
    if (!begins) return void(error = begins.takeError());
    gemm.overwrite = *begins;
    gemm.reduce = 0;
    for (size_t l = 0; l < hardware; ++l)
      if (*begins && dims[l].stride[0] == 0) gemm.reduce |= static_cast<uint8_t>(1 << l);
    gemm.acc = static_cast<uint16_t>(base[0] + o[0]),
    gemm.inp = static_cast<uint16_t>(base[1] + o[1]),
    gemm.wgt = static_cast<uint16_t>(base[2] + o[2]);
    error = emit(gemm);
  });
  return error;
}

// Only the second and third loop can be marked as reductions.
Error NestLowering::combine(const Emitted& emitted, const std::array<int64_t, 3>& base, Dims dims) {
  const bool spatial = !dims.empty() && dims[0].stride[0] != 0;
  if (!spatial) dims.insert(dims.begin(), Dim{1, 0, 1, {1, 0, 0}});
  const size_t hardware = std::min<size_t>(dims.size(), 3);
  Alu alu;
  alu.op = *emitted.alu;
  alu.from_inp = true;
  for (size_t l = 0; l < hardware; ++l) {
    const Dim& dim = dims[l];
    if (dim.extent > 65535 || !fits_in<int16_t>(dim.stride[0]) || !fits_in<int16_t>(dim.stride[1]))
      return unsupported("a loop around a sum or maximum is beyond an instruction");
    alu.loops[l] = {static_cast<uint16_t>(dim.extent), static_cast<int16_t>(dim.stride[0]),
                    static_cast<int16_t>(dim.stride[1])};
  }
  Error error = Error::success();
  for_each(dims, hardware, [&](const std::array<int64_t, 3>& o) {
    if (error) return;
    Expected<bool> begins = overwrites(
        base[0] + o[0], Dims(dims.begin(), dims.begin() + static_cast<std::ptrdiff_t>(hardware)),
        emitted.start());
    if (!begins) return void(error = begins.takeError());
    alu.overwrite = *begins;
    alu.reduce = 0;
    for (size_t l = 1; l < hardware; ++l)
      if (*begins && dims[l].stride[0] == 0) alu.reduce |= static_cast<uint8_t>(1 << (l - 1));
    alu.dst = static_cast<uint16_t>(base[0] + o[0]),
    alu.src = static_cast<uint16_t>(base[1] + o[1]);
    error = emit(alu);
  });
  return error;
}

Expected<std::optional<Affine>> NestLowering::channel_of(const Nest& nest,
                                                         const RequantForm& form) {
  const std::string& label = get<stmt::Store>(nest.leaf).label;
  const auto same = [](const Affine& a, const Affine& b) {
    return a.base == b.base && a.strides == b.strides;
  };
  std::optional<Affine> channel;
  size_t operand = 2;  // number behind the stored element and its accumulator
  std::vector<Expr> constants = form.biases;
  if (form.scale.defined() && is<expr::Load>(form.scale)) constants.push_back(form.scale);
  for (const Expr& constant : constants) {
    const auto& from = *as<expr::Load>(constant);
    const auto at = element(nest, operand++, kernel_.buffer(from.buffer), from.indices);
    if (!at || (channel && !same(*at, *channel)))
      return unsupported("the constants of stage '{0}' are not one for each channel", label);
    channel = *at;
  }
  if (form.guarded.defined()) {  // lanes beyond the last channel; nobody reads them
    const auto guarded = affine(form.guarded, *values_, nest);
    if (!channel || !guarded || !same(*guarded, *channel))
      return unsupported("a condition of stage '{0}' is not one of its channels", label);
  }
  return channel;
}

// The operands are the element in memory, the accumulator, and the element of the parameters.
Error NestLowering::store(const Nest& nest) {
  const auto& leaf = get<stmt::Store>(nest.leaf);
  const Buffer& into = kernel_.buffer(leaf.buffer);
  if (leaf.combiner != Combiner::none || leaf.where.defined() || into.dtype != DType::i8)
    return unsupported("stage '{0}' stores {1}, or combines; the device stores i8", leaf.label,
                       dtype_name(into.dtype));
  TW_ASSIGN(const RequantForm form, requant_form(kernel_, leaf.value));
  const auto& from = *as<expr::Load>(form.acc);
  const Buffer& sums = kernel_.buffer(from.buffer);
  if (space_of(sums) != Space::acc)
    return unsupported("stage '{0}' stores from the memory '{1}'", leaf.label, sums.scope);
  const int64_t lanes = device_.config.block_out;
  const auto to = element(nest, 0, into, leaf.indices), acc = element(nest, 1, sums, from.indices);
  if (!to || !acc)
    return unsupported("the addresses of stage '{0}' are no sums of multiples of its loops",
                       leaf.label);
  TW_ASSIGN(const std::optional<Affine> channel, channel_of(nest, form));
  std::vector<Affine> operands = {*to, *acc};
  if (channel) operands.push_back(*channel);
  TW_ASSIGN(Dims dims, dims_of(nest, operands, {lanes, lanes, lanes}, operands.size()));
  merge(dims);
  const auto [x, y] = take_stored_box(dims);
  Store store;
  store.mode = form.mode;
  store.base = static_cast<uint8_t>(base_of(leaf.buffer.index));
  store.x = static_cast<uint16_t>(x.end - x.first),
  store.y = static_cast<uint16_t>(y.end - y.first);
  store.y_stride = static_cast<int32_t>(store.y == 1 ? 0 : y.stride[0] * lanes),
  store.acc_y_stride = static_cast<uint16_t>(store.y == 1 ? 0 : y.stride[1]);
  store.zero_point = static_cast<int8_t>(form.zero_point),
  store.low = static_cast<int8_t>(form.low), store.high = static_cast<int8_t>(form.high);
  const int64_t first = to->base / lanes + x.first * x.stride[0] + y.first * y.stride[0];
  const int64_t sum = (*sram_)[static_cast<size_t>(from.buffer.index)] + acc->base / lanes +
                      x.first * x.stride[1] + y.first * y.stride[1];
  Error error = Error::success();
  for_each(dims, 0, [&](const std::array<int64_t, 3>& o) {
    const int64_t offset = (first + o[0]) * lanes,
                  parameter = operands.size() == 3 ? operands[2].base / lanes + o[2] : 0;
    if (!error && (x.extent > 65535 || y.extent > 65535 || !fits_in<uint32_t>(offset) ||
                   !fits_in<int32_t>(y.stride[0] * lanes)))
      error = unsupported("stage '{0}' stores more than an instruction can say", leaf.label);
    store.offset = static_cast<uint32_t>(offset);
    store.acc = static_cast<uint16_t>(sum + o[1]);
    if (form.mode == StoreMode::q8)
      store.prm = static_cast<uint16_t>(parameter),
      parts_.channels = std::max(parts_.channels, (parameter + 1) * lanes);
    if (!error && parameter >= device_.config.prm_depth)
      error = unsupported("parameters of {0} channels fit the device",
                          device_.config.prm_depth * lanes);
    if (!error) error = emit(store);
  });
  if (error) return error;
  if (form.mode == StoreMode::q8) parts_.requant = form;
  return Error::success();
}

}  // namespace tw::vdla
