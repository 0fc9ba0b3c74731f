#include "ir/kernel/threads.h"

#include <algorithm>

namespace tw::interpreter {
namespace {
constexpr size_t kMaxThreads = 1 << 14;  // at one time
}

Threads::Threads(const Kernel& kernel, Machine& machine, const Flat& flat)
    : kernel_(kernel), machine_(machine), flat_(flat) {
  Thread& root = threads_.emplace_back(Thread{.index = 0, .id = next_id_++});
  names_.push_back("the kernel");
  root.name = names_.back();
  root.slots = machine.slots;
  root.extents.assign(machine.slots.size(), 0);
  root.memories = machine.instances;
  for (const TokenQueue& q : kernel.queues) root.queues.push_back(new_queue(q));
  root.clock.tick(root.id);
  root.engine = std::make_shared<Engine>();
  ready_.push_back(0);
  machine_.name_of_thread = [this](int id) { return names_[static_cast<size_t>(id)]; };
}

int Threads::new_queue(const TokenQueue& declared) {
  Queue queue;
  const size_t count = static_cast<size_t>(declared.extent.value_or(1));
  queue.tokens.assign(count, std::deque<Token>(static_cast<size_t>(declared.initial)));
  queue.async.resize(count);
  queues_.push_back(std::move(queue));
  return static_cast<int>(queues_.size()) - 1;
}

void Threads::run() {
  while (!ready_.empty() && machine_.problem.empty()) {
    const int index = ready_.front();
    ready_.pop_front();
    Thread& t = threads_[static_cast<size_t>(index)];
    if (t.state != State::ready) continue;
    enter(t);
    step_until_blocked(t);
    leave(t);
  }
  if (machine_.problem.empty() && threads_[0].state != State::ended) report_deadlock();
}

void Threads::enter(Thread& t) {
  machine_.slots.swap(t.slots);
  machine_.instances.swap(t.memories);
  machine_.thread = t.id;
  machine_.clock = &t.clock;
}

void Threads::leave(Thread& t) {
  machine_.slots.swap(t.slots);
  machine_.instances.swap(t.memories);
}

void Threads::step_until_blocked(Thread& t) {
  while (machine_.problem.empty()) {
    const Instruction& i = flat_.code[t.pc];
    const size_t slot = static_cast<size_t>(i.slot);
    switch (i.op) {
      case Op::store:
        store(t, flat_.stores[slot]);
        ++t.pc;
        break;
      case Op::loop:
        t.extents[slot] = machine_.eval_int(i.expr);
        machine_.slots[slot] = 0;
        t.pc = t.extents[slot] > 0 ? t.pc + 1 : i.target;
        break;
      case Op::next: t.pc = ++machine_.slots[slot] < t.extents[slot] ? i.target : t.pc + 1; break;
      case Op::branch: t.pc = machine_.eval_int(i.expr) ? t.pc + 1 : i.target; break;
      case Op::fork_loop:
      case Op::fork_roles:
        fork(t, i);
        if (t.state != State::ready) return;
        break;
      case Op::end: return end(t);
      case Op::signal:
        push_token(t, i);
        ++t.pc;
        break;
      case Op::wait:
        if (!pop_token(t, i)) return;
        ++t.pc;
        break;
      case Op::barrier: ++t.pc; return meet(t, i);
    }
  }
}

void Threads::fork(Thread& t, const Instruction& i) {
  const size_t pc = t.pc + 1;
  t.pc = i.target;
  const int64_t count = i.op == Op::fork_loop ? machine_.eval_int(i.expr)
                                              : static_cast<int64_t>(i.starts.size());
  if (count <= 0 || !machine_.problem.empty()) return;
  if (threads_.size() + static_cast<size_t>(count) > kMaxThreads)
    return machine_.fail("more than " + std::to_string(kMaxThreads) + " threads at one time");
  std::shared_ptr<Group> group;
  if (i.flag) group = std::make_shared<Group>(Group{.slot = i.slot, .arrived = {}});
  t.children = static_cast<int>(count);
  for (int64_t n = 0; n < count; ++n) {
    const bool loop = i.op == Op::fork_loop;
    start(t, loop ? pc : i.starts[static_cast<size_t>(n)],
          loop ? i.names[0] + " = " + std::to_string(n) : i.names[static_cast<size_t>(n)], i, n,
          group);
  }
  t.state = State::joins;
  t.clock.tick(t.id);
  t.snapshot.reset();
  change_active(t, -1);
}

void Threads::start(Thread& parent, size_t pc, const std::string& name, const Instruction& i,
                    int64_t value, const std::shared_ptr<Group>& group) {
  int index = -1;
  if (!parent.free_ids.empty()) {  // the parent knows the child's past, so the clock can continue
    index = parent.free_ids.back();
    parent.free_ids.pop_back();
  } else {
    index = static_cast<int>(threads_.size());
    threads_.push_back({.index = index, .id = next_id_++});
    names_.emplace_back();
  }
  Thread& t = threads_[static_cast<size_t>(index)];
  t.parent = parent.index;
  t.pc = pc;
  t.state = State::ready;
  t.slots = machine_.slots;  // the parent is running, so these are its slots
  t.memories = machine_.instances;
  t.extents = parent.extents;
  t.queues = parent.queues;
  t.groups = parent.groups;
  t.name = t.parent == 0 ? name : parent.name + ", " + name;
  names_[static_cast<size_t>(t.id)] = t.name;
  t.clock = parent.clock;
  t.clock.tick(t.id);
  t.snapshot.reset();
  if (!t.engine || !t.engine->pending.empty()) t.engine = std::make_shared<Engine>();
  if (group) t.groups.push_back(group);
  change_active(t, 1);
  if (i.op == Op::fork_loop) {
    t.slots[static_cast<size_t>(i.slot)] = value;
    give_private(t, i.names[0]);
  }
  ready_.push_back(index);
}

void Threads::give_private(Thread& child, const std::string& loop) {
  for (size_t b = 0; b < kernel_.buffers.size(); ++b) {
    if (kernel_.buffers[b].per != loop) continue;
    child.own_memories.push_back(child.memories[b] = machine_.copy_memory(static_cast<int>(b)));
  }
  for (size_t q = 0; q < kernel_.queues.size(); ++q) {
    if (kernel_.queues[q].per != loop) continue;
    child.queues[q] = new_queue(kernel_.queues[q]);
    child.own_queues.push_back(static_cast<int>(q));
  }
}

void Threads::check_balance(int queue, const TokenQueue& declared) {
  const Queue& q = queues_[static_cast<size_t>(queue)];
  for (size_t i = 0; i < q.tokens.size(); ++i) {
    const std::string name = declared.name + (declared.extent ? "[" + std::to_string(i) + "]" : "");
    const int64_t left = static_cast<int64_t>(q.tokens[i].size() + q.async[i].size());
    if (left != declared.initial)
      machine_.fail("token queue " + name + " ends with " + std::to_string(left) + " tokens, not " +
                    std::to_string(declared.initial));
  }
}

void Threads::end(Thread& t) {
  t.state = State::ended;
  std::vector<int> own = t.own_queues;
  if (t.parent < 0)
    for (size_t q = 0; q < kernel_.queues.size(); ++q)
      if (kernel_.queues[q].per.empty()) own.push_back(static_cast<int>(q));
  for (const int q : own)
    check_balance(t.queues[static_cast<size_t>(q)], kernel_.queues[static_cast<size_t>(q)]);
  if (!t.engine->pending.empty() && t.engine->pending.back().queue < 0) {
    if (t.parent < 0)
      machine_.fail("asynchronous copies of stage '" + *t.engine->pending.back().stage +
                    "' are never waited for");
    else hand_over(t);
  }
  for (const int memory : t.own_memories) machine_.drop_memory(memory);
  t.own_memories.clear();
  t.own_queues.clear();
  if (t.parent < 0) return;
  Thread& parent = threads_[static_cast<size_t>(t.parent)];
  parent.clock.join(t.clock);
  parent.snapshot.reset();
  parent.free_ids.push_back(t.index);
  if (--parent.children == 0) {
    parent.state = State::ready;
    parent.clock.tick(parent.id);
    change_active(parent, 1);
    ready_.push_back(t.parent);
  }
  change_active(t, -1);
}

// A thread of a bound loop hands its unfinished copies to its parent.
void Threads::hand_over(Thread& t) {
  std::deque<Pending>& pending = t.engine->pending;
  auto first = pending.end();
  while (first != pending.begin() && std::prev(first)->queue < 0) --first;
  for (auto p = first; p != pending.end(); ++p)
    for (const int memory : t.own_memories)
      if (p->target == memory)
        return machine_.fail("asynchronous copies of stage '" + *p->stage +
                             "' are never waited for");
  std::deque<Pending>& all = threads_[static_cast<size_t>(t.parent)].engine->pending;
  all.insert(all.end(), first, pending.end());
  pending.erase(first, pending.end());
}

Threads::Token Threads::known(Thread& t) {
  if (!t.snapshot) t.snapshot = std::make_shared<const Clock>(t.clock);
  return t.snapshot;
}

size_t Threads::queue_index(const Instruction& i, const Queue& q) {
  if (i.indices.empty()) return 0;
  const int64_t index = machine_.eval_int(i.indices[0]);
  if (index >= 0 && static_cast<size_t>(index) < q.tokens.size()) return static_cast<size_t>(index);
  machine_.fail("token queue " + kernel_.queues[static_cast<size_t>(i.slot)].name + "[" +
                std::to_string(index) + "] outside its extent " + std::to_string(q.tokens.size()));
  return 0;
}

void Threads::push_token(Thread& t, const Instruction& i) {
  const int queue = t.queues[static_cast<size_t>(i.slot)];
  Queue& q = queues_[static_cast<size_t>(queue)];
  const size_t index = queue_index(i, q);
  for (int64_t n = 0; n < i.count; ++n) {
    if (!i.flag) {
      q.tokens[index].push_back(known(t));
      continue;
    }
    t.engine->pending.push_back({.issued = known(t), .queue = queue, .index = index});
    q.async[index].push_back(t.engine);
  }
  t.clock.tick(t.id);
  t.snapshot.reset();
  for (size_t other = 0; other < threads_.size(); ++other)
    if (threads_[other].state == State::waits) {
      threads_[other].state = State::ready;
      ready_.push_back(static_cast<int>(other));
    }
}

bool Threads::pop_token(Thread& t, const Instruction& i) {
  const int queue = t.queues[static_cast<size_t>(i.slot)];
  const size_t index = queue_index(i, queues_[static_cast<size_t>(queue)]);
  std::deque<Token>& tokens = queues_[static_cast<size_t>(queue)].tokens[index];
  auto& async = queues_[static_cast<size_t>(queue)].async[index];
  while (static_cast<int64_t>(tokens.size()) < i.count && !async.empty() &&
         machine_.problem.empty()) {
    const std::shared_ptr<Engine> engine = async.front();
    land(*engine, queue, index);
  }
  if (static_cast<int64_t>(tokens.size()) < i.count) {
    t.state = State::waits;
    return false;
  }
  for (int64_t n = 0; n < i.count; ++n) {
    if (tokens.front()) t.clock.join(*tokens.front());
    tokens.pop_front();
  }
  t.snapshot.reset();
  return true;
}

// Does the engine's work up to its first signal of that queue.
void Threads::land(Engine& engine, int queue, size_t index) {
  if (engine.id < 0) {
    engine.id = next_id_++;
    names_.push_back("an asynchronous copy of " + names_[static_cast<size_t>(machine_.thread)]);
    engine.clock.tick(engine.id);
  }
  const int thread = machine_.thread;
  const Clock* clock = machine_.clock;
  machine_.thread = engine.id;
  machine_.clock = &engine.clock;
  bool done = false;
  while (!done && !engine.pending.empty() && machine_.problem.empty()) {
    const Pending p = engine.pending.front();
    engine.pending.pop_front();
    engine.clock.join(*p.issued);
    if (p.queue < 0) {
      if (p.source >= 0) machine_.copy_element(p.source, p.from, p.target, p.to);
      else machine_.write_zero(p.target, p.to);
      if (!machine_.problem.empty()) stage_ = *p.stage;
      continue;
    }
    Queue& q = queues_[static_cast<size_t>(p.queue)];
    auto& waiting = q.async[p.index];
    waiting.erase(std::find_if(waiting.begin(), waiting.end(),
                               [&](const auto& e) { return e.get() == &engine; }));
    q.tokens[p.index].push_back(std::make_shared<const Clock>(engine.clock));
    engine.clock.tick(engine.id);
    done = p.queue == queue && p.index == index;
  }
  machine_.thread = thread;
  machine_.clock = clock;
}

void Threads::meet(Thread& t, const Instruction& i) {
  for (size_t g = t.groups.size(); g-- > 0;) {
    const std::shared_ptr<Group> group = t.groups[g];
    if (group->slot != i.slot) continue;
    t.state = State::meets;
    group->arrived.push_back(t.index);
    return release_met(group);
  }
}

void Threads::release_met(const std::shared_ptr<Group>& group) {
  if (group->arrived.empty() || static_cast<int>(group->arrived.size()) != group->active) return;
  Clock all;
  for (const int index : group->arrived) all.join(threads_[static_cast<size_t>(index)].clock);
  for (const int index : group->arrived) {
    Thread& t = threads_[static_cast<size_t>(index)];
    t.clock.join(all);
    t.clock.tick(t.id);
    t.snapshot.reset();
    t.state = State::ready;
    ready_.push_back(index);
  }
  group->arrived.clear();
}

void Threads::change_active(Thread& t, int by) {
  for (const std::shared_ptr<Group>& group : t.groups) {
    group->active += by;
    if (by < 0) release_met(group);
  }
}

void Threads::report_deadlock() {
  std::string text;
  for (const Thread& t : threads_) {
    if (t.state != State::waits && t.state != State::meets) continue;
    text += (text.empty() ? "" : "; ") + t.name + " waits for ";
    if (t.state == State::meets) text += "a barrier";
    else
      text += "a token of '" + kernel_.queues[static_cast<size_t>(flat_.code[t.pc].slot)].name +
              "'";
  }
  machine_.fail("nothing can go on: " + text);
}

bool Threads::starts_reduction(const StoreCode& s) const {
  return std::all_of(s.reduce_slots.begin(), s.reduce_slots.end(),
                     [&](int slot) { return machine_.slots[static_cast<size_t>(slot)] == 0; });
}

void Threads::store(Thread& t, const StoreCode& s) {
  const bool init = s.has_init && starts_reduction(s),
             update = !s.has_where || machine_.eval_int(s.where);
  if ((init || update) && machine_.problem.empty()) {
    const int64_t element = machine_.locate(s.buffer, s.indices, "store");
    if (element >= 0 && s.async) {
      issue(t, s, element);
    } else if (element >= 0) {
      if (init) put(s, element, s.init, Combiner::none);
      if (update && s.pairs != PairRule::in_order) put_pair(s, element);
      else if (update) put(s, element, s.value, s.combiner);
    }
  }
  if (!machine_.problem.empty()) stage_ = s.label;
}

// Writes nothing once a problem has occurred.
void Threads::put(const StoreCode& s, int64_t element, const Code& value, Combiner combiner) {
  const int memory = machine_.memory_of(s.buffer);
  if (combiner != Combiner::none) machine_.check_read(memory, element);
  if (s.is_float) {
    double v = machine_.eval_float(value);
    if (combiner != Combiner::none) v = combine(combiner, machine_.read_float(memory, element), v);
    if (machine_.problem.empty()) machine_.write_float(memory, element, v);
  } else {
    int64_t v = machine_.eval_int(value);
    if (combiner != Combiner::none)
      v = combine(combiner, value.type, machine_.read_int(memory, element), v);
    if (machine_.problem.empty()) machine_.write_int(memory, element, v);
  }
}

void Threads::put_pair(const StoreCode& s, int64_t element) {
  const int memory = machine_.memory_of(s.buffer);
  machine_.check_read(memory, element);
  const auto& factors = std::get<code::Binary>(s.value.is);
  const FloatProduct product{machine_.eval_float(*factors.a), machine_.eval_float(*factors.b)};
  if (machine_.slots[static_cast<size_t>(s.reduce_slots.back())] % 2 == 0) {
    first_ = product;
    return;
  }
  const double sum = add_pair(s.pairs, machine_.read_float(memory, element), first_, product);
  if (machine_.problem.empty()) machine_.write_float(memory, element, sum);
}

void Threads::issue(Thread& t, const StoreCode& s, int64_t element) {
  const auto* choice = std::get_if<code::Select>(&s.value.is);
  if (choice && !machine_.eval_int(*choice->condition)) {
    t.engine->pending.push_back({.target = machine_.memory_of(s.buffer),
                                 .to = element,
                                 .issued = known(t),
                                 .stage = &s.label});
    return;
  }
  const auto& load = std::get<code::Load>((choice ? *choice->then : s.value).is);
  const int64_t from = machine_.locate(load.buffer, load.indices, "load");
  if (from < 0) return;
  t.engine->pending.push_back({.source = machine_.memory_of(load.buffer),
                               .target = machine_.memory_of(s.buffer),
                               .from = from,
                               .to = element,
                               .issued = known(t),
                               .stage = &s.label});
}

}  // namespace tw::interpreter
