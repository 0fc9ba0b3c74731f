#include "ir/kernel/machine.h"

#include <cmath>
#include <cstring>

#include "ir/scalar_ops.h"
#include "ir/storage_types.h"

namespace tw::interpreter {
namespace {

template <class T>
T fetch(const std::byte* at) {
  T value;
  std::memcpy(&value, at, sizeof value);
  return value;
}
template <class T>
void put(std::byte* at, T value) {
  std::memcpy(at, &value, sizeof value);
}

}  // namespace

int Machine::add_slot(const std::string& name) {
  auto [at, fresh] = slot_of.emplace(name, static_cast<int>(slots.size()));
  if (fresh) slots.push_back(0);
  return at->second;
}

Code Machine::compile(const Expr& e) const {
  const auto operand = [this](const Expr& a) { return std::make_shared<const Code>(compile(a)); };
  const auto made = [&](code::Any is) { return Code{std::move(is), e.type()}; };
  return match(
      e, [&](const expr::Int& number) { return made(number); },
      [&](const expr::Float& number) { return made(number); },
      [&](const expr::Var& v) { return made(code::Var{slot_of.find(v.name)->second}); },
      [&](const expr::Load& l) {
        std::vector<Code> indices;
        for (const Expr& index : l.indices) indices.push_back(compile(index));
        return made(code::Load{l.buffer.index, std::move(indices)});
      },
      [&](const expr::Unary& u) { return made(code::Unary{u.op, operand(u.a)}); },
      [&](const expr::Binary& b) { return made(code::Binary{b.op, operand(b.a), operand(b.b)}); },
      [&](const expr::Select& s) {
        return made(code::Select{operand(s.condition), operand(s.then), operand(s.otherwise)});
      },
      [&](const expr::Cast& c) { return made(code::Cast{operand(c.a), c.saturate}); });
}

int64_t Machine::locate(int buffer, const std::vector<Code>& indices, const char* access) {
  const Memory& m = memories[static_cast<size_t>(memory_of(buffer))];
  int64_t element = 0;
  bool inside = true;
  for (size_t d = 0; d < indices.size(); ++d) {
    int64_t index = eval_int(indices[d]);
    inside &= index >= 0 && index < m.shape[d];
    element = inside ? element * m.shape[d] + index : 0;
  }
  if (inside) return element;
  std::string at, shape;
  for (size_t d = 0; d < indices.size(); ++d) {
    at += (d ? ", " : "") + std::to_string(eval_int(indices[d]));
    shape += (d ? ", " : "") + std::to_string(m.shape[d]);
  }
  fail(std::string(access) + " of " + m.name + "[" + at + "] outside its shape [" + shape + "]");
  return -1;
}

namespace {
std::string place(const Memory& m, int64_t element) {
  std::string at;
  for (size_t d = m.shape.size(); d-- > 0; element /= m.shape[d])
    at = std::to_string(element % m.shape[d]) + (at.empty() ? "" : ", ") + at;
  return m.name + "[" + at + "]";
}
}  // namespace

void Machine::report_race(const Memory& m, int64_t element, const char* access, int other) {
  fail(place(m, element) + " is " + access + " by " + name_of_thread(thread) +
       ", and accessed by " + name_of_thread(other) + ", with nothing to order them");
}

void Machine::check_read(int memory, int64_t element) {
  const Memory& m = memories[static_cast<size_t>(memory)];
  if (!m.written.empty() && !m.written[static_cast<size_t>(element)])
    return fail(place(m, element) + " is read before it is written");
  for (const int taker : m.takers)
    if (memories[static_cast<size_t>(taker)].written[static_cast<size_t>(element)])
      return fail(place(m, element) + " is read when " + memories[static_cast<size_t>(taker)].name +
                  " has taken its place");
  if (!m.races) return;
  if (const int other = m.races->read(static_cast<size_t>(element), thread, *clock); other >= 0)
    report_race(m, element, "read", other);
}

void Machine::note_write(Memory& m, int64_t element) {
  if (!m.written.empty()) m.written[static_cast<size_t>(element)] = 1;
  if (!m.races) return;
  if (const int other = m.races->write(static_cast<size_t>(element), thread, *clock); other >= 0)
    report_race(m, element, "written", other);
}

void Machine::copy_element(int source, int64_t from, int target, int64_t to) {
  check_read(source, from);
  if (!problem.empty()) return;
  if (is_float(memories[static_cast<size_t>(source)].dtype))
    write_float(target, to, read_float(source, from));
  else write_int(target, to, read_int(source, from));
}

int Machine::copy_memory(int buffer) {
  int at = static_cast<int>(memories.size());
  if (dropped_.empty()) {
    memories.emplace_back();
  } else {
    at = dropped_.back();
    dropped_.pop_back();
  }
  const Memory& like = memories[static_cast<size_t>(buffer)];
  Memory& m = memories[static_cast<size_t>(at)];
  m.name = like.name;
  m.dtype = like.dtype;
  m.shape = like.shape;
  m.own.assign(like.own.size(), std::byte{0});
  m.data = m.own.data();
  m.written.assign(like.written.size(), 0);
  m.races = std::make_unique<Races>(like.written.size());
  return at;
}

void Machine::drop_memory(int memory) {
  memories[static_cast<size_t>(memory)] = {};
  dropped_.push_back(memory);
}

int64_t Machine::load_element(const code::Load& load) {
  int64_t element = locate(load.buffer, load.indices, "load");
  if (element >= 0) check_read(memory_of(load.buffer), element);
  return element;
}

int64_t Machine::read_int(int memory, int64_t element) const {
  const Memory& m = memories[static_cast<size_t>(memory)];
  const std::byte* at = m.data + element * dtype_bytes(m.dtype);
  switch (m.dtype) {
    case DType::i8: return fetch<int8_t>(at);
    case DType::i16: return fetch<int16_t>(at);
    case DType::i32: return fetch<int32_t>(at);
    case DType::i64:
    case DType::u64: return fetch<int64_t>(at);
    case DType::u8: return fetch<uint8_t>(at);
    case DType::u16: return fetch<uint16_t>(at);
    case DType::u32: return fetch<uint32_t>(at);
    case DType::boolean: return fetch<uint8_t>(at) != 0;
    case DType::f32:
    case DType::f64:
    case DType::f16:
    case DType::bf16:
    case DType::f8e4m3fn:
    case DType::f8e4m3fnuz:
    case DType::f8e5m2:
    case DType::f8e5m2fnuz:
    case DType::f8e8m0:
    case DType::f4e2m1: break;
    case DType::i4:
    case DType::i2:
    case DType::u4:
    case DType::u2: return wrap_to(m.dtype, fetch<int8_t>(at));
    case DType::string: return fetch<int64_t>(at);
  }
  TW_UNREACHABLE("{0} is a float buffer", m.name);
}

double Machine::read_float(int memory, int64_t element) const {
  const Memory& m = memories[static_cast<size_t>(memory)];
  const std::byte* at = m.data + element * dtype_bytes(m.dtype);
  if (m.dtype == DType::f32) return fetch<float>(at);
  if (m.dtype == DType::f64) return fetch<double>(at);
  if (m.dtype == DType::f16) return f16_to_f32(fetch<uint16_t>(at));
  if (m.dtype == DType::bf16) return bf16_to_f32(fetch<uint16_t>(at));
  TW_CHECK(is_small_float(m.dtype), "{0} is an integer buffer", m.name);
  return small_to_f32(m.dtype, fetch<uint8_t>(at));
}

void Machine::write_int(int memory, int64_t element, int64_t value) {
  Memory& m = memories[static_cast<size_t>(memory)];
  int bytes = dtype_bytes(m.dtype);
  std::byte* at = m.data + element * bytes;
  if (m.dtype == DType::boolean) value = value != 0;
  if (bytes == 1) put(at, static_cast<uint8_t>(value));
  else if (bytes == 2) put(at, static_cast<uint16_t>(value));
  else if (bytes == 4) put(at, static_cast<uint32_t>(value));
  else put(at, value);
  note_write(m, element);
}

void Machine::write_float(int memory, int64_t element, double value) {
  Memory& m = memories[static_cast<size_t>(memory)];
  std::byte* at = m.data + element * dtype_bytes(m.dtype);
  if (m.dtype == DType::f32) put(at, static_cast<float>(value));
  else if (m.dtype == DType::f64) put(at, value);
  else if (m.dtype == DType::f16) put(at, f32_to_f16(static_cast<float>(value)));
  else if (m.dtype == DType::bf16) put(at, f32_to_bf16(static_cast<float>(value)));
  else put(at, f32_to_small(m.dtype, static_cast<float>(value), false));
  note_write(m, element);
}

int64_t Machine::eval_int_unary(const code::Unary& unary, DType type) {
  if (unary.op == UnaryOp::is_nan) return std::isnan(eval_float(*unary.a));
  if (unary.op == UnaryOp::is_inf) return std::isinf(eval_float(*unary.a));
  int64_t x = eval_int(*unary.a);
  bool negative = is_signed_int(type) && x < 0;
  if (unary.op == UnaryOp::logical_not) return !x;
  if (unary.op == UnaryOp::bit_not) return wrap_to(type, ~x);
  if (unary.op == UnaryOp::sign) return negative ? -1 : x != 0;
  if (unary.op == UnaryOp::abs && !negative) return x;
  TW_CHECK(unary.op == UnaryOp::neg || unary.op == UnaryOp::abs, "{0} of an integer",
           op_name(unary.op));
  return int_binary(BinaryOp::sub, type, 0, x);
}

int64_t Machine::eval_int_binary(const code::Binary& binary) {
  DType type = binary.a->type;
  if (is_float(type)) return compare_floats(binary);
  int64_t a = eval_int(*binary.a);
  if (binary.op == BinaryOp::logical_and && !a) return 0;
  if (binary.op == BinaryOp::logical_or && a) return 1;
  int64_t b = eval_int(*binary.b);
  if (divides(binary.op) && b == 0) {
    fail("division by zero");
    return 0;
  }
  return int_binary(binary.op, type, a, b);
}

int64_t Machine::compare_floats(const code::Binary& binary) {
  double a = eval_float(*binary.a), b = eval_float(*binary.b);
  if (binary.op == BinaryOp::lt) return a < b;
  if (binary.op == BinaryOp::le) return a <= b;
  if (binary.op == BinaryOp::eq) return a == b;
  return a != b;
}

int64_t Machine::cast_to_int(const code::Cast& cast, DType type) {
  DType from = cast.a->type;
  if (!is_float(from)) return cast_int(type, from, eval_int(*cast.a), cast.saturate);
  return float_to_int(type, eval_float(*cast.a), cast.saturate);
}

double Machine::cast_to_float(const code::Cast& cast, DType type) {
  DType from = cast.a->type;
  if (is_float(from)) return round_to(type, eval_float(*cast.a), cast.saturate);
  int64_t value = eval_int(*cast.a);
  return round_to(type,
                  from == DType::u64 ? static_cast<double>(static_cast<uint64_t>(value))
                                     : static_cast<double>(value),
                  cast.saturate);
}

int64_t Machine::eval_int(const Code& c) {
  return match_kind(
      c.is, [](const code::Int& number) { return number.value; },
      [&](const code::Var& v) { return slots[static_cast<size_t>(v.slot)]; },
      [&](const code::Load& load) {
        int64_t element = load_element(load);
        return element < 0 ? 0 : read_int(memory_of(load.buffer), element);
      },
      [&](const code::Unary& unary) { return eval_int_unary(unary, c.type); },
      [&](const code::Binary& binary) { return eval_int_binary(binary); },
      [&](const code::Select& select) {
        return eval_int(eval_int(*select.condition) ? *select.then : *select.otherwise);
      },
      [&](const code::Cast& cast) { return cast_to_int(cast, c.type); },
      [](const code::Float&) -> int64_t { TW_UNREACHABLE("a float in an integer expression"); });
}

double Machine::eval_float(const Code& c) {
  const auto no_float = []() -> double { TW_UNREACHABLE("an integer in a float expression"); };
  return match_kind(
      c.is, [](const code::Float& number) { return number.value; },
      [&](const code::Load& load) {
        int64_t element = load_element(load);
        return element < 0 ? 0 : read_float(memory_of(load.buffer), element);
      },
      [&](const code::Unary& unary) { return float_unary(unary.op, eval_float(*unary.a)); },
      [&](const code::Binary& binary) {
        return float_binary(binary.op, eval_float(*binary.a), eval_float(*binary.b));
      },
      [&](const code::Select& select) {
        return eval_float(eval_int(*select.condition) ? *select.then : *select.otherwise);
      },
      [&](const code::Cast& cast) { return cast_to_float(cast, c.type); },
      [&](const code::Int&) { return no_float(); }, [&](const code::Var&) { return no_float(); });
}

double combine(Combiner combiner, double a, double b) {
  switch (combiner) {
    case Combiner::none: return b;
    case Combiner::add: return a + b;
    case Combiner::mul: return a * b;
    case Combiner::min: return float_binary(BinaryOp::min, a, b);
    case Combiner::max: return float_binary(BinaryOp::max, a, b);
  }
  TW_UNREACHABLE("bad combiner");
}

int64_t combine(Combiner combiner, DType type, int64_t a, int64_t b) {
  switch (combiner) {
    case Combiner::none: return b;
    case Combiner::add: return int_binary(BinaryOp::add, type, a, b);
    case Combiner::mul: return int_binary(BinaryOp::mul, type, a, b);
    case Combiner::min: return int_binary(BinaryOp::min, type, a, b);
    case Combiner::max: return int_binary(BinaryOp::max, type, a, b);
  }
  TW_UNREACHABLE("bad combiner");
}

}  // namespace tw::interpreter
