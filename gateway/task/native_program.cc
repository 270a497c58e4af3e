#include "gateway/task/native_program.h"

#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <string>
#include <string_view>

#include "gateway/task/verdict.h"
#include "launcher/base/text.h"
#include "launcher/sys/file.h"

namespace taskcell::gateway {
namespace {

// The parts of the host's root with programs in them.
bool IsShown(std::string_view path) {
  constexpr std::array<std::string_view, 5> kShown = {"/usr/", "/bin/", "/sbin/", "/lib/",
                                                      "/lib64/"};
  return std::any_of(kShown.begin(), kShown.end(),
                     [path](std::string_view part) { return path.starts_with(part); });
}

// "": it is there.
std::string WhyNot(const Admission& admission) {
  constexpr mode_t kAnyExecute = S_IXUSR | S_IXGRP | S_IXOTH;
  const bool is_host = !admission.root.valid();
  Result<UniqueFd> host = sys::OpenAt2(AT_FDCWD, "/", O_PATH | O_DIRECTORY, RESOLVE_NO_MAGICLINKS);
  if (!host.ok()) return host.error().text;
  const int root = is_host ? host->get() : admission.root.get();
  Result<UniqueFd> program =
      sys::OpenAt2(root, admission.executable, O_PATH, RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS);
  if (!program.ok()) return program.error().text;
  Result<struct stat> info = sys::Stat(program->get());
  if (!info.ok()) return info.error().text;
  if (!S_ISREG(info->st_mode) || (info->st_mode & kAnyExecute) == 0)
    return "it is no file that can be executed";
  if (!is_host) return "";
  Result<std::string> path = sys::ReadLink(AT_FDCWD, Text("/proc/self/fd/", program->get()));
  if (!path.ok() || IsShown(path.value())) return "";
  return Text("it is '", Printable(path.value()), "', and a cell sees only what is below /usr");
}

}  // namespace

Status CheckNativeProgram(const Admission& admission) {
  if (admission.runtime == Runtime::kOpenAiCompat) return Ok();
  std::string why = WhyNot(admission);
  if (why.empty()) return Ok();
  const cell::RootKind kind =
      admission.root.valid() ? cell::RootKind::kRootfs : cell::RootKind::kHost;
  const std::string root = RootText(kind, admission.own_settings.root);
  return Error(Kind::kConfig, NoProgramText(admission.executable, root, why, admission.runtime))
      .Coded("invalid_config");
}

}  // namespace taskcell::gateway
