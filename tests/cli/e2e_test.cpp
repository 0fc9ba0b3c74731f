// The main job through the command line, and bad input of every kind.
#include <doctest/doctest.h>
#include <sys/resource.h>
#include <csignal>

#include <algorithm>
#include <cstdint>

#include "cli_test_util.h"
#include "driver/compare/compare.h"
#include "ir/graph/tensor.h"

using namespace tw;

namespace {

const std::string kDigits = TW_SOURCE_DIR "/examples/digits/digits.onnx";
const std::string kDigitsBatch = TW_SOURCE_DIR "/examples/digits/digits_batch.onnx";

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

Json json_of(const CliResult& r) {
  Expected<Json> parsed = parse_json(r.out, "out");
  CHECK_MESSAGE(bool(parsed), r.out << r.err);
  if (parsed) return *parsed;
  llvm::consumeError(parsed.takeError());
  return Json();
}

std::string compiled(const TestFolder& folder, const std::string& model = kDigits) {
  const CliResult r = cli({"compile", model, "-o", folder / "model.so", "-j", "2"});
  REQUIRE_MESSAGE(r.code == kExitOk, r.err);
  return folder / "model.so";
}

// Limits the size of files to `bytes` while it lives. A write beyond fails, as on a full disk.
class FileSizeLimit {
 public:
  explicit FileSizeLimit(rlim_t bytes) {
    signal_ = std::signal(SIGXFSZ, SIG_IGN);
    ::getrlimit(RLIMIT_FSIZE, &before_);
    const rlimit small{bytes, before_.rlim_max};
    ::setrlimit(RLIMIT_FSIZE, &small);
  }
  FileSizeLimit(const FileSizeLimit&) = delete;
  ~FileSizeLimit() {
    ::setrlimit(RLIMIT_FSIZE, &before_);
    std::signal(SIGXFSZ, signal_);
  }

 private:
  rlimit before_{};
  void (*signal_)(int);
};

}  // namespace

TEST_CASE("digits: compile, run, verify, bench, inspect") {
  const TestFolder folder;
  const CliResult compile = cli({"compile", kDigits, "-o", folder / "digits.so", "--json"});
  REQUIRE_MESSAGE(compile.code == kExitOk, compile.err << compile.out);
  CHECK(compile.err.empty());
  const Json summary = json_of(compile);
  CHECK(summary["output"].text_or_empty() == folder / "digits.so");
  CHECK(summary["kernels"].integer_or(0) > 0);
  CHECK(summary["calls"].integer_or(0) >= summary["kernels"].integer_or(0));
  CHECK(summary["arena_bytes"].integer_or(0) > 0);
  CHECK(summary["naive_arena_bytes"].integer_or(0) > 0);
  CHECK(summary["artifact_bytes"].integer_or(0) ==
        static_cast<int64_t>(slurp(folder / "digits.so").size()));
  CHECK(has(slurp(folder / "digits.h"), "tw_digits_query"));
  CHECK(folder.files().size() == 2);

  const TestFolder other;  // the second compile in a process gives the same bytes as the first
  REQUIRE(cli({"compile", kDigits, "-o", other / "digits.so"}).code == kExitOk);
  CHECK(slurp(other / "digits.so") == slurp(folder / "digits.so"));

  const CliResult run = cli(
      {"run", folder / "digits.so", "--random", "1", "--output-dir", folder / "out"});
  CHECK_MESSAGE(run.code == kExitOk, run.err);
  CHECK(has(run.out, "logits: f32[1, 10]"));
  Expected<Tensor> logits = read_npy(folder / "out/logits.npy");
  REQUIRE(bool(logits));
  CHECK(logits->shape == std::vector<int64_t>{1, 10});
  const CliResult evaluated = cli(
      {"run", kDigits, "--random", "1", "--output-dir", folder / "evaluated"});
  CHECK_MESSAGE(evaluated.code == kExitOk, evaluated.err);
  Expected<Tensor> meant = read_npy(folder / "evaluated/logits.npy");
  REQUIRE(bool(meant));
  CHECK(compare(*logits, *meant, 1e-5).same);
  CHECK(cli({"run", kDigits, "--random", "1", "--device", "iss:"}).code == kExitUser);

  const Json verify = json_of(
      cli({"verify", folder / "digits.so", kDigits, "--random", "3", "--per-node", "--json"}));
  REQUIRE(verify["ok"].boolean());
  CHECK(*verify["ok"].boolean());
  CHECK(verify["per_node"]["compared"].integer_or(0) > 1);
  CHECK(verify["per_node"]["first"].object() == nullptr);
  const CliResult strict = cli(
      {"verify", folder / "digits.so", kDigits, "--tolerance", "0", "--per-node", "--json"});
  CHECK(strict.code == kExitMismatch);
  CHECK(!json_of(strict)["per_node"]["first"]["nodes"].items().empty());

  const Json bench = json_of(
      cli({"bench", folder / "digits.so", "--threads", "1", "--runs", "5", "--json"}));
  CHECK(bench["ms"].items().size() == 5);
  const Json profile = json_of(
      cli({"profile", folder / "digits.so", "--threads", "1", "--runs", "5", "--json"}));
  CHECK(profile["calls"].items().size() == static_cast<size_t>(summary["calls"].integer_or(0)));
  CHECK(profile["peaks"]["gflops"].real() != nullptr);
  REQUIRE(cli({"compile", kDigits, "-o", folder / "direct.so", "--algorithm", "direct"}).code ==
          kExitOk);
  const Json counted = json_of(cli({"profile", folder / "direct.so", "--runs", "1", "--json"}));
  double flops = 0;
  for (const Json& call : counted["calls"].items()) flops += *call["flops"].real();
  const Json direct = json_of(cli({"profile", kDigits, "--threads", "1", "--runs", "1", "--json"}));
  CHECK(direct["calls"].items().size() == profile["calls"].items().size());

  const Json model = json_of(cli({"inspect", kDigits, "--json"}));
  CHECK(model["inputs"].items().at(0)["name"].text_or_empty() == "image");
  CHECK(model["macs"].integer_or(0) > 0);
  // The epilogues add to the two operations of each multiply-add.
  CHECK(flops >= 2.0 * static_cast<double>(model["macs"].integer_or(0)));
  CHECK(model["gaps"].items().empty());
  const Json artifact = json_of(cli({"inspect", folder / "digits.so", "--json"}));
  CHECK(artifact["manifest"]["name"].text_or_empty() == "digits");
  CHECK(artifact["manifest"]["model"]["sha256"].text_or_empty() == model["sha256"].text_or_empty());
  CHECK(artifact["manifest"]["kernels"].items().size() ==
        static_cast<size_t>(summary["kernels"].integer_or(0)));
}

