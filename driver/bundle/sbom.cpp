#include "driver/bundle/sbom.h"

#include <llvm/Config/llvm-config.h>

namespace tw {
namespace {

Json hashes(const std::string& sha256) {
  return Json::Array{Json::Object{{"alg", "SHA-256"}, {"content", sha256}}};
}

Json property(const std::string& name, const std::string& value) {
  return Json::Object{{"name", "tilewright:" + name}, {"value", value}};
}

// The compiler. LLVM's version is known if this very compiler made the library.
Json tools(const Manifest& manifest) {
  Json::Array list{Json::Object{
      {"type", "application"}, {"name", "tilewright"}, {"version", manifest.compiler}}};
  if (manifest.compiler == TW_VERSION)
    list.push_back(
        Json::Object{{"type", "library"}, {"name", "LLVM"}, {"version", LLVM_VERSION_STRING}});
  return Json::Object{{"components", list}};
}

Json model_component(const Manifest& manifest, const SbomParts& parts) {
  Json::Object model{{"type", "machine-learning-model"},
                     {"bom-ref", "model"},
                     {"name", manifest.name},
                     {"hashes", hashes(manifest.model_sha256)}};
  if (!parts.model_license.empty())
    model.push_back(
        {"licenses", Json::Array{Json::Object{
                         {"license", Json::Object{{"name", "see " + parts.model_license}}}}}});
  Json::Array properties{property("opset", std::to_string(manifest.opset))};
  if (!manifest.producer.empty()) properties.push_back(property("producer", manifest.producer));
  model.push_back({"properties", properties});
  return model;
}

Json runtime_component(const Manifest& manifest) {
  return Json::Object{
      {"type", "library"},
      {"bom-ref", "runtime"},
      {"name", "tilewright-runtime"},
      {"version", manifest.compiler},
      {"licenses", Json::Array{Json::Object{{"expression", "Apache-2.0 WITH LLVM-exception"}}}}};
}

// A URN in the form of a UUID, made of the library's hash
std::string serial_number(const std::string& sha256) {
  return "urn:uuid:" + sha256.substr(0, 8) + "-" + sha256.substr(8, 4) + "-8" +
         sha256.substr(13, 3) + "-8" + sha256.substr(17, 3) + "-" + sha256.substr(20, 12);
}

}  // namespace

Json sbom(const Manifest& manifest, const SbomParts& parts) {
  Json::Array properties{property("target", manifest.target_name),
                         property("target-hash", manifest.target_hash)};
  if (!parts.lock_sha256.empty()) properties.push_back(property("lock-sha256", parts.lock_sha256));
  const Json library = Json::Object{{"type", "library"},
                                    {"bom-ref", "library"},
                                    {"name", parts.library},
                                    {"hashes", hashes(parts.library_sha256)},
                                    {"properties", properties}};
  return Json::Object{
      {"bomFormat", "CycloneDX"},
      {"specVersion", "1.5"},
      {"serialNumber", serial_number(parts.library_sha256)},
      {"version", 1},
      {"metadata", Json::Object{{"tools", tools(manifest)}, {"component", library}}},
      {"components", Json::Array{model_component(manifest, parts), runtime_component(manifest)}},
      {"dependencies", Json::Array{Json::Object{{"ref", "library"},
                                                {"dependsOn", Json::Array{"model", "runtime"}}}}}};
}

}  // namespace tw
