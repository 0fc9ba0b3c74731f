// Tensors outside the protobuf message: ranges of the model file, or of files below the model's
// folder.
#pragma once
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "frontend/mapped_file.h"

namespace tw::onnx_import {

class ExternalData {
 public:
  ExternalData(std::shared_ptr<const MappedFile> model, const std::string& model_path);

  // A short name for a location, "#1". The ONNX library skips names that begin with '#', and
  // searches for other files itself.
  std::string alias(const std::string& location);

  std::vector<std::string> paths() const;  // paths of the files with an alias

  // Bytes [offset, offset + length) of the file that `location`, or its alias, names relative to
  // the model's folder (kModelLocation: the model file). Refused: absolute paths, "..", hard links,
  // ranges past the end, ranges that overlap another tensor's without being the same, and symbolic
  // links. Links of a cache are allowed if the model is one of them. `tensor` is for messages.
  Expected<Blob> range(const std::string& location, uint64_t offset, uint64_t length,
                       const std::string& tensor);

 private:
  Expected<std::shared_ptr<const MappedFile>> file(const std::string& location,
                                                   const std::string& tensor);

  std::string model_path_, folder_;
  std::vector<std::string> aliases_;  // the first is "#1"
  std::map<std::string, std::string> alias_of_;
  std::map<std::string, std::shared_ptr<const MappedFile>> files_;  // by location
  // By location: begin -> end of the ranges in use
  std::map<std::string, std::map<uint64_t, uint64_t>> taken_;
};

}  // namespace tw::onnx_import
