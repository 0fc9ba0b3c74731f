#include "driver/compare/reduce.h"

#include <llvm/Support/FileSystem.h>
#include <llvm/Support/MemoryBuffer.h>
#include <llvm/Support/Program.h>
#include <llvm/Support/raw_ostream.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>

#include "frontend/frontend.h"
#include "support/json.h"
#include "support/temporary_folder.h"

namespace tw {
namespace {

// Puts # in place of numbers and lists of numbers, which vary from part to part. Names, operators
// and words stay.
std::string without_numbers(const std::string& text) {
  std::string out;
  for (const char c : text) {
    const bool digit = c >= '0' && c <= '9';
    if (!digit) out += c;
    else if (!out.ends_with('#')) out += '#';
    for (const char* twice : {"#.#", "#, #", "#x#", "-#"})
      if (out.ends_with(twice))
        out.replace(out.size() - std::strlen(twice), std::string::npos, "#");
  }
  return out;
}

}  // namespace

std::string failure_of(const std::string& json) {
  Expected<Json> said = parse_json(json, "output");
  if (!said) return llvm::consumeError(said.takeError()), "";
  if (const auto& errors = (*said)["error"].items(); !errors.empty())
    return errors[0]["code"].text_or_empty() + ": " +
           without_numbers(errors[0]["message"].text_or_empty());
  bool problem = false, not_a_number = false;
  std::string text;
  for (const Json& output : (*said)["outputs"].items()) {
    const Json& difference = output["difference"];
    if (const bool* ok = difference["ok"].boolean(); !ok || *ok) continue;
    if (const std::string words = difference["problem"].text_or_empty(); !words.empty())
      problem = true, text = without_numbers(words);
    // One side has no finite number there.
    not_a_number |= !std::isfinite(difference["max_abs"].number_or(HUGE_VAL));
  }
  return problem        ? text
         : not_a_number ? "no number where there should be one, or the other way round"
                        : "values are off";
}

namespace {

class Reducer {
 public:
  Reducer(const ReduceRequest& request, const CutModel& model, const std::string& folder)
      : request_(request),
        model_(model),
        program_(llvm::sys::fs::getMainExecutable("", reinterpret_cast<void*>(&reduce_model))),
        folder_(folder) {}

  // How a model of these nodes fails; nodes that make no model do not fail.
  Expected<Failure> failure(const std::vector<size_t>& nodes) {
    const std::optional<std::string> bytes = model_.cut(nodes);
    if (!bytes) return Failure{};
    const std::string model = folder_ + "/part.onnx", library = folder_ + "/part.so";
    TW_TRY(write(model, *bytes));
    for (const auto& [step, command] :
         {std::pair("compile",
                    std::vector{program_, std::string("compile"), model, std::string("-t"),
                                request_.target, std::string("-o"), library}),
          {"verify", {program_, "verify", library, model}}})
      if (const int status = run(command); status != 0)
        return Failure{step, status, status < 0 ? "" : failure_of(said())};
    return Failure{};
  }

  // Leaves out ever smaller runs of nodes as long as the rest fails in the same way.
  Expected<std::vector<size_t>> reduce(std::vector<size_t> nodes, const Failure& wanted,
                                       const std::function<void(size_t)>& on_smaller) {
    for (size_t part = (nodes.size() + 1) / 2; part > 0;) {
      bool smaller = false;
      for (size_t first = 0; first < nodes.size() && nodes.size() > 1;) {
        std::vector<size_t> rest = nodes;
        const size_t count = std::min(part, nodes.size() - first);
        rest.erase(rest.begin() + static_cast<std::ptrdiff_t>(first),
                   rest.begin() + static_cast<std::ptrdiff_t>(first + count));
        bool fails = false;
        if (!rest.empty()) {
          TW_ASSIGN(const Failure found, failure(rest));
          fails = found == wanted;
        }
        if (!fails) {
          first += count;
          continue;
        }
        nodes = std::move(rest);
        smaller = true;
        if (on_smaller) on_smaller(nodes.size());
      }
      if (part == 1 && !smaller) break;
      part = smaller ? std::min(part, (nodes.size() + 1) / 2) : part / 2;
    }
    return nodes;
  }

  static Error write(const std::string& path, const std::string& bytes) {
    std::error_code code;
    llvm::raw_fd_ostream out(path, code);
    if (!code) out << bytes;
    out.close();
    if (code || out.has_error()) {
      out.clear_error();
      return make_error(DiagCode::io, "cannot write '{0}'", path);
    }
    return Error::success();
  }

 private:
  int run(const std::vector<std::string>& command) const {
    std::vector<llvm::StringRef> words(command.begin(), command.end());
    words.push_back("--json");
    const std::string out = folder_ + "/said.json";
    (void)llvm::sys::fs::remove(out);  // a shorter text would leave the old end
    const std::optional<llvm::StringRef> streams[] = {llvm::StringRef(), llvm::StringRef(out),
                                                      llvm::StringRef()};
    return llvm::sys::ExecuteAndWait(program_, words, std::nullopt, streams,
                                     static_cast<unsigned>(request_.seconds));
  }
  std::string said() const {
    auto text = llvm::MemoryBuffer::getFile(folder_ + "/said.json");
    return text ? (*text)->getBuffer().str() : "";
  }

  const ReduceRequest& request_;
  const CutModel& model_;
  std::string program_, folder_;
};

}  // namespace

Expected<ReducedModel> reduce_model(const ReduceRequest& request,
                                    const std::function<void(size_t nodes)>& on_smaller) {
  TW_ASSIGN(const CutModel model, CutModel::open(request.model, request.dims));
  TW_ASSIGN(const TemporaryFolder folder, TemporaryFolder::create());
  Reducer reducer(request, model, folder.path());
  std::vector<size_t> nodes(model.node_count());
  std::iota(nodes.begin(), nodes.end(), size_t{0});
  TW_ASSIGN(const Failure wanted, reducer.failure(nodes));
  if (wanted.step.empty())
    return make_error(DiagCode::invalid_argument,
                      "nothing fails: '{0}' compiles, and verify finds no difference",
                      request.model);
  TW_ASSIGN(nodes, reducer.reduce(nodes, wanted, on_smaller));
  TW_TRY(Reducer::write(request.output, *model.cut(nodes)));
  return ReducedModel{wanted, nodes.size(), model.node_count(), model.operators(nodes)};
}

}  // namespace tw
