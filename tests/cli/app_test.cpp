#include <doctest/doctest.h>

#include "cli_test_util.h"

using namespace tw;

TEST_CASE("every command explains itself with examples") {
  CHECK(cli({"--help"}).code == kExitOk);
  for (const Command& c : all_commands()) {
    CAPTURE(c.name);
    const CliResult r = cli({c.name, "--help"});
    CHECK(r.code == kExitOk);
    CHECK(r.out.find("Examples:") != std::string::npos);
    CHECK(r.out.find(std::string("tilewright ") + c.name) != std::string::npos);
    CHECK(r.out.find("--json") != std::string::npos);
    CHECK(r.err.empty());
  }
}

TEST_CASE("the version names the program and what it is made of") {
  const CliResult r = cli({"--version"});
  CHECK(r.code == kExitOk);
  CHECK(r.out.starts_with("tilewright "));
  for (const std::vector<std::string>& words :
       std::vector<std::vector<std::string>>{{"--version", "--json"}, {"--json", "--version"}}) {
    const CliResult json = cli(words);
    CHECK(json.code == kExitOk);
    CHECK(json.err.empty());
    Expected<Json> parsed = parse_json(json.out, "out");
    REQUIRE(bool(parsed));
    CHECK(r.out.starts_with("tilewright " + (*parsed)["tilewright"].text_or_empty() + " (ABI " +
                            std::to_string((*parsed)["abi"].integer_or(0)) + ")\nLLVM " +
                            (*parsed)["llvm"].text_or_empty() + "\nONNX opsets up to " +
                            std::to_string((*parsed)["onnx_opset"].integer_or(0)) +
                            "\ntargets host"));
    CHECK((*parsed)["onnx_opset"].integer_or(0) >= 22);
    CHECK((*parsed)["targets"].items().at(0).text_or_empty() == "host");
  }
}

TEST_CASE("wrong usage exits with 2") {
  for (const std::vector<std::string>& words :
       std::vector<std::vector<std::string>>{{},
                                             {"nothing"},
                                             {"compile"},
                                             {"compile", "m.onnx", "--no-such-flag"},
                                             {"bench", "m.so", "--runs", "many"},
                                             {"bench", "m.so", "--threads", "-1"},
                                             {"verify", "m.so", "m.onnx", "--tolerance", "-1"}}) {
    const CliResult r = cli(words);
    CHECK(r.code == kExitUsage);
    CHECK(r.out.empty());
    CHECK(r.err.starts_with("error: "));
  }
}

TEST_CASE("with --json every error is a document on standard output") {
  const CliResult usage = cli({"compile", "--json"});
  CHECK(usage.code == kExitUsage);
  Expected<Json> parsed = parse_json(usage.out, "out");
  REQUIRE(bool(parsed));
  CHECK((*parsed)["error"].items().at(0)["code"].text_or_empty() == "usage");

  const CliResult missing = cli({"run", "no/such/library.so", "--random", "1", "--json"});
  CHECK(missing.code == kExitIo);
  CHECK(missing.err.empty());
  parsed = parse_json(missing.out, "out");
  REQUIRE(bool(parsed));
  const Json& error = (*parsed)["error"].items().at(0);
  CHECK(error["code"].text_or_empty() == "io");
  CHECK(error["message"].text_or_empty().find("no/such/library.so") != std::string::npos);
  CHECK(error["notes"].array() != nullptr);
}

TEST_CASE("a stream that cannot be written is an I/O error") {
  std::ostringstream out, err;
  out.setstate(std::ios::badbit);
  const char* argv[] = {"tilewright", "--version"};
  CHECK(run_cli(2, argv, out, err) == kExitIo);
}

TEST_CASE("exit codes of diagnostics") {
  CHECK(exit_code(DiagCode::invalid_model) == 1);
  CHECK(exit_code(DiagCode::unsupported) == 3);
  CHECK(exit_code(DiagCode::mismatch) == 4);
  CHECK(exit_code(DiagCode::not_pinned) == 6);
  CHECK(exit_code(DiagCode::over_budget) == 7);
  CHECK(exit_code(DiagCode::io) == 5);
}

TEST_CASE("errors are printed with their place, to people and to programs") {
  std::ostringstream out, err;
  Console console{out, err, err};
  const std::vector<Diag> list = {
      {DiagCode::parse, "unknown key 'cors'", {"t.yaml", 3, 5}, {"known: cores"}}};
  print_errors(console, list);
  CHECK(err.str() == "error: t.yaml:3:5: unknown key 'cors'\n  note: known: cores\n");
  console.json = true;
  print_errors(console, list);
  Expected<Json> parsed = parse_json(out.str(), "out");
  REQUIRE(bool(parsed));
  const Json& d = (*parsed)["error"].items().at(0);
  CHECK(d["file"].text_or_empty() == "t.yaml");
  CHECK(d["line"].integer_or(0) == 3);
  CHECK(d["column"].integer_or(0) == 5);
  CHECK(d["notes"].items().at(0).text_or_empty() == "known: cores");
}

TEST_CASE("--dim") {
  Expected<std::map<std::string, int64_t>> dims = parse_dims({"batch=4", "seq=128"});
  REQUIRE(bool(dims));
  CHECK((*dims)["batch"] == 4);
  CHECK((*dims)["seq"] == 128);
  for (const char* wrong :
       {"batch", "=1", "batch=", "batch=-1", "batch=1x", "batch=99999999999999999999"}) {
    dims = parse_dims({wrong});
    CHECK(!dims);
    llvm::consumeError(dims.takeError());
  }
  dims = parse_dims({"batch=1", "batch=2"});
  CHECK(error_text(dims.takeError()) == "--dim gives 'batch' twice");
}

TEST_CASE("JSON: values survive, order is kept, damage is found") {
  const Json value = Json::Object{
      {"z", 1}, {"a", Json::Array{true, "x\"\n", 0.5, Json()}}, {"big", int64_t{1} << 62}};
  CHECK(dump(value, -1) == R"({"z":1,"a":[true,"x\"\n",0.5,null],"big":4611686018427387904})");
  Expected<Json> back = parse_json(dump(value), "text");
  REQUIRE(bool(back));
  CHECK(dump(*back, -1) == dump(value, -1));
  for (const std::string& wrong :
       {std::string("{"), std::string("[1,]"), std::string(100, '[') + std::string(100, ']')}) {
    back = parse_json(wrong, "text");
    CHECK(!back);
    llvm::consumeError(back.takeError());
  }
  CHECK(dump("\xff", -1) == "\"\xef\xbf\xbd\"");
}
