#include "probe/delegate/change.h"

#include "launcher/base/text.h"

namespace taskcell::probe::delegate {
namespace {

std::string Line(const std::vector<std::string>& argv) {
  std::string line;
  for (const std::string& word : argv) line += Text(line.empty() ? "" : " ", ShellWord(word));
  return line;
}

// "memory pids" as a cgroup.subtree_control takes it.
std::string Switched(char sign, std::string_view controllers) {
  std::string words;
  for (std::string_view word : Words(controllers))
    words += Text(words.empty() ? "" : " ", sign, word);
  return words;
}

std::string Octal(uint32_t mode) {
  std::string digits;
  for (; mode != 0; mode >>= 3U)
    digits.insert(digits.begin(), static_cast<char>('0' + (mode & 7U)));
  return "0" + digits;
}

// No line of our files is the word that ends them.
std::string Heredoc(const Change& change) {
  std::string path = ShellWord(change.path);
  return Text("cat >", path, " <<'END'\n", change.text, "END\nchmod ", Octal(change.mode), " ",
              path);
}

}  // namespace

std::string_view Name(ChangeKind kind) {
  switch (kind) {
    case ChangeKind::kDirectory:
      return "directory";
    case ChangeKind::kOwner:
      return "owner";
    case ChangeKind::kControllers:
      return "controllers";
    case ChangeKind::kFile:
      return "file";
    case ChangeKind::kCommand:
      return "command";
  }
  return "";
}

Change MakeDirectory(std::string path, uint32_t may_own) {
  Change change{ChangeKind::kDirectory, std::move(path)};
  change.uid = may_own;
  return change;
}

Change GiveTo(std::string path, uint32_t uid, uint32_t gid) {
  Change change{ChangeKind::kOwner, std::move(path)};
  change.uid = uid;
  change.gid = gid;
  return change;
}

Change TurnOn(std::string path, std::string controllers) {
  return {ChangeKind::kControllers, std::move(path), std::move(controllers)};
}

Change WriteFile(std::string path, std::string text, uint32_t mode) {
  return {ChangeKind::kFile, std::move(path), std::move(text), mode};
}

Change RunCommand(std::vector<std::string> command, std::vector<std::string> undo,
                  std::string shows_in, std::string needed_by) {
  Change change{ChangeKind::kCommand, std::move(shows_in), std::move(needed_by)};
  change.command = std::move(command);
  change.undo = std::move(undo);
  return change;
}

bool SamePlace(const Change& one, const Change& other) {
  return one.kind == other.kind && one.path == other.path && one.command == other.command &&
         one.undo == other.undo;
}

std::string CommandOf(const Change& change) {
  std::string path = ShellWord(change.path);
  switch (change.kind) {
    case ChangeKind::kDirectory:
      return "mkdir -p " + path;
    case ChangeKind::kOwner:
      return Text("chown ", change.uid, ":", change.gid, " ", path);
    case ChangeKind::kControllers:
      return Text("echo '", Switched('+', change.text), "' >", path);
    case ChangeKind::kFile:
      return Heredoc(change);
    case ChangeKind::kCommand:
      return Line(change.command);
  }
  return {};
}

std::string UndoOf(const Change& change) {
  std::string path = ShellWord(change.path);
  switch (change.kind) {
    case ChangeKind::kDirectory:
      return "rmdir " + path;
    case ChangeKind::kOwner:
      return {};  // it goes with its directory
    case ChangeKind::kControllers:
      return Text("echo '", Switched('-', change.text), "' >", path);
    case ChangeKind::kFile:
      return "rm " + path;
    case ChangeKind::kCommand:
      return Line(change.undo);
  }
  return {};
}

}  // namespace taskcell::probe::delegate
