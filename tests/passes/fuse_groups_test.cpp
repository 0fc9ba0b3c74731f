#include <doctest/doctest.h>

#include <set>
#include <string>

#include "passes/fuse_groups.h"
#include "passes/pass.h"
#include "random_graph.h"

using namespace tw;

namespace {

Graph parsed(const char* text) {
  Expected<Graph> graph = parse_graph(text);
  if (!graph) FAIL(error_text(graph.takeError()));
  return std::move(*graph);
}

Target device_with(int64_t shared_bytes) {
  Target device;
  device.name = "gpu";
  device.axes = {{"block.x", "block", 0}, {"thread.x", "thread", 256}};
  device.local_bytes = shared_bytes;
  if (shared_bytes > 0) device.scopes.push_back({"shared", "block"});
  return device;
}

// Returns the names of the outputs of all nodes, group by group: "c r | p".
std::string grouping(const Graph& graph) {
  std::string text;
  for (const Group& group : fuse_groups(graph)) {
    if (!text.empty()) text += " | ";
    for (size_t i = 0; i < group.nodes.size(); ++i)
      text += (i ? " " : "") + graph.value(graph.node(group.nodes[i]).output).name;
  }
  return text;
}

void check_group(const Graph& graph, const Group& group,
                 const std::vector<std::vector<NodeId>>& users) {
  std::set<NodeId> inside(group.nodes.begin(), group.nodes.end());
  REQUIRE(inside.contains(group.anchor));
  FusionClass kind = op_info(graph.node(group.anchor).attrs).fusion;
  if (kind == FusionClass::complex_out)  // the checks below do not hold for attention
    for (NodeId id : group.nodes)
      if (std::holds_alternative<op::Softmax>(graph.node(id).attrs)) return;
  bool after_anchor = false;
  for (NodeId id : group.nodes) {
    const Node& node = graph.node(id);
    bool escapes = false;
    for (NodeId user : users[static_cast<size_t>(node.output.index)])
      escapes |= !inside.contains(user);
    for (const Graph::Output& output : graph.outputs()) escapes |= output.value == node.output;
    if (id != group.nodes.back()) CHECK_FALSE(escapes);
    if (id == group.anchor) {
      after_anchor = true;
      continue;
    }
    if (kind == FusionClass::complex_out) CHECK(after_anchor);
    if (kind == FusionClass::injective) CHECK(op_info(node.attrs).fusion == FusionClass::injective);
    else
      // Groups of sums may also contain gathers.
      CHECK((is_elementwise(node) || std::holds_alternative<op::Take>(node.attrs) ||
             std::holds_alternative<op::Gather>(node.attrs)));
    CHECK(kind != FusionClass::opaque);
  }
}

void check_groups(const Graph& graph) {
  std::vector<Group> groups = fuse_groups(graph);
  std::vector<std::vector<NodeId>> users = graph.users();
  std::set<NodeId> done;
  for (const Group& group : groups) {
    CHECK(group.nodes.size() <= 24);
    check_group(graph, group, users);
    std::set<NodeId> inside;
    for (NodeId id : group.nodes) {
      // An input is from this group or from an earlier one.
      for (ValueId input : graph.node(id).inputs) {
        if (!input.valid() || !graph.def(input)) continue;
        NodeId maker = graph.value(input).def;
        CHECK((inside.contains(maker) || done.contains(maker)));
      }
      inside.insert(id);
    }
    for (NodeId id : inside) CHECK(done.insert(id).second);
  }
  CHECK(done.size() == graph.order().size());
}

}  // namespace

TEST_CASE("groups of random graphs are a partition in topological order with one output each") {
  for (unsigned seed = 0; seed < 200; ++seed) {
    CAPTURE(seed);
    Graph graph = test::random_graph(seed);
    std::string text = print(graph);
    CAPTURE(text);
    check_groups(graph);
    const Target target = baseline_target(Arch::x86_64);
    PassContext context{target};
    CHECK(error_text(run_passes(graph, context, default_pipeline())) == "");
    check_groups(graph);
  }
}

