// Importers of tree ensembles of ai.onnx.ml. An ensemble becomes one table for the runtime's
// function (runtime/ops/tree_ensemble.c). Tables are checked here: every node's children exist, and
// no node is reached twice, so walks end.
#include <algorithm>
#include <limits>
#include <map>
#include <numeric>
#include <optional>

#include "frontend/onnx/ops/ml/ml.h"
#include "ir/graph/externs.h"

namespace tw::onnx_import {
namespace {

using namespace ml;

constexpr int kNodeInts = 6, kLeaf = 7, kMember = 6, kMissingIsTrue = 8;
enum Aggregate : int64_t { average, sum, least, most };

struct Trees {
  std::vector<int32_t> nodes, roots, targets;  // nodes: kNodeInts each
  std::vector<double> splits, weights, members;
  size_t count() const { return splits.size(); }
  int32_t& at(size_t node, size_t field) { return nodes[node * kNodeInts + field]; }
};

// A list of numbers from a tensor or from floats.
std::vector<double> numbers(NodeImport& n, const char* tensor, const char* reals) {
  std::vector<double> out;
  if (const OnnxTensor* given = n.tensor(tensor)) {
    const auto dtype = given->dtype();
    if (!dtype || !is_float(*dtype)) {
      n.invalid(std::string("attribute ") + tensor + " holds no floats");
      return out;
    }
    const Tensor t{*dtype, given->dims, {given->data.bytes.begin(), given->data.bytes.end()}};
    for (int64_t i = 0; i < t.size(); ++i) out.push_back(t.at(i));
  } else if (reals) {
    if (const auto list = n.reals(reals)) out.assign(list->begin(), list->end());
  }
  return out;
}

bool same_length(NodeImport& n, const char* what, size_t size, size_t expected) {
  if (size == expected) return true;
  n.invalid(llvm::formatv("{0} has {1} entries, expected {2}", what, size, expected).str());
  return false;
}

// Marks the nodes that a root reaches. Returns false if a node is missing or reached twice.
bool is_tree(Trees& trees, int32_t root, std::vector<bool>& reached) {
  std::vector<int32_t> open = {root};
  while (!open.empty()) {
    const int32_t node = open.back();
    open.pop_back();
    if (node < 0 || static_cast<size_t>(node) >= trees.count() ||
        reached[static_cast<size_t>(node)])
      return false;
    reached[static_cast<size_t>(node)] = true;
    if ((trees.at(static_cast<size_t>(node), 1) & 7) == kLeaf) continue;
    open.push_back(trees.at(static_cast<size_t>(node), 2));
    open.push_back(trees.at(static_cast<size_t>(node), 3));
  }
  return true;
}

void check_trees(NodeImport& n, Trees& trees, int64_t targets, Val x) {
  const int64_t features = n.need_static_dim(x, 1, "the number of features");
  if (n.failed()) return;
  if (targets < 1 || targets > (int64_t{1} << 20))
    return n.invalid(llvm::formatv("{0} targets", targets).str());
  if (trees.roots.empty()) return n.invalid("no trees");
  for (int32_t target : trees.targets)
    if (target < 0 || target >= targets)
      return n.invalid(llvm::formatv("target {0} of {1}", target, targets).str());
  for (size_t i = 0; i < trees.count(); ++i)
    if ((trees.at(i, 1) & 7) != kLeaf && (trees.at(i, 0) < 0 || trees.at(i, 0) >= features))
      return n.invalid(
          llvm::formatv("a node tests feature {0} of {1}", trees.at(i, 0), features).str());
  std::vector<bool> reached(trees.count(), false);
  for (int32_t root : trees.roots)
    if (!is_tree(trees, root, reached)) return n.invalid("the nodes are no trees");
}

// An integer of the model as an int32. One out of range becomes -1, which the checks refuse.
int32_t narrow(int64_t value) {
  return value < 0 || value > std::numeric_limits<int32_t>::max() ? -1
                                                                  : static_cast<int32_t>(value);
}

int mode_of(NodeImport& n, const std::string& text) {
  const char* const names[] = {"BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE",
                               "BRANCH_GT",  "BRANCH_EQ", "BRANCH_NEQ"};
  for (int i = 0; i < 6; ++i)
    if (text == names[i]) return i;
  if (text != "LEAF") n.invalid("a node of mode '" + text + "'");
  return kLeaf;
}

// Positions of nodes by tree and by number in the tree. It is a sorted list, as models have
// millions of nodes.
class Ids {
 public:
  Ids() = default;
  Ids(const Ints& tree, const Ints& node) : tree_(&tree), node_(&node), order_(tree.size()) {
    std::iota(order_.begin(), order_.end(), 0u);
    std::ranges::stable_sort(order_, {}, [this](uint32_t i) { return key(i); });
  }

