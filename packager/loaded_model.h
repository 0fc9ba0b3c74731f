// A compiled model in this process: dlopen, and its query function by TW_QUERY_SYMBOL, so that no
// name need be known.
#pragma once
#include <string>

#include "packager/integrity.h"
#include "runtime/tilewright.h"
#include "support/diag.h"

namespace tw {

class LoadedModel {
 public:
  // Errors: no file, not a library for this machine, no tw_query, another ABI version,
  // a CPU that lacks features, bytes that are not those that were written.
  static Expected<LoadedModel> open(const std::string& path,
                                    Integrity integrity = Integrity::check);
  LoadedModel(LoadedModel&& other) noexcept;
  LoadedModel& operator=(LoadedModel&&) = delete;
  ~LoadedModel();  // destroy every context before

  const tw_api& api() const { return *api_; }

 private:
  LoadedModel(void* handle, const tw_api* api) : handle_(handle), api_(api) {}
  void* handle_;
  const tw_api* api_;
};

}  // namespace tw