TEST_CASE("a convolution takes bias, residual add and activation; the later one takes the add") {
  Graph graph = parsed(R"(graph @t() {
    %x: f32[1, 2, 4, 4] = input
    %w: f32[2, 2, 1, 1] = const [1, 2, 3, 4]
    %b: f32[2, 1, 1] = const [1, 2]
    %zero: f32[] = const [0]
    %c: f32[1, 2, 4, 4] = conv(%x, %w) strides=[1,1] dilations=[1,1] pads=[0,0,0,0]
    %d: f32[1, 2, 4, 4] = conv(%x, %w) strides=[1,1] dilations=[1,1] pads=[0,0,0,0]
    %e: f32[1, 2, 4, 4] = binary(%d, %b) function=add
    %s: f32[1, 2, 4, 4] = binary(%c, %e) function=add
    %r: f32[1, 2, 4, 4] = binary(%zero, %s) function=max
    %f: f32[1, 2, 4, 4] = conv(%r, %w) strides=[1,1] dilations=[1,1] pads=[0,0,0,0]
    %t: f32[1, 2, 4, 4] = binary(%f, %r) function=add
    output %t
  })");
  check_groups(graph);
  CHECK(grouping(graph) == "c | d e s r | f t");
  CHECK(
      print_groups(graph, fuse_groups(graph))
          .starts_with("group 0 complex_out (%x, %w) -> %c: f32[1, 2, 4, 4]\n  %c = conv(%x, %w)"));
}

TEST_CASE("diamonds join whole or not at all") {
  const char* text = R"(graph @t() {
    %x: f32[2, 4] = input
    %w: f32[4, 4] = input
    %half: f32[] = const [0.5]
    %one: f32[] = const [1]
    %root: f32[] = const [0.70710678]
    %c: f32[2, 4] = matmul(%x, %w)
    %a: f32[2, 4] = binary(%c, %root) function=mul
    %e: f32[2, 4] = unary(%a) function=erf
    %p: f32[2, 4] = binary(%e, %one) function=add
    %h: f32[2, 4] = binary(%c, %half) function=mul
    %g: f32[2, 4] = binary(%h, %p) function=mul
    %d: f32[2, 4] = matmul(%g, %w)
    %s: f32[2, 4] = unary(%d) function=sigmoid
    %m: f32[2, 4] = binary(%d, %s) function=mul
    %k: f32[2, 4] = matmul(%m, %w)
    %i: f32[2, 4] = unary(%k) function=sigmoid
    %j: f32[2, 4] = matmul(%k, %w)
    %l: f32[2, 4] = binary(%i, %j) function=mul
    output %l
  })";
  Graph graph = parsed(text);
  check_groups(graph);
  // %j reads %k too, so %i cannot join it.
  CHECK(grouping(graph) == "c a e p h g | d s m | k | i | j l");
}

TEST_CASE("softmax takes scale and mask in front and element-wise followers behind") {
  Graph graph = parsed(R"(graph @t() {
    %x: f32[2, 3, 4] = input
    %mask: f32[4] = input
    %half: f32[] = const [0.5]
    %a: f32[2, 3, 4] = binary(%x, %half) function=mul
    %b: f32[2, 3, 4] = binary(%a, %mask) function=add
    %c: f32[2, 3, 4] = softmax(%b) axis=2
    %d: f32[2, 3, 4] = binary(%c, %half) function=mul
    %e: f32[2, 4, 3] = transpose(%d) perm=[0,2,1]
    output %e
  })");
  check_groups(graph);
  CHECK(grouping(graph) == "a b c d | e");
}

TEST_CASE("a reduction takes what only it reads, and what follows over its own points") {
  Graph graph = parsed(R"(graph @t() {
    %x: f32[2, 8] = input
    %eps: f32[] = const [0.1]
    %m: f32[2, 1] = reduce(%x) kind=mean axes=[1]
    %c: f32[2, 8] = binary(%x, %m) function=sub
    %q: f32[2, 8] = binary(%c, %c) function=mul
    %v: f32[2, 1] = reduce(%q) kind=mean axes=[1]
    %w: f32[2, 1] = binary(%v, %eps) function=add
    %s: f32[2, 1] = unary(%w) function=sqrt
    %y: f32[2, 8] = binary(%c, %s) function=div
    output %y
  })");
  check_groups(graph);
  CHECK(grouping(graph) == "m | c | q v w s | y");
}

TEST_CASE("injective chains merge; nothing dear is computed for every copy") {
  Graph graph = parsed(R"(graph @t() {
    %x: f32[1, 4] = input
    %a: f32[1, 4] = unary(%x) function=exp
    %b: f32[1, 4] = unary(%a) function=neg
    %c: f32[3, 4] = expand(%b) shape=[3, 4]
    %d: f32[4, 3] = transpose(%c) perm=[1,0]
    %e: f32[4, 3] = unary(%d) function=tanh
    %f: f32[12] = reshape(%e) shape=[12]
    output %f
  })");
  check_groups(graph);
  CHECK(grouping(graph) == "a | b c d e f");
}

