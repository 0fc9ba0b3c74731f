// roles k 2 load = xs, compute = c
//   temp xs: f32[8]                       tokens load.compute
//   for k in 6 reduce {                   tokens compute.load = 2
//     for i in 8 { xs: xs[i] = ... }      temp xs: f32[2, 8]
//     for i1 in 8 reduce {                roles {
//       c: c[0] += xs[i1]           ->      load { for k_load in 6 {
//     }                                       wait compute.load
//   }                                         for i in 8 { xs: xs[k_load % 2, i] = ... }
//                                             signal load.compute
//                                           } }
//                                           compute { for k_compute in 6 reduce {
//                                             wait load.compute
//                                             for i1 in 8 reduce { c: ... xs[k_compute % 2, i1] }
//                                             signal compute.load
//                                           } }
//                                         }
//
// Parts that run at the same time compute the stages of the loop's body. Each part has loops of its
// own: a loop that holds stages of several parts becomes one loop in each of them. A buffer that
// one part hands to another gets `depth` slots. Its tokens follow from its uses, in the innermost
// loop that contains all of them: a part waits for a free slot before it fills one, and for a
// filled slot before it reads one. Asynchronous copies that other parts read signal when they have
// landed.
//
// A loop inside fills the slots in turn, over all iterations of the loops around it too. A buffer
// that is filled fewer times than that gets one slot for each time.
//
// Legal: a serial loop outside other roles and without other tokens, each of whose nests belongs to
// one part. Parts share only temps that are used in the loop alone and that one part writes. In an
// iteration no part reads a temp before it is written, and it is not written again after another
// part reads it. A part must not wait before a loop for something that comes after the loop.
#include <algorithm>
#include <map>

#include "ir/schedule/footprint.h"
#include "ir/schedule/owners.h"

namespace tw::sched {

namespace {

constexpr const char* kTokens = "loop '{0}' has tokens or barriers already";

// A transfer of values from one part to another. The iterations of loop `home` hand them over.
struct Link {
  size_t from, to;
  std::string home;
  bool operator<(const Link& o) const {
    return std::tie(from, to, home) < std::tie(o.from, o.to, o.home);
  }
};
using Links = std::map<Link, std::vector<BufferId>>;

bool uses_any(const Stmt& s, const std::vector<BufferId>& buffers, bool write) {
  return std::ranges::any_of(buffers,
                             [&](BufferId id) { return write ? writes(s, id) : reads(s, id); });
}

std::vector<Access> uses_in(const Kernel& kernel, BufferId id, const std::vector<Stmt>& path) {
  std::vector<Access> uses = accesses(kernel, id, path);
  const Stmt& body = get<stmt::Loop>(path.back()).body;
  for (const StoreRef& store : stores_of(body)) {
    if (store->buffer != id) continue;
    const std::vector<Stmt> inside = find_path(body, store);
    Access use{store->indices, {}, ranges_of(kernel, path)};
    add_ranges(use.inner, inside);
    add_ranges(use.all, inside);
    uses.push_back(std::move(use));
  }
  return uses;
}

// True: every iteration of the loop uses elements of its own. Along one dimension the loop moves
// all uses by the same step, and the step is no shorter than what an iteration covers there.
bool uses_own_elements(const Kernel& kernel, BufferId id, const std::vector<Stmt>& path) {
  const std::vector<Access> uses = uses_in(kernel, id, path);
  const std::string& loop = get<stmt::Loop>(path.back()).var;
  const auto own_along = [&](size_t dim) {
    std::vector<Interval> covered;
    int64_t step = 0;
    for (const Access& use : uses) {
      if (has_load(use.indices[dim])) return false;
      const std::optional<LinearTerm> term = linear_in(use.indices[dim], loop);
      if (!term || term->coefficient == 0) return false;
      if (!covered.empty() && term->coefficient != step) return false;
      step = term->coefficient;
      const std::optional<Interval> rest = interval_over(term->rest, use.inner, use.all);
      if (!rest) return false;
      covered.push_back(*rest);
    }
    const Ranges outer = ranges_of(kernel, path);
    for (const Interval& a : covered)
      for (const Interval& b : covered)
        if (!can_prove(lt(a.max - b.min, Expr(std::abs(step))), outer)) return false;
    return true;
  };
  for (size_t dim = 0; dim < kernel.buffer(id).shape.size(); ++dim)
    if (own_along(dim)) return true;
  return false;
}

// Puts a wait before the first and a signal after the last of the part's statements that touch the
// link's buffers.
void add_tokens(std::vector<Stmt>& body, const std::vector<BufferId>& buffers, bool writer,
                const std::string& take, const std::string& give) {
  const auto touches = [&](const Stmt& s) { return uses_any(s, buffers, writer); };
  const auto last = std::find_if(body.rbegin(), body.rend(), touches).base();
  const std::vector<StoreRef> stores = stores_of(make_sequence(body));
  const bool async = writer && std::ranges::any_of(stores, [&](const StoreRef& store) {
                       return store->async && uses_any(store, buffers, true);
                     });
  body.insert(last, make_stmt(stmt::Signal{.queue = give, .async = async}));
  body.insert(std::ranges::find_if(body, touches), make_stmt(stmt::Wait{.queue = take}));
}

// The loop of a `roles` step and the part of each stage in it
class RoleSplit {
 public:
  RoleSplit(const step::Roles& step, LoopRef loop) : step_(step), loop_(std::move(loop)) {}

