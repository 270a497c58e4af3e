#include "launcher/native/request.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>

#include "launcher/base/text.h"
#include "launcher/native/source_walk.h"
#include "launcher/sys/file.h"
#include "launcher/sys/random.h"

namespace taskcell::native {
namespace {

constexpr uint32_t kInsideId = 1000;
constexpr uint32_t kNobody = 65534;
constexpr std::string_view kHome = "/tmp/home";

struct Pinned {
  UniqueFd fd;
  std::string path;  // canonical
  struct stat info;
};

// Opens what the caller named (links on the way are the caller's own wish) and says what it really
// is called, so that the cell's child can open it again without following any.
Result<Pinned> Pin(const std::string& path) {
  UniqueFd fd = TRY(sys::Open(path, O_PATH));
  struct stat info = TRY(sys::Stat(fd.get()));
  std::string canonical = TRY(sys::ReadLink(AT_FDCWD, Text("/proc/self/fd/", fd.get())));
  return Pinned{std::move(fd), std::move(canonical), info};
}

std::string WithoutTrailingSlashes(std::string path) {
  while (path.size() > 1 && path.back() == '/') path.pop_back();
  return path;
}

Status AddBind(const BindOption& bind, LaunchRequest& request) {
  Pinned pinned = TRY(Pin(bind.source));
  TRY(CheckSource(pinned.fd.get(), pinned.path));
  cell::PlannedMount mount;
  mount.source = pinned.path;
  mount.target = WithoutTrailingSlashes(bind.target.empty() ? pinned.path : bind.target);
  mount.kind = S_ISDIR(pinned.info.st_mode) ? cell::EntryKind::kDirectory : cell::EntryKind::kFile;
  mount.device = pinned.info.st_dev;
  mount.inode = pinned.info.st_ino;
  mount.writable = bind.writable;
  mount.follows_links = bind.follows_links;
  request.plan.mounts.push_back(std::move(mount));
  request.pins.push_back(std::move(pinned.fd));
  return Ok();
}

Status SetRoot(const Options& options, LaunchRequest& request) {
  if (options.rootfs.empty()) return Ok();
  Pinned pinned = TRY(Pin(options.rootfs));
  if (!S_ISDIR(pinned.info.st_mode)) return Error(Kind::kUsage, "it is not a directory");
  if (pinned.path == "/") {
    return Error(Kind::kUsage,
                 "the host's own root is no rootfs: everything of the host would be visible. "
                 "--host-root shows what programs need of it");
  }
  request.plan.root = cell::RootKind::kRootfs;
  request.plan.root_source = pinned.path;
  request.plan.root_device = pinned.info.st_dev;
  request.plan.root_inode = pinned.info.st_ino;
  request.pins.push_back(std::move(pinned.fd));
  return Ok();
}

cell::Job MakeJob(const Options& options, const std::string& term) {
  cell::Job job;
  job.argv = options.command;
  job.environment = MakeEnvironment(options.environment, term);
  job.working_directory = WithoutTrailingSlashes(options.working_directory);
  job.home = kHome;
  job.stdio = options.terminal ? cell::JobStdio::kTerminal : cell::JobStdio::kInherit;
  job.stays = false;
  return job;
}

std::string_view VariableName(std::string_view variable) {
  return variable.substr(0, variable.find('='));
}

}  // namespace

std::vector<std::string> MakeEnvironment(const std::vector<std::string>& extra,
                                         const std::string& term) {
  std::vector<std::string> environment = {"PATH=/usr/local/bin:/usr/bin:/bin", Text("HOME=", kHome),
                                          "TMPDIR=/tmp", "LANG=C.UTF-8", "TZ=UTC"};
  if (!term.empty()) environment.push_back("TERM=" + term);
  for (const std::string& variable : extra) {
    std::erase_if(environment, [&](const std::string& there) {
      return VariableName(there) == VariableName(variable);
    });
    environment.push_back(variable);
  }
  return environment;
}

std::vector<cell::PlannedTmpfs> PlanTmpfs(const Options& options) {
  uint64_t memory = options.limits.memory_bytes;
  cell::PlannedTmpfs tmp;
  tmp.target = "/tmp";
  tmp.size_bytes = std::min(kDefaultTmpBytes, std::max<uint64_t>(memory / 4, 1));
  tmp.mode = 01777;
  tmp.exec = true;
  cell::PlannedTmpfs workspace;
  workspace.target = "/workspace";
  workspace.size_bytes = std::min(kDefaultWorkspaceBytes, std::max<uint64_t>(memory / 2, 1));
  workspace.mode = 0700;
  workspace.exec = true;
  std::vector<cell::PlannedTmpfs> all = {tmp, workspace};
  for (const cell::PlannedTmpfs& asked : options.tmpfs) {
    auto same = std::find_if(all.begin(), all.end(),
                             [&](const auto& entry) { return entry.target == asked.target; });
    if (same == all.end()) {
      all.push_back(asked);
    } else {
      same->size_bytes = asked.size_bytes;  // /tmp and /workspace keep their mode and exec
    }
  }
  return all;
}

Result<std::string> MakeRunId() {
  constexpr char kHex[] = "0123456789abcdef";
  std::array<unsigned char, 16> random;
  TRY(sys::FillRandom(random));
  std::string id;
  for (unsigned char byte : random) {
    id += kHex[byte >> 4U];
    id += kHex[byte & 15U];
  }
  return id;
}

Result<LaunchRequest> MakeRequest(const Options& options, const std::string& run_id,
                                  const std::string& term) {
  LaunchRequest request;
  cell::CellPlan& plan = request.plan;
  plan.run_id = run_id;
  plan.agent = "taskcell-launch";
  uint32_t usual = ::geteuid() == 0 ? kNobody : kInsideId;
  plan.uid = options.uid.value_or(usual);
  plan.gid = options.gid.value_or(options.uid.value_or(usual));
  plan.limits = options.limits;
  plan.hostname = options.hostname;
  plan.proc_is_subset = options.proc_is_subset;
  plan.working_directory = WithoutTrailingSlashes(options.working_directory);
  plan.tmpfs = PlanTmpfs(options);
  TRY(SetRoot(options, request).With(Text("--rootfs '", Printable(options.rootfs), "'")));
  for (const BindOption& bind : options.binds)
    TRY(AddBind(bind, request)
            .With(Text(bind.writable ? "--bind-rw '" : "--ro '", Printable(bind.source), "'")));
  TRY(cell::CheckPlan(plan));
  request.job = MakeJob(options, term);
  TRY(cell::CheckJob(request.job));
  return request;
}

}  // namespace taskcell::native
