// Declares the flags of a sub-command. Hides the CLI11 library, whose headers only app.cpp,
// command_tree.cpp and flags.cpp see.
#pragma once
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "cli/command_tree.h"
#include "driver/run/dims.h"
#include "driver/run/tensors.h"
#include "support/diag.h"

namespace tw {

// A flag of a command line by its longest name, "--output", and its values.
struct GivenFlag {
  std::string name;
  std::vector<std::string> values;
};

// `names` are CLI11's: "-o,--output" for an option, "MODEL" for a positional argument (optional
// unless `required`). `kind` is what the help calls the value: "FILE". Referenced variables must
// outlive parsing and keep their default when the flag is absent.
class Flags {
 public:
  explicit Flags(CLI::App& app) : app_(app) {}
  // Sets the heading in the help for the flags that follow: "Schedules".
  void group(const std::string& heading) { group_ = heading; }
  void argument(const std::string& name, std::string& value, const std::string& help,
                bool required = true);
  // Any number of arguments, behind the others
  void arguments(const std::string& name, std::vector<std::string>& values,
                 const std::string& help);
  void text(const std::string& names, std::string& value, const std::string& kind,
            const std::string& help);
  void repeated(const std::string& names, std::vector<std::string>& values, const std::string& kind,
                const std::string& help);
  void comma_list(const std::string& names, std::vector<std::string>& values,
                  const std::string& kind, const std::string& help);
  // at_least: smaller values are usage errors
  void integer(const std::string& names, int& value, const std::string& help, int at_least = 0);
  // Negative values are usage errors.
  void number(const std::string& names, double& value, const std::string& kind,
              const std::string& help);
  void optional_integer(const std::string& names, std::optional<int>& value,
                        const std::string& help, int at_least = 0);
  void seed(const std::string& names, std::optional<uint64_t>& value, const std::string& help);
  void flag(const std::string& names, bool& value, const std::string& help);
  // The flags that a command line gave, in the order of their declaration; to be called after
  // parsing
  std::function<std::vector<GivenFlag>()> given() const;
  // All commands with their flags; to be called after all are declared
  std::function<CommandTree()> program() const;

 private:
  CLI::Option& grouped(CLI::Option* option) const;

  CLI::App& app_;
  std::string group_;  // "": the heading of --help
};

// The error of a word that a flag, or a command's first argument, does not know. `words` are what
// it accepts: "all, template, generated".
Error wrong_word(llvm::StringRef flag, llvm::StringRef word, llvm::StringRef words);

void define_no_check(Flags& flags, bool& value);  // --no-check of the commands that take a library

void declare(Flags& flags, InputSources& inputs);  // --input, --random, --dim

}  // namespace tw