  Error check(const Kernel& kernel) {
    const std::vector<StoreRef> all = stores_of(loop_->body);
    for (size_t p = 0; p < step_.parts.size(); ++p) {
      const auto& [name, stages] = step_.parts[p];
      if (std::ranges::count(step_.parts, name, &step::RoleParts::value_type::first) > 1)
        return illegal("the part '{0}' is named twice", name);
      if (!is_name(name)) return illegal("a part cannot be called '{0}'", name);
      for (const std::string& stage : stages) {
        if (std::ranges::none_of(all, [&](const StoreRef& store) { return store->label == stage; }))
          return illegal("loop '{0}' has no stage '{1}': {2}", step_.loop, stage, it_has(all));
        if (!owner_.emplace(stage, p).second) return illegal("stage '{0}' is named twice", stage);
      }
      if (stages.empty())
        return illegal("the part '{0}' has no stage in loop '{1}'", name, step_.loop);
    }
    for (const StoreRef& store : all) {
      if (!owner_.count(store->label))
        return illegal("stage '{0}' of loop '{1}' is in no part", store->label, step_.loop);
      done_.push_back(done_queue(store->label));
    }
    bool tokens = false;
    visit(loop_->body, [&](const Stmt& n) {
      tokens |= is<stmt::Roles, stmt::Barrier>(n) || (is_token(*n) && !is_done_queue(queue_of(*n)));
    });
    if (tokens) return illegal(kTokens, step_.loop);
    TW_TRY(check_sources(kernel));
    return check_shared(*loop_);
  }

  size_t owner(const StoreRef& store) const { return owner_.at(store->label); }
  // True: the queue signals finished asynchronous copies. The parts' tokens replace it.
  bool is_done_queue(const std::string& queue) const {
    return std::ranges::find(done_, queue) != done_.end();
  }
  bool shared(const Stmt& s) const {
    const std::vector<StoreRef> stores = stores_of(s);
    return std::ranges::any_of(
        stores, [&](const StoreRef& store) { return owner(store) != owner(stores[0]); });
  }

  // The innermost loop that contains all uses of the buffer, among the loops that several parts
  // share
  LoopRef home(BufferId id) const {
    LoopRef found = loop_;
    for (bool deeper = true; deeper;) {
      deeper = false;
      std::vector<Stmt> users;
      for (const Stmt& child : statements(found->body))
        if (reads(child, id) || writes(child, id)) users.push_back(child);
      if (users.size() == 1 && is<stmt::Loop>(users[0]) && shared(users[0]))
        found = LoopRef(users[0]), deeper = true;
    }
    return found;
  }

