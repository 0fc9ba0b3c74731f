// A library that Tilewright wrote, loaded at run time and used through its C interface.
#pragma once
#include <string>
#include <vector>

#include "runtime/tilewright.h"
#include "tensor.h"

namespace detect {

// One input, any number of outputs, all f32 and of fixed shape. Fails with a message on any error.
class CompiledModel {
 public:
  // `name` is the model's name in tw_<name>_query; when empty it is taken from the file name.
  CompiledModel(const std::string& path, std::string name);
  ~CompiledModel();
  CompiledModel(const CompiledModel&) = delete;
  CompiledModel& operator=(const CompiledModel&) = delete;

  // Runs once; the outputs stand in the model's order.
  std::vector<Tensor> run(Tensor& input) const;

 private:
  void* library_ = nullptr;
  const tw_api* api_ = nullptr;
  tw_context* context_ = nullptr;
};

}  // namespace detect
