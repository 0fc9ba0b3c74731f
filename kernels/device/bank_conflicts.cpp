#include "kernels/device/bank_conflicts.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "ir/schedule/intrinsic.h"
#include "ir/schedule/nest.h"

namespace tw {
namespace {

// NVIDIA's GPUs: threads that ask together, words of a turn, bytes of a word and of a turn
constexpr int64_t kAsking = 32, kBanks = 32, kWordBytes = 4, kBytesAtOnce = kBanks * kWordBytes;

using Variables = std::map<std::string, int64_t, std::less<>>;

int64_t value_of(const Expr& e, const Variables& variables) {
  return eval_int(e, [&](std::string_view name) {
    const auto found = variables.find(name);
    return found == variables.end() ? int64_t{0} : found->second;
  });
}

class Counter {
 public:
  Counter(const Kernel& kernel, const Target& target) : kernel_(kernel), target_(target) {
    for (const DeviceAxis& axis : target.axes)
      if (axis.level == "thread") threads_.push_back({axis.name, 1});
    visit(kernel.body, [&](const Stmt& s) {
      const auto* loop = as<stmt::Loop>(s);
      if (!loop) return;
      ranges_[loop->var] = {Expr(0), loop->extent - Expr(1)};
      if (loop->kind != LoopKind::bind) return;
      for (auto& [axis, extent] : threads_)
        if (axis == loop->axis) extent = std::max(extent, as_const(loop->extent).value_or(1));
    });
  }

  std::vector<BankAccess> run() {
    for (const StoreRef& store : stores_of(kernel_.body)) {
      path_ = sched::find_path(kernel_.body,
                               [&](const StmtNode& n) { return &n == store.stmt().get(); });
      const auto together = std::ranges::find_if(
          path_, [&](const Stmt& s) { return threads_together(*s, target_) > 1; });
      if (together != path_.end()) {
        take_spread(store->label, get<stmt::Block>(*together));
        continue;
      }
      take(store->label, store->buffer, store->indices, true);
      for (const Expr& e : {store->value, store->where})
        if (e.defined())
          visit(e, [&](const Expr& n) {
            if (const auto* load = as<expr::Load>(n))
              take(store->label, load->buffer, load->indices, false);
          });
    }
    return std::move(found_);
  }

 private:
  // Counts the operands by address of an instruction that threads execute together.
  void take_spread(const std::string& stage, const stmt::Block& block) {
    const Intrinsic& intrinsic = *target_.find_intrinsic(block.intrinsic);
    auto semantics = semantics_of(intrinsic);
    if (!semantics) return llvm::consumeError(semantics.takeError());
    auto match = match_intrinsic(intrinsic, **semantics, kernel_, block.body, ranges_);
    if (!match) return llvm::consumeError(match.takeError());
    for (const Buffer& parameter : (*semantics)->buffers) {
      const IntrinsicOperand& operand = match->at(parameter.name);
      if (operand.spread)
        take(stage, operand.buffer, operand.at, false,
             as_const(parameter.shape.back()).value_or(1) * dtype_bytes(parameter.dtype));
    }
  }

  // Values of the loop variables around for one thread; nullopt: the thread does not run here.
  std::optional<Variables> variables_of(int64_t thread, int64_t lane) const {
    Variables variables;
    std::map<std::string, int64_t> place;
    for (const auto& [axis, extent] : threads_) place[axis] = thread % extent, thread /= extent;
    if (thread > 0) return std::nullopt;
    std::set<std::string> over;  // axes of the loops around
    for (const Stmt& s : path_) {
      if (const auto* guard = as<stmt::If>(s);
          guard && !sched::has_load(guard->condition) && value_of(guard->condition, variables) == 0)
        return std::nullopt;
      if (threads_together(*s, target_) > 1) {
        over.insert(threads_.front().first);
        variables[kEachThread] = place.at(threads_.front().first);
      }
      const auto* loop = as<stmt::Loop>(s);
      if (!loop) continue;
      int64_t& value = variables[loop->var];
      if (loop->kind == LoopKind::vector) value = lane;
      if (loop->kind != LoopKind::bind || !place.contains(loop->axis)) continue;
      value = place[loop->axis];
      over.insert(loop->axis);
      if (value >= as_const(loop->extent).value_or(value + 1)) return std::nullopt;
    }
    for (const auto& [axis, value] : place)
      if (value > 0 && !over.contains(axis)) return std::nullopt;
    return variables;
  }

  // Offset from the buffer's beginning, in bytes
  std::optional<int64_t> address(const Buffer& buffer, const std::vector<Expr>& indices,
                                 int64_t thread, int64_t lane) const {
    const std::optional<Variables> variables = variables_of(thread, lane);
    if (!variables) return std::nullopt;
    int64_t at = 0;
    for (size_t d = 0; d < indices.size(); ++d)
      at = at * as_const(buffer.shape[d]).value_or(1) + value_of(indices[d], *variables);
    return at * dtype_bytes(buffer.dtype);
  }

  // Bytes that a thread asks for at once: an element, or the adjacent lanes of a vector
  int64_t width(const Buffer& buffer, const std::vector<Expr>& indices) const {
    const int64_t element = dtype_bytes(buffer.dtype);
    for (const Stmt& s : path_) {
      const auto* loop = as<stmt::Loop>(s);
      if (!loop || loop->kind != LoopKind::vector) continue;
      const auto first = address(buffer, indices, 0, 0), second = address(buffer, indices, 0, 1);
      if (first && second && *second - *first == element)
        return std::min<int64_t>(16, as_const(loop->extent).value_or(1) * element);
    }
    return element;
  }

  // of_thread: bytes that a thread asks for at once; 0: they follow from the loops around
  void take(const std::string& stage, BufferId id, const std::vector<Expr>& indices, bool stores,
            int64_t of_thread = 0) {
    const Buffer& buffer = kernel_.buffer(id);
    const MemoryScope* scope = target_.find_scope(buffer.scope);
    if (!scope || scope->level != "block" || std::ranges::any_of(indices, sched::has_load)) return;
    const int64_t bytes = of_thread > 0 ? of_thread : width(buffer, indices),
                  at_once = std::min(kAsking, kBytesAtOnce / std::max(bytes, kWordBytes));
    int64_t turns = 1;
    for (int64_t begin = 0; begin < kAsking; begin += at_once) {
      std::map<int64_t, std::set<int64_t>> words;  // by bank
      for (int64_t thread = begin; thread < begin + at_once; ++thread)
        if (const auto at = address(buffer, indices, thread, 0))
          for (int64_t b = 0; b < bytes; b += std::min(bytes, kWordBytes)) {
            const int64_t word = (*at + b) / kWordBytes;
            words[word % kBanks].insert(word);
          }
      for (const auto& [bank, asked] : words)
        turns = std::max(turns, static_cast<int64_t>(asked.size()));
    }
    found_.push_back({stage, buffer.name, stores, turns});
  }

  const Kernel& kernel_;
  const Target& target_;
  std::vector<std::pair<std::string, int64_t>> threads_;  // axes and extents
  Ranges ranges_;
  std::vector<Stmt> path_;  // path to the current store
  std::vector<BankAccess> found_;
};

}  // namespace

std::vector<BankAccess> bank_accesses(const Kernel& scheduled, const Target& target) {
  return Counter(scheduled, target).run();
}

}  // namespace tw
