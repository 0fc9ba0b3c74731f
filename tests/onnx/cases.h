// The cases of the suite as export.py writes them, and two lists: cases left out, and cases that do
// not pass yet.
#pragma once
#include <array>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "support/diag.h"

namespace tw::onnx_suite {

// fixed: the model as it is; symbolic: each input dim is a symbol; constant: inputs are
// initializers
enum class Mode : uint8_t { fixed, symbolic, constant };
inline constexpr std::array<Mode, 3> kModes = {Mode::fixed, Mode::symbolic, Mode::constant};
const char* mode_name(Mode mode);                               // "static", "symbolic", "constant"
Expected<std::set<Mode>> parse_modes(const std::string& text);  // "static,symbolic"

struct Case {
  std::string id;  // "node/test_abs"
  std::string folder;
  double rtol = 1e-3, atol = 1e-7;
  std::map<std::string, int64_t> dims = {};  // size of each sequence and optional
  std::set<std::string> empty = {};          // free dims that are 0 in the data
  std::string kind() const { return id.substr(0, id.find('/')); }
  // Returns the path of the mode's model. There is no such file if the mode means nothing for the
  // case.
  std::string model(Mode mode) const;
};

// Returns the cases in the folders KIND/CASE below `folder`, sorted by id.
Expected<std::vector<Case>> find_cases(const std::string& folder);

bool glob_matches(const std::string& glob, const std::string& text);

// A list with lines "GLOB: REASON" or "GLOB MODE,MODE: REASON"; '#' begins a comment.
class Excluded {
 public:
  static Expected<Excluded> read(const std::string& path);
  bool has(const std::string& id, Mode mode) const;
  // Returns the globs that match no case: these are errors in the file.
  std::vector<std::string> unused(const std::vector<Case>& cases) const;

 private:
  struct Line {
    std::string glob;
    std::set<Mode> modes;
  };
  std::vector<Line> lines_;
};

// Cases that do not pass yet, with the reason of the last failure. The file has sorted lines "ID
// MODE,MODE: REASON".
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
