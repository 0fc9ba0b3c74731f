#include "support/hash.h"

#include <llvm/ADT/StringExtras.h>
#include <llvm/Support/SHA256.h>

#include <array>
#include <cstring>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace tw {
namespace {

using Digest = std::array<uint8_t, 32>;

#if defined(__x86_64__)
constexpr bool kHasInstructions = true;

constexpr uint32_t kRounds[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

bool has_instructions() {
  return __builtin_cpu_supports("sha") && __builtin_cpu_supports("sse4.1") &&
         __builtin_cpu_supports("ssse3");
}

// The compression function with the SHA extensions. They keep the state as (f e b a) and (h g d c),
// lowest word first.
__attribute__((target("sha,sse4.1,ssse3"))) void compress(__m128i state[2], const char* block,
                                                          size_t count) {
  const __m128i big_endian = _mm_set_epi64x(0x0c0d0e0f08090a0b, 0x0405060700010203);
  for (; count > 0; --count, block += 64) {
    __m128i abef = state[0], cdgh = state[1], w[4];
    for (int i = 0; i < 4; ++i)
      w[i] = _mm_shuffle_epi8(_mm_loadu_si128(reinterpret_cast<const __m128i*>(block) + i),
                              big_endian);
    for (int i = 0; i < 16; ++i) {
      __m128i& now = w[i % 4];
      __m128i sum = _mm_add_epi32(now,
                                  _mm_loadu_si128(reinterpret_cast<const __m128i*>(kRounds) + i));
      cdgh = _mm_sha256rnds2_epu32(cdgh, abef, sum);
      abef = _mm_sha256rnds2_epu32(abef, cdgh, _mm_shuffle_epi32(sum, 0x0e));
      if (i >= 12) continue;
      const __m128i last = w[(i + 3) % 4];  // words 4 i + 12 to 4 i + 15
      now = _mm_add_epi32(_mm_sha256msg1_epu32(now, w[(i + 1) % 4]),
                          _mm_alignr_epi8(last, w[(i + 2) % 4], 4));
      now = _mm_sha256msg2_epu32(now, last);
    }
    state[0] = _mm_add_epi32(state[0], abef);
    state[1] = _mm_add_epi32(state[1], cdgh);
  }
}

__attribute__((target("sha,sse4.1,ssse3"))) Digest fast_digest(std::string_view bytes) {
  __m128i state[2] = {
      _mm_set_epi32(0x6a09e667, static_cast<int>(0xbb67ae85), 0x510e527f,
                    static_cast<int>(0x9b05688c)),
      _mm_set_epi32(0x3c6ef372, static_cast<int>(0xa54ff53a), 0x1f83d9ab, 0x5be0cd19)};
  const size_t whole = bytes.size() / 64, rest = bytes.size() % 64;
  compress(state, bytes.data(), whole);
  char tail[128] = {};  // the remaining bytes, a one bit, zeros, the length in bits
  if (rest) std::memcpy(tail, bytes.data() + whole * 64, rest);
  tail[rest] = static_cast<char>(0x80);
  const size_t blocks = rest < 56 ? 1 : 2;
  for (size_t i = 0; i < 8; ++i)
    tail[blocks * 64 - 1 - i] = static_cast<char>(uint64_t{bytes.size()} * 8 >> (8 * i));
  compress(state, tail, blocks);
  const int words[8] = {_mm_extract_epi32(state[0], 3), _mm_extract_epi32(state[0], 2),
                        _mm_extract_epi32(state[1], 3), _mm_extract_epi32(state[1], 2),
                        _mm_extract_epi32(state[0], 1), _mm_extract_epi32(state[0], 0),
                        _mm_extract_epi32(state[1], 1), _mm_extract_epi32(state[1], 0)};
  Digest digest;
  for (size_t i = 0; i < 32; ++i)
    digest[i] = static_cast<uint8_t>(static_cast<uint32_t>(words[i / 4]) >> (24 - 8 * (i % 4)));
  return digest;
}
#else
constexpr bool kHasInstructions = false;
bool has_instructions() { return false; }
Digest fast_digest(std::string_view) { return {}; }
#endif
}  // namespace

std::string sha256_hex(std::string_view bytes, bool portable) {
  if (kHasInstructions && !portable && has_instructions()) {
    const Digest digest = fast_digest(bytes);
    return llvm::toHex(llvm::ArrayRef<uint8_t>(digest), /*LowerCase=*/true);
  }
  llvm::SHA256 hasher;
  hasher.update(llvm::StringRef(bytes.data(), bytes.size()));
  auto digest = hasher.final();
  return llvm::toHex(llvm::ArrayRef<uint8_t>(digest.data(), digest.size()), /*LowerCase=*/true);
}
}  // namespace tw