TEST_CASE("two compiles give the same bytes, with any number of jobs") {
  const TestFolder folder, other;
  CHECK(cli({"compile", kDigits, "-o", folder / "a.so", "-j", "1"}).code == kExitOk);
  CHECK(cli({"compile", kDigits, "-o", other / "a.so", "-j", "3"}).code == kExitOk);
  CHECK(slurp(folder / "a.so") == slurp(other / "a.so"));
}

TEST_CASE("a free batch: files bind it, --dim binds it, nothing is an error") {
  const TestFolder folder;
  const std::string library = compiled(folder, kDigitsBatch);
  const CliResult images = cli(
      {"run", library, "--input",
       std::string("image=") + TW_SOURCE_DIR "/examples/digits/test_images.npy"});
  CHECK_MESSAGE(images.code == kExitOk, images.err);
  CHECK(has(images.out, "logits: f32[360, 10]"));
  CHECK(has(cli({"run", library, "--random", "1", "--dim", "batch=3"}).out, "f32[3, 10]"));
  const CliResult free = cli({"run", library, "--random", "1"});
  CHECK(free.code == kExitUser);
  CHECK(has(free.err, "--dim batch=N"));
  CHECK(cli({"verify", library, kDigitsBatch, "--random", "1", "--dim", "batch=3"}).code ==
        kExitOk);
}

TEST_CASE("verify: stored outputs, and results that differ") {
  const TestFolder folder;
  const std::string library = compiled(folder);
  REQUIRE(cli({"run", library, "--random", "1", "-d", folder / "out"}).code == kExitOk);
  const Tensor image = Tensor::zeros(DType::f32, {1, 1, 8, 8});
  std::filesystem::create_directory(folder / "data");
  REQUIRE(!write_npy(folder / "data/input_0.npy", image));
  REQUIRE(
      cli({"run", library, "--input", folder / "data/input_0.npy", "-d", folder / "zero"}).code ==
      kExitOk);
  std::filesystem::copy_file(folder / "zero/logits.npy", folder / "data/output_0.npy");
  CHECK(cli({"verify", library, "--data", folder / "data"}).code == kExitOk);

  Expected<Tensor> logits = read_npy(folder / "data/output_0.npy");
  REQUIRE(bool(logits));
  logits->set(4, logits->at(4) + 10);
  REQUIRE(!write_npy(folder / "data/output_0.npy", *logits));
  const CliResult off = cli({"verify", library, "--data", folder / "data"});
  CHECK(off.code == kExitMismatch);
  CHECK(has(off.out, "OFF  logits"));
  CHECK(has(off.out, "worst at 4"));
}

