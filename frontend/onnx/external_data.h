// Payloads outside of the protobuf message: ranges of the model file or of files below the model's
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

  // A short name for a location, "#1": the ONNX library passes over names that begin with '#',
  // others it looks for itself.
  std::string alias(const std::string& location);

  std::vector<std::string> paths() const;  // of the files that have an alias

  // Bytes [offset, offset + length) of the file that `location` (or its alias) names relative to
  // the model's folder (kModelLocation: the model file). Refused: absolute paths, "..", symbolic
  // links but those of a cache in which the model is one too, hard links, ranges past the end, and
  // ranges that overlap another tensor's without being the same. `tensor` is for messages.
  Expected<Blob> range(const std::string& location, uint64_t offset, uint64_t length,
                       const std::string& tensor);

 private:
  Expected<std::shared_ptr<const MappedFile>> file(const std::string& location,
                                                   const std::string& tensor);

  std::string model_path_, folder_;
  std::vector<std::string> aliases_;  // "#1" is the first
  std::map<std::string, std::string> alias_of_;
  std::map<std::string, std::shared_ptr<const MappedFile>> files_;  // by location
  // By location: begin -> end
  std::map<std::string, std::map<uint64_t, uint64_t>> taken_;
};

}  // namespace tw::onnx_import
