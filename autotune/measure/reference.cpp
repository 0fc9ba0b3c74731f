#include "autotune/measure/reference.h"

#include <algorithm>
#include <map>

#include "autotune/measure/data.h"
#include "ir/kernel/interpreter.h"
#include "ir/program.h"

namespace tw {
namespace {

using Values = std::map<std::string, int64_t, std::less<>>;

Expected<Values> values_of(const Kernel& kernel, const std::vector<int64_t>& symbols) {
  if (symbols.size() != kernel.symbols.size())
    return make_error(DiagCode::invalid_argument,
                      "kernel '{0}' has {1} symbols, {2} values are given", kernel.name,
                      kernel.symbols.size(), symbols.size());
  Values values;
  for (size_t i = 0; i < symbols.size(); ++i) values[kernel.symbols[i]] = symbols[i];
  return values;
}

Expected<uint64_t> evaluate(const Expr& bytes, const Values& values, const std::string& what) {
  const int64_t size = eval_int(bytes, [&](std::string_view name) {
    const auto value = values.find(name);
    return value == values.end() ? int64_t{0} : value->second;
  });
  if (size < 0) return make_error(DiagCode::invalid_argument, "the size of {0} is negative", what);
  return static_cast<uint64_t>(size);
}

Expected<uint64_t> bytes_of(const Buffer& buffer, const Kernel& kernel, const Values& values) {
  auto bytes = static_cast<uint64_t>(dtype_bytes(buffer.dtype));
  for (const Expr& extent : buffer.shape) {
    TW_ASSIGN(const uint64_t size, evaluate(extent, values, "buffer '" + buffer.name + "'"));
    if (__builtin_mul_overflow(bytes, size, &bytes))
      return make_error(DiagCode::limit, "buffer '{0}' of kernel '{1}' has too many elements",
                        buffer.name, kernel.name);
  }
  return bytes;
}

// The kernel's parameters, with the contents that the lowered kernel's have
Expected<std::vector<BufferSpec>> buffers_of(const RunKernel& run, const Values& values) {
  std::vector<BufferSpec> buffers;
  for (size_t i = 0; i < run.sources.size(); ++i) {
    const Buffer& buffer = run.kernel.buffers[i];
    BufferSpec spec;
    TW_ASSIGN(spec.bytes, bytes_of(buffer, run.kernel, values));
    spec.dtype = buffer.dtype;
    spec.input = buffer.role == BufferRole::input;
    spec.constant = buffer.role == BufferRole::constant;
    spec.contents = static_cast<uint32_t>(run.sources[i].parameter);
    if (const Kernel* pack = run.sources[i].pack.get()) {
      spec.pack = pack_symbol(*pack);
      spec.source_dtype = pack->buffers.front().dtype;
      TW_ASSIGN(spec.source_bytes, bytes_of(pack->buffers.front(), *pack, values));
    }
    buffers.push_back(std::move(spec));
  }
  return buffers;
}

}  // namespace

double tolerance_of(const Kernel& kernel) {
  constexpr double kSums = 1e-4;
  double step = 0;  // relative distance of neighbouring floats
  visit(kernel.body, [&](const Stmt& s) {
    const auto* store = as<stmt::Store>(s);
    if (!store) return;
    visit(store->value, [&](const Expr& e) {
      const auto* cast = as<expr::Cast>(e);
      if (!cast || !is_float(cast->a.type())) return;
      if (e.type() == DType::bf16) step = std::max(step, 0x1p-7);
      if (e.type() == DType::f16) step = std::max(step, 0x1p-10);
    });
  });
  return kSums + step;
}

Expected<MeasureJob> job_of(const RunKernel& scheduled, const Reference& reference) {
  const Kernel& kernel = scheduled.kernel;
  TW_ASSIGN(const Values values, values_of(kernel, reference.symbols));
  MeasureJob job;
  TW_ASSIGN(job.buffers, buffers_of(scheduled, values));
  TW_ASSIGN(job.workspace_bytes,
            evaluate(workspace_layout(kernel, reference.threads).bytes, values, "the workspace"));
  job.symbols = reference.symbols;
  job.seed = reference.seed;
  job.tolerance = tolerance_of(kernel);
  job.threads = reference.threads;
  job.weights_between = reference.weights_between;
  return job;
}

Error add_library(MeasureJob& job, const CandidateBuilder& builder,
                  const CandidateObjects& objects) {
  TW_ASSIGN(job.library, builder.link(objects));
  job.symbol = builder.symbol;
  job.artifact = builder.artifact;
  for (BufferSpec& buffer : job.buffers)
    if (job.artifact) buffer.pack.clear();
  return Error::success();
}

Expected<MeasureJob> job_of(const RunKernel& scheduled, const Reference& reference,
                            const CandidateBuilder& builder) {
  TW_ASSIGN(MeasureJob job, job_of(scheduled, reference));
  TW_ASSIGN(const CandidateObjects objects, builder.compile(scheduled));
  TW_TRY(add_library(job, builder, objects));
  return job;
}

Expected<Reference> reference_outputs(const RunKernel& scheduled, Reference inputs,
                                      const CandidateBuilder& builder, Transport& transport) {
  TW_ASSIGN(MeasureJob job, job_of(scheduled, inputs, builder));
  job.limits.most_samples = 0;
  job.limits.timeout = 60;
  job.return_outputs = true;
  std::vector<MeasureResult> results = transport.run({&job, 1});
  if (results.front().status != Status::ok)
    return make_error(DiagCode::unsupported,
                      "the reference schedule of kernel '{0}' does not run: {1}",
                      scheduled.kernel.name, results.front().error);
  inputs.outputs = std::move(results.front().outputs);
  return inputs;
}

Expected<Reference> reference_outputs(const Kernel& kernel, Reference inputs) {
  TW_ASSIGN(const Values values, values_of(kernel, inputs.symbols));
  std::vector<BufferSpec> buffers;
  for (const Buffer& buffer : kernel.buffers) {
    if (buffer.role == BufferRole::temp) continue;
    BufferSpec& spec = buffers.emplace_back();
    TW_ASSIGN(spec.bytes, bytes_of(buffer, kernel, values));
    spec.dtype = buffer.dtype, spec.input = buffer.role == BufferRole::input;
    spec.constant = buffer.role == BufferRole::constant;
  }
  std::vector<KernelArgument> arguments;
  for (size_t i = 0; i < buffers.size(); ++i) {
    arguments.push_back({std::vector<std::byte>(buffers[i].bytes, std::byte{0xff})});
    if (buffers[i].input || buffers[i].constant)
      fill_parameter(arguments[i].bytes, buffers[i].dtype, inputs.seed, i);
  }
  TW_TRY(interpret(kernel, arguments, {values.begin(), values.end()}));
  inputs.outputs.clear();
  for (size_t i = 0; i < buffers.size(); ++i)
    if (!buffers[i].input && !buffers[i].constant)
      inputs.outputs.insert(inputs.outputs.end(), arguments[i].bytes.begin(),
                            arguments[i].bytes.end());
  return inputs;
}

}  // namespace tw
