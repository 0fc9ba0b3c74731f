// Importer of Einsum. Operands first lose repeated indices (diagonals) and axes that nobody else
// reads (sums). Then pairs of operands become matrix products, from the left on. Indices that both
// operands have are batches if a later operand or the output has them too, otherwise they are the
// depth.
#include <algorithm>
#include <cctype>
#include <map>

#include "frontend/onnx/ops/importers.h"
#include "frontend/onnx/ops/resample/points.h"

namespace tw::onnx_import {
namespace {

// One index for each axis: the code of the letter, or -count ... -1 for axes of the ellipsis
using Term = std::vector<int>;

struct Operand {
  Val value;
  Term term;
};

class Einsum {
 public:
  explicit Einsum(NodeImport& n) : n_(n) {}

  void run() {
    if (!read_equation()) return;
    for (Operand& o : operands_) diagonal(o);
    note_extents();
    for (size_t i = 0; i < operands_.size(); ++i) drop_alone(operands_[i], i);
    while (operands_.size() > 1 && !n_.failed()) {
      Operand product = multiply(operands_[0], operands_[1]);
      operands_.erase(operands_.begin());
      operands_[0] = std::move(product);
    }
    if (n_.failed()) return;
    n_.set(arranged(operands_[0], output_));
  }

 private:
  // The indices of one term; nullopt if it has an unexpected character.
  std::optional<Term> parse(const std::string& text, int64_t ellipsis) {
    Term term;
    bool dots = false;
    for (size_t i = 0; i < text.size(); ++i) {
      if (text[i] == ' ') continue;
      if (text.compare(i, 3, "...") == 0 && !dots) {
        for (int64_t k = 0; k < ellipsis; ++k) term.push_back(static_cast<int>(k - ellipsis));
        dots = true;
        i += 2;
      } else if (std::isalpha(static_cast<unsigned char>(text[i]))) {
        term.push_back(text[i]);
      } else {
        return std::nullopt;
      }
    }
    return term;
  }

  bool read_equation() {
    const std::string equation = n_.text("equation", "");
    const size_t arrow = equation.find("->");
    std::vector<std::string> texts(1);
    for (const char c : equation.substr(0, arrow)) {
      if (c == ',') texts.emplace_back();
      else texts.back() += c;
    }
    if (texts.size() != n_.input_count())
      n_.invalid(llvm::formatv("{0} terms for {1} inputs in '{2}'", texts.size(), n_.input_count(),
                               equation)
                     .str());
    int64_t most = 0;  // axes of the longest ellipsis; shorter ones are aligned at the end
    for (size_t i = 0; i < texts.size() && !n_.failed(); ++i) {
      const auto letters = std::ranges::count_if(texts[i],
                                                 [](unsigned char c) { return std::isalpha(c); });
      const Val value = n_.in(i);
      const bool dots = texts[i].find("...") != std::string::npos;
      const int64_t ellipsis = dots ? n_.rank(value) - letters : 0;
      const auto term = parse(texts[i], ellipsis);
      if (!term || ellipsis < 0 || static_cast<int64_t>(term->size()) != n_.rank(value))
        n_.invalid(
            llvm::formatv("term '{0}' for an input of rank {1}", texts[i], n_.rank(value)).str());
      else operands_.push_back({value, *term});
      most = std::max(most, ellipsis);
    }
    if (n_.failed()) return false;
    if (arrow == std::string::npos) implicit_output(most);
    else if (auto term = parse(equation.substr(arrow + 2), most)) output_ = std::move(*term);
    else n_.invalid("'" + equation + "' has an unexpected character");
    check_output();
    return !n_.failed();
  }

  void implicit_output(int64_t most) {
    for (int64_t k = -most; k < 0; ++k) output_.push_back(static_cast<int>(k));
    std::map<int, int> uses;
    for (const Operand& o : operands_)
      for (int index : o.term) uses[index] += index > 0;
    for (const auto& [index, count] : uses)
      if (count == 1) output_.push_back(index);
  }

  void check_output() {
    Term sorted = output_;
    std::ranges::sort(sorted);
    if (std::ranges::adjacent_find(sorted) != sorted.end())
      n_.invalid("an index twice in the output");
    for (int index : output_)
      if (std::ranges::none_of(operands_, [&](const Operand& o) { return has(o.term, index); }))
        n_.invalid("an index in the output that no input has");
  }

  static bool has(const Term& term, int index) {
    return std::ranges::find(term, index) != term.end();
  }