TEST_CASE("every text stage is printed") {
  for (const char* stage :
       {"graph", "groups", "kernels", "schedules", "scheduled", "llvm", "asm"}) {
    CAPTURE(stage);
    const CliResult r = cli({"compile", kDigits, "--emit", stage});
    CHECK_MESSAGE(r.code == kExitOk, r.err);
    CHECK(r.out.size() > 100);
  }
  CHECK(cli({"compile", kDigits, "--emit", "soup"}).code == kExitUser);
  CHECK(cli({"compile", kDigits, "--emit", "graph", "-o", "-"}).out ==
        cli({"compile", kDigits, "--emit", "graph"}).out);
  CHECK(cli({"compile", kDigits, "-o", "-"}).code == kExitUser);
}

TEST_CASE("opt makes the scheduled kernels of the printed kernels and schedules") {
  const TestFolder folder;
  for (const char* target : {"host", "x86-64-v3", "aarch64-generic"}) {
    CAPTURE(target);
    const CliResult parts = cli({"compile", kDigits, "-t", target, "--emit", "schedules"}),
                    whole = cli({"compile", kDigits, "-t", target, "--emit", "scheduled"});
    REQUIRE(parts.code == kExitOk);
    REQUIRE(whole.code == kExitOk);
    const CliResult made = cli(
        {"opt", folder.write("schedules", parts.out), "-t", target, "--as-run"});
    CHECK_MESSAGE(made.code == kExitOk, made.err);
    CHECK(made.out == whole.out);
    CHECK(made.out != cli({"compile", kDigits, "-t", target, "--emit", "kernels"}).out);
  }
}

TEST_CASE("bad models: an error each, and nothing left behind") {
  const TestFolder folder;
  const std::string good = slurp(kDigits);
  REQUIRE(good.size() > 100);
  const auto refused = [&](const std::string& bytes) {
    const std::string model = folder.write("bad.onnx", bytes);
    const CliResult r = cli({"compile", model, "-o", folder / "bad.so"});
    CHECK(r.code == kExitUser);
    CHECK(has(r.err, "error: "));
    CHECK(folder.files() == std::vector<std::string>{"bad.onnx"});
  };
  for (size_t part = 0; part < 8; ++part) refused(good.substr(0, good.size() * part / 8));
  uint64_t state = 1;
  for (size_t size : {1u, 100u, 5000u}) {
    std::string noise;
    for (size_t i = 0; i < size; ++i)
      noise += static_cast<char>((state = state * 6364136223846793005u + 1442695040888963407u) >>
                                 56);
    refused(noise);
  }
  CHECK(cli({"compile", folder / "none.onnx", "-o", folder / "none.so"}).code == kExitIo);
  CHECK(cli({"inspect", folder / "none.onnx"}).code == kExitIo);
}

TEST_CASE("bad outputs") {
  const TestFolder folder;
  CHECK(cli({"compile", kDigits, "-o", folder / "no/such/folder/m.so"}).code == kExitIo);
  CHECK(cli({"compile", kDigits, "-o", "/dev/full"}).code == kExitIo);
  CHECK(cli({"compile", kDigits, "-o", folder.path()}).code == kExitIo);
  CHECK(cli({"compile", kDigits, "-o", folder / "m.so", "--name", "not-an-identifier"}).code ==
        kExitUser);
  CHECK(folder.files().empty());
}

TEST_CASE("a full disk leaves no part of a file") {
  const TestFolder folder;
  CliResult r;
  {
    const FileSizeLimit limit(1024);
    r = cli({"compile", kDigits, "-o", folder / "m.so"});
  }
  CHECK(r.code == kExitIo);
  CHECK(has(r.err, "error: "));
  CHECK(folder.files().empty());
  const std::string library = compiled(folder);
  {
    const FileSizeLimit limit(16);
    r = cli({"run", library, "--random", "1", "-d", folder / "out"});
  }
  CHECK(r.code == kExitIo);
  CHECK(std::filesystem::is_empty(folder / "out"));
}