  // The number of slots of a buffer that the loop's iterations hand over, and the number of an
  // iteration
  struct Ring {
    int64_t slots;
    Expr iteration;
  };
  Ring ring_of(const std::string& home) const {
    Expr iteration = 0, count = 1;
    for (const Stmt& s : find_path(loop_, find_loop(loop_, home))) {
      const auto* loop = as<stmt::Loop>(s);
      if (!loop) continue;
      iteration = iteration * loop->extent + var(loop->var);
      count = count * loop->extent;
    }
    const std::optional<int64_t> times = as_const(simplify(count));
    return {times ? std::clamp<int64_t>(*times, 1, step_.depth) : step_.depth, simplify(iteration)};
  }

  Expected<Links> links(const Kernel& kernel) const {
    Links links;
    const Stmt outside = replace(kernel.body, loop_, nullptr);
    for (size_t b = 0; b < kernel.buffers.size(); ++b) {
      const BufferId id{static_cast<int32_t>(b)};
      std::vector<bool> writer(step_.parts.size()), reader(step_.parts.size());
      for (const StoreRef& store : stores_of(loop_)) {
        if (writes(store, id)) writer[owner(store)] = true;
        if (reads(store, id)) reader[owner(store)] = true;
      }
      TW_TRY(check_handed(kernel, id, reader, reads(outside, id)));
      for (size_t from = 0; from < writer.size(); ++from)
        for (size_t to = 0; to < writer.size(); ++to) {
          if (from == to || !writer[from] || !(writer[to] || reader[to])) continue;
          const std::string &name = kernel.buffer(id).name, &source = step_.parts[from].first,
                            &sink = step_.parts[to].first;
          if (writer[to])
            return illegal("'{0}' is written by two parts, {1} and {2}", name, source, sink);
          if (kernel.buffer(id).role != BufferRole::temp)
            return illegal("the parameter '{0}' cannot go from part {1} to part {2}", name, source,
                           sink);
          if (reads(outside, id) || writes(outside, id))
            return illegal("'{0}' is used outside of loop '{1}'", name, step_.loop);
          TW_TRY(check_forward(kernel, id));
          bool read = false;
          TW_TRY(check_filled_once(kernel, id, from, *home(id), read));
          links[{from, to, home(id)->var}].push_back(id);
        }
    }
    if (links.empty())
      return illegal("the parts of loop '{0}' hand nothing to each other", step_.loop);
    TW_TRY(check_order(kernel, links));
    return links;
  }

  // The part's share of the statement; null: it has none. Loops shared by several parts get a name
  // and tokens for each part.
  Expected<Stmt> project(const Kernel& kernel, const Stmt& s, size_t part, const Links& links,
                         const std::function<std::string(const Link&, bool filled)>& queue) const {
    if (!has_part(s, part)) return Stmt();
    if (s != loop_.stmt() && !shared(s)) return s;
    stmt::Loop loop = get<stmt::Loop>(s);
    std::vector<Stmt> body;
    for (const Stmt& child : statements(loop.body)) {
      TW_ASSIGN(Stmt mine, project(kernel, child, part, links, queue));
      if (mine) body.push_back(std::move(mine));
    }
    for (const auto& [link, buffers] : links) {
      if (link.home != loop.var || (link.from != part && link.to != part)) continue;
      const bool writer = link.from == part;
      add_tokens(body, buffers, writer, queue(link, !writer), queue(link, writer));
    }
    const std::string name = loop.var + "_" + step_.parts[part].first;
    TW_TRY(check_new_loop(kernel, name));
    loop.body = substitute(make_sequence(std::move(body)), loop.var, var(name));
    loop.var = name;
    return make_stmt(std::move(loop));
  }

 private:
  bool has_part(const Stmt& s, size_t part) const {
    const std::vector<StoreRef> stores = stores_of(s);
    return std::ranges::any_of(stores, [&](const StoreRef& store) { return owner(store) == part; });
  }