  // Replaces repeated indices by their diagonal: the elements where both are equal.
  void diagonal(Operand& o) {
    Term term;
    Ints places;
    Shape shape;
    for (size_t i = 0; i < o.term.size(); ++i) {
      const auto found = std::ranges::find(term, o.term[i]);
      places.push_back(found - term.begin());
      const Expr& extent = n_.shape(o.value)[i];
      if (found == term.end()) {
        term.push_back(o.term[i]);
        shape.push_back(extent);
      } else {
        const auto here = as_const(extent),
                   first = as_const(shape[static_cast<size_t>(places.back())]);
        if (here && first && *here != *first)
          return n_.invalid("axes of one index differ in extent");
      }
    }
    if (term.size() == o.term.size()) return;
    o = {take(n_, o.value, std::move(places), {}, std::move(shape)), std::move(term)};
  }

  // The extent of an index is that in the operands that do not broadcast it.
  void note_extents() {
    for (const Operand& o : operands_)
      for (size_t i = 0; i < o.term.size() && !n_.failed(); ++i) {
        Expr& extent = extents_.try_emplace(o.term[i], Expr(1)).first->second;
        if (is_const(extent, 1)) extent = n_.shape(o.value)[i];
      }
  }

  // Sums over indices that only this operand has.
  void drop_alone(Operand& o, size_t self) {
    Ints axes;
    Term kept;
    for (size_t i = 0; i < o.term.size(); ++i) {
      bool needed = has(output_, o.term[i]);
      for (size_t k = 0; k < operands_.size(); ++k)
        needed |= k != self && has(operands_[k].term, o.term[i]);
      if (needed) kept.push_back(o.term[i]);
      else axes.push_back(static_cast<int64_t>(i));
    }
    if (!axes.empty()) o = {n_.reduce(ReduceKind::sum, o.value, axes, false), kept};
  }

  // The operand with these axes in this order; missing ones have extent 1.
  Val arranged(const Operand& o, const Term& wanted) {
    if (n_.failed()) return {};
    Ints perm;
    Shape shape;
    for (int index : wanted) {
      const auto found = std::ranges::find(o.term, index);
      shape.push_back(found == o.term.end()
                          ? Expr(1)
                          : n_.shape(o.value)[static_cast<size_t>(found - o.term.begin())]);
      if (found != o.term.end()) perm.push_back(found - o.term.begin());
    }
    return n_.reshape(n_.transpose(o.value, std::move(perm)), std::move(shape));
  }

  Expr count(const Term& term) const {
    Expr all = 1;
    for (int index : term) all = all * extents_.at(index);
    return n_.simplified(all);
  }
  Shape shape_of(const Term& term) const {
    Shape shape;
    for (int index : term) shape.push_back(extents_.at(index));
    return shape;
  }

  // The operand as [batch..., first, second], where `first` and `second` each join their axes to
  // one. Batches may have extent 1.
  Val matrix(const Operand& o, const Term& batch, const Term& first, const Term& second) {
    Term all = batch;
    all.insert(all.end(), first.begin(), first.end());
    all.insert(all.end(), second.begin(), second.end());
    const Val value = arranged(o, all);
    if (n_.failed()) return {};
    Shape whole(n_.shape(value).begin(),
                n_.shape(value).begin() + static_cast<int64_t>(batch.size()));
    Shape full = whole;
    for (const Term* part : {&first, &second})
      for (int index : *part) full.push_back(extents_.at(index));
    whole.push_back(count(first));
    whole.push_back(count(second));
    return n_.reshape(n_.expand(value, full), whole);
  }

  // Multiplies two operands. Indices of both are batches if they occur later, otherwise the depth.
  // The others are rows and columns.
  Operand multiply(const Operand& a, const Operand& b) {
    Term batch, depth, rows, columns;
    const auto goes_on = [&](int index) {
      return has(output_, index) ||
             std::any_of(operands_.begin() + 2, operands_.end(),
                         [&](const Operand& o) { return has(o.term, index); });
    };
    for (int index : a.term)
      (has(b.term, index) ? goes_on(index) ? batch : depth : rows).push_back(index);
    for (int index : b.term)
      if (!has(a.term, index)) columns.push_back(index);
    Term out = batch;
    out.insert(out.end(), rows.begin(), rows.end());
    out.insert(out.end(), columns.begin(), columns.end());
    // Without a sum it is an outer product
    if (depth.empty()) return {n_.mul(arranged(a, out), arranged(b, out)), out};
    const Val product = n_.emit(op::MatMul{},
                                {matrix(a, batch, rows, depth), matrix(b, batch, depth, columns)});
    if (n_.failed()) return {};
    Shape shape(n_.shape(product).begin(), n_.shape(product).end() - 2);
    for (const Term* part : {&rows, &columns})
      for (const Expr& extent : shape_of(*part)) shape.push_back(extent);
    // Products of narrow integers are wider than their operands
    return {n_.reshape(n_.cast(product, n_.dtype(a.value)), std::move(shape)), out};
  }

  NodeImport& n_;
  std::vector<Operand> operands_;
  Term output_;
  std::map<int, Expr> extents_;
};

}  // namespace

void import_einsum(NodeImport& n) { Einsum(n).run(); }

}  // namespace tw::onnx_import