TEST_CASE("bad targets") {
  const TestFolder folder;
  const CliResult target = cli({"target", "host"});
  REQUIRE(target.code == kExitOk);
  const auto count = static_cast<int>(std::count(target.out.begin(), target.out.end(), '\n'));
  const std::string file = folder.write("t.yaml", target.out + "cors: 4\n");
  const CliResult r = cli({"compile", kDigits, "-t", file, "-o", folder / "m.so", "--json"});
  CHECK(r.code == kExitUser);
  const Json error = json_of(r)["error"].items().at(0);
  CHECK(error["file"].text_or_empty() == file);
  CHECK(error["line"].integer_or(0) == count + 1);
  CHECK(error["column"].integer_or(0) == 1);
  CHECK(has(error["message"].text_or_empty(), "cors"));
  CHECK(cli({"compile", kDigits, "-t", "no-such-target", "-o", folder / "m.so"}).code != kExitOk);
  CHECK(folder.files() == std::vector<std::string>{"t.yaml"});
}

TEST_CASE("targets: host's YAML parses back, the list has one-line summaries") {
  const TestFolder folder;
  CHECK(cli({"target", "host", "-o", folder / "host.yaml"}).code == kExitOk);
  const CliResult again = cli({"target", folder / "host.yaml"});
  CHECK(again.out == slurp(folder / "host.yaml"));
  const CliResult list = cli({"targets"});
  CHECK_MESSAGE(list.code == kExitOk, list.err);
  CHECK(has(list.out, "cortex-a72"));
}

TEST_CASE("bad inputs at run time") {
  const TestFolder folder;
  const std::string library = compiled(folder);
  const auto refused = [&](const std::string& name, DType dtype, std::vector<int64_t> shape) {
    REQUIRE(!write_npy(folder / name, Tensor::zeros(dtype, std::move(shape))));
    const CliResult r = cli({"run", library, "--input", "image=" + (folder / name)});
    CHECK(r.code == kExitUser);
    CHECK(has(r.err, "the model takes f32[1, 1, 8, 8]"));
  };
  refused("rank.npy", DType::f32, {8, 8});
  refused("extent.npy", DType::f32, {1, 1, 8, 9});
  refused("dtype.npy", DType::f64, {1, 1, 8, 8});
  CHECK(cli({"run", library}).code == kExitUser);
  CHECK(cli({"run", library, "--input", "image=" + (folder / "none.npy")}).code == kExitIo);
  CHECK(cli({"run", kDigits, "--random", "1"}).code == kExitOk);  // a model runs in the evaluators
  CHECK(cli({"run", folder / "none.so", "--random", "1"}).code == kExitIo);
  CHECK(cli({"verify", library}).code == kExitUser);
  CHECK(cli({"verify", library, "--data", folder / "none"}).code == kExitIo);
  const std::string half = folder.write("half.so", slurp(library).substr(0, 3000));
  CHECK(cli({"run", half, "--random", "1"}).code != kExitOk);
  CHECK(cli({"inspect", half}).code != kExitOk);
}

TEST_CASE("opt: passes on a graph, a schedule on a kernel") {
  const TestFolder folder;
  const CliResult graph = cli({"compile", kDigits, "--emit", "graph"});
  REQUIRE(graph.code == kExitOk);
  const std::string kernel =
      "kernel @add(x: in f32[64], y: out f32[64]) {\n"
      "  for i in 64 {\n"
      "    y: y[i] = x[i] + 1.0\n"
      "  }\n"
      "}\n";
  const std::string good = folder.write(
      "k.txt", kernel + "schedule {\n  split i 8 -> i0 i1\n  vectorize i1\n}\n");
  const CliResult r = cli({"opt", good, "--interp", "1"});
  CHECK_MESSAGE(r.code == kExitOk, r.err);
  CHECK(has(r.out, "vector"));
  CHECK(has(r.out, "; ok   output 0"));
  CHECK(cli({"opt", good, "--verify"}).out == "ok\n");
  const CliResult blocked = cli({"opt",
                                 folder.write("blocks.txt", kernel + "schedule {\n  block x 0 5\n"
                                                                     "  block y 0 12 -> l\n}\n"),
                                 "--interp", "1"});
  CHECK_MESSAGE(blocked.code == kExitOk, blocked.err);
  CHECK(has(blocked.out, "; ok   output 0: max abs 0"));
  const CliResult bad = cli(
      {"opt", folder.write("b.txt", kernel + "schedule {\n  split q 8 -> i0 i1\n}\n")});
  CHECK(bad.code == kExitUser);
  CHECK(has(bad.err, "split q 8"));
  CHECK(cli({"opt", folder.write("n.txt", "nothing\n")}).code == kExitUser);
  CHECK(cli({"opt", good, "--passes", "canonicalize"}).code == kExitUser);
}
