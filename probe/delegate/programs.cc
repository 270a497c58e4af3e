#include "probe/delegate/programs.h"

#include "launcher/base/text.h"

namespace taskcell::probe::delegate {
namespace {

constexpr std::string_view kNames[] = {"systemctl", "loginctl", "rc-update"};
constexpr std::string_view kDirectories[] = {"/usr/bin", "/bin", "/usr/sbin", "/sbin"};

}  // namespace

void ReadProgramFacts(sys::FileTree& tree, FileFacts& files) {
  for (std::string_view name : kNames) {
    for (std::string_view directory : kDirectories) {
      std::string path = Text(directory, "/", name);
      files.Add(path, tree.Look(path));
    }
  }
}

std::string ProgramIn(const FileFacts& files, std::string_view name) {
  for (std::string_view directory : kDirectories) {
    std::string path = Text(directory, "/", name);
    if (files.File(path).present()) return path;
  }
  return Text(kDirectories[0], "/", name);
}

}  // namespace taskcell::probe::delegate
