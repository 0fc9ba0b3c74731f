// A single kernel as the bytes of a shared library, for tests that call it.
#pragma once
#include <doctest/doctest.h>

#include <string>

#include "backends/backend.h"
#include "packager/link.h"
#include "runtime/embedded.h"

namespace tw {

inline std::string linked_kernel(const Kernel& kernel, const Target& target) {
  auto backend = make_backend(target);
  REQUIRE_MESSAGE(bool(backend), error_text(backend.takeError()));
  Expected<std::string> object = (*backend)->compile_kernel(kernel);
  REQUIRE_MESSAGE(bool(object), error_text(object.takeError()));
  LinkRequest request;
  request.objects = {std::move(*object)};
  request.fallback = {std::string(runtime_object(target.triple))};
  request.exports = {kernel.name};
  Expected<LinkedImage> image = link_shared(request);
  REQUIRE_MESSAGE(bool(image), error_text(image.takeError()));
  return std::move(image->bytes);
}

}  // namespace tw
