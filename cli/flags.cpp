#include "cli/flags.h"

#include <CLI/CLI.hpp>

#include <charconv>
#include <cstdlib>
#include <limits>

namespace tw {

CLI::Option& Flags::grouped(CLI::Option* option) const {
  return group_.empty() ? *option : *option->group(group_);
}

void Flags::argument(const std::string& name, std::string& value, const std::string& help,
                     bool required) {
  app_.add_option(name, value, help)->required(required)->type_name("");
}

void Flags::arguments(const std::string& name, std::vector<std::string>& values,
                      const std::string& help) {
  app_.add_option(name, values, help)->type_name("");
}

void Flags::text(const std::string& names, std::string& value, const std::string& kind,
                 const std::string& help) {
  grouped(app_.add_option(names, value, help)).type_name(kind);
}

void Flags::repeated(const std::string& names, std::vector<std::string>& values,
                     const std::string& kind, const std::string& help) {
  grouped(app_.add_option(names, values, help)).type_name(kind)->allow_extra_args(false);
}

void Flags::comma_list(const std::string& names, std::vector<std::string>& values,
                       const std::string& kind, const std::string& help) {
  grouped(app_.add_option(names, values, help))
      .type_name(kind)
      ->allow_extra_args(false)
      ->delimiter(',');
}

void Flags::integer(const std::string& names, int& value, const std::string& help, int at_least) {
  const int most = std::numeric_limits<int>::max();
  CLI::Validator range = CLI::Range(at_least, most);
  grouped(app_.add_option(names, value, help)).type_name("N")->check(range.description(""));
}

void Flags::optional_integer(const std::string& names, std::optional<int>& value,
                             const std::string& help, int at_least) {
  CLI::Validator range = CLI::Range(at_least, std::numeric_limits<int>::max());
  grouped(app_.add_option_function<int>(
              names, [&value](const int& v) { value = v; }, help))
      .type_name("N")
      ->check(range.description(""));
}

void Flags::number(const std::string& names, double& value, const std::string& kind,
                   const std::string& help) {
  grouped(app_.add_option(names, value, help)).type_name(kind)->check([](const std::string& text) {
    return std::strtod(text.c_str(), nullptr) >= 0 ? ""
                                                   : std::string("must not be negative: ") + text;
  });
}

void Flags::seed(const std::string& names, std::optional<uint64_t>& value,
                 const std::string& help) {
  grouped(app_.add_option_function<uint64_t>(
              names, [&value](const uint64_t& v) { value = v; }, help))
      .type_name("SEED");
}

void Flags::flag(const std::string& names, bool& value, const std::string& help) {
  grouped(app_.add_flag(names, value, help));
}

std::function<std::vector<GivenFlag>()> Flags::given() const {
  return [app = &app_] {
    std::vector<GivenFlag> flags;
    for (const CLI::Option* option : app->get_options())
      if (option->count() > 0) flags.push_back({option->get_name(), option->results()});
    return flags;
  };
}

std::function<CommandTree()> Flags::program() const {
  const CLI::App* root = &app_;
  while (root->get_parent()) root = root->get_parent();
  return [root] { return command_tree(*root); };
}

Error wrong_word(llvm::StringRef flag, llvm::StringRef word, llvm::StringRef words) {
  return make_error(DiagCode::invalid_argument, "{0} '{1}': one of {2}", flag, word, words);
}

void define_no_check(Flags& flags, bool& value) {
  flags.flag("--no-check", value,
             "Take a library as it is, without comparing its bytes with the hashes in it");
}

void declare(Flags& flags, InputSources& inputs) {
  flags.repeated("-i,--input", inputs.files, "NAME=FILE",
                 "An input from a .npy, .npz or ONNX .pb file, or from a .raw or .bin file of its "
                 "bytes alone; "
                 "NAME= may be left out when the model has one");
  flags.seed("--random", inputs.random,
             "Make up the inputs that no file gives: floats in [-1, 1), integers 0 or 1");
  flags.repeated(
      "--dim", inputs.dims, "NAME=N",
      "Bind a free dimension, where the inputs do not: batch=4, or by input and axis: x[3]=320");
}

}  // namespace tw
