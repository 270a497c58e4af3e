#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "gateway/config/home.h"
#include "launcher/base/result.h"
#include "probe/engine/answers.h"

namespace taskcell::gateway {

// How long past its deadline a container, and how long untouched a run directory, is left alone.
inline constexpr int64_t kSweepGraceS = 600;
inline constexpr std::size_t kMaxSweptContainers = 256;  // of one sweep; the rest is for the next

// The containers of an engine, as far as a sweep needs them.
struct EngineContainers {
  std::string socket_path;  // empty: not known
  std::function<Result<std::vector<probe::ListedContainer>>(const std::string& home_label)> list;
  std::function<Status(const std::string& id)> remove;
};

// Makes those of the engine at a socket, asking nothing.
using OpenEngine = std::function<EngineContainers(const std::string& socket_path)>;

struct SweepOptions {
  int64_t now_s = 0;     // unix time
  bool dry_run = false;  // say what would be removed, and change nothing
};

// What a sweep did, or with dry_run would do.
struct SweepReport {
  bool never_ran = false;                // this home has no <home>/sandbox: no engine was asked
  std::vector<std::string> containers;   // ids removed
  std::vector<std::string> directories;  // run ids whose directories were removed
  std::vector<std::string> interrupted;  // tasks whose process is gone
  std::vector<std::string> expired;      // by [taskcell.retention]: one line a kind
  std::vector<std::string> notes;        // for a person: what was left alone and why
  // What failed, by the guide's reason ("docker_unreachable", "list_invalid",
  // "container_remove_failed", "directory_remove_failed"), and how many of it.
  std::map<std::string, uint64_t, std::less<>> failures;
};

// True for 32 lowercase hex digits.
bool IsRunId(std::string_view name);

// Removes what is left of runs that nobody runs any more, of this home only: containers that exited
// or are dead, or are more than kSweepGraceS past their deadline while no process holds their run
// directory locked; run directories older than that which no container uses and no process holds
// locked. A container counts only where its run stands in the ledger. Where the engine cannot be
// listed, or a line of the listing makes no sense, nothing is removed at all. Tasks whose process
// is gone become interrupted, also in a home without cells. Each kind of failure is written to the
// audit log, but with dry_run. `engine` is nullptr for cells that no engine makes. Engines that are
// not configured any more, but made runs whose end the ledger does not have, are asked by `former`;
// the run directories of one that can't be listed stay, and a note says so.
Result<SweepReport> Sweep(const Home& home, const EngineContainers* engine,
                          const SweepOptions& options, const OpenEngine& former = {});

}  // namespace taskcell::gateway
