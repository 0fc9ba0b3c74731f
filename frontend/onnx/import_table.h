// The importers of ONNX operators, by operator and version.
#pragma once
#include <string_view>

namespace tw::onnx_import {

class NodeImport;

struct ImportRow {
  std::string_view op_type;
  int first, last;  // the since-versions that the importer knows
  void (*import)(NodeImport&);
  // "" is ai.onnx. Operators without an ONNX schema have the version `first`
  std::string_view domain = "";
  bool takes_lists = false;  // inputs may be sequences or optionals
};

// Null if no importer knows this version; find_importer_any_version ignores the version.
const ImportRow* find_importer(std::string_view domain, std::string_view op_type,
                               int since_version);
const ImportRow* find_importer_any_version(std::string_view domain, std::string_view op_type);

}  // namespace tw::onnx_import
