// The end of a search: times the whole network without and with what the search found, and marks
// those records as rejected that do not gain.
#pragma once
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "autotune/log.h"
#include "driver/tune/kept_tasks.h"
#include "driver/tune/network_library.h"
#include "driver/tune/tune_network.h"

namespace tw {

using CompareLibraries = std::function<Expected<Comparison>(
    const std::string& first, const std::string& second, const CompareOptions& options)>;

struct ProofRequest {
  CompileOptions options;     // for the whole network; output: a file's name
  ScheduleOptions schedules;  // log: the search's
  double limit = 0;           // seconds of the whole command; 0: none
  CompareLibraries compare = compare_artifacts;
};

// The records and claims of a search
struct SearchEnd {
  std::set<std::string> added;    // identities of its records
  std::vector<TaskClaim> claims;  // claims of all its tasks
  Clock clock;                    // seconds since the command began
  StopAsked stop = nullptr;
};

enum class Proved : uint8_t {
  untimed,    // the reason says why
  unchanged,  // no kernel of the network has another schedule
  faster,
  same,  // no difference can be seen
  slower,
};
const char* proved_name(Proved proved);  // "not-timed", "unchanged", ..

struct NetworkVerdict {
  Proved proved = Proved::untimed;  // verdict on the network with all new records
  std::string reason = {};
  std::optional<Comparison> all = {}, some = {};  // as in KeptTasks
  std::vector<TaskClaim> rejected = {};           // tasks whose new records are marked
  int64_t records = 0;                            // marked records
  // The network by the log, as the search leaves it; null: it is the one before
  std::shared_ptr<const NetworkLibrary> library = nullptr;
  // The network by the log, as the search leaves it, against the one before; nullopt: not timed, or
  // it is the one before
  const std::optional<Comparison>& left() const { return rejected.empty() ? all : some; }
};

class NetworkProof {
 public:
  // Compiles the network by the log as it is, and runs it once, unless the compile stops at a
  // fault. The target must outlive the proof.
  static Expected<NetworkProof> begin(ProofRequest request, const Target& target,
                                      const OnStage& stage);
  const NetworkLibrary& before() const { return before_; }
  // Seconds of the limit to keep for judge(); 0: without a limit
  double kept() const;
  // False: a compile and the runs would take too much of the limit.
  bool fits() const;
  // Times the networks and marks records of the log. Errors: a library that cannot be compiled or
  // run; no new record is kept then.
  Expected<NetworkVerdict> judge(TuningLog& log, const SearchEnd& end) const;

 private:
  NetworkProof(ProofRequest request, const Target& target, NetworkLibrary before)
      : request_(std::move(request)), target_(target), before_(std::move(before)) {}

  ProofRequest request_;
  const Target& target_;
  NetworkLibrary before_;
};

// Judges what a search found. What is not kept shows as the default schedule then.
Expected<NetworkVerdict> judge_search(const NetworkProof& proof, const TuneRequest& request,
                                      TunedNetwork& tuned);

}  // namespace tw
