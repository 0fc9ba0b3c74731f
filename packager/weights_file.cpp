#include "packager/weights_file.h"

#include <llvm/Support/BLAKE3.h>

#include <algorithm>
#include <cstring>
#include <filesystem>

#include "packager/data_object.h"
#include "runtime/weights.h"
#include "support/file_pages.h"
#include "support/json.h"
#include "support/regular_file.h"

namespace tw {
namespace {

constexpr uint64_t kHashedAtOnce = 64 << 20;  // so that less of a mapped file is in memory at once

void hash_of(llvm::StringRef bytes, uint8_t (&hash)[32]) {
  llvm::BLAKE3 hasher;
  for (uint64_t at = 0; at < bytes.size(); at += kHashedAtOnce)
    hasher.update(bytes.substr(at, kHashedAtOnce));
  const llvm::BLAKE3Result<> result = hasher.final();
  std::memcpy(hash, result.data(), sizeof hash);
}

Error refused(const std::string& file, const std::string& library, const std::string& why) {
  return make_error({DiagCode::invalid_argument,
                     "the weights '" + file + "' of '" + library + "' " + why,
                     {},
                     {"copy both anew, or compile the model again"}});
}

}  // namespace

Expected<WeightsFile> WeightsFile::create(const std::string& path, uint64_t weight_bytes) {
  const uint64_t bytes = std::max<uint64_t>(weight_bytes, 64);
  const uint64_t start = kWeightsAlignment;
  if (bytes > uint64_t{INT64_MAX} - start)
    return make_error(DiagCode::limit, "'{0}': too many bytes of weights", path);
  TW_ASSIGN(OutputFile file, OutputFile::create(path, start + bytes));
  return WeightsFile(std::move(file), start, bytes);
}

Error WeightsFile::fill(uint64_t offset, uint64_t size,
                        llvm::function_ref<Error(std::span<std::byte>)> body) {
  TW_CHECK(offset <= bytes_ && size <= bytes_ - offset, "a piece lies outside of the weights");
  return file_.fill(start_ + offset, size, body);
}

Expected<std::string> WeightsFile::finish() {
  tw_weights_header header = {};
  std::memcpy(header.magic, TW_WEIGHTS_MAGIC, sizeof header.magic);
  header.version = 1;
  header.offset = static_cast<uint32_t>(start_);
  header.bytes = bytes_;
  {
    TW_ASSIGN(const std::unique_ptr<llvm::MemoryBuffer> written, file_.contents());
    const PagesLeave leaving(std::as_bytes(std::span(written->getBuffer())));
    hash_of(written->getBuffer().substr(start_), header.hash);
  }
  std::string text(reinterpret_cast<const char*>(&header), sizeof header);
  TW_TRY(file_.write(0, text));
  return text;
}

Error check_weights_file(const std::string& library, const std::string& manifest,
                         std::string_view header, Integrity integrity) {
  TW_ASSIGN(const Json json, parse_json(manifest, library));
  const std::string name = json["weights_file"].text_or_empty();
  if (name.empty()) return Error::success();
  tw_weights_header wanted;
  if (header.size() < sizeof wanted) return refused(name, library, "are not described in it");
  std::memcpy(&wanted, header.data(), sizeof wanted);
  const std::string file = (std::filesystem::path(library).parent_path() / name).string();
  auto mapped = regular_file(file);
  if (!mapped) return refused(file, library, "cannot be read: " + error_text(mapped.takeError()));
  const llvm::StringRef bytes = (*mapped)->getBuffer();
  if (!bytes.starts_with(TW_WEIGHTS_MAGIC)) return refused(file, library, "are no file of weights");
  if (!bytes.starts_with({header.data(), sizeof wanted}))
    return refused(file, library, "are of another model, or of another compile of it");
  if (wanted.offset > bytes.size() || bytes.size() - wanted.offset != wanted.bytes)
    return refused(file, library, "are truncated, or longer than they were written");
  uint8_t hash[32];
  if (integrity == Integrity::check) {
    hash_of(bytes.substr(wanted.offset), hash);
    if (std::memcmp(hash, wanted.hash, sizeof hash) != 0)
      return refused(file, library, "are damaged: their bytes are not those that were written");
  }
  return Error::success();
}

}  // namespace tw
