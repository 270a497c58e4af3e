#include "launcher/native/options.h"

#include <getopt.h>

#include <algorithm>
#include <map>

#include "launcher/base/text.h"
#include "launcher/native/option_values.h"
#include "launcher/native/values.h"

namespace taskcell::native {
namespace {

enum Letter : int {
  kMemory = 256,
  kPids,
  kCpus,
  kNofile,
  kFileSize,
  kCpuSet,
  kIoWeight,
  kAllowMissing,
  kOomGroup,
  kCgroupParent,
  kRootfs,
  kHostRoot,
  kReadOnly,
  kBindWritable,
  kTmpfs,
  kProc,
  kDevMinimal,
  kFile,
  kAgentDirectory,
  kUid,
  kGid,
  kUserns,
  kTimeout,
  kOutputSize,
  kTerminal,
  kKillAfter,
  kDieWithParent,
  kNet,
  kHostname,
  kEnvironment,
  kChangeDirectory,
  kSeccomp,
  kReport,
  kPlanFd,
  kGateFd,
  kStatusFd,
  kSnapshotFd,
  kFilesFd,
  kCheck,
  kHelp,
  kVersion,
};

constexpr struct option kLong[] = {
    {"memory", required_argument, nullptr, kMemory},
    {"pids", required_argument, nullptr, kPids},
    {"cpus", required_argument, nullptr, kCpus},
    {"nofile", required_argument, nullptr, kNofile},
    {"file-size", required_argument, nullptr, kFileSize},
    {"cpu-set", required_argument, nullptr, kCpuSet},
    {"io-weight", required_argument, nullptr, kIoWeight},
    {"allow-missing", required_argument, nullptr, kAllowMissing},
    {"oom-group", no_argument, nullptr, kOomGroup},
    {"cgroup-parent", required_argument, nullptr, kCgroupParent},
    {"rootfs", required_argument, nullptr, kRootfs},
    {"host-root", no_argument, nullptr, kHostRoot},
    {"ro", required_argument, nullptr, kReadOnly},
    {"bind-rw", required_argument, nullptr, kBindWritable},
    {"tmpfs", required_argument, nullptr, kTmpfs},
    {"proc", required_argument, nullptr, kProc},
    {"dev-minimal", no_argument, nullptr, kDevMinimal},
    {"file", required_argument, nullptr, kFile},
    {"agent-dir", required_argument, nullptr, kAgentDirectory},
    {"uid", required_argument, nullptr, kUid},
    {"gid", required_argument, nullptr, kGid},
    {"userns", required_argument, nullptr, kUserns},
    {"timeout", required_argument, nullptr, kTimeout},
    {"output-size", required_argument, nullptr, kOutputSize},
    {"tty", no_argument, nullptr, kTerminal},
    {"kill-after", required_argument, nullptr, kKillAfter},
    {"die-with-parent", no_argument, nullptr, kDieWithParent},
    {"net", required_argument, nullptr, kNet},
    {"hostname", required_argument, nullptr, kHostname},
    {"env", required_argument, nullptr, kEnvironment},
    {"chdir", required_argument, nullptr, kChangeDirectory},
    {"seccomp", required_argument, nullptr, kSeccomp},
    {"report", required_argument, nullptr, kReport},
    {"plan-fd", required_argument, nullptr, kPlanFd},
    {"gate-fd", required_argument, nullptr, kGateFd},
    {"status-fd", required_argument, nullptr, kStatusFd},
    {"snapshot-fd", required_argument, nullptr, kSnapshotFd},
    {"files-fd", required_argument, nullptr, kFilesFd},
    {"check", no_argument, nullptr, kCheck},
    {"help", no_argument, nullptr, kHelp},
    {"version", no_argument, nullptr, kVersion},
    {nullptr, 0, nullptr, 0},
};

Error Usage(std::string text) { return Error(Kind::kUsage, std::move(text)); }

const char* NameOf(int letter) {
  for (const struct option& entry : kLong) {
    if (entry.name != nullptr && entry.val == letter) return entry.name;
  }
  return "?";
}

Status TakeLimit(int letter, std::string_view value, Options& options) {
  switch (letter) {
    case kMemory:
      options.limits.memory_bytes = TRY(ParseSize(value));
      break;
    case kPids:
      options.limits.pids = TRY(ParseCount(value, 4'194'304));
      break;
    case kCpus:
      options.limits.cpu_millis = TRY(ParseCpus(value));
      break;
    case kNofile:
      options.limits.nofile = TRY(ParseCount(value, 1'048'576));
      break;
    case kFileSize:
      options.limits.file_bytes = TRY(ParseSize(value));
      break;
    case kCpuSet:
      options.limits.cpu_set = TRY(ParseCpuSet(value));
      break;
    case kIoWeight:
      options.limits.io_weight = TRY(ParseCount(value, cell::kMaxIoWeight));
      break;
    case kAllowMissing:
      options.limits.cpu_may_be_missing = true;
      return CheckMayBeMissing(value);
    case kOomGroup:
      options.limits.oom_group = true;
      break;
    case kCgroupParent:
      options.cgroup_parent = TRY(ParseCgroupParent(value));
      break;
    case kTimeout:
      options.time_limit.timeout_ms = TRY(ParseDuration(value));
      break;
    case kOutputSize:
      options.output_bytes = TRY(ParseSize(value));
      break;
    case kKillAfter:
      options.time_limit.grace_ms = TRY(ParseDuration(value));
      break;
    default:
      break;
  }
  return Ok();
}

Status TakeGateway(int letter, std::string_view value, Options& options) {
  int fd = TRY(ParseDescriptor(value));
  if (letter == kPlanFd) options.plan_fd = fd;
  if (letter == kGateFd) options.gate_fd = fd;
  if (letter == kStatusFd) options.status_fd = fd;
  if (letter == kSnapshotFd) options.snapshot_fd = fd;
  if (letter == kFilesFd) options.files_fd = fd;
  options.mode = letter == kSnapshotFd ? Options::Mode::kSnapshot
                 : letter == kFilesFd  ? Options::Mode::kFiles
                                       : Options::Mode::kGateway;
  return Ok();
}

Status TakeNet(std::string_view value) {
  if (value == "none") return Ok();
  return Usage(Text("'", Printable(value),
                    "' is not supported: a cell made by this command has no network but its own "
                    "loopback (none)"));
}

Status CheckPath(int letter, std::string_view value) {
  bool is_path =
      letter == kRootfs || letter == kAgentDirectory || letter == kReport || letter == kSeccomp;
  if (!is_path) return Ok();
  if (value.empty()) return Usage("a path option has an empty value (an unset variable?)");
  if (!value.starts_with("--")) return Ok();
  return Usage(Text("'", Printable(value),
                    "' is an option where a path was to be: give the path, "
                    "or write ./",
                    Printable(value), " for a file of that name"));
}

// What can be given once: a second value would silently win over the first.
bool IsSingle(int letter) {
  constexpr int kMany[] = {kReadOnly, kBindWritable, kTmpfs, kFile, kEnvironment};
  if (std::find(std::begin(kMany), std::end(kMany), letter) != std::end(kMany)) return false;
  return std::any_of(std::begin(kLong), std::end(kLong), [&](const struct option& entry) {
    return entry.val == letter && entry.has_arg == required_argument;
  });
}

Status CheckOnce(int letter, std::string_view value, std::map<int, std::string>& seen) {
  if (!IsSingle(letter)) return Ok();
  auto [before, is_first] = seen.emplace(letter, value);
  if (is_first) return Ok();
  return Usage(Text("it is given twice, with '", Printable(before->second), "' and '",
                    Printable(value), "': give it once"));
}

Status Take(int letter, std::string_view value, Options& options) {
  TRY(CheckPath(letter, value));
  switch (letter) {
    case kRootfs:
      options.rootfs = value;
      return Ok();
    case kHostRoot:
      options.host_root = true;
      return Ok();
    case kDieWithParent:
      options.dies_with_parent = true;
      return Ok();
    case kReadOnly:
      options.binds.push_back(ParseBind(value, false));
      return Ok();
    case kBindWritable:
      options.binds.push_back(ParseBind(value, true));
      return Ok();
    case kTmpfs:
      options.tmpfs.push_back(TRY(ParseTmpfs(value)));
      return Ok();
    case kFile:
      options.files.push_back(TRY(ParseFile(value)));
      return Ok();
    case kAgentDirectory:
      options.agent_directory = value;
      return Ok();
    case kUid:
      options.uid = TRY(ParseId(value));
      return Ok();
    case kGid:
      options.gid = TRY(ParseId(value));
      return Ok();
    case kUserns:
      options.user_namespace = TRY(ParseUserNamespaceMode(value));
      return Ok();
    case kNet:
      return TakeNet(value);
    case kHostname:
      options.hostname = TRY(ParseHostname(value));
      return Ok();
    case kProc:
      options.proc_is_subset = TRY(ParseProc(value));
      return Ok();
    case kDevMinimal:  // what every cell has
      return Ok();
    case kEnvironment:
      options.environment.emplace_back(value);
      return CheckVariable(value);
    case kChangeDirectory:
      options.working_directory = value;
      return Ok();
    case kSeccomp:
      options.seccomp = value;
      return Ok();
    case kReport:
      options.report = value;
      return Ok();
    case kTerminal:
      options.terminal = true;
      return Ok();
    case kCheck:
      options.mode = Options::Mode::kCheck;
      return Ok();
    case kHelp:
      options.mode = Options::Mode::kHelp;
      return Ok();
    case kVersion:
      options.mode = Options::Mode::kVersion;
      return Ok();
    case kPlanFd:
    case kGateFd:
    case kStatusFd:
    case kSnapshotFd:
    case kFilesFd:
      return TakeGateway(letter, value, options);
    default:
      return TakeLimit(letter, value, options);
  }
}

}  // namespace

Result<Options> ParseOptions(int count, char** arguments) {
  Options options;
  std::map<int, std::string> seen;
  ::opterr = 0;
  ::optind = 0;  // glibc: start afresh, also in a second call
  while (true) {
    // NOLINTNEXTLINE(concurrency-mt-unsafe): the launcher has one thread
    int letter = ::getopt_long(count, arguments, "+:", kLong, nullptr);
    if (letter == -1) break;
    if (letter == '?' || letter == ':') {
      const char* given = arguments[::optind - 1];
      return Usage(letter == ':' ? Text(given, " needs a value")
                                 : Text("unknown or ambiguous option '", Printable(given),
                                        "'; see taskcell-launch --help"));
    }
    const char* value = ::optarg == nullptr ? "" : ::optarg;
    TRY(CheckOnce(letter, value, seen).With(Text("--", NameOf(letter))));
    TRY(Take(letter, value, options).With(Text("--", NameOf(letter))));
    options.given.emplace_back(NameOf(letter));
  }
  options.command.assign(arguments + ::optind, arguments + count);
  TRY(CheckTogether(options));
  return options;
}

std::string FindReportOption(int count, char** arguments) {
  std::string report;
  ::optind = 0;  // as above
  while (true) {
    // NOLINTNEXTLINE(concurrency-mt-unsafe): the launcher has one thread
    int letter = ::getopt_long(count, arguments, "+:", kLong, nullptr);
    if (letter == -1) return report;
    if (letter == kReport && ::optarg[0] != '-') report = ::optarg;
  }
}

Status CheckStrings(const std::vector<std::string>& argv,
                    const std::vector<std::string>& environment) {
  for (const std::vector<std::string>* list : {&argv, &environment}) {
    for (const std::string& text : *list) {
      if (text.size() < kMaxStringBytes) continue;
      return Usage(Text(list == &argv ? "an argument" : "a variable", " has ", text.size(),
                        " bytes; the kernel takes at most 131071 in one (the limit is 128 KiB with "
                        "the end mark). Give such text by standard input or in a file"));
    }
  }
  return Ok();
}

}  // namespace taskcell::native
