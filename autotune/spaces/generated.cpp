// The generated sketches: for each variant of a task, those that its kernel's structure allows, for
// any family.
#include <array>
#include <map>
#include <mutex>

#include "autotune/spaces/generated.h"
#include "autotune/spaces/sources.h"
#include "kernels/arranged.h"

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

// A kernel whose operands are arranged, and its structure
struct Begun {
  ArrangedKernel arranged;
  Structure structure;
};

// Kernels by the choices of how operands lie, each made once
class Arrangements {
 public:
  Arrangements(const LoweredGroup& lowered, std::shared_ptr<const Target> target)
      : lowered_(lowered), target_(std::move(target)) {}

  Expected<std::shared_ptr<const Begun>> by(Choices& choices) {
    TW_ASSIGN(ArrangedKernel made, arranged(lowered_, *target_, &choices));
    const std::string steps = print(made.steps);
    {
      const std::lock_guard lock(mutex_);
      if (const auto known = begun_.find(steps); known != begun_.end()) return known->second;
    }
    Structure structure = generated::structure_of(made.run.kernel, *target_);
    const std::lock_guard lock(mutex_);
    return begun_
        .try_emplace(steps, std::make_shared<const Begun>(std::move(made), std::move(structure)))
        .first->second;
  }

 private:
  const LoweredGroup lowered_;
  const std::shared_ptr<const Target> target_;
  std::mutex mutex_;
  std::map<std::string, std::shared_ptr<const Begun>> begun_;
};

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

Expected<std::vector<Sketch>> generated_sketches(const Task& task,
                                                 const std::shared_ptr<const Target>& target,
                                                 const SpaceOptions& options) {
  std::vector<Sketch> sketches;
  for (size_t v = 0; v < task.variants.size(); ++v) {
    const Variant& variant = task.variants[v];
    const auto arrangements = std::make_shared<Arrangements>(variant.lowered, target);
    Choices usual;
    TW_ASSIGN(const std::shared_ptr<const Begun> first, arrangements->by(usual));
    for (const Rule& rule : kRules) {
      if (!rule.applies(first->structure)) continue;
      const auto build = [arrangements, target,
                          steps = rule.steps](Choices& choices) -> Expected<Schedule> {
        TW_ASSIGN(const std::shared_ptr<const Begun> begun, arrangements->by(choices));
        ScheduleBuilder s(begun->structure.kernel, *target, &choices);
        steps(s, begun->structure);
        TW_ASSIGN(const Schedule rest, s.finish());
        return continued(begun->arranged, rest, &choices);
      };
      Sketch sketch = open_sketch(std::string(algorithm_name(variant.algorithm)) + "." + rule.name,
                                  static_cast<int>(v), build, options);
      if (some_legal(sketch)) sketches.push_back(std::move(sketch));
    }
  }
  return sketches;
}

}  // namespace tw
