// tilewright space: shows what tuning could try for each kernel of a model: sketches, their knobs,
// the number of points, and some of them.
#include <llvm/ADT/StringExtras.h>

#include <algorithm>
#include <cstdio>
#include <memory>
#include <ostream>

#include "autotune/space.h"
#include "autotune/transfer.h"
#include "cli/commands/commands.h"
#include "cli/commands/precision_flag.h"
#include "cli/flags.h"
#include "cli/targets.h"
#include "driver/tune/model_tasks.h"
#include "frontend/frontend.h"

namespace tw {
namespace {

struct SpaceArgs {
  std::string model, target = "host", space = "all";
  std::vector<std::string> dims;
  PrecisionFlag precision;
  RoundingFlag rounding;
  int kernel = 0, samples = 0;  // kernel: from 1 on; 0: all
  bool no_rules = false;
  std::optional<uint64_t> seed;
};

std::string count_text(double count) {
  char text[32];
  std::snprintf(text, sizeof text, count < 1e7 ? "%.0f" : "%.3g", count);
  return text;
}

struct Sampled {
  int legal = 0, taken = 0;
  Json::Array list;
  std::string text;
};

// Draws points: their schedules, or the reason why a point is illegal
Sampled sample(const Space& space, const SpaceArgs& args) {
  Sampled s;
  std::mt19937_64 random(args.seed.value_or(1));
  for (; s.taken < args.samples; ++s.taken) {
    const Point point = space.sample(random);
    Expected<Schedule> schedule = space.schedule(point);
    std::string reason, text;
    if (schedule) ++s.legal, text = print(*schedule);
    else reason = take_diags(schedule.takeError()).front().message;
    s.text += "  " + space.print(point) + "\n" +
              (reason.empty() ? text : "  ; illegal: " + reason + "\n");
    s.list.push_back(Json::Object{{"point", space.print(point)},
                                  {"legal", reason.empty()},
                                  {"schedule", text},
                                  {"reason", reason}});
  }
  return s;
}

Json sketches_json(const Space& space) {
  Json::Array list;
  for (const Sketch& sketch : space.sketches()) {
    Json::Array knobs;
    for (const Knob& knob : sketch.knobs)
      knobs.push_back(
          Json::Object{{"name", knob.name}, {"values", static_cast<int64_t>(knob.values.size())}});
    list.push_back(
        Json::Object{{"name", sketch.name}, {"variant", sketch.variant}, {"knobs", knobs}});
  }
  return list;
}

std::string sketches_text(const Space& space) {
  std::string text;
  for (const Sketch& sketch : space.sketches()) {
    text += "  " + sketch.name;
    for (const Knob& knob : sketch.knobs)
      text += (&knob == &sketch.knobs.front() ? ": " : ", ") + knob.name + " " +
              std::to_string(knob.values.size());
    text += "\n";
  }
  return text;
}

Expected<int> space_of_model(const SpaceArgs& args, Console& console) {
  const std::optional<SketchSource> sketches = sketch_source_from_name(args.space);
  if (!sketches) return wrong_word("--space", args.space, llvm::join(kSketchSources, ", "));
  TW_ASSIGN(const auto dims, parse_dims(args.dims));
  TW_ASSIGN(Target target, load_target(args.target, config_dirs()));
  TW_TRY(args.precision.apply(target));
  TW_ASSIGN(const QuantizedRounding rounding, args.rounding.read());
  TW_ASSIGN(const std::vector<Task> tasks,
            model_tasks(args.model, {dims, {}, {}}, target, {.rounding = rounding}));
  if (static_cast<size_t>(args.kernel) > tasks.size())
    return make_error(DiagCode::invalid_argument, "there is no kernel {0}: the model has {1}",
                      args.kernel, tasks.size());
  Json::Array list;
  for (size_t i = 0; i < tasks.size(); ++i) {
    if (args.kernel > 0 && i + 1 != static_cast<size_t>(args.kernel)) continue;
    const Task& task = tasks[i];
    TW_ASSIGN(const Space space,
              search_space(task, target.main_device(), {!args.no_rules, *sketches}));
    Json::Array variants;
    std::string words;
    for (const Variant& v : task.variants) {
      variants.push_back(algorithm_name(v.algorithm));
      words += std::string(words.empty() ? "" : ", ") + algorithm_name(v.algorithm);
    }
    Sampled sampled = sample(space, args);
    if (!console.json) {
      console.out << i + 1 << " " << task.name << ", " << task.calls
                  << (task.calls == 1 ? " call" : " calls") << ": " << words << "; "
                  << count_text(space.size()) << " points\n"
                  << sketches_text(space) << sampled.text;
      if (sampled.taken > 0)
        console.out << "  " << sampled.legal << " of " << sampled.taken << " legal\n";
    }
    list.push_back(Json::Object{{"kernel", static_cast<int64_t>(i + 1)},
                                {"task", task.key},
                                {"name", task.name},
                                {"family", family_of(task.variants.front().lowered)},
                                {"calls", task.calls},
                                {"flops", task.flops},
                                {"variants", variants},
                                {"points", space.size()},
                                {"sketches", sketches_json(space)},
                                {"legal", sampled.legal},
                                {"samples", std::move(sampled.list)}});
  }
  if (console.json)
    write_json(console,
               Json::Object{{"space", args.space}, {"rules", !args.no_rules}, {"kernels", list}});
  return kExitOk;
}

}  // namespace

CommandRun define_space(Flags& flags) {
  auto args = std::make_shared<SpaceArgs>();
  flags.argument("MODEL", args->model, "An ONNX model");
  flags.text("-t,--target", args->target, "NAME|FILE",
             "A target's name (tilewright targets) or YAML file; default: this machine");
  flags.repeated("--dim", args->dims, "NAME=N",
                 "Bind a free dimension: batch=1, or by input and axis: x[3]=320");
  args->precision.define(flags);
  args->rounding.define(flags);
  flags.integer("--kernel", args->kernel, "Only this one, counted from 1");
  flags.text("--space", args->space, "all|template|generated",
             "Sketches of the hand-written schedules with their decisions opened, generated ones, "
             "or all; default all");
  flags.flag("--no-rules", args->no_rules,
             "Without the static rules that keep points near the good ones");
  flags.integer("--sample", args->samples, "Show so many points, drawn at random");
  flags.seed("--seed", args->seed, "Of the drawing; default 1");
  return [args](Console& console) { return space_of_model(*args, console); };
}

}  // namespace tw
