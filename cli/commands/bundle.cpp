// tilewright bundle and unbundle: a compiled model as one file to hand on, and back.
#include <filesystem>
#include <memory>
#include <ostream>

#include "cli/commands/commands.h"
#include "cli/file_roles.h"
#include "driver/bundle/bundle.h"

namespace tw {
namespace {

// Prints the table, and returns the exit code that goes with it.
int told(const Bundle& bundle, const std::string& file, Console& console) {
  if (console.json) {
    write_json(console, to_json(bundle));
  } else {
    console.out << to_string(bundle);
    if (!bundle.problem.empty()) console.err << bundle.problem << "\n";
    if (bundle.good()) console.out << file << ": sha256 " << bundle.sha256 << "\n";
    else console.err << "nothing was taken from '" << file << "'\n";
  }
  return bundle.good() ? kExitOk : kExitDamaged;
}

std::string beside(const std::string& library, const char* ending) {
  return std::filesystem::path(library).replace_extension(ending).string();
}

Expected<int> bundle(BundleRequest request, Console& console) {
  if (request.header.empty()) request.header = beside(request.library, ".h");
  if (request.output.empty()) request.output = beside(request.library, ".tilewright");
  FileRoles files;
  files.reads("the library", request.library);
  files.reads("the header", request.header);
  files.reads("the model's licence", request.license);
  files.reads("the lock", request.lock);
  files.writes("the bundle", request.output);
  TW_TRY(files.check());
  TW_TRY(check_writable(request.output));
  TW_ASSIGN(const Bundle written, write_bundle(request));
  return told(written, request.output, console);
}

struct UnbundleArgs {
  std::string file, folder;
};

Expected<int> unbundle(const UnbundleArgs& args, Console& console) {
  TW_ASSIGN(const Bundle read,
            args.folder.empty() ? read_bundle(args.file) : unpack_bundle(args.file, args.folder));
  return told(read, args.file, console);
}

}  // namespace

CommandRun define_bundle(Flags& flags) {
  auto args = std::make_shared<BundleRequest>();
  flags.argument("LIBRARY", args->library, "The compiled model");
  flags.text("-o,--output", args->output, "FILE",
             "The bundle; default: the library's name with .tilewright, beside it");
  flags.text("--header", args->header, "FILE", "The C header; default: the library's name with .h");
  flags.text("--license", args->license, "FILE", "The text of the model's licence");
  flags.text("--lock", args->lock, "FILE",
             "The lock that the library was compiled with: its hash is put down");
  return [args](Console& console) { return bundle(*args, console); };
}

CommandRun define_unbundle(Flags& flags) {
  auto args = std::make_shared<UnbundleArgs>();
  flags.argument("BUNDLE", args->file, "The bundle");
  flags.text("-o,--output", args->folder, "DIR",
             "Write its parts there, if all of them are good; default: check them alone");
  return [args](Console& console) { return unbundle(*args, console); };
}

}  // namespace tw
