#include "cli/text/errors_json.h"

namespace tw {

Json to_json(const Diag& diag, const char* code) {
  Json::Object out{{"code", code}, {"message", diag.message}};
  out.push_back({"file", diag.where.file.empty() ? Json() : Json(diag.where.file)});
  out.push_back({"line", diag.where.line > 0 ? Json(diag.where.line) : Json()});
  out.push_back({"column", diag.where.line > 0 ? Json(diag.where.column) : Json()});
  out.push_back({"notes", json_array(diag.notes)});
  return out;
}

Json errors_json(const std::vector<Diag>& diags) {
  Json::Array list;
  for (const Diag& d : diags) list.push_back(to_json(d, diag_code_name(d.code)));
  return list;
}

}  // namespace tw
