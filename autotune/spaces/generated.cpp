// The generated space: for each variant of a task, the sketches that its kernel's structure allows,
// for any family.
#include <array>

#include "autotune/spaces/generated.h"
#include "kernels/arranged.h"
#include "kernels/device/tensor_form.h"

namespace tw {
namespace {

using generated::Structure;

struct Rule {
  const char* name;
  void (*steps)(ScheduleBuilder& s, const Structure& k);
  bool (*applies)(const Structure& k);
};

bool has_sums(const Structure& k) { return !k.sums.empty(); }
bool has_chain(const Structure& k) { return k.nests.size() > 2; }
bool has_none(const Structure& k) { return k.sums.empty(); }
bool always(const Structure&) { return true; }

constexpr std::array<Rule, 7> kRules = {{{"tile", generated::sketch_tile, has_sums},
                                         {"cache_write", generated::sketch_cache_write, has_sums},
                                         {"chunks", generated::sketch_chunks, has_sums},
                                         {"rfactor", generated::sketch_rfactor, has_sums},
                                         {"rows", generated::sketch_rows, has_chain},
                                         {"blocks", generated::sketch_blocks, has_none},
                                         {"plain", generated::sketch_plain, always}}};

// True if a point of the sketch is legal: the usual one, or one of a few random ones.
bool some_legal(const Sketch& sketch) {
  constexpr int kTried = 48;
  std::mt19937_64 random(1);
  std::vector<int> choice(sketch.knobs.size(), 0);
  for (int i = 0; i < kTried; ++i) {
    Expected<FilledSketch> made = sketch.fill(choice);
    if (made) return true;
    llvm::consumeError(made.takeError());
    for (size_t k = 0; k < choice.size(); ++k)
      choice[k] = static_cast<int>(random() % sketch.knobs[k].values.size());
  }
  return false;
}

}  // namespace

Expected<Space> generated_space(const Task& task, const Target& target,
                                const SpaceOptions& options) {
  if (!target.axes.empty() || tensor_instruction(target, true))
    return make_error(
        DiagCode::unsupported,
        "generated spaces are for processors, not for '{0}': its space is the template one",
        target.name);
  std::vector<Sketch> sketches;
  const auto place = std::make_shared<const Target>(target);
  for (size_t v = 0; v < task.variants.size(); ++v) {
    const Variant& variant = task.variants[v];
    TW_ASSIGN(ArrangedKernel made, arranged(variant.lowered, target));
    const auto begun = std::make_shared<const ArrangedKernel>(std::move(made));
    const auto structure = std::make_shared<const Structure>(
        generated::structure_of(begun->run.kernel, target));
    for (const Rule& rule : kRules) {
      if (!rule.applies(*structure)) continue;
      const auto build = [begun, structure, place,
                          steps = rule.steps](Choices& choices) -> Expected<Schedule> {
        ScheduleBuilder s(structure->kernel, *place, &choices);
        steps(s, *structure);
        TW_ASSIGN(const Schedule rest, s.finish());
        return continued(*begun, rest, &choices);
      };
      Sketch sketch = open_sketch(std::string(algorithm_name(variant.algorithm)) + "." + rule.name,
                                  static_cast<int>(v), build, options);
      if (some_legal(sketch)) sketches.push_back(std::move(sketch));
    }
  }
  if (sketches.empty())
    return make_error(DiagCode::invalid_argument,
                      "task '{0}' has no variants with a legal schedule, one at least is needed",
                      task.name);
  return Space(std::move(sketches), Space::Draw::sketches);
}

}  // namespace tw
