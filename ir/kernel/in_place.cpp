// A read and a store in the same iteration of the loops around both are in order. So it suffices to
// show, for every such pair, that equal indices imply equal iterations of those loops. Where the
// read comes after the store, no indices may be equal.
#include "ir/kernel/in_place.h"

#include <algorithm>
#include <cstdlib>
#include <map>
#include <set>

#include "ir/simplify.h"
#include "ir/simplify/poly.h"

namespace tw {
namespace {

// Limit of the coefficients and extents that are considered, so that sums of products fit 64 bits
constexpr int64_t kLargest = int64_t{1} << 28;

struct Site {  // a load or a store
  std::vector<const stmt::Loop*> loops;
  const stmt::Store* store = nullptr;
  size_t position = 0;  // number of the store in program order
  std::vector<Expr> indices;
};

struct Sites {
  std::vector<Site> reads, writes;
  bool known = true;  // false: some statement runs in another order than the text's
};

bool loads(const Expr& e, BufferId buffer) {
  bool found = false;
  visit(e, [&](const Expr& n) {
    const auto* load = as<expr::Load>(n);
    found |= load && load->buffer == buffer;
  });
  return found;
}

class Collector {
 public:
  Collector(BufferId out, BufferId in) : out_(out), in_(in) {}
  Sites run(const Kernel& kernel) {
    walk(kernel.body);
    return std::move(sites_);
  }

 private:
  void walk(const Stmt& s) {
    match(
        s,
        [&](const stmt::Sequence& sequence) {
          for (const Stmt& child : sequence.body) walk(child);
        },
        [&](const stmt::Loop& loop) {
          if (is_concurrent(loop.kind)) sites_.known = false;
          loops_.push_back(&loop);
          walk(loop.body);
          loops_.pop_back();
        },
        [&](const stmt::If& guard) {
          sites_.known &= !loads(guard.condition, in_);
          walk(guard.body);
        },
        [&](const stmt::Store& store) { note(&store); }, [&](const stmt::Prefetch&) {},
        [&](const stmt::Block& block) {
          // An instruction may read and write in an order of its own.
          if (!block.intrinsic.empty()) sites_.known = false;
          walk(block.body);
        },
        [&](const auto&) { sites_.known = false; });  // threads that wait for each other
  }

  void note(const stmt::Store* s) {
    ++position_;
    auto site = [&](const std::vector<Expr>& indices) {
      return Site{loops_, s, position_, indices};
    };
    const size_t before = sites_.reads.size();
    auto find = [&](const Expr& e) {
      if (e.defined())
        visit(e, [&](const Expr& n) {
          const auto* load = as<expr::Load>(n);
          if (load && load->buffer == in_) sites_.reads.push_back(site(load->indices));
        });
    };
    for (const Expr& e : {s->value, s->where, s->init}) find(e);
    for (const Expr& e : s->indices) find(e);
    if (s->async) sites_.known = false;
    if (s->buffer != out_) return;
    sites_.writes.push_back(site(s->indices));
    // The init is stored before the value is read.
    if (s->init.defined() && sites_.reads.size() > before) sites_.known = false;
  }

  BufferId out_, in_;
  Sites sites_;
  std::vector<const stmt::Loop*> loops_;
  size_t position_ = 0;
};

// A digit of a loop's variable. The variable is a sum of digits times their weights: i // 4 and i %
// 4 are digits of i.
struct Digit {
  std::string name;
  std::optional<int64_t> extent;  // nullopt: unknown
};
using Linear = std::map<std::string, int64_t>;  // coefficient of each digit; "" is the constant

// The divisors of the variable in e, from v // c, v % c and (v // c) % d
void find_divisors(const Expr& e, const std::string& name, std::set<int64_t>& divisors) {
  visit(e, [&](const Expr& n) {
    const auto* digit = as<expr::Binary>(n);
    if (!digit || (digit->op != BinaryOp::floor_div && digit->op != BinaryOp::floor_mod)) return;
    int64_t divisor = as_const(digit->b).value_or(0);
    const auto* quotient = as_binary(digit->a, BinaryOp::floor_div);
    if (quotient) {
      const int64_t inner = as_const(quotient->b).value_or(0);
      divisor = inner > 0 && inner < kLargest && divisor < kLargest ? divisor * inner : 0;
    }
    if (is_var(quotient ? quotient->a : digit->a, name) && divisor > 1) divisors.insert(divisor);
  });
}

// One read and one store. Loops around only one of them have variables of their own.
class Pair {
 public:
  Pair(const Kernel& kernel, const Site& read, const Site& write) {
    while (common_ < read.loops.size() && common_ < write.loops.size() &&
           read.loops[common_] == write.loops[common_])
      ++common_;
    for (const std::string& symbol : kernel.symbols) symbols_[symbol] = symbol_range(symbol);
    std::vector<Linear> of_read = forms(read, write, "r"), of_write = forms(write, read, "w");
    for (size_t d = 0; d < of_read.size(); ++d)
      if (!of_read[d].empty() && !of_write[d].empty())
        equations_.emplace_back(std::move(of_read[d]), std::move(of_write[d]));
    for (bool changed = true; changed;) {
      changed = false;
      for (const auto& [r, w] : equations_) changed |= solve(r, w);
    }
  }

