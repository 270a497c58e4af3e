#include <algorithm>

#include "launcher/base/text.h"
#include "launcher/native/options.h"

namespace taskcell::native {
namespace {

Error Usage(std::string text) { return Error(Kind::kUsage, std::move(text)); }

Status CheckFiles(const std::vector<FileOption>& files) {
  for (auto file = files.begin(); file != files.end(); ++file) {
    auto same = std::find_if(files.begin(), file,
                             [&](const FileOption& other) { return other.fd == file->fd; });
    if (same == file) continue;
    return Usage(Text("--file '", Printable(same->target), "' and '", Printable(file->target),
                      "' name the same descriptor, ", file->fd,
                      ", which can be read only once: give each its own"));
  }
  return Ok();
}

Status CheckTmpfs(const std::vector<cell::PlannedTmpfs>& all) {
  for (auto tmpfs = all.begin(); tmpfs != all.end(); ++tmpfs) {
    const bool again = std::any_of(
        all.begin(), tmpfs, [&](const auto& other) { return other.target == tmpfs->target; });
    if (again)
      return Usage(Text("--tmpfs '", Printable(tmpfs->target), "' is given twice: give one size"));
  }
  return Ok();
}

// What else was given would not be looked at, and somebody could take it for checked.
Status CheckOfCheck(const std::vector<std::string_view>& given) {
  constexpr std::string_view kTaken[] = {"check", "userns",        "uid",
                                         "gid",   "cgroup-parent", "seccomp"};
  for (std::string_view option : given) {
    if (std::find(std::begin(kTaken), std::end(kTaken), option) != std::end(kTaken)) continue;
    return Usage(
        Text("--check looks at this host by a cell of its own, with the host root and "
             "limits that it goes past: leave --",
             option,
             " out. It takes --userns, --uid, --gid, --cgroup-parent and "
             "--seccomp; whether anything else serves, a program shows"));
  }
  return Ok();
}

}  // namespace

Status CheckTogether(const Options& options) {
  if (options.snapshot_fd >= 0) {
    if (options.mode == Options::Mode::kSnapshot && options.plan_fd < 0 && options.command.empty())
      return Ok();
    return Usage("--snapshot-fd goes with no other option and no program");
  }
  if (options.files_fd >= 0) {
    if (options.mode == Options::Mode::kFiles && options.plan_fd < 0 && options.command.empty())
      return Ok();
    return Usage("--files-fd goes with no other option and no program");
  }
  if (options.mode == Options::Mode::kGateway) {
    if (options.plan_fd < 0 || options.gate_fd < 0 || options.status_fd < 0)
      return Usage("--plan-fd, --gate-fd and --status-fd go together");
    if (!options.command.empty())
      return Usage("with --plan-fd the program comes over the gate, not on the command line");
    return Ok();
  }
  if (options.mode == Options::Mode::kCheck && !options.command.empty())
    return Usage("--check runs a program of its own");
  if (options.mode == Options::Mode::kCheck) TRY(CheckOfCheck(options.given));
  if (options.host_root && !options.rootfs.empty())
    return Usage("--host-root and --rootfs are two roots: give one");
  TRY(CheckFiles(options.files));
  TRY(CheckTmpfs(options.tmpfs));
  if (options.mode != Options::Mode::kRun) return Ok();
  if (options.command.empty()) return Usage("no program given; see taskcell-launch --help");
  return CheckStrings(options.command, options.environment);
}

}  // namespace taskcell::native
