#include "tests/fuzz/mutators.h"

#include <zlib.h>

#include <algorithm>
#include <cctype>
#include <cstdio>
#include <cstring>
#include <random>
#include <string>
#include <string_view>
#include <vector>

extern "C" size_t LLVMFuzzerMutate(uint8_t* data, size_t size, size_t most);

namespace tw::fuzz {
namespace {

using Random = std::minstd_rand;

size_t below(Random& random, size_t count) { return random() % count; }

struct Piece {
  size_t begin, end;
};

// Returns the numbers in a text, or the names.
std::vector<Piece> words(std::string_view text, bool numbers) {
  const auto in_word = [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '.' || c == '%';
  };
  std::vector<Piece> found;
  for (size_t at = 0; at < text.size();) {
    size_t end = at;
    while (end < text.size() && in_word(text[end])) ++end;
    if (end > at && bool(std::isdigit(static_cast<unsigned char>(text[at]))) == numbers)
      found.push_back({at, end});
    at = std::max(end, at + 1);
  }
  return found;
}

// Returns the lines with their ends. Strings of JSON escape these.
std::vector<Piece> lines(std::string_view text, std::string_view end) {
  std::vector<Piece> found;
  for (size_t at = 0; at < text.size();) {
    const size_t next = text.find(end, at);
    const size_t stop = next == std::string_view::npos ? text.size() : next + end.size();
    found.push_back({at, stop});
    at = stop;
  }
  return found;
}

std::string part(const std::string& text, const Piece& piece) {
  return text.substr(piece.begin, piece.end - piece.begin);
}

void replace(std::string& text, const Piece& piece, const std::string& by) {
  text.replace(piece.begin, piece.end - piece.begin, by);
}

std::string other_number(const std::string& number, Random& random) {
  constexpr const char* kNumbers[] = {"0",
                                      "1",
                                      "2",
                                      "3",
                                      "4",
                                      "7",
                                      "8",
                                      "16",
                                      "64",
                                      "1000",
                                      "65536",
                                      "2147483648",
                                      "4294967296",
                                      "1099511627776",
                                      "-1",
                                      "1e30",
                                      "2305843009213693952",
                                      "9223372036854775807"};
  const long long value = std::strtoll(number.c_str(), nullptr, 10);
  switch (below(random, 5)) {
    case 0: return kNumbers[below(random, std::size(kNumbers))];
    case 1: return std::to_string(static_cast<unsigned long long>(value) + 1);
    case 2: return std::to_string(value > 0 ? value - 1 : 1);
    case 3: return std::to_string(value / 2);
    default: return std::to_string(static_cast<unsigned long long>(value) * 2);
  }
}

void change_words(std::string& text, bool numbers, Random& random) {
  const std::vector<Piece> found = words(text, numbers);
  if (found.empty()) return;
  const Piece& to = found[below(random, found.size())];
  replace(text, to,
          numbers ? other_number(part(text, to), random)
                  : part(text, found[below(random, found.size())]));
}

void change_lines(std::string& text, Random& random) {
  const bool escaped = text.find("\\n") != std::string::npos && below(random, 4) > 0;
  const std::vector<Piece> found = lines(text, escaped ? "\\n" : "\n");
  if (found.size() < 2) return;
  const Piece &one = found[below(random, found.size())],
              &other = found[below(random, found.size())];
  const std::string line = part(text, one);
  switch (below(random, 3)) {
    case 0: return replace(text, one, "");
    case 1: return replace(text, {other.begin, other.begin}, line);
    default:
      replace(text, other, line);
      if (one.end <= other.begin) replace(text, one, "");
  }
}

uint32_t little(const uint8_t* at, int count) {
  uint32_t value = 0;
  for (int i = 0; i < count; ++i) value |= uint32_t{at[i]} << (8 * i);
  return value;
}

// Writes the checksum of a stored member into its entry of the directory.
void mend_checksum(uint8_t* data, size_t size, uint8_t* entry) {
  constexpr size_t kLocalSize = 30;
  const size_t local = little(entry + 42, 4), packed = little(entry + 20, 4);
  if (local > size || size - local < kLocalSize) return;
  const size_t start = local + kLocalSize + little(data + local + 26, 2) +
                       little(data + local + 28, 2);
  if (start > size || packed > size - start || little(entry + 10, 2) != 0) return;
  const auto sum = static_cast<uint32_t>(crc32_z(0, data + start, packed));
  std::memcpy(entry + 16, &sum, sizeof sum);
}

}  // namespace

size_t change_bytes(uint8_t* data, size_t size, size_t most, unsigned) {
  return LLVMFuzzerMutate(data, size, most);
}

size_t change_text(uint8_t* data, size_t size, size_t most, unsigned seed) {
  Random random(seed);
  if (below(random, 4) == 0) return LLVMFuzzerMutate(data, size, most);
  std::string text(reinterpret_cast<const char*>(data), size);
  for (size_t times = 1 + below(random, 3); times > 0; --times) switch (below(random, 3)) {
      case 0: change_words(text, true, random); break;
      case 1: change_words(text, false, random); break;
      default: change_lines(text, random);
    }
  text.resize(std::min(text.size(), most));
  std::memcpy(data, text.data(), text.size());
  return text.size();
}

size_t change_zip(uint8_t* data, size_t size, size_t most, unsigned seed) {
  constexpr uint8_t kEntryMagic[] = {'P', 'K', 1, 2};
  constexpr size_t kEntrySize = 46;
  size = LLVMFuzzerMutate(data, size, most);
  for (size_t at = 0; seed % 4 > 0 && at + kEntrySize <= size; ++at)
    if (std::equal(std::begin(kEntryMagic), std::end(kEntryMagic), data + at))
      mend_checksum(data, size, data + at);
  return size;
}

size_t change_tar(uint8_t* data, size_t size, size_t most, unsigned seed) {
  constexpr size_t kBlock = 512, kMagic = 257, kSum = 148, kSumDigits = 6;
  size = LLVMFuzzerMutate(data, size, most);
  for (size_t at = 0; seed % 4 > 0 && at + kBlock <= size; at += kBlock) {
    if (std::memcmp(data + at + kMagic, "ustar", 5) != 0) continue;
    std::memset(data + at + kSum, ' ', 8);
    unsigned sum = 0;
    for (size_t i = 0; i < kBlock; ++i) sum += data[at + i];
    char digits[kSumDigits + 1];
    std::snprintf(digits, sizeof digits, "%06o", sum % 01000000);
    std::memcpy(data + at + kSum, digits, sizeof digits);  // with the terminating zero
  }
  return size;
}

}  // namespace tw::fuzz
