#include "cli/commands/precision_flag.h"

#include "cli/flags.h"
#include "passes/precision.h"

namespace tw {

void PrecisionFlag::define(Flags& flags) {
  flags.text("--precision", name, "P",
             "fp32; bf16: products and convolutions multiply it where the target has an "
             "instruction for that, with sums in f32; fp16, and bf16 without one: weights are kept "
             "in it; tf32: products in tiles of a device multiply it; auto: bf16 with an "
             "instruction, else fp32; default: the target's, else fp32");
}

Error PrecisionFlag::apply(Target& target) const {
  if (!name.empty()) {
    const std::optional<Precision> precision = precision_from_name(name);
    if (!precision) return wrong_word("--precision", name, precision_names());
    set_precision(target, *precision);
  }
  return check_precision(target);
}

std::vector<std::string> precision_notes(const Target& target) {
  std::vector<std::string> notes;
  const Precision precision = precision_of(target);
  if (target.precision == Precision::automatic)
    notes.push_back(std::string("precision auto: ") + precision_name(precision) + " on target '" +
                    target.name + "'");
  const bool multiplies = precision == Precision::fp32 || precision == Precision::tf32 ||
                          (precision == Precision::bf16 && multiplies_bf16(target));
  if (!multiplies)
    notes.push_back(std::string("precision ") + precision_name(precision) + ": target '" +
                    target.name +
                    "' does not multiply it; it keeps weights, where little else is read");
  return notes;
}

void RoundingFlag::define(Flags& flags) {
  flags.text("--quantized-rounding", name, "RULE",
             "standard (default): sums and products between quantized values are rounded, halves "
             "to even, and then get their zero point. onnxruntime: they get it before, as in its "
             "optimized kernels. verify goes by the library's");
}

Expected<QuantizedRounding> RoundingFlag::read() const {
  if (const std::optional<QuantizedRounding> rounding = quantized_rounding_from_name(name))
    return *rounding;
  return wrong_word("--quantized-rounding", name, quantized_rounding_names());
}

}  // namespace tw
