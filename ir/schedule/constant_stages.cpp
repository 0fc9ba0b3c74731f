#include "ir/schedule/constant_stages.h"

#include <algorithm>
#include <map>
#include <optional>

#include "ir/schedule/nest.h"

namespace tw {
namespace {

// A temp that a stage makes from a constant
struct MadeConstant {
  BufferId source;
  std::shared_ptr<const Kernel> pack;
};

bool is_made(const Buffer& buffer) {
  return buffer.role == BufferRole::temp && buffer.scope == kConstantScope;
}

// The constant that the nest reads; nullopt: none, as all that it makes is zero
std::optional<BufferId> source_of(const Kernel& kernel, const Stmt& nest) {
  for (size_t i = 0; i < kernel.buffers.size(); ++i)
    if (const BufferId id{static_cast<int32_t>(i)};
        kernel.buffers[i].role == BufferRole::constant && sched::reads(nest, id))
      return id;
  return std::nullopt;
}

// The kernel from constant x to parameter y that the nest is
MadeConstant made_by(const Kernel& kernel, const Stmt& nest, BufferId source, BufferId made) {
  Kernel pack;
  pack.name = "pack";
  const Buffer &x = kernel.buffer(source), &y = kernel.buffer(made);
  pack.buffers.push_back({"x", x.dtype, x.shape, BufferRole::input});
  pack.buffers.push_back({"y", y.dtype, y.shape, BufferRole::output});
  const Stmt own = with_buffers(nest, [&](BufferId id) { return BufferId{id == made ? 1 : 0}; });
  pack.body = rewrite(own, [&](const Stmt& s) -> Stmt {
    const auto* store = as<stmt::Store>(s);
    if (!store || store->label != y.name) return nullptr;
    stmt::Store renamed = *store;
    renamed.label = "y";
    return make_store(std::move(renamed));
  });
  return {source, std::make_shared<const Kernel>(std::move(pack))};
}

// Collects the buffers of the kernel that runs, in order.
class RunBuffers {
 public:
  explicit RunBuffers(const Kernel& kernel) : kernel_(kernel), numbers_(kernel.buffers.size()) {}

  void keep(size_t old, bool parameter) {
    if (parameter) sources.push_back({old, nullptr});
    add(old);
  }
  void keep_made(size_t old, const MadeConstant& made) {
    sources.push_back({static_cast<size_t>(made.source.index), made.pack});
    Buffer& packed = add(old);
    packed.role = BufferRole::constant;
    packed.scope = "global";
  }
  BufferId number_of(BufferId old) const { return numbers_[static_cast<size_t>(old.index)]; }

  std::vector<Buffer> buffers;
  std::vector<ParameterSource> sources;

 private:
  Buffer& add(size_t old) {
    numbers_[old] = BufferId{static_cast<int32_t>(buffers.size())};
    return buffers.emplace_back(kernel_.buffers[old]);
  }
  const Kernel& kernel_;
  std::vector<BufferId> numbers_;  // by number in the scheduled kernel
};

}  // namespace

RunKernel take_out_constant_stages(Kernel scheduled) {
  std::map<int32_t, MadeConstant> made;  // by buffer
  std::vector<Stmt> rest;
  if (std::ranges::any_of(scheduled.buffers, is_made))
    for (const Stmt& s : sched::statements(scheduled.body)) {
      const std::vector<StoreRef> stores = stores_of(s);
      const bool makes = !stores.empty() && is_made(scheduled.buffer(stores.front()->buffer));
      const auto source = makes ? source_of(scheduled, s) : std::nullopt;
      const BufferId temp = makes ? stores.front()->buffer : BufferId();
      if (source) made.emplace(temp.index, made_by(scheduled, s, *source, temp));
      else rest.push_back(s);
      if (makes && !source) scheduled.buffer(temp).scope = "global";
    }
  const Stmt body = made.empty() ? scheduled.body : make_sequence(std::move(rest));
  RunBuffers kept(scheduled);
  for (size_t i = 0; i < scheduled.buffers.size(); ++i) {
    if (is_made(scheduled.buffers[i])) continue;
    const BufferId own{static_cast<int32_t>(i)};
    const auto is_source = [&](const auto& entry) { return entry.second.source == own; };
    if (std::ranges::none_of(made, is_source) || sched::reads(body, own))
      kept.keep(i, scheduled.buffers[i].role != BufferRole::temp);
    for (const auto& entry : made)
      if (is_source(entry)) kept.keep_made(static_cast<size_t>(entry.first), entry.second);
  }
  RunKernel out{std::move(scheduled), std::move(kept.sources)};
  if (!made.empty())
    out.kernel.body = with_buffers(body, [&](BufferId id) { return kept.number_of(id); });
  out.kernel.buffers = std::move(kept.buffers);
  return out;
}

RunKernel joined(const RunKernel& first, RunKernel next) {
  for (ParameterSource& source : next.sources) {
    const ParameterSource& before = first.sources[source.parameter];
    TW_CHECK(!source.pack || !before.pack, "a parameter of '{0}' is packed twice",
             next.kernel.name);
    if (!source.pack) source.pack = before.pack;
    source.parameter = before.parameter;
  }
  return next;
}

Expected<RunKernel> apply_to_run(const Kernel& kernel, const Schedule& schedule,
                                 const Target* target) {
  TW_ASSIGN(Kernel scheduled, apply(kernel, schedule, target));
  return take_out_constant_stages(std::move(scheduled));
}

}  // namespace tw
