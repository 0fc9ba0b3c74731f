#include "ir/graph/strings.h"

#include <mutex>
#include <set>

namespace tw {

const char* interned(std::string_view text) {
  static std::mutex mutex;
  static std::set<std::string, std::less<>> all;
  const std::lock_guard lock(mutex);
  const auto found = all.find(text);
  return (found == all.end() ? all.emplace(text).first : found)->c_str();
}

Tensor string_tensor(std::vector<int64_t> shape, const std::vector<std::string>& texts) {
  Tensor tensor = Tensor::zeros(DType::string, std::move(shape));
  TW_CHECK(tensor.size() == std::ssize(texts), "{0} strings for {1} elements", texts.size(),
           tensor.size());
  for (size_t i = 0; i < texts.size(); ++i) tensor.as<const char*>()[i] = interned(texts[i]);
  return tensor;
}

std::string_view string_at(const Tensor& tensor, int64_t flat) {
  const char* text = tensor.as<const char*>()[static_cast<size_t>(flat)];
  return text ? text : "";
}

void intern_strings(Tensor& tensor) {
  if (tensor.dtype != DType::string) return;
  for (const char*& text : tensor.as<const char*>()) text = interned(text ? text : "");
}

std::vector<std::string> unpacked_strings(std::span<const std::byte> packed) {
  std::vector<std::string> texts;
  std::string_view rest(reinterpret_cast<const char*>(packed.data()), packed.size());
  for (size_t end; (end = rest.find('\0')) != std::string_view::npos; rest.remove_prefix(end + 1))
    texts.emplace_back(rest.substr(0, end));
  return texts;
}

}  // namespace tw