  Error check_shared(const stmt::Loop& loop) const {
    for (const Stmt& child : statements(loop.body)) {
      if (!shared(child)) continue;
      const auto* inner = as<stmt::Loop>(child);
      if (!inner || inner->kind != LoopKind::serial) {
        const std::vector<StoreRef> stores = stores_of(child);
        const auto other = std::ranges::find_if(
            stores, [&](const StoreRef& store) { return owner(store) != owner(stores[0]); });
        return illegal("stage '{0}' shares a nest with one of another part", (*other)->label);
      }
      TW_TRY(check_shared(*inner));
    }
    return Error::success();
  }

  // Refuses asynchronous copies whose reader no token between parts protects.
  Error check_handed(const Kernel& kernel, BufferId id, const std::vector<bool>& reader,
                     bool read_outside) const {
    for (const StoreRef& store : stores_of(loop_))
      if (store->async && writes(store, id) && (reader[owner(store)] || read_outside))
        return illegal(
            "the asynchronous copy '{0}' is read by the part that starts it, or outside "
            "of loop '{1}'",
            kernel.buffer(id).name, step_.loop);
    return Error::success();
  }

  // Refuses asynchronous copies of what the loop writes: the copy may still read it when the next
  // iteration writes it again, as nothing waits for the copy's end.
  Error check_sources(const Kernel& kernel) const {
    for (const StoreRef& store : stores_of(loop_)) {
      if (!store->async) continue;
      for (const StoreRef& other : stores_of(loop_))
        if (reads(store.stmt(), other->buffer))
          return illegal("the asynchronous copy '{0}' reads '{1}', which loop '{2}' writes again",
                         store->label, kernel.buffer(other->buffer).name, step_.loop);
    }
    return Error::success();
  }

  // Requires that a slot is written before it is read, in program order of its loop's body.
  Error check_forward(const Kernel& kernel, BufferId id) const {
    const LoopRef loop = home(id);
    bool written = false;
    for (const Stmt& child : statements(loop->body)) {
      const bool here = writes(child, id);
      if (!written && !here && reads(child, id))
        return illegal(
            "'{0}' is read before it is written: it carries a value from one iteration of loop "
            "'{1}' to the next",
            kernel.buffer(id).name, loop->var);
      written |= here;
    }
    return Error::success();
  }

  // Requires that the writing part finishes an iteration's slot before others read it: nothing
  // behind the first read writes the slot again. read: a read stands before the loop.
  Error check_filled_once(const Kernel& kernel, BufferId id, size_t writer, const stmt::Loop& loop,
                          bool& read) const {
    const auto again = [&](const stmt::Loop& inside) {
      return illegal(
          "'{0}' is written again after part of it is read, in an iteration of loop '{1}' (by "
          "stages in '{2}'): its slot is filled once before it is read",
          kernel.buffer(id).name, home(id)->var, inside.var);
    };
    for (const Stmt& child : statements(loop.body)) {
      const std::vector<StoreRef> stores = stores_of(child);
      if (stores.empty()) continue;
      if (!shared(child)) {
        if (read && writes(child, id)) return again(loop);
        read |= owner(stores[0]) != writer && reads(child, id);
        continue;
      }
      const auto& inner = get<stmt::Loop>(child);
      const bool both = writes(child, id) &&
                        std::ranges::any_of(stores, [&](const StoreRef& store) {
                          return owner(store) != writer && reads(store, id);
                        });
      if (both && !is_const(inner.extent, 1)) {
        TW_ASSIGN(const std::vector<Stmt> path, loop_path(kernel, inner.var));
        if (!uses_own_elements(kernel, id, path)) return again(inner);
      }
      TW_TRY(check_filled_once(kernel, id, writer, inner, read));
    }
    return Error::success();
  }

