// tilewright dataset sample: draws layers from the prior, and shows how new they are.
#include "cli/commands/dataset/actions.h"

#include <algorithm>
#include <ostream>

#include "driver/dataset/sample.h"

namespace tw {
namespace {

Json layers_json(const std::vector<Layer>& layers) {
  Json::Array list;
  for (const Layer& layer : layers)
    list.push_back(Json::Object{{"kind", layer_kind_name(layer.kind)},
                                {"values", json_array(layer.values)},
                                {"flops", flops_of(layer)}});
  return list;
}

}  // namespace

Expected<int> sample_dataset(const DatasetArgs& args, DataSet& set, Console& console) {
  TW_ASSIGN(const Sampled s, sample_layers(set, args.count, args.seed.value_or(1)));
  if (console.json) {
    write_json(console, Json::Object{{"set", set.path()},
                                     {"possible", s.possible},
                                     {"fresh", s.fresh},
                                     {"fresh_sizes", s.fresh_sizes},
                                     {"different", s.different},
                                     {"table", layers_json(s.table)},
                                     {"drawn", layers_json(s.drawn)}});
    return kExitOk;
  }
  const auto drawn = static_cast<double>(std::max<size_t>(1, s.drawn.size())),
             possible = static_cast<double>(std::max(1, s.possible));
  console.out << s.drawn.size() << " layers drawn from " << s.table.size() << ": "
              << percent(s.possible / drawn) << " are possible\n"
              << percent(s.fresh / possible) << " of these are in no network, "
              << percent(s.fresh_sizes / possible) << " have a size that none has, "
              << percent(s.different / possible) << " are different from each other\n";
  return kExitOk;
}

}  // namespace tw
