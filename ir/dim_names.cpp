#include "ir/dim_names.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <set>

#include "support/most_like.h"

namespace tw {
namespace {

bool is_word(std::string_view name) {
  return std::ranges::all_of(name, [](unsigned char c) {
    return std::isalnum(c) || c == '_' || c == '.' || c == '[' || c == ']' || c >= 0x80;
  });
}

std::string as_word(const std::string& name) { return is_word(name) ? name : "'" + name + "'"; }

struct NamedDim {
  std::string name;
  std::vector<std::string> places;  // "x[0]"
};

std::vector<NamedDim> free_dims(const std::vector<TensorSpec>& inputs) {
  std::vector<NamedDim> list;
  for (const TensorSpec& input : inputs)
    for (size_t axis = 0; axis < input.dims.size(); ++axis) {
      const Expr& dim = input.dims[axis];
      const std::string* name = dim.defined() ? var_name(dim) : nullptr;
      if (!name) continue;
      auto known = std::ranges::find(list, *name, &NamedDim::name);
      if (known == list.end()) known = list.insert(list.end(), {*name, {}});
      known->places.push_back(dim_at(input.name, axis));
    }
  return list;
}

// The dimension at INPUT[AXIS]; "" where the text does not have that form or names no input
Expected<std::string> dim_by_place(std::string_view text, const std::vector<TensorSpec>& inputs) {
  const size_t open = text.rfind('[');
  if (!text.ends_with("]") || open == std::string_view::npos) return std::string();
  const auto input = std::ranges::find(inputs, text.substr(0, open), [](const TensorSpec& spec) {
    return std::string_view(spec.name);
  });
  if (input == inputs.end()) return std::string();
  const std::string_view digits = text.substr(open + 1, text.size() - open - 2);
  size_t axis = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), axis);
  if (error != std::errc() || end != digits.data() + digits.size() || axis >= input->dims.size())
    return make_error(
        DiagCode::invalid_argument, "there is no dimension '{0}': input '{1}' has {2}", text,
        input->name,
        input->dims.empty()
            ? "none"
            : dim_at(input->name, 0) + (input->dims.size() > 1
                                            ? " to " + dim_at(input->name, input->dims.size() - 1)
                                            : ""));
  const Expr& dim = input->dims[axis];
  if (!dim.defined())
    return make_error(DiagCode::invalid_argument,
                      "the dimension '{0}' follows from others: it is not free", text);
  const std::string* name = var_name(dim);
  if (!name)
    return make_error(DiagCode::invalid_argument, "the dimension '{0}' is {1}: it is not free",
                      text, to_string(dim));
  return *name;
}

}  // namespace

std::string symbol_name(const SymbolNames& names, std::string_view symbol) {
  const auto found = names.find(symbol);
  return found == names.end() ? interface_name(symbol) : found->second;
}

std::string to_string(const Expr& e, const SymbolNames& names) {
  if (const std::string* name = var_name(e)) return symbol_name(names, *name);
  return to_string(rewrite(e, [&](const Expr& part) {
    const std::string* name = var_name(part);
    return name ? var(as_word(symbol_name(names, *name))) : Expr();
  }));
}

std::string with_names(std::string_view text, const SymbolNames& names) {
  const auto inner = [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '.';
  };
  std::string out;
  for (size_t i = 0, end = 0; i < text.size(); i = end) {
    for (end = i; end < text.size() && inner(text[end]);) ++end;
    while (end > i && text[end - 1] == '.') --end;  // the full stop of a sentence
    if (end == i) {
      out += text[end++];
      continue;
    }
    const auto found = names.find(text.substr(i, end - i));
    out += found == names.end() ? std::string(text.substr(i, end - i)) : as_word(found->second);
  }
  return out;
}

Error with_names(Error error, const SymbolNames& names) {
  return llvm::handleErrors(std::move(error), [&](std::unique_ptr<DiagError> own) {
    for (Diag& diag : own->diags) {
      diag.message = with_names(diag.message, names);
      for (std::string& note : diag.notes) note = with_names(note, names);
    }
    return Error(std::move(own));  // keeps the error's type
  });
}

std::string identifier(std::string_view text) {
  if (text.ends_with("]")) text.remove_suffix(1);
  std::string out;
  for (const char c : text) {
    const bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_',
               digit = c >= '0' && c <= '9';
    if (digit && out.empty()) out += '_';
    out += letter || digit ? c : '_';
  }
  return out.empty() ? "_" : out;
}

std::string dim_flag(const std::string& name) {
  const bool plain = std::ranges::all_of(
      name, [](unsigned char c) { return std::isalnum(c) || c == '_' || c == '.'; });
  return plain ? "--dim " + name + "=N" : "--dim '" + name + "=N'";
}

std::string dim_at(std::string_view input, size_t axis) {
  return std::string(input) + "[" + std::to_string(axis) + "]";
}

Expected<std::string> find_dim(std::string_view text, const std::vector<TensorSpec>& inputs) {
  const std::vector<NamedDim> dims = free_dims(inputs);
  std::vector<std::string> alike;
  for (const NamedDim& dim : dims) {
    if (dim.name == text) return dim.name;
    if (identifier(dim.name) == text) alike.push_back(dim.name);
  }
  TW_ASSIGN(std::string found, dim_by_place(text, inputs));
  if (found.empty() && alike.size() == 1) found = alike.front();
  if (!found.empty()) return found;
  std::vector<std::string> names, notes{free_dims_text(inputs)};
  for (const NamedDim& dim : dims) names.push_back(dim.name);
  if (const std::string near = did_you_mean(text, names); !near.empty() && alike.empty())
    notes.insert(notes.begin(), near);
  return make_error(Diag{DiagCode::invalid_argument,
                         llvm::formatv(alike.empty() ? "the model has no free dimension '{0}'"
                                                     : "'{0}' may be any of several dimensions",
                                       text)
                             .str(),
                         {},
                         std::move(notes)});
}

std::string free_dims_text(const std::vector<TensorSpec>& inputs) {
  std::string text;
  for (const NamedDim& dim : free_dims(inputs)) {
    text += (text.empty() ? "free dimensions: " : ", ") + dim.name;
    if (dim.places.size() == 1 && dim.places.front() == dim.name) continue;
    for (size_t i = 0; i < dim.places.size(); ++i) text += (i ? ", " : " (") + dim.places[i];
    text += ")";
  }
  return text.empty() ? "no dimension of the inputs is free" : text;
}

}  // namespace tw
