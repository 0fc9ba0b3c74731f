// Stores: init, condition and update, for one element or the lanes of a vector loop
#include "backends/opencl/emitter.h"

namespace tw::opencl {
namespace {

constexpr int64_t kMaxStatements = 4000;  // most statements of one function

}  // namespace

// The condition that all enclosing reduce loops are at their first iteration; "": always, "0":
// never
std::string Emitter::first_reduce_iteration() const {
  if (later_reduce_ > 0) return "0";
  std::string all;
  for (const stmt::Loop* loop : loops_)
    if (loop->role == AxisRole::reduce)
      all += (all.empty() ? "" : " && ") + vars_.at(loop->var).text + " == 0";
  return all;
}

std::string Emitter::pointer(BufferId id, const Text& at) const {
  const std::string& name = buffers_.at(id.index);
  if (at.text == "0") return name;
  return name + " + " + (at.depth > 0 ? "(" + at.text + ")" : at.text);
}

Text Emitter::element(BufferId id, const Text& at) {
  if (lane_.empty()) return read(id, at);
  return {"vload" + std::to_string(lane_count_) + "(0, " + pointer(id, at) + ")", false,
          lane_count_};
}

void Emitter::write(BufferId id, const Text& at, const Text& value) {
  const std::string& name = buffers_.at(id.index);
  const DType t = kernel_.buffer(id).dtype;
  if (!lane_.empty())
    return line("vstore" + std::to_string(lane_count_) + "(" + bare(value.text) + ", 0, " +
                pointer(id, at) + ");");
  if (t == DType::f16)
    return line("vstore_half_rte(" + bare(value.text) + ", " + at.text + ", " + half_pointer(id) +
                ");");
  line(name + "[" + at.text + "] = " +
       (t == DType::bf16 ? "tw_to_bfloat16(" + bare(value.text) + ")" : bare(value.text)) + ";");
}

Text Emitter::combined(const stmt::Store& store, const Text& old) {
  const DType t = kernel_.buffer(store.buffer).dtype;
  const std::string type = value_type(t), lanes = lane_.empty() ? "" : std::to_string(lane_count_);
  const auto* product = as_binary(store.value, BinaryOp::mul);
  if (store.combiner == Combiner::add && product && (t == DType::f32 || t == DType::f64)) {
    const Text a = values_of(product->a);
    return {"tw_fma_" + type + "(" + a.text + ", " + values_of(product->b).text + ", " + old.text +
            ")"};
  }
  const Text v = values_of(store.value);
  if (store.combiner == Combiner::min || store.combiner == Combiner::max)
    return {std::string(store.combiner == Combiner::min ? "tw_min_" : "tw_max_") + type + lanes +
            "(" + old.text + ", " + v.text + ")"};
  const char* op = store.combiner == Combiner::add ? " + " : " * ";
  if (is_float(t)) return {old.text + op + v.text};
  const std::string u = unsigned_type(t);
  return {"(" + type + ")((" + u + ")" + old.text + op + "(" + u + ")" + v.text + ")"};
}

void Emitter::emit_update(const stmt::Store& store, const Text& at) {
  if (store.combiner == Combiner::none) return write(store.buffer, at, values_of(store.value));
  const Text old = element(store.buffer, at);
  write(store.buffer, at, combined(store, old));
}

void Emitter::emit_store(const stmt::Store& store) {
  if (store.async) return fail("the asynchronous stage '" + store.label + "' is beyond OpenCL C");
  if (++statements_ > kMaxStatements)
    return fail("more than " + std::to_string(kMaxStatements) + " statements after unrolling");
  if (store.async) return fail("asynchronous copies have no OpenCL form");
  counts_.clear();
  for (const Expr& e : {store.value, store.where})
    if (e.defined()) count(e);
  scopes_.emplace_back();
  std::vector<Expr> indices;
  for (const Expr& e : store.indices)
    indices.push_back(lane_.empty() ? e : substitute(e, lane_, Expr(0)));
  const auto place = [&] {
    Text at = offset(store.buffer, indices);
    if (at.depth > 0 && store.combiner != Combiner::none)
      at = {named(at.narrow ? "int" : "long", at), at.narrow};
    return at;
  };
  std::optional<Text> at;
  if (store.init.defined() && first_reduce_iteration() != "0") {
    at = place();
    const std::string first = first_reduce_iteration();
    if (!first.empty()) open("if (" + first + ")");
    write(store.buffer, *at, values_of(store.init));
    if (!first.empty()) close();
  }
  const Expr where = store.where.defined() ? simplify(store.where, ranges_) : bool_imm(true);
  kept_.push_back(where);
  if (is_const(where, 1)) {
    emit_update(store, at ? *at : place());
  } else if (!is_const(where, 0)) {
    const std::string condition = value(where).text;
    open("if (" + bare(condition) + ")");
    emit_update(store, at ? *at : place());
    close();
  }
  scopes_.pop_back();
}

}  // namespace tw::opencl
