// The interpreter's core. It compiles expressions to trees with variables in slots and evaluates
// them as int64_t or double. Its memory checks bounds and records which elements were written.
#pragma once
#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "ir/kernel/kernel.h"
#include "ir/kernel/races.h"

namespace tw::interpreter {

struct Memory {
  std::string name;
  DType dtype = DType::f32;
  std::vector<int64_t> shape;
  std::byte* data = nullptr;
  std::vector<std::byte> own;      // bytes of a temp
  std::vector<uint8_t> written;    // by element, for temps and outputs; empty: all are written
  std::unique_ptr<Races> races{};  // set if threads share the memory and write to it
  // Memories of outputs that may be made in this one's place. An element must not be read once it
  // is written there.
  std::vector<int> takers{};
};

struct Code;
using Operand = std::shared_ptr<const Code>;

namespace code {  // the kinds of expr, with variables and buffers by number

using expr::Float;
using expr::Int;
struct Var {
  int slot = 0;
};
struct Load {
  int buffer = 0;
  std::vector<Code> indices;
};
struct Unary {
  UnaryOp op;
  Operand a;
};
struct Binary {
  BinaryOp op;
  Operand a, b;
};
struct Select {
  Operand condition, then, otherwise;
};
struct Cast {
  Operand a;
  bool saturate = false;
};

using Any = std::variant<Int, Float, Var, Load, Unary, Binary, Select, Cast>;

}  // namespace code

struct Code {  // one node of an expression
  code::Any is;
  DType type = DType::i64;
};

class Machine {
 public:
  std::vector<Memory> memories;  // the buffers' memories come first
  std::vector<int> instances;    // for each buffer, the running thread's memory
  int thread = 0;                // the running thread's clock id
  const Clock* clock = nullptr;  // the running thread's
  std::function<std::string(int)> name_of_thread;
  std::vector<int64_t> slots;
  std::map<std::string, int, std::less<>> slot_of;
  // The first run-time error; empty: none. After an error, evaluation goes on with zeros.
  std::string problem;

  int add_slot(const std::string& name);
  Code compile(const Expr& e) const;
  int64_t eval_int(const Code& c);  // for integers and bool
  double eval_float(const Code& c);
  int memory_of(int buffer) const { return instances[static_cast<size_t>(buffer)]; }
  // Adds an unwritten memory like the buffer's. Returns its number.
  int copy_memory(int buffer);
  void drop_memory(int memory);
  // The number of the element; -1: the access failed, and `problem` says why.
  int64_t locate(int buffer, const std::vector<Code>& indices, const char* access);
  void check_read(int memory, int64_t element);  // requires a written element and an ordered read
  void copy_element(int source, int64_t from, int target, int64_t to);
  int64_t read_int(int memory, int64_t element) const;
  double read_float(int memory, int64_t element) const;
  void write_int(int memory, int64_t element, int64_t value);
  void write_float(int memory, int64_t element, double value);
  void write_zero(int memory, int64_t element) {
    is_float(memories[static_cast<size_t>(memory)].dtype) ? write_float(memory, element, 0)
                                                          : write_int(memory, element, 0);
  }
  void fail(std::string message) {
    if (problem.empty()) problem = std::move(message);
  }

 private:
  int64_t eval_int_unary(const code::Unary& unary, DType type);
  int64_t eval_int_binary(const code::Binary& binary);
  int64_t compare_floats(const code::Binary& binary);
  int64_t cast_to_int(const code::Cast& cast, DType type);
  double cast_to_float(const code::Cast& cast, DType type);
  int64_t load_element(const code::Load& load);
  void note_write(Memory& m, int64_t element);
  void report_race(const Memory& m, int64_t element, const char* access, int other);
  std::vector<int> dropped_;
};

double combine(Combiner combiner, double a, double b);
int64_t combine(Combiner combiner, DType type, int64_t a, int64_t b);

}  // namespace tw::interpreter
