#include "packager/reserved_names.h"

#include <algorithm>
#include <cctype>
#include <string>

namespace tw {
namespace {

// Keywords of C and C++, from C89 and C++98 to C23 and C++26, and the spellings of operators.
constexpr std::string_view kKeywords =
    " alignas alignof and and_eq asm auto bitand bitor bool break case catch char char16_t"
    " char32_t char8_t class co_await co_return co_yield compl concept const const_cast"
    " consteval constexpr constinit continue contract_assert decltype default delete do double"
    " dynamic_cast else enum explicit export extern false float for fortran friend goto if"
    " inline int long mutable namespace new noexcept not not_eq nullptr operator or or_eq"
    " private protected public register reinterpret_cast requires restrict return short signed"
    " sizeof static static_assert static_cast struct switch template this thread_local throw"
    " true try typedef typeid typename typeof typeof_unqual union unsigned using virtual void"
    " volatile wchar_t while xor xor_eq ";

// Macros with small letters, of compilers and of the C library's headers, that stand for something.
// Programs know many of them as members of structs.
constexpr std::string_view kMacros =
    " AF_DECnet L_ctermid L_cuserid L_tmpnam PF_DECnet P_tmpdir basename complex d_fileno"
    " d_ino environ errno f_fsid h_addr h_errno i386 imaginary linux"
    " math_errhandling mips msg_cbytes no_argument noreturn optional_argument pascal"
    " required_argument s6_addr s6_addr16 s6_addr32 s_addr s_host s_imp s_impno s_lh s_net"
    " sa_handler sa_restorer sa_sigaction sched_priority sigev_notify_attributes"
    " sigev_notify_function sigmask small sparc st_atime st_birthtime st_ctime st_mtime stderr"
    " stdin stdout sun unix unreachable ut_addr ut_name ut_time ut_xtime vax ";

// Beginnings of further macros
constexpr std::string_view kMacroFamilies[] = {"M_",   "PRI",     "SCN", "SHT_",
                                               "SYS_", "atomic_", "si_"};

// Types of the header. C++ forbids a member's name that has had another meaning in its struct.
constexpr std::string_view kTypes =
    " int16_t int32_t int64_t int8_t uint16_t uint32_t uint64_t uint8_t ";

bool has_word(std::string_view words, std::string_view name) {
  return words.find(" " + std::string(name) + " ") != std::string_view::npos;
}

bool is_capital(char c) { return std::isupper(static_cast<unsigned char>(c)) != 0; }

// Macros are in capitals by custom. "X" is no macro of any header, and models often have an input
// of that name.
bool is_in_capitals(std::string_view name) {
  const auto small = [](unsigned char c) { return std::islower(c) != 0; };
  return std::ranges::none_of(name, small) && std::ranges::any_of(name, is_capital) &&
         (name.size() > 1 || name == "I");
}

}  // namespace

bool is_reserved_name(std::string_view name) {
  const bool of_compiler = name.size() > 1 && name[0] == '_' &&
                           (name[1] == '_' || is_capital(name[1]));
  return of_compiler || is_in_capitals(name) || has_word(kKeywords, name) ||
         has_word(kMacros, name) || has_word(kTypes, name) ||
         std::ranges::any_of(kMacroFamilies,
                             [&](std::string_view family) { return name.starts_with(family); });
}

}  // namespace tw