  bool never_meet() const { return apart_; }
  bool meet_in_one_iteration() const { return apart_ || equal_.size() == shared_.size(); }

 private:
  struct Interval {
    int64_t min = 0, max = 0;
    bool known = true;
  };
  static void add(Interval& sum, int64_t coefficient, const std::optional<int64_t>& extent) {
    if (coefficient == 0) return;
    if (!extent || std::abs(coefficient) > kLargest) sum.known = false;
    else (coefficient > 0 ? sum.max : sum.min) += coefficient * (*extent - 1);
  }

  // The indices over digits named with the prefix; empty: an index is not a sum of multiples of
  // digits. Shared loops have the same digits in both sites.
  std::vector<Linear> forms(const Site& site, const Site& other, const std::string& prefix) {
    Ranges ranges = symbols_, digit_ranges = symbols_;
    std::vector<Expr> indices = site.indices;
    for (size_t l = 0; l < site.loops.size(); ++l) {
      const stmt::Loop& loop = *site.loops[l];
      ranges[loop.var] = {0, loop.extent - 1};
      std::set<int64_t> divisors = {1};
      for (const Expr& e : site.indices) find_divisors(e, loop.var, divisors);
      if (l < common_)
        for (const Expr& e : other.indices) find_divisors(e, loop.var, divisors);
      const auto unlike = [](int64_t a, int64_t b) { return b % a != 0; };
      // Divisors form digits only if each one divides the next.
      if (std::ranges::adjacent_find(divisors, unlike) != divisors.end()) divisors = {1};
      const std::optional<int64_t> last = constant_bounds(var(loop.var), ranges).max;
      Expr sum(0);
      int number = 0;
      for (auto c = divisors.begin(); c != divisors.end(); ++c) {
        const auto next = std::next(c);
        Digit digit{loop.var + "#" + std::to_string(number++), std::nullopt};
        if (next != divisors.end() && *next < kLargest) digit.extent = *next / *c;
        else if (next == divisors.end() && last && *last < kLargest)
          digit.extent = std::max<int64_t>(*last, 0) / *c + 1;
        const std::string name = prefix + digit.name;
        digit_ranges[name] = {0, digit.extent ? Expr(*digit.extent - 1) : Expr()};
        extents_[name] = digit.extent;
        sum = sum + var(name) * Expr(*c);
        if (l < common_ && prefix == "r") {
          if (digit.extent == 1) equal_.insert(digit.name);
          shared_.push_back(std::move(digit));
        }
      }
      for (Expr& e : indices) e = substitute(e, loop.var, sum);
    }
    std::vector<Linear> result;
    for (const Expr& e : indices) result.push_back(linear(simplify(e, digit_ranges)));
    return result;
  }

  static Linear linear(const Expr& e) {
    const algebra::Poly poly = algebra::parse(e);
    Linear form;
    form[""] = poly.constant;
    for (const algebra::Term& term : poly.terms) {
      const auto* variable = term.factors.size() == 1 ? as<expr::Var>(term.factors[0]) : nullptr;
      if (!variable) return {};
      form[variable->name] += term.coefficient;
    }
    return form;
  }

  static int64_t of(const Linear& form, const std::string& name) {
    const auto found = form.find(name);
    return found == form.end() ? 0 : found->second;
  }

