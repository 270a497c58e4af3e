#include "gateway/task/native_root.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <string_view>

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

}  // namespace

Result<NativeRoot> PinNativeRoot(const TaskcellSettings& settings) {
  NativeRoot root;
  if (settings.root == "host") return root;
  Result<UniqueFd> opened =
      sys::OpenAt2(AT_FDCWD, settings.root, O_PATH | O_DIRECTORY | O_NOFOLLOW, RESOLVE_NO_SYMLINKS);
  if (!opened.ok())
    return Error(Kind::kConfig, Text("[taskcell] root: ", opened.error().text,
                                     "; it must be a directory reached without symbolic links"))
        .Coded("invalid_config");
  struct stat info = TRY(sys::Stat(opened->get()));
  root.fd = std::move(opened).value();
  root.path = settings.root;
  root.device = info.st_dev;
  root.inode = info.st_ino;
  return root;
}

void PlanRoot(cell::Engine engine, const std::string& image, const NativeRoot& root,
              cell::CellPlan& plan) {
  if (engine != cell::Engine::kNative) {
    plan.root = cell::RootKind::kImage;
    plan.root_source = image;
  } else if (root.fd.valid()) {
    plan.root = cell::RootKind::kRootfs;
    plan.root_source = root.path;
    plan.root_device = root.device;
    plan.root_inode = root.inode;
  } else {
    plan.root = cell::RootKind::kHost;
  }
}

std::string WhyNoProgram(const NativeRoot& root, const std::string& program) {
  constexpr mode_t kAnyExecute = S_IXUSR | S_IXGRP | S_IXOTH;
  const bool is_host = !root.fd.valid();
  Result<UniqueFd> host = sys::OpenAt2(AT_FDCWD, "/", O_PATH | O_DIRECTORY, RESOLVE_NO_MAGICLINKS);
  if (!host.ok()) return host.error().text;
  Result<UniqueFd> found = sys::OpenAt2(is_host ? host->get() : root.fd.get(), program, O_PATH,
                                        RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS);
  if (!found.ok()) return found.error().text;
  Result<struct stat> info = sys::Stat(found->get());
  if (!info.ok()) return info.error().text;
  if (!S_ISREG(info->st_mode) || (info->st_mode & kAnyExecute) == 0)
    return "it is no file that can be executed";
  if (!is_host) return "";
  Result<std::string> path = sys::ReadLink(AT_FDCWD, Text("/proc/self/fd/", found->get()));
  if (!path.ok() || IsShown(path.value())) return "";
  return Text("it is '", Printable(path.value()), "', and a cell sees only what is below /usr");
}

}  // namespace taskcell::gateway