  std::optional<size_t> find(int64_t tree, int64_t node) const {
    const std::pair wanted(tree, node);
    const auto found = std::ranges::lower_bound(order_, wanted, {},
                                                [this](uint32_t i) { return key(i); });
    return found != order_.end() && key(*found) == wanted ? std::optional<size_t>(*found)
                                                          : std::nullopt;
  }
  // A node that occurs twice.
  std::optional<size_t> repeated() const {
    for (size_t i = 1; i < order_.size(); ++i)
      if (key(order_[i - 1]) == key(order_[i])) return order_[i];
    return std::nullopt;
  }

 private:
  std::pair<int64_t, int64_t> key(uint32_t i) const { return {(*tree_)[i], (*node_)[i]}; }

  const Ints *tree_ = nullptr, *node_ = nullptr;  // attributes of the model
  std::vector<uint32_t> order_;
};

// Reads the nodes as TreeEnsembleClassifier and -Regressor list them. A tree begins with its first
// node.
Ids read_nodes(NodeImport& n, Trees& trees) {
  const Ints &tree = n.integer_list("nodes_treeids"), &id = n.integer_list("nodes_nodeids"),
             &feature = n.integer_list("nodes_featureids"),
             &yes = n.integer_list("nodes_truenodeids"), &no = n.integer_list("nodes_falsenodeids"),
             &missing = n.integer_list("nodes_missing_value_tracks_true");
  const std::vector<std::string>& modes = n.text_list("nodes_modes");
  trees.splits = numbers(n, "nodes_values_as_tensor", "nodes_values");
  const size_t count = trees.count();
  if (n.failed() || !same_length(n, "nodes_treeids", tree.size(), count) ||
      !same_length(n, "nodes_nodeids", id.size(), count) ||
      !same_length(n, "nodes_featureids", feature.size(), count) ||
      !same_length(n, "nodes_truenodeids", yes.size(), count) ||
      !same_length(n, "nodes_falsenodeids", no.size(), count) ||
      !same_length(n, "nodes_modes", modes.size(), count) ||
      (!missing.empty() &&
       !same_length(n, "nodes_missing_value_tracks_true", missing.size(), count)))
    return {};
  const Ids ids(tree, id);
  if (const auto twice = ids.repeated())
    n.invalid(llvm::formatv("node {0} of tree {1} is there twice", id[*twice], tree[*twice]).str());
  const auto position = [&](int64_t t, int64_t node) {
    const auto found = ids.find(t, node);
    return found ? narrow(static_cast<int64_t>(*found)) : -1;
  };
  std::map<int64_t, bool> begun;
  trees.nodes.resize(count * kNodeInts);
  for (size_t i = 0; i < count && !n.failed(); ++i) {
    const int mode = mode_of(n, modes[i]);
    trees.at(i, 0) = narrow(feature[i]);
    trees.at(i, 1) = mode | (!missing.empty() && missing[i] != 0 ? kMissingIsTrue : 0);
    trees.at(i, 2) = mode == kLeaf ? 0 : position(tree[i], yes[i]);
    trees.at(i, 3) = mode == kLeaf ? 0 : position(tree[i], no[i]);
    if (begun.emplace(tree[i], true).second) trees.roots.push_back(narrow(static_cast<int64_t>(i)));
  }
  return ids;
}

// Reads the weights by leaf; the model may list them in any order. `prefix` is "class" or "target".
void read_weights(NodeImport& n, Trees& trees, const Ids& ids, const std::string& prefix) {
  const Ints &tree = n.integer_list((prefix + "_treeids").c_str()),
             &id = n.integer_list((prefix + "_nodeids").c_str()),
             &target = n.integer_list((prefix + "_ids").c_str());
  const std::vector<double> weights = numbers(n, (prefix + "_weights_as_tensor").c_str(),
                                              (prefix + "_weights").c_str());
  if (n.failed() || !same_length(n, "the trees of weights", tree.size(), weights.size()) ||
      !same_length(n, "the nodes of weights", id.size(), weights.size()) ||
      !same_length(n, "the targets of weights", target.size(), weights.size()))
    return;
  std::vector<std::pair<uint32_t, uint32_t>> of_leaf;  // pairs of leaf and weight
  of_leaf.reserve(weights.size());
  for (size_t w = 0; w < weights.size(); ++w) {
    const auto leaf = ids.find(tree[w], id[w]);
    if (!leaf)
      return n.invalid(
          llvm::formatv("a weight of node {0} of tree {1}, which is not there", id[w], tree[w])
              .str());
    // Weights of inner nodes are ignored
    if ((trees.at(*leaf, 1) & 7) == kLeaf)
      of_leaf.emplace_back(static_cast<uint32_t>(*leaf), static_cast<uint32_t>(w));
  }
  std::ranges::sort(of_leaf);
  trees.weights.reserve(of_leaf.size());
  trees.targets.reserve(of_leaf.size());
  for (size_t i = 0; i < of_leaf.size(); ++i) {
    const auto [leaf, weight] = of_leaf[i];
    if (i == 0 || of_leaf[i - 1].first != leaf)
      trees.at(leaf, 4) = narrow(static_cast<int64_t>(trees.weights.size()));
    trees.weights.push_back(weights[weight]);
    trees.targets.push_back(narrow(target[weight]));
    trees.at(leaf, 5) = narrow(static_cast<int64_t>(trees.weights.size()));
  }
}

template <class T>
Val table(NodeImport& n, DType dtype, const std::vector<T>& values, std::vector<int64_t> dims) {
  Tensor tensor = Tensor::zeros(dtype, std::move(dims));
  for (size_t i = 0; i < values.size(); ++i)
    tensor.set(static_cast<int64_t>(i), static_cast<double>(values[i]));
  return n.builder().add_constant(tensor);
}

Val emit_trees(NodeImport& n, Trees& trees, Val x, int64_t targets, Aggregate aggregate) {
  check_trees(n, trees, targets, x);
  if (n.failed()) return {};
  if (trees.weights.empty()) trees.weights.push_back(0), trees.targets.push_back(0);
  if (trees.members.empty()) trees.members.push_back(0);
  const DType dtype = n.dtype(x);
  const auto size = [](const auto& values) { return static_cast<int64_t>(values.size()); };
  const std::vector<Val> inputs = {
      x,
      table(n, DType::i32, trees.nodes, {size(trees.splits), kNodeInts}),
      table(n, dtype, trees.splits, {size(trees.splits)}),
      table(n, DType::i32, trees.roots, {size(trees.roots)}),
      table(n, DType::i32, trees.targets, {size(trees.targets)}),
      table(n, dtype, trees.weights, {size(trees.weights)}),
      table(n, dtype, trees.members, {size(trees.members)})};
  return n.emit_extern(ExternFunction::tree_ensemble, {aggregate}, {}, inputs, {Expr(targets)})[0];
}

Val add_base(NodeImport& n, Val scores, int64_t targets) {
  const std::vector<double> base = numbers(n, "base_values_as_tensor", "base_values");
  if (n.failed() || base.empty()) return scores;
  if (base.size() != 1 && static_cast<int64_t>(base.size()) != targets) {
    n.invalid(llvm::formatv("{0} base values for {1} targets", base.size(), targets).str());
    return {};
  }
  return n.add(scores, table(n, n.dtype(scores), base, {1, static_cast<int64_t>(base.size())}));
}

Val tree_input(NodeImport& n) {
  const Val x = n.in(0);
  return matrix(n, x, n.dtype(x) == DType::f64 ? DType::f64 : DType::f32);
}

}  // namespace

void import_ml_tree_ensemble_regressor(NodeImport& n) {
  const Val x = tree_input(n);
  const PostTransform transform = read_post_transform(n);
  const std::string text = n.text("aggregate_function", "SUM");
  const std::map<std::string, Aggregate> aggregates = {
      {"AVERAGE", average}, {"SUM", sum}, {"MIN", least}, {"MAX", most}};
  const int64_t targets = n.integer("n_targets", 1);
  if (!aggregates.count(text)) return n.invalid("attribute aggregate_function is '" + text + "'");
  Trees trees;
  const Ids ids = read_nodes(n, trees);
  read_weights(n, trees, ids, "target");
  const Val scores = add_base(n, emit_trees(n, trees, x, targets, aggregates.at(text)), targets);
  if (!n.failed()) n.set(transformed(n, transform, n.cast(scores, DType::f32)));
}

// As in the standard's reference: if all weights belong to one class, its score s is that of the
// second class. The first class gets 1 - s, or -s before a transformation.
void import_ml_tree_ensemble_classifier(NodeImport& n) {
  const Val x = tree_input(n);
  const PostTransform transform = read_post_transform(n);
  Ints labels = class_labels(n, "classlabels_int64s", "classlabels_strings");
  const Ints& class_ids = n.integer_list("class_ids");
  Trees trees;
  const Ids ids = read_nodes(n, trees);
  read_weights(n, trees, ids, "class");
  if (n.failed()) return;
  const auto classes = static_cast<int64_t>(labels.size());
  if (classes == 0) return n.invalid("attribute classlabels_int64s is empty");
  Val scores = add_base(n, n.cast(emit_trees(n, trees, x, classes, sum), DType::f32), classes);
  if (n.failed()) return;
  const bool binary = classes <= 2 &&
                      std::all_of(class_ids.begin(), class_ids.end(),
                                  [&](int64_t id) { return id == class_ids.front(); });
  if (binary) {
    const Val second = n.slice(scores, 1, 0, 1);
    const bool plain = transform == PostTransform::none || transform == PostTransform::probit;
    const Val first = plain ? n.sub(n.scalar(1, second), second) : n.unary(UnaryOp::neg, second);
    scores = n.emit(op::Concat{1}, {first, second});
    if (classes == 1) labels = {0, labels[0]};
  }
  scores = transformed(n, transform, scores);
  if (n.failed()) return;
  const Val index = n.emit(op::ArgReduce{false, 1, false, false}, {scores});
  set_classes(n,
              n.emit(op::Gather{0, true},
                     {constant(n, labels, {static_cast<int64_t>(labels.size())}), index}),
              scores);
}

namespace {

// Reads TreeEnsemble-5, which keeps tests and leaves apart. In the table, leaves come after the
// tests, with a copy for each use.
void read_tree_ensemble(NodeImport& n, Trees& trees) {
  const Ints &feature = n.integer_list("nodes_featureids"),
             &yes = n.integer_list("nodes_truenodeids"), &no = n.integer_list("nodes_falsenodeids"),
             &yes_leaf = n.integer_list("nodes_trueleafs"),
             &no_leaf = n.integer_list("nodes_falseleafs"), &roots = n.integer_list("tree_roots"),
             &missing = n.integer_list("nodes_missing_value_tracks_true"),
             &ids = n.integer_list("leaf_targetids");
  trees.splits = numbers(n, "nodes_splits", nullptr);
  trees.weights = numbers(n, "leaf_weights", nullptr);
  const std::vector<double> members = numbers(n, "membership_values", nullptr);
  const OnnxTensor* modes = n.tensor("nodes_modes");
  const size_t count = trees.count();
  if (n.failed() || !same_length(n, "nodes_featureids", feature.size(), count) ||
      !same_length(n, "nodes_truenodeids", yes.size(), count) ||
      !same_length(n, "nodes_falsenodeids", no.size(), count) ||
      !same_length(n, "nodes_trueleafs", yes_leaf.size(), count) ||
      !same_length(n, "nodes_falseleafs", no_leaf.size(), count) ||
      !same_length(n, "nodes_modes", modes ? modes->data.bytes.size() : 0, count) ||
      (!missing.empty() &&
       !same_length(n, "nodes_missing_value_tracks_true", missing.size(), count)) ||
      !same_length(n, "leaf_targetids", ids.size(), trees.weights.size()))
    return;
  for (int64_t id : ids) trees.targets.push_back(narrow(id));
  trees.nodes.resize(count * kNodeInts);
  const auto leaf = [&](int64_t weight) {
    if (weight < 0 || weight >= static_cast<int64_t>(trees.weights.size())) {
      n.invalid(llvm::formatv("leaf {0} of {1}", weight, trees.weights.size()).str());
      return -1;
    }
    trees.nodes.insert(trees.nodes.end(), {0, kLeaf, 0, 0, narrow(weight), narrow(weight + 1)});
    trees.splits.push_back(0);
    return narrow(static_cast<int64_t>(trees.count()) - 1);
  };
  size_t member = 0;
  for (size_t i = 0; i < count && !n.failed(); ++i) {
    const auto mode = static_cast<int>(modes->data.bytes[i]);
    if (mode > kMember) return n.invalid(llvm::formatv("a node of mode {0}", mode).str());
    int32_t begin = 0, end = 0;
    if (mode == kMember) {  // the next members, up to a NaN
      begin = narrow(static_cast<int64_t>(trees.members.size()));
      for (; member < members.size() && members[member] == members[member]; ++member)
        trees.members.push_back(members[member]);
      ++member;
      end = narrow(static_cast<int64_t>(trees.members.size()));
    }
    const int32_t when = yes_leaf[i] != 0 ? leaf(yes[i]) : narrow(yes[i]),
                  otherwise = no_leaf[i] != 0 ? leaf(no[i]) : narrow(no[i]);
    const int32_t fields[] = {narrow(feature[i]),
                              mode | (!missing.empty() && missing[i] != 0 ? kMissingIsTrue : 0),
                              when,
                              otherwise,
                              begin,
                              end};
    std::copy(std::begin(fields), std::end(fields),
              trees.nodes.begin() + static_cast<int64_t>(i * kNodeInts));
  }
  for (int64_t root : roots) trees.roots.push_back(narrow(root));
}

}  // namespace

void import_ml_tree_ensemble(NodeImport& n) {
  const Val given = n.in(0), x = tree_input(n);
  const int64_t transform = n.integer("post_transform", 0),
                aggregate = n.integer("aggregate_function", 1);
  if (transform < 0 || transform > 4)
    return n.invalid(llvm::formatv("attribute post_transform is {0}", transform).str());
  if (aggregate < 0 || aggregate > 3)
    return n.invalid(llvm::formatv("attribute aggregate_function is {0}", aggregate).str());
  const int64_t targets = n.integer("n_targets", 1);
  Trees trees;
  read_tree_ensemble(n, trees);
  const Val scores = emit_trees(n, trees, x, targets, static_cast<Aggregate>(aggregate));
  if (!n.failed())
    n.set(n.cast(transformed(n, static_cast<PostTransform>(transform), scores), n.dtype(given)));
}

}  // namespace tw::onnx_import
