// Which importer takes which ONNX operator, at which versions.
#pragma once
#include <string_view>

namespace tw::onnx_import {

class NodeImport;

struct ImportRow {
  std::string_view op_type;
  int first, last;  // since-versions of the operator that the importer knows
  void (*import)(NodeImport&);
  // "" is ai.onnx; operators that ONNX has no schema of have the version `first`
  std::string_view domain = "";
  bool takes_lists = false;  // sequences and optionals may be among its inputs
};

// Null when there is no importer for this version; any_version ignores it.
const ImportRow* find_importer(std::string_view domain, std::string_view op_type,
                               int since_version);
const ImportRow* find_importer_any_version(std::string_view domain, std::string_view op_type);

}  // namespace tw::onnx_import
