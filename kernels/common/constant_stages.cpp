#include "kernels/common/constant_stages.h"

#include <map>

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

}  // namespace

void take_out_constant_stages(GroupKernel& group) {
  Kernel& kernel = group.kernel;
  std::map<int32_t, MadeConstant> made;  // by buffer
  std::vector<Stmt> rest;
  for (const Stmt& s : sched::statements(kernel.body)) {
    const std::vector<StoreRef> stores = stores_of(s);
    const bool makes = !stores.empty() && is_made(kernel.buffer(stores.front()->buffer));
    const auto source = makes ? source_of(kernel, s) : std::nullopt;
    if (source)
      made.emplace(stores.front()->buffer.index,
                   made_by(kernel, s, *source, stores.front()->buffer));
    else rest.push_back(s);
    if (makes && !source) kernel.buffer(stores.front()->buffer).scope = "global";
  }
  if (made.empty()) return;
  GroupKernel out{kernel, {}};
  out.kernel.body = make_sequence(std::move(rest));
  out.kernel.buffers.clear();
  std::vector<BufferId> numbers(kernel.buffers.size());
  const auto keep = [&](size_t old) -> Buffer& {
    numbers[old] = BufferId{static_cast<int32_t>(out.kernel.buffers.size())};
    out.kernel.buffers.push_back(kernel.buffers[old]);
    return out.kernel.buffers.back();
  };
  for (size_t i = 0; i < kernel.buffers.size(); ++i) {
    if (is_made(kernel.buffers[i])) continue;
    const BufferId own{static_cast<int32_t>(i)};
    std::vector<const std::pair<const int32_t, MadeConstant>*> from_it;
    for (const auto& entry : made)
      if (entry.second.source == own) from_it.push_back(&entry);
    if (from_it.empty() || sched::reads(out.kernel.body, own)) {
      keep(i);
      if (i < group.arguments.size()) out.arguments.push_back(group.arguments[i]);
    }
    for (const auto* entry : from_it) {
      Buffer& packed = keep(static_cast<size_t>(entry->first));
      packed.role = BufferRole::constant;
      packed.scope = "global";
      out.arguments.push_back(group.arguments[i]);
      out.arguments.back().pack = entry->second.pack;
    }
  }
  out.kernel.body = with_buffers(
      out.kernel.body, [&](BufferId id) { return numbers[static_cast<size_t>(id.index)]; });
  group = std::move(out);
}

}  // namespace tw
