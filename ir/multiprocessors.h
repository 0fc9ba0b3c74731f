// What a device is made of whose blocks of threads run on multiprocessors, as its description says
// it: docs/reference/targets.md has the keys. Choices read multiprocessors(target), where what is
// not said follows by rule.
#pragma once
#include <array>
#include <cstdint>

#include "ir/dtype.h"

namespace tw {

struct Target;

// 0: not said
struct Multiprocessors {
  int64_t count = 0;
  int64_t clock = 0;  // cycles a second
  // What one holds at one time
  int64_t threads = 0, blocks = 0, registers = 0, local_bytes = 0;
  // Of one, multiply-adds that start in a cycle: of f32 by single threads, the others by
  // instructions that threads do together
  int64_t f32 = 0, tf32 = 0, f16 = 0, bf16 = 0, i8 = 0;
  // Bytes a cycle: of one's memory that a block shares; of all from the second-level cache and from
  // memory
  int64_t local_rate = 0, l2_rate = 0, memory_rate = 0;
  int64_t latency = 0;  // cycles from asking for bytes of memory to having them

  // By an instruction that threads do together
  int64_t multiply_adds(DType operand, bool rounds_tf32) const;
  bool operator==(const Multiprocessors&) const = default;
};

// Keys of `multiprocessors`, in the order in which they are printed; those of a group stand
// together.
struct MultiprocessorKey {
  const char *group, *name;  // group "": none
  int64_t Multiprocessors::* rate;
};
inline constexpr std::array kMultiprocessorKeys = {
    MultiprocessorKey{"", "count", &Multiprocessors::count},
    MultiprocessorKey{"", "clock", &Multiprocessors::clock},
    MultiprocessorKey{"", "threads", &Multiprocessors::threads},
    MultiprocessorKey{"", "blocks", &Multiprocessors::blocks},
    MultiprocessorKey{"", "registers", &Multiprocessors::registers},
    MultiprocessorKey{"", "local_bytes", &Multiprocessors::local_bytes},
    MultiprocessorKey{"multiply_adds", "f32", &Multiprocessors::f32},
    MultiprocessorKey{"multiply_adds", "tf32", &Multiprocessors::tf32},
    MultiprocessorKey{"multiply_adds", "f16", &Multiprocessors::f16},
    MultiprocessorKey{"multiply_adds", "bf16", &Multiprocessors::bf16},
    MultiprocessorKey{"multiply_adds", "i8", &Multiprocessors::i8},
    MultiprocessorKey{"bytes", "local", &Multiprocessors::local_rate},
    MultiprocessorKey{"bytes", "l2", &Multiprocessors::l2_rate},
    MultiprocessorKey{"bytes", "memory", &Multiprocessors::memory_rate},
    MultiprocessorKey{"", "latency", &Multiprocessors::latency},
};

// Of the device's description, and by the rules in docs/reference/targets.md. The second-level
// cache is the description's l2_bytes.
Multiprocessors multiprocessors(const Target& target);

}  // namespace tw
