#include "backends/vdla/config.h"

#include <algorithm>

#include "ir/schedule/intrinsic.h"

namespace tw::vdla {
namespace {

Error parameter(const Target& device, const char* name, int64_t& value) {
  const std::optional<int64_t> given = device.parameter(name);
  if (!given)
    return make_error(DiagCode::unsupported, "device '{0}' needs the parameter '{1}'", device.name,
                      name);
  value = *given;
  return Error::success();
}

// The load under an integer's casts; null: another expression
const expr::Load* load_in(const Expr& e) {
  const auto* converted = as<expr::Cast>(e);
  return converted ? load_in(converted->a) : as<expr::Load>(e);
}

// The names of the store's i8 operands: one, or the two factors of a product
std::vector<std::string> operands_of(const Kernel& kernel, const stmt::Store& store) {
  const Expr* value = &store.value;
  while (const auto* converted = as<expr::Cast>(*value)) value = &converted->a;
  std::vector<Expr> operands = {*value};
  if (const auto* product = as_binary(*value, BinaryOp::mul)) operands = {product->a, product->b};
  std::vector<std::string> names;
  for (const Expr& e : operands) {
    const expr::Load* load = load_in(e);
    if (!load || kernel.buffer(load->buffer).dtype != DType::i8) return {};
    names.push_back(kernel.buffer(load->buffer).name);
  }
  return names;
}

bool computes(const Kernel& kernel, const Emitted& emitted) {
  const std::vector<StoreRef> stores = stores_of(kernel.body);
  if (stores.size() != 1) return false;
  const stmt::Store& store = *stores[0];
  const Buffer& out = kernel.buffer(store.buffer);
  const bool max = emitted.alu == AluOp::max;
  std::vector<std::string> wanted = {emitted.in}, found = operands_of(kernel, store);
  if (!emitted.alu) wanted.push_back(emitted.weight);
  std::ranges::sort(wanted), std::ranges::sort(found);
  return out.name == emitted.out && found == wanted && !store.where.defined() &&
         store.combiner == (max ? Combiner::max : Combiner::add) &&
         (out.dtype == DType::i32 || (max && out.dtype == DType::i8));
}

constexpr const char* kForms = "gemm(OUT, IN, WEIGHT), alu.add(OUT, IN) and alu.max(OUT, IN)";

}  // namespace

Expected<Emitted> emitted_by(const Intrinsic& intrinsic) {
  const auto problem = [&](const std::string& text, std::vector<std::string> notes) {
    return make_error(Diag{DiagCode::unsupported, "intrinsic '" + intrinsic.name + "': " + text,
                           intrinsic.emit.at, std::move(notes)});
  };
  const auto unknown = [&] {
    return problem("no code is known for emit '" + intrinsic.emit.text() + "'",
                   {std::string("known here: ") + kForms});
  };
  if (intrinsic.emit.calls.size() != 1) return unknown();
  const EmitCalls::Call& call = intrinsic.emit.calls[0];
  const auto operation = std::ranges::find(kOperations, std::string_view(call.callee),
                                           &Operation::name);
  if (operation == kOperations.end()) return unknown();
  const Instruction instruction = blank(*operation);
  const Alu* alu = std::get_if<Alu>(&instruction);
  const size_t operands = alu ? 2 : 3;
  if ((!alu && !std::holds_alternative<Gemm>(instruction)) || call.operands.size() != operands)
    return unknown();
  Emitted emitted;
  if (alu) emitted.alu = alu->op;
  std::string* const places[] = {&emitted.out, &emitted.in, &emitted.weight};
  for (size_t o = 0; o < operands; ++o) *places[o] = call.operands[o].name;
  TW_ASSIGN(const std::shared_ptr<const Kernel> kernel, semantics_of(intrinsic));
  if (!computes(*kernel, emitted))
    return problem("its semantics are not what emit '" + intrinsic.emit.text() + "' computes",
                   {"gemm: OUT += i32(IN) * i32(WEIGHT); alu.add: OUT += i32(IN); alu.max: OUT "
                    "max= IN; IN and WEIGHT i8, OUT i32, of a maximum i8 too"});
  return emitted;
}

const char* scope_of(Space space) {
  switch (space) {
    case Space::inp: return "sram.inp";
    case Space::wgt: return "sram.wgt";
    case Space::acc: return "sram.acc";
    case Space::prm: return "sram.prm";
    case Space::dram: return "global";
  }
  TW_UNREACHABLE("bad space");
}

Expected<Device> device_of(const Target& target) {
  constexpr const char* kNames[] = {"bus_bytes", "queue_depth", "requant_lanes", "latency",
                                    "bytes_per_cycle"};
  for (const auto& [name, value] : target.parameters)
    if (std::ranges::find(kNames, name) == std::end(kNames))
      return make_error({DiagCode::unsupported,
                         "device '" + target.name + "' has the unknown parameter '" + name + "'",
                         {},
                         {"parameters of the driver vdla: bus_bytes, queue_depth, requant_lanes, "
                          "latency, bytes_per_cycle"}});
  int64_t numbers[5];
  for (size_t i = 0; i < 5; ++i) TW_TRY(parameter(target, kNames[i], numbers[i]));
  Device device;
  device.config.bus_bytes = static_cast<int>(numbers[0]);
  device.config.queue_depth = static_cast<int>(numbers[1]);
  device.config.requant_lanes = static_cast<int>(numbers[2]);
  device.dram = {static_cast<uint32_t>(numbers[3]), static_cast<uint32_t>(numbers[4])};
  std::vector<Diag> problems;
  for (const Intrinsic& intrinsic : target.intrinsics) {
    Expected<Emitted> emitted = emitted_by(intrinsic);
    if (!emitted) {
      for (Diag& one : take_diags(emitted.takeError())) problems.push_back(std::move(one));
      continue;
    }
    if (emitted->alu) continue;
    TW_ASSIGN(const std::shared_ptr<const Kernel> kernel, semantics_of(intrinsic));
    for (const Buffer& buffer : kernel->buffers) {  // the array has the size of its weights
      if (buffer.shape.size() != 2 || !as_const(buffer.shape[0]) || !as_const(buffer.shape[1]))
        continue;
      device.config.block_out = static_cast<int>(*as_const(buffer.shape[0]));
      device.config.block_in = static_cast<int>(*as_const(buffer.shape[1]));
    }
  }
  if (!problems.empty()) return make_error(std::move(problems));
  for (Space space : {Space::inp, Space::wgt, Space::acc, Space::prm}) {
    const MemoryScope* scope = target.find_scope(scope_of(space));
    if (!scope || scope->bytes == 0)
      return make_error(DiagCode::unsupported, "device '{0}' needs the size of the memory '{1}'",
                        target.name, scope_of(space));
    const int elements = static_cast<int>(scope->bytes / element_bytes(device.config, space));
    (space == Space::inp   ? device.config.inp_depth
     : space == Space::wgt ? device.config.wgt_depth
     : space == Space::acc ? device.config.acc_depth
                           : device.config.prm_depth) = elements;
  }
  TW_TRY(verify(device.config));
  return device;
}

}  // namespace tw::vdla
