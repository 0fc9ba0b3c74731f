#include "program/bind_weights.h"

#include <algorithm>
#include <map>

#include "program/shared_parts.h"

namespace tw {
namespace {

class WeightBinding {
 public:
  WeightBinding(LoweredProgram& lowered, std::vector<RunKernel> scheduled)
      : lowered_(lowered), kernels_(std::move(scheduled)), forms_(lowered.weights.size()) {
    for (const RunKernel& kernel : kernels_) {
      std::vector<std::string>& texts = packs_.emplace_back();
      for (const ParameterSource& source : kernel.sources)
        texts.push_back(source.pack ? print(*source.pack) : "");
    }
  }

  std::vector<Kernel> run() {
    each_calls([&](Program& calls) {
      for (KernelCall& call : calls.calls) bind(call);
      for (SizeStep& step : calls.steps) bind(step.at);
    });
    number_pieces();
    each_calls([&](Program& calls) {
      for (KernelCall& call : calls.calls)
        for (Operand& operand : call.arguments) renumber(operand);
      for (SizeStep& step : calls.steps) renumber(step.at);
    });
    std::vector<Kernel> kernels;
    for (RunKernel& kernel : kernels_) kernels.push_back(std::move(kernel.kernel));
    return kernels;
  }

 private:
  // A constant in one form
  struct Form {
    WeightPiece piece;
    size_t constant;
  };

  template <class Visit>
  void each_calls(const Visit& visit) {
    visit(lowered_.main.program);
    for (LoweredCalls& region : lowered_.regions) visit(region.program);
  }

  void bind(KernelCall& call) {
    if (call.kernel < 0) {
      for (Operand& operand : call.arguments) bind(operand);
      return;
    }
    const auto k = static_cast<size_t>(call.kernel);
    const RunKernel& kernel = kernels_[k];
    std::vector<Operand> arguments;
    for (size_t p = 0; p < kernel.sources.size(); ++p) {
      const ParameterSource& source = kernel.sources[p];
      Operand operand = call.arguments[source.parameter];
      if (operand.place == Place::weights && source.pack)
        operand.index = form(static_cast<size_t>(operand.index), packs_[k][p], [&] {
          WeightPiece piece = lowered_.weights[static_cast<size_t>(operand.index)];
          TW_CHECK(!piece.pack, "'{0}' is packed twice", piece.name);
          piece.pack = source.pack, piece.size = bytes_of(kernel.kernel.buffers[p]);
          return piece;
        });
      else bind(operand);
      arguments.push_back(std::move(operand));
    }
    call.arguments = std::move(arguments);
  }

  void bind(Operand& operand) {
    if (operand.place != Place::weights) return;
    const auto constant = static_cast<size_t>(operand.index);
    operand.index = form(constant, "", [&] { return lowered_.weights[constant]; });
  }

  // The number of a form of the constant
  template <class Make>
  int form(size_t constant, const std::string& pack, const Make& make) {
    const auto [entry, fresh] = forms_[constant].try_emplace(pack, made_.size());
    if (fresh) made_.push_back({make(), constant});
    return static_cast<int>(entry->second);
  }

  // Orders the pieces as the constants are, and the forms of each by their first use.
  void number_pieces() {
    std::vector<size_t> order(made_.size());
    for (size_t f = 0; f < order.size(); ++f) order[f] = f;
    std::ranges::stable_sort(order, {}, [&](size_t f) { return made_[f].constant; });
    std::vector<WeightPiece> weights;
    std::vector<int> devices;
    numbers_.resize(made_.size());
    for (const size_t f : order) {
      numbers_[f] = static_cast<int>(weights.size());
      weights.push_back(std::move(made_[f].piece));
      devices.push_back(lowered_.weight_devices[made_[f].constant]);
    }
    lowered_.weights = std::move(weights), lowered_.weight_devices = std::move(devices);
  }

  void renumber(Operand& operand) const {
    if (operand.place == Place::weights)
      operand.index = numbers_[static_cast<size_t>(operand.index)];
  }

  LoweredProgram& lowered_;
  std::vector<RunKernel> kernels_;
  std::vector<std::vector<std::string>> packs_;       // texts, by kernel and parameter
  std::vector<std::map<std::string, size_t>> forms_;  // by constant and pack: its form
  std::vector<Form> made_;
  std::vector<int> numbers_;  // by form: its piece
};

}  // namespace

std::vector<Kernel> bind_weights(LoweredProgram& lowered, std::vector<RunKernel> scheduled) {
  return WeightBinding(lowered, std::move(scheduled)).run();
}

}  // namespace tw
