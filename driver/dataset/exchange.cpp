#include "driver/dataset/exchange.h"

#include <llvm/Support/FileUtilities.h>
#include <zlib.h>

#include <filesystem>

#include "packager/output_file.h"
#include "support/hash.h"
#include "support/json.h"
#include "support/regular_file.h"

namespace tw {
namespace {

constexpr int kFormat = 1;
constexpr size_t kMostText = size_t{1} << 31;
constexpr int kGzip = 15 + 16;  // zlib: with gzip's header, which has no date here

std::string packed(const std::string& text) {
  z_stream stream{};
  deflateInit2(&stream, Z_BEST_COMPRESSION, Z_DEFLATED, kGzip, 9, Z_DEFAULT_STRATEGY);
  std::string out(deflateBound(&stream, text.size()) + 64, '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  stream.avail_in = static_cast<uInt>(text.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  deflate(&stream, Z_FINISH);
  out.resize(stream.total_out);
  deflateEnd(&stream);
  return out;
}

Expected<std::string> unpacked(const std::string& bytes, const std::string& file) {
  z_stream stream{};
  inflateInit2(&stream, kGzip);
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
  stream.avail_in = static_cast<uInt>(bytes.size());
  std::string out;
  int code = Z_OK;
  std::vector<char> part(1 << 20);
  while (code == Z_OK && out.size() < kMostText) {
    stream.next_out = reinterpret_cast<Bytef*>(part.data());
    stream.avail_out = static_cast<uInt>(part.size());
    code = inflate(&stream, Z_NO_FLUSH);
    out.append(part.data(), part.size() - stream.avail_out);
  }
  inflateEnd(&stream);
  if (code != Z_STREAM_END)
    return make_error(DiagCode::io, "'{0}' is damaged: it cannot be unpacked", file);
  return out;
}

// Times are kept to six digits: their noise is larger by far.
double rounded(double seconds) {
  char text[32];
  std::snprintf(text, sizeof text, "%.6g", seconds);
  return std::stod(text);
}

std::string line(Json::Object object) { return dump(Json(std::move(object)), -1) + "\n"; }

// The identity of a task: its key in the field of that name, its target, and its algorithm unless
// that is direct
Json::Object identity(const char* key_field, const LearningTask& t) {
  Json::Object out{{key_field, t.key}, {"lowered_for", t.lowered_for}};
  if (t.algorithm != Algorithm::direct) out.push_back({"algorithm", algorithm_name(t.algorithm)});
  return out;
}

std::string line(Json::Object object, Json::Object more) {
  for (auto& field : more) object.push_back(std::move(field));
  return line(std::move(object));
}

std::string task_line(const LearningTask& t) {
  return line(identity("key", t), {{"name", t.name},
                                   {"kind", t.kind},
                                   {"network", t.network},
                                   {"split", split_name(t.split)},
                                   {"flops", t.flops},
                                   {"complete", t.complete},
                                   {"kernel", t.kernel},
                                   {"text", t.text}});
}

std::string programs_line(const LearningTask& t, const std::vector<LearningProgram>& programs) {
  Json::Array ids, sources, schedules;
  for (const LearningProgram& p : programs) {
    ids.push_back(p.id);
    sources.push_back(static_cast<int>(p.source));
    schedules.push_back(p.schedule);
  }
  return line(identity("task", t), {{"ids", ids}, {"sources", sources}, {"schedules", schedules}});
}

std::string labels_line(const LearningTask& t, int pass, const std::vector<Label>& labels) {
  Json::Array ids, status, least, median, samples, contended, code, time;
  for (const Label& l : labels) {
    ids.push_back(l.program);
    status.push_back(static_cast<int>(l.status));
    least.push_back(rounded(l.least));
    median.push_back(rounded(l.median));
    samples.push_back(l.samples);
    contended.push_back(static_cast<int>(l.contended));
    code.push_back(l.code);
    time.push_back(l.time);
  }
  return line(identity("task", t), {{"pass", pass},
                                    {"ids", ids},
                                    {"status", status},
                                    {"least", least},
                                    {"median", median},
                                    {"samples", samples},
                                    {"contended", contended},
                                    {"code", code},
                                    {"time", time}});
}

class Exporter {
 public:
  Exporter(DataSet& set, std::string folder) : set_(set), folder_(std::move(folder)) {}

  Expected<ExchangeCounts> run() {
    std::error_code code;
    std::filesystem::create_directories(folder_, code);
    if (code) return make_error(DiagCode::io, "cannot make '{0}': {1}", folder_, code.message());
    TW_ASSIGN(std::vector<LearningTask> tasks, set_.tasks());
    std::ranges::sort(tasks, {}, [](const LearningTask& t) {
      return std::tuple(t.key, t.lowered_for, t.algorithm);
    });
    std::string texts, programs;
    std::map<std::string, std::string> kernels;
    for (const LearningTask& listed : tasks) {
      TW_ASSIGN(const LearningTask task, set_.task(listed.id));
      texts += task_line(task);
      kernels.emplace(task.kernel, task.kernel_text);
      TW_ASSIGN(const std::vector<LearningProgram> all, set_.programs(task.id));
      if (!all.empty()) programs += programs_line(task, all);
      counts_.programs += static_cast<int64_t>(all.size());
    }
    counts_.tasks = static_cast<int64_t>(tasks.size());
    std::string kernel_lines;
    for (const auto& [key, text] : kernels) kernel_lines += line({{"kernel", key}, {"text", text}});
    TW_TRY(write("tasks.jsonl.gz", texts));
    TW_TRY(write("kernels.jsonl.gz", kernel_lines));
    TW_TRY(write("programs.jsonl.gz", programs));
    TW_TRY(write_labels(tasks));
    return finish();
  }

 private:
  Error write(const std::string& name, const std::string& text) {
    const std::string bytes = packed(text);
    counts_.bytes += bytes.size();
    files_.push_back(
        Json::Object{{"file", name}, {"bytes", bytes.size()}, {"sha256", sha256_hex(bytes)}});
    return write_file(folder_ + "/" + name, bytes);
  }

  Error write_labels(const std::vector<LearningTask>& tasks) {
    TW_ASSIGN(const std::vector<Platform> platforms, set_.platforms());
    for (const Platform& platform : platforms) {
      std::string text;
      int64_t count = 0, first = 0, last = 0;
      for (const LearningTask& task : tasks)
        for (const int pass : {0, 1}) {
          TW_ASSIGN(const std::vector<Label> labels, set_.labels(platform.id, task.id, pass));
          if (labels.empty()) continue;
          text += labels_line(task, pass, labels);
          count += static_cast<int64_t>(labels.size());
          for (const Label& l : labels) {
            first = first == 0 ? l.time : std::min(first, l.time);
            last = std::max(last, l.time);
          }
        }
      const std::string name = "labels-" + std::to_string(platform.id) + ".jsonl.gz";
      platforms_.push_back(Json::Object{{"file", name},
                                        {"target", platform.name},
                                        {"target_key", platform.target},
                                        {"machine", platform.machine},
                                        {"threads", platform.threads},
                                        {"kind", label_kind_name(platform.kind)},
                                        {"labels", count},
                                        {"from", first},
                                        {"to", last}});
      counts_.labels += count;
      TW_TRY(write(name, text));
    }
    return Error::success();
  }

  Expected<ExchangeCounts> finish() {
    const Json manifest = Json::Object{{"format", kFormat},
                                       {"schedule_language", kLanguageVersion},
                                       {"licence", "as the sources that it is kept with"},
                                       {"tasks", counts_.tasks},
                                       {"programs", counts_.programs},
                                       {"labels", counts_.labels},
                                       {"platforms", platforms_},
                                       {"files", files_}};
    TW_TRY(write_file(folder_ + "/manifest.json", dump(manifest) + "\n"));
    return counts_;
  }

  DataSet& set_;
  std::string folder_;
  ExchangeCounts counts_;
  Json::Array files_, platforms_;
};

class Importer {
 public:
  Importer(DataSet& set, std::string folder, const ConvertRequest& request)
      : set_(set), folder_(std::move(folder)), request_(request) {}

  Expected<ExchangeCounts> run() {
    TW_ASSIGN(const std::string text, read("manifest.json"));
    TW_ASSIGN(manifest_, parse_json(text, folder_ + "/manifest.json"));
    if (manifest_["format"].integer_or(0) != kFormat)
      return make_error(DiagCode::io, "'{0}' has format {1}; this tilewright reads format {2}",
                        folder_, manifest_["format"].integer_or(0), kFormat);
    if (language() > kLanguageVersion)
      return make_error(DiagCode::io,
                        "'{0}' has schedules of language {1}; this tilewright reads {2} and older",
                        folder_, language(), kLanguageVersion);
    if (language() < kLanguageVersion) return converted();
    return load_all();
  }

  int64_t language() const { return manifest_["schedule_language"].integer_or(1); }

 private:
  // Reads an older language into a set of its own, and converts that one.
  Expected<ExchangeCounts> converted() {
    const std::string path = set_.path() + ".language-" + std::to_string(language());
    const llvm::FileRemover remover(path);
    TW_ASSIGN(DataSet old, DataSet::open(path, sql::Mode::write));
    Importer importer(old, folder_, request_);
    importer.manifest_ = manifest_;
    TW_ASSIGN(ExchangeCounts counts, importer.load_all());
    TW_ASSIGN(counts.converted, convert_set(old, set_, request_));
    return counts;
  }

  Expected<ExchangeCounts> load_all() {
    for (const Json& file : manifest_["files"].items()) TW_TRY(load(file));
    TW_TRY(each("kernels.jsonl.gz", [&](const Json& j) -> Error {
      kernels_[j["kernel"].text_or_empty()] = j["text"].text_or_empty();
      return Error::success();
    }));
    TW_TRY(each("tasks.jsonl.gz", [&](const Json& j) { return task(j); }));
    TW_ASSIGN(const std::vector<LearningTask> tasks, set_.tasks());
    for (const LearningTask& t : tasks) ids_[{t.key, t.lowered_for, t.algorithm}] = t.id;
    TW_TRY(each("programs.jsonl.gz", [&](const Json& j) { return programs(j); }));
    for (const Json& platform : manifest_["platforms"].items()) {
      Platform p{0, platform["target"].text_or_empty(), platform["target_key"].text_or_empty(),
                 platform["machine"].text_or_empty(),
                 static_cast<int>(platform["threads"].integer_or(1))};
      for (const LabelKind kind : {LabelKind::time, LabelKind::cycles, LabelKind::estimate})
        if (platform["kind"].text_or_empty() == label_kind_name(kind)) p.kind = kind;
      TW_ASSIGN(const int64_t id, set_.platform(p));
      TW_TRY(each(platform["file"].text_or_empty(), [&](const Json& j) { return labels(id, j); }));
    }
    return counts_;
  }

  Expected<std::string> read(const std::string& name) const {
    const std::string path = folder_ + "/" + name;
    TW_ASSIGN(const auto buffer, regular_file(path));
    return buffer->getBuffer().str();
  }

  Error load(const Json& file) {
    const std::string name = file["file"].text_or_empty();
    if (name.find('/') != std::string::npos)
      return make_error(DiagCode::io, "'{0}': a file outside of the folder: {1}", folder_, name);
    TW_ASSIGN(const std::string bytes, read(name));
    if (sha256_hex(bytes) != file["sha256"].text_or_empty())
      return make_error(DiagCode::io, "'{0}/{1}' is damaged: its checksum is another one", folder_,
                        name);
    counts_.bytes += bytes.size();
    TW_ASSIGN(texts_[name], unpacked(bytes, folder_ + "/" + name));
    return Error::success();
  }

  Error each(const std::string& name, const std::function<Error(const Json&)>& visit) const {
    const auto found = texts_.find(name);
    if (found == texts_.end())
      return make_error(DiagCode::io, "'{0}/manifest.json' does not list '{1}'", folder_, name);
    std::string_view text = found->second;
    for (int64_t number = 1; !text.empty(); ++number) {
      const size_t end = std::min(text.find('\n'), text.size());
      TW_ASSIGN(const Json json, parse_json(text.substr(0, end),
                                            folder_ + "/" + name + ":" + std::to_string(number)));
      TW_TRY(visit(json));
      text.remove_prefix(std::min(end + 1, text.size()));
    }
    return Error::success();
  }

  // A task with its identity and nothing else
  Expected<LearningTask> named(const char* key_field, const Json& j) const {
    LearningTask t;
    t.key = j[key_field].text_or_empty(), t.lowered_for = j["lowered_for"].text_or_empty();
    const std::string algorithm = j["algorithm"].text_or_empty();
    if (algorithm.empty()) return t;
    const std::optional<Algorithm> known = algorithm_from_name(algorithm);
    if (!known)
      return make_error(DiagCode::io, "'{0}': task {1} is by an unknown algorithm, '{2}'", folder_,
                        t.key, algorithm);
    t.algorithm = *known;
    return t;
  }

  Error task(const Json& j) {
    TW_ASSIGN(LearningTask t, named("key", j));
    t.name = j["name"].text_or_empty(), t.kind = j["kind"].text_or_empty();
    t.network = j["network"].text_or_empty(), t.text = j["text"].text_or_empty();
    t.kernel = j["kernel"].text_or_empty(), t.flops = j["flops"].number_or(0);
    t.split = split_from_name(j["split"].text_or_empty()).value_or(Split::train);
    t.complete = j["complete"].boolean() && *j["complete"].boolean();
    t.kernel_text = kernels_[t.kernel];
    if (t.key.empty() || t.kernel_text.empty())
      return make_error(DiagCode::io, "'{0}': a task without a key or a kernel", folder_);
    ++counts_.tasks;
    TW_ASSIGN(const bool added, set_.add(t));
    if (!added || !t.complete) return Error::success();
    TW_ASSIGN(const std::vector<LearningTask> all, set_.tasks());
    return set_.set_complete(all.back().id);
  }

  // The identity of a task, with the task's id in the set
  Expected<LearningTask> task_of(const Json& j) const {
    TW_ASSIGN(LearningTask t, named("task", j));
    const auto found = ids_.find({t.key, t.lowered_for, t.algorithm});
    if (found == ids_.end())
      return make_error(DiagCode::io, "'{0}': programs of a task that it does not have", folder_);
    t.id = found->second;
    return t;
  }

  Error programs(const Json& j) {
    TW_ASSIGN(const LearningTask task, task_of(j));
    const Json::Array &schedules = j["schedules"].items(), &sources = j["sources"].items();
    std::vector<LearningProgram> list;
    for (size_t i = 0; i < schedules.size() && i < sources.size(); ++i) {
      const std::string text = schedules[i].text_or_empty();
      const int64_t source = sources[i].integer_or(0);
      list.push_back(
          {program_id(task, text),
           static_cast<ProgramSource>(std::clamp<int64_t>(source, 0, kProgramSourceCount - 1)),
           text});
    }
    counts_.programs += static_cast<int64_t>(list.size());
    return set_.add_programs(task.id, list);
  }

  Error labels(int64_t platform, const Json& j) {
    TW_TRY(task_of(j).takeError());
    const auto column = [&](const char* name) -> const Json::Array& { return j[name].items(); };
    const size_t count = column("ids").size();
    for (const char* name : {"status", "least", "median", "samples", "contended", "code", "time"})
      if (column(name).size() != count)
        return make_error(DiagCode::io, "'{0}': labels whose columns are not of one length",
                          folder_);
    std::vector<Label> list;
    for (size_t i = 0; i < count; ++i)
      list.push_back({column("ids")[i].integer_or(0), static_cast<int>(j["pass"].integer_or(0)),
                      static_cast<Status>(std::clamp<int64_t>(column("status")[i].integer_or(0), 0,
                                                              kStatusCount - 1)),
                      column("least")[i].number_or(0), column("median")[i].number_or(0),
                      static_cast<int>(column("samples")[i].integer_or(0)),
                      column("contended")[i].integer_or(0) != 0, column("code")[i].text_or_empty(),
                      column("time")[i].integer_or(0)});
    counts_.labels += static_cast<int64_t>(list.size());
    return set_.add_labels(platform, list);
  }

  DataSet& set_;
  std::string folder_;
  const ConvertRequest& request_;
  Json manifest_;
  std::map<std::string, std::string> texts_, kernels_;
  std::map<std::tuple<std::string, std::string, Algorithm>, int64_t> ids_;
  ExchangeCounts counts_;
};

}  // namespace

Expected<ExchangeCounts> export_set(DataSet& set, const std::string& folder) {
  return Exporter(set, folder).run();
}
Expected<ExchangeCounts> import_set(DataSet& set, const std::string& folder,
                                    const ConvertRequest& request) {
  return Importer(set, folder, request).run();
}

}  // namespace tw