  // Solves the equation r = w of one dimension for shared digits that must be equal. It takes the
  // largest coefficient first: where all other terms together are smaller, its digits cannot
  // differ. True: it found something new.
  bool solve(const Linear& r, const Linear& w) {
    Interval rest{of(r, "") - of(w, ""), of(r, "") - of(w, ""),
                  std::abs(of(r, "")) < kLargest && std::abs(of(w, "")) < kLargest};
    std::set<std::string> seen = {""};
    // Each coefficient with its digits that may differ
    std::vector<std::pair<int64_t, const Digit*>> open;
    for (const Digit& digit : shared_) {
      const std::string in_read = "r" + digit.name, in_write = "w" + digit.name;
      const int64_t a = of(r, in_read), b = of(w, in_write);
      seen.insert(in_read);
      seen.insert(in_write);
      if (equal_.contains(digit.name)) add(rest, a - b, digit.extent);
      else if (a != b) add(rest, a, digit.extent), add(rest, -b, digit.extent);
      else if (a != 0) open.emplace_back(std::abs(a), &digit);
    }
    for (const Linear* form : {&r, &w})
      for (const auto& [name, coefficient] : *form) {
        if (seen.contains(name)) continue;
        const auto extent = extents_.find(name);
        if (extent == extents_.end()) rest.known &= of(r, name) == of(w, name);  // a symbol
        else add(rest, form == &r ? coefficient : -coefficient, extent->second);
      }
    if (!rest.known) return false;
    std::ranges::sort(open, {}, [](const auto& o) { return o.first; });
    return find_equal(rest, open);
  }

  bool find_equal(const Interval& rest, const std::vector<std::pair<int64_t, const Digit*>>& open) {
    // The most that the digits with smaller coefficients add to either side
    std::vector<std::optional<int64_t>> below = {0};
    for (const auto& [coefficient, digit] : open) {
      const bool known = below.back() && digit->extent && coefficient < kLargest;
      below.push_back(known ? std::optional(*below.back() + coefficient * (*digit->extent - 1))
                            : std::nullopt);
    }
    const bool apart = below.back() && (rest.min > *below.back() || rest.max < -*below.back());
    bool found = apart && !apart_;
    apart_ |= apart;
    const int64_t most = std::max(std::abs(rest.min), std::abs(rest.max));
    for (size_t i = open.size(); i-- > 0;) {
      if (!below[i] || open[i].first <= most + *below[i]) break;
      equal_.insert(open[i].second->name);
      found = true;
    }
    return found;
  }

  size_t common_ = 0;  // number of loops around both sites
  Ranges symbols_;
  std::vector<Digit> shared_;  // digits of those loops
  // Extents of all digits, by prefixed name
  std::map<std::string, std::optional<int64_t>> extents_;
  std::vector<std::pair<Linear, Linear>> equations_;
  std::set<std::string> equal_;
  bool apart_ = false;
};

bool same_storage(const Kernel& kernel, const Buffer& a, const Buffer& b) {
  Ranges symbols;
  for (const std::string& symbol : kernel.symbols) symbols[symbol] = symbol_range(symbol);
  return a.dtype == b.dtype &&
         std::ranges::equal(a.shape, b.shape, [&](const Expr& x, const Expr& y) {
           return is_const(simplify(x - y, symbols), 0);
         });
}

}  // namespace

bool may_be_in_place(const Kernel& kernel, BufferId out, BufferId in) {
  const Buffer &y = kernel.buffer(out), &x = kernel.buffer(in);
  if (y.role != BufferRole::output || x.role != BufferRole::input || !same_storage(kernel, y, x))
    return false;
  const Sites sites = Collector(out, in).run(kernel);
  if (!sites.known) return false;
  return std::ranges::all_of(sites.reads, [&](const Site& read) {
    return std::ranges::all_of(sites.writes, [&](const Site& write) {
      const Pair pair(kernel, read, write);
      return read.position <= write.position ? pair.meet_in_one_iteration() : pair.never_meet();
    });
  });
}

std::vector<BufferId> in_place_inputs(const Kernel& kernel, BufferId out) {
  std::vector<BufferId> found;
  for (size_t i = 0; i < kernel.buffers.size(); ++i)
    if (const BufferId in{static_cast<int32_t>(i)}; may_be_in_place(kernel, out, in))
      found.push_back(in);
  const std::vector<StoreRef> stores = stores_of(kernel.body);
  std::ranges::sort(found, {}, [&](BufferId in) {
    const bool together = std::ranges::any_of(
        stores, [&](const StoreRef& s) { return s->buffer == out && loads(s->value, in); });
    return std::pair(!together, in.index);
  });
  return found;
}

}  // namespace tw
