// Runs a flat kernel. There is a thread for the kernel, one for each iteration of a concurrent
// loop, and one for each role. A thread runs until it must wait. Asynchronous copies land only when
// somebody cannot go on without them, so that a missing wait shows.
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
  void run();  // until the end, or until the machine's first problem
  // The stage of the problem; empty: no particular stage
  const std::string& stage() const { return stage_; }

 private:
  using Token = std::shared_ptr<const Clock>;  // clock of the giver
  struct Pending {                             // an asynchronous copy, or a signal behind copies
    int source = -1, target = -1;              // memories; source -1: store a zero
    int64_t from = 0, to = 0;                  // elements
    Token issued{};
    int queue = -1;  // a signal's queue; -1: a copy
    size_t index = 0;
    const std::string* stage = nullptr;
  };
  struct Engine {  // makes a thread's asynchronous copies in order
    int id = -1;   // id in the clocks
    Clock clock;
    std::deque<Pending> pending;
  };
  struct Queue {  // one instance of a queue
    std::vector<std::deque<Token>> tokens;
    // Engines that will signal, in the order of the statements
    std::vector<std::deque<std::shared_ptr<Engine>>> async;
  };
  struct Group {  // one run of a bound loop
    int slot = 0;
    int active = 0;  // threads below that can run or meet
    std::vector<int> arrived;
  };
  enum class State : uint8_t { ready, waits, meets, joins, ended };
  struct Thread {
    int index = 0;  // position in threads_
    int id = 0;     // id in the clocks
    int parent = -1;
    size_t pc = 0;
    State state = State::ready;
    std::vector<int64_t> slots{}, extents{};  // slots of variables; extents of running loops
    std::vector<int> memories{}, queues{};    // the thread's instances, by buffer and by queue
    std::vector<std::shared_ptr<Group>> groups{};
    std::vector<int> own_memories{}, own_queues{};  // instances made for this thread
    std::vector<int> free_ids{};                    // ids of ended children
    int children = 0;
    Clock clock{};
    Token snapshot{};  // copy of the clock until it changes
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
  std::deque<Thread> threads_;  // by Thread::index; references stay valid
  std::deque<int> ready_;
  std::vector<Queue> queues_;
  std::vector<std::string> names_;  // names of threads and engines, by clock id
  std::string stage_;
  FloatProduct first_;  // first product of a pair, until the second arrives
  int next_id_ = 0;
};

}  // namespace tw::interpreter
