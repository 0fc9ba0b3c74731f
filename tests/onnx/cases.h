// The cases of the suite as export.py writes them, and the two lists of those that do not count.
#pragma once
#include <array>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "support/diag.h"

namespace tw::onnx_suite {

// The model as it is; every input dim a symbol; inputs as initializers
enum class Mode : uint8_t { fixed, symbolic, constant };
inline constexpr std::array<Mode, 3> kModes = {Mode::fixed, Mode::symbolic, Mode::constant};
const char* mode_name(Mode mode);                               // "static", "symbolic", "constant"
Expected<std::set<Mode>> parse_modes(const std::string& text);  // "static,symbolic"

struct Case {
  std::string id;  // "node/test_abs"
  std::string folder;
  double rtol = 1e-3, atol = 1e-7;
  std::map<std::string, int64_t> dims = {};  // how many tensors its sequences and optionals hold
  std::set<std::string> empty = {};          // free dims that its data have as 0
  std::string kind() const { return id.substr(0, id.find('/')); }
  // The file; perhaps not there: the mode means nothing for this case
  std::string model(Mode mode) const;
};

// KIND/CASE below the folder, sorted by id.
Expected<std::vector<Case>> find_cases(const std::string& folder);

bool glob_matches(const std::string& glob, const std::string& text);

// Lines "GLOB: REASON" or "GLOB MODE,MODE: REASON"; '#' begins a comment.
class Excluded {
 public:
  static Expected<Excluded> read(const std::string& path);
  bool has(const std::string& id, Mode mode) const;
  // Globs that match none of the cases: errors in the file.
  std::vector<std::string> unused(const std::vector<Case>& cases) const;

 private:
  struct Line {
    std::string glob;
    std::set<Mode> modes;
  };
  std::vector<Line> lines_;
};

// Lines "ID MODE,MODE: REASON", sorted: what does not pass yet, and what its last failure was.
struct NotYet {
  struct Entry {
    std::set<Mode> modes;
    std::string reason;
  };
  std::map<std::string, Entry> cases;
  static Expected<NotYet> read(const std::string& path);
  bool has(const std::string& id, Mode mode) const;
  Error write(const std::string& path) const;
};

}  // namespace tw::onnx_suite