  // A part waits before its first statement that reads the link's buffers. The other part signals
  // after its last statement that writes them. Between the two, they must not exchange tokens in an
  // inner loop.
  Error check_order(const Kernel& kernel, const Links& links) const {
    const auto exchanged = [&](const Stmt& s) {
      return std::ranges::any_of(
          links, [&](const auto& one) { return static_cast<bool>(find_loop(s, one.first.home)); });
    };
    for (const auto& [link, buffers] : links) {
      const LoopRef loop = find_loop(loop_, link.home);
      const std::span<const Stmt> body = statements(loop->body);
      std::optional<size_t> first_read, last_write;
      for (size_t i = 0; i < body.size(); ++i) {
        if (!first_read && uses_any(body[i], buffers, false)) first_read = i;
        if (uses_any(body[i], buffers, true)) last_write = i;
      }
      for (size_t i = first_read.value_or(body.size()); i <= last_write.value_or(0); ++i)
        if (exchanged(body[i]) && has_part(body[i], link.from) && has_part(body[i], link.to))
          return illegal(
              "part {0} would wait for '{1}' before loop '{2}', in which part {3} waits for it, "
              "and "
              "get it after that: make '{1}' in an earlier nest, or all of it in that loop",
              step_.parts[link.to].first, kernel.buffer(buffers.back()).name,
              get<stmt::Loop>(body[i]).var, step_.parts[link.from].first);
    }
    return Error::success();
  }

  const step::Roles& step_;
  LoopRef loop_;
  std::map<std::string, size_t> owner_;  // part of each stage, by label
  std::vector<std::string> done_;        // queues of asynchronous copies
};

Expected<RoleSplit> role_split(const Kernel& kernel, const step::Roles& s, const Stmt& loop) {
  RoleSplit split(s, LoopRef(loop));
  TW_TRY(split.check(kernel));
  return split;
}

}  // namespace

Expected<Kernel> apply_step(const Kernel& kernel, const step::Roles& s) {
  TW_ASSIGN(std::vector<Stmt> path, loop_path(kernel, s.loop));
  TW_TRY(check_serial(get<stmt::Loop>(path.back())));
  if (s.depth < 1) return illegal("{0} slots are too few", s.depth);
  if (s.parts.size() < 2) return illegal("roles need two parts or more");
  for (const Stmt& around : path) {
    const auto* loop = as<stmt::Loop>(around);
    if (is<stmt::Roles>(around) ||
        (loop && (loop->kind == LoopKind::vector || loop->kind == LoopKind::parallel)))
      return illegal("loop '{0}' is in another role, or in a vector or parallel loop", s.loop);
  }
  TW_ASSIGN(const RoleSplit before, role_split(kernel, s, path.back()));
  TW_ASSIGN(const Links links, before.links(kernel));

  Kernel out = kernel;
  std::vector<BufferId> slotted;
  for (const auto& [link, buffers] : links)
    for (const BufferId id : buffers)
      if (const auto [slots, iteration] = before.ring_of(link.home);
          slots > 1 && std::ranges::find(slotted, id) == slotted.end()) {
        slotted.push_back(id);
        TW_ASSIGN(path, loop_path(out, link.home));
        out = with_slots(out, id, slots, iteration, path.back());
      }
  TW_ASSIGN(path, loop_path(out, s.loop));
  TW_ASSIGN(const RoleSplit split, role_split(kernel, s, path.back()));
  const std::string per = innermost_concurrent(path);
  std::erase_if(out.queues, [&](const TokenQueue& q) { return split.is_done_queue(q.name); });
  const auto queue = [&](const Link& link, bool filled) {
    const std::string &from = s.parts[link.from].first, &to = s.parts[link.to].first;
    return (filled ? from + "." + to : to + "." + from) +
           (link.home == s.loop ? "" : "." + link.home);
  };
  for (const auto& [link, buffers] : links)
    for (const bool filled : {true, false}) {
      if (out.find_queue(queue(link, filled)))
        return illegal("there is a token queue '{0}' already, or parts hand values both ways",
                       queue(link, filled));
      out.queues.push_back(
          {queue(link, filled), std::nullopt, filled ? 0 : split.ring_of(link.home).slots, per});
    }
  stmt::Roles roles;
  for (size_t part = 0; part < s.parts.size(); ++part) {
    roles.names.push_back(s.parts[part].first);
    TW_ASSIGN(Stmt mine, split.project(out, path.back(), part, links, queue));
    roles.parts.push_back(std::move(mine));
  }
  return with_replaced(out, path, make_stmt(std::move(roles)));
}

}  // namespace tw::sched
