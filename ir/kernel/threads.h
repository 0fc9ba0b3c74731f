// Runs a flat kernel: a thread for the kernel, one for each iteration of a concurrent loop and for
// each role. A thread runs until it must wait; asynchronous copies land when somebody cannot go on
// without them, so that a missing wait shows.
#pragma once
#include <deque>
#include <memory>

#include "ir/kernel/flat.h"
#include "ir/kernel/pair_sums.h"
#include "ir/kernel/races.h"

namespace tw::interpreter {

class Threads {
 public:
  Threads(const Kernel& kernel, Machine& machine, const Flat& flat);
  void run();  // to the end, or to the machine's first problem
  // Where the problem was; empty: nowhere in particular
  const std::string& stage() const { return stage_; }

 private:
  using Token = std::shared_ptr<const Clock>;  // what the giver knew
  struct Pending {                             // of an asynchronous copy, or the signal behind some
    int source = -1, target = -1;              // memories; no source: a zero
    int64_t from = 0, to = 0;                  // elements
    Token issued{};
    int queue = -1;  // of a signal
    size_t index = 0;
    const std::string* stage = nullptr;
  };
  struct Engine {  // makes a thread's asynchronous copies, in order
    int id = -1;   // in the clocks
    Clock clock;
    std::deque<Pending> pending;
  };
  struct Queue {  // an instance
    std::vector<std::deque<Token>> tokens;
    // Who will signal, in the order of the statements
    std::vector<std::deque<std::shared_ptr<Engine>>> async;
  };
  struct Group {  // one run of a bound loop
    int slot = 0;
    int active = 0;  // threads below that can run or meet
    std::vector<int> arrived;
  };
  enum class State : uint8_t { ready, waits, meets, joins, ended };
  struct Thread {
    int index = 0;  // in threads_
    int id = 0;     // in the clocks
    int parent = -1;
    size_t pc = 0;
    State state = State::ready;
    std::vector<int64_t> slots{}, extents{};  // by slot
    std::vector<int> memories{}, queues{};    // instances, by buffer and by queue
    std::vector<std::shared_ptr<Group>> groups{};
    std::vector<int> own_memories{}, own_queues{};  // made for this thread
    std::vector<int> free_ids{};                    // children that ended
    int children = 0;
    Clock clock{};
    Token snapshot{};  // of the clock, until it changes
    std::shared_ptr<Engine> engine{};
    std::string name{};
  };

  void step_until_blocked(Thread& t);
  void fork(Thread& t, const Instruction& i);
  void start(Thread& parent, size_t pc, const std::string& name, const Instruction& i,
             int64_t value, const std::shared_ptr<Group>& group);
  void end(Thread& t);
  void hand_over(Thread& t);
  void give_private(Thread& child, const std::string& loop);
  bool pop_token(Thread& t, const Instruction& i);
  void push_token(Thread& t, const Instruction& i);
  void meet(Thread& t, const Instruction& i);
  void release_met(const std::shared_ptr<Group>& group);
  void change_active(Thread& t, int by);
  void land(Engine& engine, int queue, size_t index);
  void store(Thread& t, const StoreCode& s);
  void put(const StoreCode& s, int64_t element, const Code& value, Combiner combiner);
  void put_pair(const StoreCode& s, int64_t element);
  void issue(Thread& t, const StoreCode& s, int64_t element);
  bool starts_reduction(const StoreCode& s) const;
  size_t queue_index(const Instruction& i, const Queue& q);
  void check_balance(int queue, const TokenQueue& declared);
  Token known(Thread& t);
  void enter(Thread& t);
  void leave(Thread& t);
  void report_deadlock();
  int new_queue(const TokenQueue& declared);

  const Kernel& kernel_;
  Machine& machine_;
  const Flat& flat_;
  std::deque<Thread> threads_;  // by id; references stay
  std::deque<int> ready_;
  std::vector<Queue> queues_;
  std::vector<std::string> names_;  // by clock id: of threads and engines
  std::string stage_;
  FloatProduct first_;  // of a pair that waits for the second
  int next_id_ = 0;
};

}  // namespace tw::interpreter