TEST_CASE("one value read at different points is not computed twice if it is dear") {
  Graph graph = parsed(R"(graph @t() {
    %x: f32[4, 4] = input
    %a: f32[4, 4] = unary(%x) function=exp
    %b: f32[4, 4] = transpose(%a) perm=[1,0]
    %c: f32[4, 4] = binary(%a, %b) function=add
    %d: f32[4, 4] = unary(%c) function=neg
    %e: f32[4, 4] = transpose(%d) perm=[1,0]
    %f: f32[4, 4] = binary(%d, %e) function=add
    output %f
  })");
  check_groups(graph);
  // %c and %d are cheap, so both readers may compute them. %a is not, so it stays alone.
  CHECK(grouping(graph) == "a | b c d e f");
}

TEST_CASE("movement does not follow a convolution") {
  Graph graph = parsed(R"(graph @t() {
    %x: f32[1, 2, 4, 4] = input
    %w: f32[2, 2, 1, 1] = const [1, 2, 3, 4]
    %c: f32[1, 2, 4, 4] = conv(%x, %w) strides=[1,1] dilations=[1,1] pads=[0,0,0,0]
    %r: f32[1, 2, 4, 4] = unary(%c) function=abs
    %f: f32[1, 32] = reshape(%r) shape=[1, 32]
    %g: f32[1, 32] = unary(%f) function=neg
    output %g
  })");
  check_groups(graph);
  CHECK(grouping(graph) == "c r | f g");
}

TEST_CASE("an inner value that is an output ends its group") {
  Graph graph = parsed(R"(graph @t() {
    %x: f32[4, 4] = input
    %c: f32[4, 4] = matmul(%x, %x)
    %a: f32[4, 4] = unary(%c) function=exp
    %b: f32[4, 4] = unary(%a) function=neg
    %d: f32[4, 4] = unary(%b) function=tanh
    output %a
    output %d
  })");
  check_groups(graph);
  CHECK(grouping(graph) == "c a | b d");
}

TEST_CASE(
    "layout casts and symbolic values stay alone; followers are stored as their convolution") {
  Graph graph = parsed(R"(graph @t(batch) {
    %x: f32[batch, 4, 2, 2] = input
    %w: f32[4, 4, 1, 1] = input
    %zero: f32[] = const [0]
    %a: f32[batch, 4, 2, 2] = unary(%x) function=abs
    %b: f32[batch, 4, 2, 2]@1:4 = layout_cast(%a) axis=1 block=4
    %c: f32[batch, 4, 2, 2]@1:4 = conv(%b, %w) strides=[1,1] dilations=[1,1] pads=[0,0,0,0]
    %d: f32[batch, 4, 2, 2]@1:4 = binary(%zero, %c) function=max
    %e: f32[batch, 4, 2, 2]@1:4 = binary(%d, %b) function=add
    %f: f32[batch, 4, 2, 2] = layout_cast(%e) axis=-1 block=0
    %g: f32[batch, 4, 2, 2] = unary(%f) function=exp
    %n: i64[1] = dim_vector() values=[batch]
    %m: i64[1] = binary(%n, %n) function=add
    output %g
    output %m
  })");
  check_groups(graph);
  CHECK(grouping(graph) == "a | b | c d e | f | g | n | m");
}

const char* kAttention = R"(graph @g() {
%x: f32[1, 8, 4] = input
%m: f32[8, 8] = input
%v: f32[1, 2, 8, 2] = input
%w: f32[1, 2, 8, 2] = input
%r: f32[1, 8, 2, 2] = reshape(%x) shape=[1,8,2,2]
%q: f32[1, 2, 8, 2] = transpose(%r) perm=[0,2,1,3]
%a: f32[1, 2, 8, 8] = matmul(%q, %w) trans_b=true
%b: f32[1, 2, 8, 8] = binary(%a, %m) function=add
%p: f32[1, 2, 8, 8] = softmax(%b) axis=3
%o: f32[1, 2, 8, 2] = matmul(%p, %v)
%t: f32[1, 8, 2, 2] = transpose(%o) perm=[0,2,1,3]
%y: f32[1, 8, 4] = reshape(%t) shape=[1,8,4]
output %y
)";

TEST_CASE("attention is one group, from the split to the merged heads") {
  CHECK(grouping(parsed((std::string(kAttention) + "}").c_str())) == "r q a b p o t y");
  // Other readers of the probabilities or the scores prevent attention.
  CHECK(grouping(parsed((std::string(kAttention) + "output %p\n}").c_str())).find("p o") ==
        std::string::npos);
  CHECK(grouping(parsed((std::string(kAttention) + "output %a\n}").c_str())).find("p o") ==
        std::string::npos);
}

