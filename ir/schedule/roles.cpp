// roles k 2 load = xs, compute = c
//   temp xs: f32[8]                                tokens load.compute   tokens compute.load = 2   temp xs: f32[2, 8]
//   for k in 6 reduce {                            roles {
//     for i in 8 { xs: xs[i] = ... }                 load { for k_load in 6 {
//     for i1 in 8 reduce { c: c[0] += xs[i1] }  ->     wait compute.load   for i in 8 { xs: xs[k_load % 2, i] = ... }   signal load.compute } }
//   }                                                compute { for k_compute in 6 reduce {
//                                                      wait load.compute   for i1 in 8 reduce { c: ... xs[k_compute % 2, i1] }   signal compute.load } }
//                                                  }
// The stages of the loop's body are done by parts that run at the same time, each with a loop of its own. What one part hands to another gets `depth`
// slots; tokens follow from their use: a slot is waited for before it is filled again, and the filling before it is read. Asynchronous copies signal
// when they have landed.
// Legal: a serial loop outside of other roles, whose body is statements of one part each, without other tokens; what parts share are temps
// used in the loop alone, each written by one part, that no part reads before it is written in an iteration.
#include <algorithm>
#include <map>

#include "ir/schedule/owners.h"

namespace tw::sched {

namespace {

struct Part {
  std::string name;
  std::vector<Stmt> body;
};
using Link = std::pair<size_t, size_t>;  // from part, to part

Expected<size_t> part_of(const step::Roles& s, const std::string& label) {
  for (size_t p = 0; p < s.parts.size(); ++p)
    if (std::ranges::find(s.parts[p].second, label) != s.parts[p].second.end()) return p;
  return illegal("stage '{0}' of loop '{1}' is in no part", label, s.loop);
}

// The done tokens of asynchronous copies are replaced by those of the parts.
bool is_done_token(const Stmt& s, const std::vector<Stmt>& stores) {
  if (s->kind != StmtKind::signal && s->kind != StmtKind::wait) return false;
  return std::ranges::any_of(stores, [&](const Stmt& store) { return done_queue(store->label) == s->label; });
}

Expected<std::vector<Part>> parts_of(const StmtNode& loop, const step::Roles& s) {
  std::vector<Part> parts;
  for (const auto& [name, stages] : s.parts) {
    if (std::ranges::count(parts, name, &Part::name)) return illegal("the part '{0}' is named twice", name);
    parts.push_back({name, {}});
  }
  const std::vector<Stmt> all = stores_of(loop.body[0]);
  for (const auto& [name, stages] : s.parts)
    for (const std::string& stage : stages)
      if (std::ranges::none_of(all, [&](const Stmt& store) { return store->label == stage; })) return illegal("loop '{0}' has no stage '{1}'", s.loop, stage);
  const Stmt body = loop.body[0];
  const std::vector<Stmt> children = body->kind == StmtKind::block ? body->body : std::vector<Stmt>{body};
  for (const Stmt& child : children) {
    if (is_done_token(child, all)) continue;
    bool tokens = false;
    visit(child, [&](const Stmt& n) { tokens |= n->kind == StmtKind::signal || n->kind == StmtKind::wait || n->kind == StmtKind::roles || n->kind == StmtKind::barrier; });
    if (tokens) return illegal("loop '{0}' has tokens or barriers already", s.loop);
    std::optional<size_t> owner;
    for (const Stmt& store : stores_of(child)) {
      TW_ASSIGN(const size_t part, part_of(s, store->label));
      if (owner && *owner != part) return illegal("stage '{0}' shares a nest with one of another part", store->label);
      owner = part;
    }
    if (owner) parts[*owner].body.push_back(child);
  }
  for (const Part& part : parts)
    if (part.body.empty()) return illegal("the part '{0}' has no stage in loop '{1}'", part.name, s.loop);
  return parts;
}

// The buffers that go from part to part, by link.
Expected<std::map<Link, std::vector<BufferId>>> links_of(const Kernel& kernel, const std::vector<Part>& parts, const Stmt& loop) {
  std::map<Link, std::vector<BufferId>> links;
  const Stmt outside = replace(kernel.body, loop, nullptr);
  for (size_t b = 0; b < kernel.buffers.size(); ++b) {
    const BufferId id{static_cast<int32_t>(b)};
    const Buffer& buffer = kernel.buffers[b];
    for (size_t from = 0; from < parts.size(); ++from) {
      if (!writes(make_block(parts[from].body), id)) continue;
      for (size_t to = 0; to < parts.size(); ++to) {
        const Stmt other = make_block(parts[to].body);
        if (to == from || !(reads(other, id) || writes(other, id))) continue;
        if (writes(other, id)) return illegal("'{0}' is written by two parts, {1} and {2}", buffer.name, parts[from].name, parts[to].name);
        if (buffer.role != BufferRole::temp) return illegal("the parameter '{0}' cannot go from part {1} to part {2}", buffer.name, parts[from].name, parts[to].name);
        if (reads(outside, id) || writes(outside, id)) return illegal("'{0}' is used outside of loop '{1}'", buffer.name, loop->var);
        links[{from, to}].push_back(id);
      }
    }
  }
  return links;
}

// In program order of the loop's body a slot is written, then read.
Error check_forward(const Kernel& kernel, const StmtNode& loop, const std::map<Link, std::vector<BufferId>>& links) {
  for (const auto& [link, buffers] : links) {
    for (const BufferId id : buffers) {
      bool written = false;
      for (const Stmt& child : loop.body[0]->body) {
        const bool here = writes(child, id);
        if (!written && !here && reads(child, id)) return illegal("'{0}' is read before it is written: it carries a value from one iteration of loop '{1}' to the next", kernel.buffer(id).name, loop.var);
        written |= here;
      }
    }
  }
  return Error::success();
}

Stmt token(StmtKind kind, const std::string& queue, bool async = false) { return make_stmt({.kind = kind, .label = queue, .async = async}); }

bool uses_any(const Stmt& s, const std::vector<BufferId>& buffers, bool write) {
  return std::ranges::any_of(buffers, [&](BufferId id) { return write ? writes(s, id) : reads(s, id); });
}

// The part's statements between a wait before the first and a signal after the last that touches what the link carries.
void add_tokens(std::vector<Stmt>& body, const std::vector<BufferId>& buffers, bool writer, const std::string& take, const std::string& give) {
  const auto touches = [&](const Stmt& s) { return uses_any(s, buffers, writer); };
  const auto last = std::find_if(body.rbegin(), body.rend(), touches).base();
  const std::vector<Stmt> stores = stores_of(make_block(body));
  const bool async = writer && std::ranges::any_of(stores, [&](const Stmt& s) { return s->async && uses_any(s, buffers, true); });
  body.insert(last, token(StmtKind::signal, give, async));
  body.insert(std::ranges::find_if(body, touches), token(StmtKind::wait, take));
}

}  // namespace

Expected<Kernel> apply_step(const Kernel& kernel, const step::Roles& s) {
  TW_ASSIGN(std::vector<Stmt> path, loop_path(kernel, s.loop));
  TW_TRY(check_serial(*path.back()));
  if (s.depth < 1) return illegal("{0} slots are too few", s.depth);
  if (s.parts.size() < 2) return illegal("roles need two parts or more");
  for (const Stmt& around : path)
    if (around->kind == StmtKind::roles || around->loop_kind == LoopKind::vector || around->loop_kind == LoopKind::parallel)
      return illegal("loop '{0}' is in another role, or in a vector or parallel loop", s.loop);
  TW_ASSIGN(std::vector<Part> parts, parts_of(*path.back(), s));
  TW_ASSIGN(const auto links, links_of(kernel, parts, path.back()));
  if (links.empty()) return illegal("the parts of loop '{0}' hand nothing to each other", s.loop);
  TW_TRY(check_forward(kernel, *path.back(), links));

  Kernel out = kernel;
  std::vector<BufferId> slotted;
  for (const auto& [link, buffers] : links)
    for (const BufferId id : buffers)
      if (s.depth > 1 && std::ranges::find(slotted, id) == slotted.end()) slotted.push_back(id);
  for (const BufferId id : slotted) {
    TW_ASSIGN(path, loop_path(out, s.loop));
    out = with_slots(out, id, s.depth, s.loop, path.back());
  }
  TW_ASSIGN(path, loop_path(out, s.loop));
  TW_ASSIGN(parts, parts_of(*path.back(), s));
  const std::string per = innermost_concurrent(path);
  const std::vector<Stmt> stores = stores_of(path.back());
  std::erase_if(out.queues, [&](const TokenQueue& q) { return std::ranges::any_of(stores, [&](const Stmt& store) { return done_queue(store->label) == q.name; }); });
  for (const auto& [link, buffers] : links) {
    const std::string filled = parts[link.first].name + "." + parts[link.second].name, freed = parts[link.second].name + "." + parts[link.first].name;
    for (const std::string& name : {filled, freed})
      if (out.find_queue(name)) return illegal("there is a token queue '{0}' already, or parts hand values both ways", name);
    out.queues.push_back({filled, std::nullopt, 0, per});
    out.queues.push_back({freed, std::nullopt, s.depth, per});
    add_tokens(parts[link.first].body, buffers, true, freed, filled);
    add_tokens(parts[link.second].body, buffers, false, filled, freed);
  }
  StmtNode node{.kind = StmtKind::roles};
  for (const Part& part : parts) {
    StmtNode loop = *path.back();
    loop.var = s.loop + "_" + part.name;
    TW_TRY(check_new_loop(out, loop.var));
    node.names.push_back(part.name);
    node.body.push_back(with_body(loop, substitute(make_block(part.body), s.loop, var(loop.var))));
  }
  return with_replaced(out, path, make_stmt(std::move(node)));
}

}  // namespace tw::sched
