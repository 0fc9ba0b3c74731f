// The table of tilewright profile: the time of each call, beside its work and the time that the
// machine would allow.
#pragma once
#include "cli/text/text_width.h"
#include "driver/compile/manifest.h"
#include "driver/run/roofline.h"
#include "driver/run/tensors.h"

namespace tw {

struct KernelRow {
  std::string call, kernel;
  double ms = 0;
  double flops = 0, loaded_bytes = 0, weight_bytes = 0, tensor_bytes = 0;
  Roof roof;
  int64_t spills = 0;     // stack loads and stores in innermost loops
  double arithmetic = 0;  // seconds of its operations at the machine's peak for their type
};
struct KernelTable {
  std::vector<KernelRow> rows;  // in the order of the calls
};

// ms: milliseconds of each call. symbols: the model's. Errors: a count in the manifest that is no
// expression of the symbols.
Expected<KernelTable> kernel_table(const Manifest& manifest, const Symbols& symbols,
                                   const Peaks& peaks, const std::vector<double>& ms);
Json to_json(const KernelTable& table);
// Slowest first, and the sums. Names are cut to fit, and a narrow table has no GB/s and no spills
// (--json has all).
std::string to_string(const KernelTable& table, int columns = kPlainColumns);

// All calls of one class of kernels: convolutions by one algorithm, pools, a runtime's function
struct KernelClass {
  std::string name;
  int calls = 0;
  double ms = 0, roof_ms = 0;
  std::string bound;  // the one of most of its time
};
std::vector<KernelClass> kernel_classes(const KernelTable& table);  // slowest first
Json to_json(const std::vector<KernelClass>& classes);
// A line a class: its share of the time, and the share that is lost against the roof
std::string to_string(const std::vector<KernelClass>& classes);

}  // namespace tw
