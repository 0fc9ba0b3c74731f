// Lowers one nest of a scheduled kernel to instructions, at given values of the loops around it. A
// copy into an operand memory becomes strided loads. An intrinsic under loops becomes products,
// sums or maxima of three hardware loops. A store of sums becomes requantizing stores. Loops beyond
// the hardware's are unrolled.
#pragma once
#include "backends/vdla/affine.h"
#include "backends/vdla/config.h"
#include "backends/vdla/requant_form.h"
#include "ir/schedule/intrinsic.h"

namespace tw::vdla {

constexpr int kNoBuffer = -1;  // stands for the table of requantization parameters
struct StreamParts {
  std::vector<int> bases;              // by base register: the kernel's buffer, or kNoBuffer
  std::optional<RequantForm> requant;  // form of all stores, with the constants behind it
  int64_t channels = 0;                // channels that have parameters; 0: none
};

class NestLowering {
 public:
  // `target` is the device's description, for its intrinsics.
  NestLowering(const Kernel& kernel, const Device& device, const Target& target,
               StreamParts& parts);

  // Appends the instructions, without tokens. `sram` has the places of this virtual thread's temps
  // in their memories (elements), by buffer. Errors: a construct that the device cannot run.
  Error lower(const Stmt& s, const Values& values, const std::vector<int64_t>& sram,
              std::vector<Instruction>& out);
  static bool is_nest(const Stmt& s);  // has one store or intrinsic
  static std::optional<Space> space_of(const Buffer& buffer);

 private:
  // A loop of a nest that is not over lanes of an element: a counter, and a stride for each operand
  struct Dim {
    int64_t extent, first, end;
    std::array<int64_t, 3> stride{};
    bool whole() const { return first == 0 && end == extent; }
  };
  using Dims = std::vector<Dim>;

  Error copy(const Nest& nest, bool pads, int8_t pad_value, const expr::Load& from);
  Error begin_sums(const Nest& nest);
  Error intrinsic(const Nest& nest);
  Error products(const std::array<int64_t, 3>& base, Dims dims);
  Error combine(const Emitted& emitted, const std::array<int64_t, 3>& base, Dims dims);
  Error store(const Nest& nest);
  // The place of the stored channels' parameters; none: all channels have the same parameters
  Expected<std::optional<Affine>> channel_of(const Nest& nest, const RequantForm& form);
  // The loops of the nest except those over lanes, with strides of the operands in elements of
  // `lanes` values each
  Expected<Dims> dims_of(const Nest& nest, const std::vector<Affine>& operands,
                         const std::vector<int64_t>& lanes, size_t lane_operands) const;
  static void merge(Dims& dims);
  static std::array<Dim, 3> take_loaded_box(Dims& dims, bool pads);
  static std::array<Dim, 2> take_stored_box(Dims& dims);
  static void for_each(const Dims& dims, size_t from,
                       const std::function<void(const std::array<int64_t, 3>&)>& fn);
  // The element that an operand of the nest accesses. The sum behind it is cached.
  std::optional<Affine> element(const Nest& nest, size_t operand, const Buffer& buffer,
                                const std::vector<Expr>& indices);
  // An intrinsic's block, matched once for all values of the enclosing loops
  struct Matched {
    std::string name;
    Emitted emitted;
    IntrinsicMatch match;
  };
  Expected<const Matched*> matched(const Nest& nest);
  Expected<bool> overwrites(int64_t acc, const Dims& dims, int64_t start);
  int base_of(int buffer);
  Error emit(Instruction instruction);
  std::string name(BufferId id) const { return kernel_.buffer(id).name; }

  const Kernel& kernel_;
  const Device& device_;
  const Target& target_;
  StreamParts& parts_;
  // Accumulators with an initial value that no instruction has written yet
  std::map<int64_t, int64_t> begun_;
  std::map<std::pair<const StmtNode*, size_t>, std::optional<Sum>> sums_;
  std::map<const stmt::Block*, Matched> matched_;
  const Values* values_ = nullptr;
  const std::vector<int64_t>* sram_ = nullptr;
  std::vector<Instruction>* out_ = nullptr;
};

}  // namespace tw::vdla
