// Support functions as text, for the types that a program uses: tw_<what>_<type>, or
// tw_<what>_<type>_<from>.
#include <cctype>

#include "backends/opencl/words.h"
#include "support/diag.h"

namespace tw::opencl {
namespace {

bool starts(std::string_view text, std::string_view with) {
  return text.substr(0, with.size()) == with;
}
bool is_real(std::string_view type) { return starts(type, "float") || starts(type, "double"); }
bool is_vector(std::string_view type) { return type.back() >= '0' && type.back() <= '9'; }
bool is_unsigned(std::string_view type) { return type[0] == 'u'; }

std::string replaced(std::string text, std::string_view what, std::string_view with) {
  for (size_t at = 0; (at = text.find(what, at)) != std::string::npos; at += with.size())
    text.replace(at, what.size(), with);
  return text;
}

// Division never traps: a divisor of 0 acts as 1, and the smallest integer divided by -1 wraps.
std::string division(std::string_view what, std::string_view type) {
  const bool rest = what == "mod" || what == "floor_mod", floors = starts(what, "floor");
  if (is_unsigned(type))
    return std::string("T F(T a, T b) { return ") +
           (rest ? "b ? a % b : 0; }\n" : "b ? a / b : a; }\n");
  std::string body = "T F(T a, T b) {\n  if (b == 0) b = 1;\n";
  body += rest ? "  if (b == -1) return 0;\n" : "  if (b == -1) return (T)(0 - (U)a);\n";
  if (rest) {
    body += "  const T r = a % b;\n";
    return body + (floors ? "  return r != 0 && (r < 0) != (b < 0) ? r + b : r;\n}\n"
                          : "  return r;\n}\n");
  }
  body += "  const T q = a / b;\n";
  return body + (floors ? "  return a % b != 0 && (a < 0) != (b < 0) ? q - 1 : q;\n}\n"
                        : "  return q;\n}\n");
}

std::string shift(std::string_view what, std::string_view type) {
  const std::string inside = "b >= 0 && b < (T)(8 * sizeof(T))",
                    amount = is_unsigned(type) ? "b < (T)(8 * sizeof(T))" : inside;
  if (what == "shl") return "T F(T a, T b) { return " + amount + " ? (T)((U)a << b) : 0; }\n";
  if (is_unsigned(type)) return "T F(T a, T b) { return " + amount + " ? (T)(a >> b) : 0; }\n";
  return "T F(T a, T b) { return (T)(a >> (" + inside + " ? b : (T)(8 * sizeof(T) - 1))); }\n";
}

std::string integer_power(std::string_view type) {
  std::string body = "T F(T a, T b) {\n";
  if (!is_unsigned(type))
    body += "  if (b < 0) return a == 1 ? 1 : a == -1 ? (b % 2 ? -1 : 1) : 0;\n";
  return body +
         "  U result = 1, base = (U)a;\n  for (; b != 0; b >>= 1, base *= base)\n    if (b & 1) "
         "result *= base;\n  return (T)result;\n}\n";
}

constexpr const char* kToBfloat16 =
    "ushort tw_to_bfloat16(float x) {\n  const uint all = as_uint(x);\n  if (isnan(x)) return "
    "(ushort)((all >> 16) | 64);\n"
    "  return (ushort)((all + 0x7fff + ((all >> 16) & 1)) >> 16);\n}\n";
constexpr const char* kRoundHalf =
    "float tw_round_half(float x) {\n  ushort bits;\n  vstore_half_rte(x, 0, (__private "
    "half*)&bits);\n"
    "  return vload_half(0, (__private const half*)&bits);\n}\n";

// The function `what`, with T for its type, U for the unsigned type and F for its name
std::string pattern(std::string_view what, std::string_view type, std::string_view from) {
  if (what == "fma") {  // one rounding if the device has the instruction, else two
    const std::string fast = starts(type, "float") ? "FP_FAST_FMAF" : "FP_FAST_FMA";
    return "#ifdef " + fast +
           "\n#define F(a, b, c) fma(a, b, c)\n#else\n#define F(a, b, c) ((a) * (b) + "
           "(c))\n#endif\n";
  }
  if (what == "max" || what == "min") {
    const std::string wins = std::string("(a ") + (what == "max" ? ">" : "<") + " b)" +
                             (is_real(type) ? " | isnan(a)" : "");
    return "T F(T a, T b) { return " +
           (is_vector(type) ? "select(b, a, " + wins + ")" : wins + " ? a : b") + "; }\n";
  }
  if (what == "sign")
    return is_unsigned(type) ? "T F(T x) { return x != 0; }\n"
                             : "T F(T x) { return x > 0 ? (T)1 : x < 0 ? (T)-1 : x; }\n";
  if (what == "sat")
    return std::string("T F(S x) { return ") + (is_real(from)
                                                    ? "isnan(x) ? (T)0 : convert_T_sat_rtz(x); }\n"
                                                    : "convert_T_sat(x); }\n");
  if (what == "bits")
    return "T F(S x) { return isnan(x) ? 0 : x < 0 ? (T)convert_long_sat_rtz(x) : "
           "convert_T_sat_rtz(x); }\n";
  if (what == "root") return "T F(T x) { return x == -INFINITY ? INFINITY : sqrt(x + 0); }\n";
  if (what == "floor_mod" && is_real(type))
    return "T F(T a, T b) {\n  const T r = fmod(a, b);\n  return r != 0 && (r < 0) != (b < 0) ? r "
           "+ b : r;\n}\n";
  if (what == "shl" || what == "shr") return shift(what, type);
  if (what == "pow") return integer_power(type);
  TW_CHECK(what == "div" || what == "mod" || what == "floor_div" || what == "floor_mod",
           "no support function tw_{0}", what);
  return division(what, type);
}

std::string definition(const std::string& name) {
  if (name == "tw_to_bfloat16") return kToBfloat16;
  if (name == "tw_from_bfloat16")
    return "float tw_from_bfloat16(ushort x) { return as_float((uint)x << 16); }\n";
  if (name == "tw_round_bfloat16")
    return "float tw_round_bfloat16(float x) { return tw_from_bfloat16(tw_to_bfloat16(x)); }\n";
  if (name == "tw_round_half") return kRoundHalf;
  if (name == "tw_round_tf32")
    return "float tw_round_tf32(float x) {\n  return isnan(x) ? x : as_float((as_uint(x) + "
           "0x1000u) & "
           "0xffffe000u);\n}\n";
  const std::string_view rest = std::string_view(name).substr(3);
  size_t cut = starts(rest, "floor_") ? rest.find('_', 6) : rest.find('_');
  const std::string_view what = rest.substr(0, cut);
  std::string_view type = rest.substr(cut + 1), from;
  if (const size_t second = type.find('_'); second != std::string_view::npos)
    from = type.substr(second + 1), type = type.substr(0, second);
  std::string text = pattern(what, type, from);
  text = replaced(text, "convert_T", "convert_" + std::string(type));
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {  // T, U, S and F are whole words
    const auto word = [](char c) {
      return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || (c >= '0' && c <= '9');
    };
    const bool alone = (i == 0 || !word(text[i - 1])) &&
                       (i + 1 == text.size() || !word(text[i + 1]));
    if (alone && text[i] == 'T') out += type;
    else if (alone && text[i] == 'U') out += type == "long" || type == "ulong" ? "ulong" : "uint";
    else if (alone && text[i] == 'S') out += from;
    else if (alone && text[i] == 'F') out += name;
    else out += text[i];
  }
  return out;
}

void add(const std::string& text, std::set<std::string>& known, std::string& out) {
  for (size_t at = 0; (at = text.find("tw_", at)) != std::string::npos;) {
    const bool inside = at > 0 && (std::isalnum(static_cast<unsigned char>(text[at - 1])) ||
                                   text[at - 1] == '_');
    size_t end = at;
    while (end < text.size() &&
           (std::isalnum(static_cast<unsigned char>(text[end])) || text[end] == '_'))
      ++end;
    const std::string name = text.substr(at, end - at);
    at = end;
    const bool defined = at >= name.size() + 5 &&
                         text.compare(at - name.size() - 5, 5, "void ") == 0;
    if (inside || defined || end == text.size() || text[end] != '(' || !known.insert(name).second)
      continue;
    const std::string made = definition(name);
    add(made, known, out);
    out += made;
  }
}

}  // namespace

std::string support_functions(const std::string& text) {
  std::set<std::string> known;
  std::string out;
  add(text, known, out);
  return out;
}

}  // namespace tw::opencl
