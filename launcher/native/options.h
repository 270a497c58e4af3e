#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "launcher/base/result.h"
#include "launcher/cell/cell_plan.h"
#include "launcher/native/id_maps.h"
#include "launcher/native/time_limit.h"

namespace taskcell::native {

// The limits of a cell when none are asked for: those of the task sandbox.
inline const cell::Limits kDefaultLimits = {uint64_t{4} << 30U, 128, 1000, 1024};
inline constexpr uint64_t kDefaultTmpBytes = uint64_t{256} << 20U;
inline constexpr uint64_t kDefaultWorkspaceBytes = uint64_t{512} << 20U;
// The kernel's bound on one argument or environment string, its NUL included (MAX_ARG_STRLEN).
inline constexpr std::size_t kMaxStringBytes = 131072;

struct BindOption {
  std::string source;
  std::string target;
  bool writable = false;
  bool follows_links = true;
};

// A file of the cell whose content is what the descriptor holds to its end.
struct FileOption {
  std::string target;
  int fd = -1;
};

// taskcell-launch's command line, checked one by one but not yet against the host.
// NOLINTNEXTLINE(clang-analyzer-optin.performance.Padding): in the order of the manual
struct Options {
  enum class Mode : uint8_t { kRun, kCheck, kHelp, kVersion, kGateway, kSnapshot, kFiles };
  Mode mode = Mode::kRun;

  cell::Limits limits = kDefaultLimits;
  std::string cgroup_parent;  // empty: where delegation is found
  std::string rootfs;         // empty: the host root
  bool host_root = false;     // asked for by name
  std::vector<BindOption> binds;
  std::vector<FileOption> files;
  std::vector<cell::PlannedTmpfs> tmpfs;  // beyond, or instead of, /tmp and /workspace
  bool proc_is_subset = false;            // /proc shows processes alone
  std::string agent_directory;
  std::optional<uint32_t> uid;
  std::optional<uint32_t> gid;
  UserNamespaceMode user_namespace = UserNamespaceMode::kAuto;
  TimeLimit time_limit;
  uint64_t output_bytes = 0;  // of standard output and error together; 0: not counted
  bool terminal = false;      // the program gets a terminal of its own
  bool dies_with_parent = false;
  std::string hostname = "taskcell";
  std::vector<std::string> environment;  // NAME=VALUE, in order
  std::string working_directory = "/workspace";
  std::string seccomp;  // a profile; empty: the default one
  std::string report;
  std::vector<std::string> command;
  std::vector<std::string_view> given;  // the names of the options, in order

  // Mode::kGateway: descriptors the gateway passed.
  int plan_fd = -1;
  int gate_fd = -1;
  int status_fd = -1;
  int snapshot_fd = -1;  // Mode::kSnapshot
  int files_fd = -1;     // Mode::kFiles
};

// Parses the command line. Every Error is kUsage and names the option.
Result<Options> ParseOptions(int count, char** arguments);

// The last --report of a command line that ParseOptions refuses, "" where there is none.
std::string FindReportOption(int count, char** arguments);

// What --help prints.
extern const char kUsage[];

// Refuses options that do not go together, and a command line without its program. Pure.
Status CheckTogether(const Options& options);

// Refuses an argument or variable that exec could not take, naming the 128 KiB bound and the way
// out. Pure.
Status CheckStrings(const std::vector<std::string>& argv,
                    const std::vector<std::string>& environment);

}  // namespace taskcell::native
