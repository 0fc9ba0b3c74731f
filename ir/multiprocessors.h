// The multiprocessors that run a device's blocks of threads, as its target description states them.
// docs/reference/targets.md lists the keys. Code that makes choices reads multiprocessors(target),
// which fills unstated numbers in by rule.
#pragma once
#include <array>
#include <cstdint>

#include "ir/dtype.h"

namespace tw {

struct Target;

// A value of 0 is not stated.
struct Multiprocessors {
  int64_t count = 0;
  int64_t clock = 0;  // cycles a second
  // Limits of one multiprocessor at any one time
  int64_t threads = 0, blocks = 0, registers = 0, local_bytes = 0;
  // Multiply-adds that start on one multiprocessor in a cycle. Single threads do those in `f32`;
  // instructions that several threads do together do the others.
  int64_t f32 = 0, tf32 = 0, f16 = 0, bf16 = 0, i8 = 0;
  // Bytes a cycle. local_rate: from the memory that a block shares, for one multiprocessor. l2_rate
  // and memory_rate: for all multiprocessors together.
  int64_t local_rate = 0, l2_rate = 0, memory_rate = 0;
  int64_t latency = 0;  // cycles from a request to memory until its bytes arrive

  // The rate of instructions that several threads do together
  int64_t multiply_adds(DType operand, bool rounds_tf32) const;
  bool operator==(const Multiprocessors&) const = default;
};

// Keys of `multiprocessors` in print order. The keys of a group are adjacent.
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

// The numbers of the device's description, completed by the rules of docs/reference/targets.md. The
// second-level cache is the description's l2_bytes.
Multiprocessors multiprocessors(const Target& target);

}  // namespace tw
