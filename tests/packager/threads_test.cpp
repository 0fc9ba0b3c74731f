// The number of threads that a process may use: limits of control groups, read from a made-up tree.
#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>
#include <iterator>

#include "packager/loaded_library.h"
#include "packager/output_file.h"
#include "tests/packager/fake_artifact.h"

namespace {

const char* const kSource =
    "#include \"runtime/sys.c\"\n#include \"runtime/text.c\"\n#include \"runtime/threads.c\"\n"
    "#define API __attribute__((visibility(\"default\")))\n"
    "API int32_t quota(const char* root, const char* group, int v2, int32_t limit) { return "
    "group_quota(root, group, v2, limit); }\n"
    "API int controllers(const char* list) { return lists_cpu(list); }\n"
    "API int32_t usable(void) { return tw_usable_cpus(); }\n";

void put(const std::string& path, const std::string& text) {
  std::filesystem::create_directories(std::filesystem::path(path).parent_path());
  REQUIRE(!tw::write_file(path, text));
}

}  // namespace

TEST_CASE("control group limits cut the number of threads") {
  const ScratchDir dir;
  put(dir / "t.c", kSource);
  const CommandResult built = run_command("cd " + dir.path() +
                                          " && " TW_CLANG
                                          " -std=c11 -O1 -ffreestanding -fPIC -fvisibility=hidden "
                                          "-c t.c -I " TW_SOURCE_DIR);
  INFO(built.output);
  REQUIRE(built.status == 0);
  std::ifstream stream(dir / "t.o", std::ios::binary);
  tw::LinkRequest request;
  request.objects = {std::string(std::istreambuf_iterator<char>(stream), {})};
  request.exports = {"quota", "controllers", "usable"};
  auto image = tw::link_shared(request);
  if (!image) FAIL(tw::error_text(image.takeError()));
  auto library = tw::LoadedLibrary::load(*image);
  REQUIRE(bool(library));
  const auto quota = reinterpret_cast<int32_t (*)(const char*, const char*, int, int32_t)>(
      library->symbol("quota"));
  const auto controllers = reinterpret_cast<int (*)(const char*)>(library->symbol("controllers"));
  const std::string v2 = dir / "v2", v1 = dir / "v1";

  put(v2 + "/a/b/cpu.max", "250000 100000\n");
  put(v2 + "/a/cpu.max", "max 100000\n");
  put(v2 + "/low/cpu.max", "50000 100000\n");
  put(v2 + "/low/high/cpu.max", "800000 100000\n");
  put(v2 + "/odd/cpu.max", "what is this\n");
  CHECK(quota(v2.c_str(), "/a/b", 1, 16) == 2);  // 2.5, rounded down
  CHECK(quota(v2.c_str(), "/a/b", 1, 1) == 1);   // the affinity mask is smaller
  CHECK(quota(v2.c_str(), "/a", 1, 16) == 16);
  // The parent allows half a CPU, and there is always one thread.
  CHECK(quota(v2.c_str(), "/low/high", 1, 16) == 1);
  CHECK(quota(v2.c_str(), "/gone/away", 1, 16) == 16);
  CHECK(quota(v2.c_str(), "/odd", 1, 16) == 16);
  CHECK(quota(v2.c_str(), "/", 1, 16) == 16);
  CHECK(quota(v2.c_str(), "", 1, 16) == 16);
  put(v2 + "/cpu.max", "300000 100000\n");  // a container sees its own group as the root
  CHECK(quota(v2.c_str(), "/seen/from/outside", 1, 16) == 3);
  CHECK(quota(v2.c_str(), std::string(2000, 'x').c_str(), 1, 16) == 3);

  put(v1 + "/g/cpu.cfs_quota_us", "400000\n");
  put(v1 + "/g/cpu.cfs_period_us", "100000\n");
  put(v1 + "/free/cpu.cfs_quota_us", "-1\n");
  put(v1 + "/free/cpu.cfs_period_us", "100000\n");
  CHECK(quota(v1.c_str(), "/g", 0, 16) == 4);
  CHECK(quota(v1.c_str(), "/free", 0, 16) == 16);

  CHECK(controllers("cpu,cpuacct:/x"));
  CHECK(controllers("cpuacct,cpu:/x"));
  CHECK(!controllers("cpuset,cpuacct:/cpu"));
  CHECK(!controllers("memory:/cpu:"));
  CHECK(reinterpret_cast<int32_t (*)()>(library->symbol("usable"))() >= 1);
}