TEST_CASE("products of devices read operands through what moves elements") {
  const Graph graph = parsed(R"(graph @g() {
    %x: f32[8, 32] = input
    %w: f32[2, 24] = input
    %s: f32[8, 16] = slice(%x) starts=[0,8] steps=[1,1] sizes=[8,16]
    %r: f32[4, 2, 16] = reshape(%s) shape=[4,2,16]
    %t: f32[4, 16, 2] = transpose(%r) perm=[0,2,1]
    %y: f32[4, 16, 24] = matmul(%t, %w)
    output %y
  })");
  const Target device = device_with(0);
  CHECK(fuse_groups(graph, &device).size() == 1);
}

TEST_CASE("attention is one group for devices whose blocks hold its steps, else a note says why") {
  const Graph graph = parsed(R"(graph @g() {
    %q: f16[2, 8, 16] = input
    %k: f16[2, 8, 16] = input
    %a: f16[2, 8, 8] = matmul(%q, %k) trans_b=true
    %p: f16[2, 8, 8] = softmax(%a) axis=2
    %o: f16[2, 8, 16] = matmul(%p, %k)
    output %o
  })");
  CHECK(fuse_groups(graph).size() == 1);
  const Target shares = device_with(32 << 10), little = device_with(1 << 10), none = device_with(0);
  CHECK(fuse_groups(graph, &shares).size() == 1);
  CHECK(attention_notes(graph, shares).empty());
  for (const Target* device : {&little, &none}) {
    CHECK(fuse_groups(graph, device).size() == 3);
    REQUIRE(attention_notes(graph, *device).size() == 1);
  }
  CHECK(attention_notes(graph, none).front() ==
        "attention 'o' on gpu is several kernels: its blocks of threads share no memory");
  CHECK(attention_notes(graph, little).front().find("fits its 1024 bytes") != std::string::npos);
}

TEST_CASE("attention of free sizes, whose heads share keys, is one group") {
  CHECK(grouping(parsed(R"(graph @g(batch, seq, past) {
    %x: f32[batch, 4, seq, 8] = input
    %k: f32[batch, 2, past + seq, 8] = input
    %v: f32[batch, 2, past + seq, 8] = input
    %m: bool[seq, past + seq] = input
    %n: f32[] = const [-1000]
    %q: f32[batch, 2, 2, seq, 8] = reshape(%x) shape=[batch,2,2,seq,8]
    %l: f32[batch, 2, 1, past + seq, 8] = reshape(%k) shape=[batch,2,1,past + seq,8]
    %w: f32[batch, 2, 1, past + seq, 8] = reshape(%v) shape=[batch,2,1,past + seq,8]
    %a: f32[batch, 2, 2, seq, past + seq] = matmul(%q, %l) trans_b=true
    %b: f32[batch, 2, 2, seq, past + seq] = select(%m, %a, %n)
    %p: f32[batch, 2, 2, seq, past + seq] = softmax(%b) axis=4 masked=true
    %o: f32[batch, 2, 2, seq, 8] = matmul(%p, %w)
    %t: f32[batch, seq, 2, 2, 8] = transpose(%o) perm=[0,3,1,2,4]
    %y: f32[batch, seq, 32] = reshape(%t) shape=[batch,seq,32]
    output %y
  })")) == "q l w a b p o t y");
}

TEST_CASE("indices that must be looked at are made by kernels of their own") {
  const auto graph = [](const char* index) {
    return parsed((std::string(R"(graph @t(n) {
    %x: f32[4, 8] = input
    %i: i64[3] = input
    )") + index + R"(
    %g: f32[3, 8] = gather(%x, %c) axis=0
    %y: f32[3, 8] = unary(%g) function=tanh
    output %y
  })")
                      .c_str());
  };
  CHECK(grouping(graph("%c: i64[3] = binary(%i, %i) function=add")) == "c | g y");
  CHECK(grouping(graph("%c: i64[3] = iota() shape=[3] axis=0")) == "c g y");
}

TEST_CASE("groups stay within 24 nodes and 12 inputs") {
  Graph graph;
  graph.name = "t";
  TensorType type{DType::f32, {4, 4}, {}};
  ValueId x = graph.add_input("x", type);
  auto add = [&](OpAttrs attrs, std::vector<ValueId> inputs) {
    Expected<ValueId> value = graph.add(std::move(attrs), std::move(inputs));
    REQUIRE(bool(value));
    return *value;
  };
  ValueId value = add(op::MatMul{}, {x, x});
  for (int i = 0; i < 40; ++i) value = add(op::Unary{UnaryOp::tanh}, {value});
  for (int i = 0; i < 16; ++i)
    value = add(op::Binary{BinaryOp::add}, {value, graph.add_input("i", type)});
  graph.add_output(value, "y");
  check_groups(graph);
  std::vector<size_t> sizes;
  for (const Group& group : fuse_groups(graph)) sizes.push_back(group.nodes.size());
  CHECK(sizes == std::vector<size_t>{24, 22, 11});
}
