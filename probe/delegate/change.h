#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace taskcell::probe::delegate {

// The ways in which delegation changes a host.
enum class ChangeKind : uint8_t {
  kDirectory,    // a directory, root's, 0755
  kOwner,        // who owns a file that is there
  kControllers,  // which controllers a cgroup.subtree_control hands on
  kFile,         // a file with that text, root's
  kCommand,      // a program is run
};
std::string_view Name(ChangeKind kind);  // "directory", "owner", "controllers", "file", "command"

// What stood at a change's path before it was made.
struct Before {
  bool present = false;
  std::string text;  // kFile: its bytes; kControllers: what was handed on
  uint32_t mode = 0;
  uint32_t uid = 0;
  uint32_t gid = 0;
};

// One change, as a plain value: enough to make it, to look whether it is made, and, with what was
// there before, to undo it. Its path is absolute. Of a command it is the file by which the effect
// shows: where it is there already nothing is run; "" where no file tells.
struct Change {
  ChangeKind kind = ChangeKind::kDirectory;
  std::string path;
  std::string text = {};  // kFile: its bytes; kControllers: "memory pids"; kCommand: needed_by
  uint32_t mode = 0;      // kFile
  uint32_t uid = 0;       // kOwner; kDirectory: may_own
  uint32_t gid = 0;       // kOwner
  std::vector<std::string> command = {};  // kCommand: argv, or nothing
  std::vector<std::string> undo = {};     // kCommand: argv, or nothing
  Before before = {};                     // known once it is about to be made
};

// One of each kind. Pure.
// A directory that is there already must be root's, or belong to `may_own`.
Change MakeDirectory(std::string path, uint32_t may_own = 0);
Change GiveTo(std::string path, uint32_t uid, uint32_t gid);
Change TurnOn(std::string path, std::string controllers);
Change WriteFile(std::string path, std::string text, uint32_t mode);
// `needed_by` is a cgroup: while it holds processes other than a service manager's own, the command
// is not undone.
Change RunCommand(std::vector<std::string> command, std::vector<std::string> undo,
                  std::string shows_in = {}, std::string needed_by = {});

// The same change of the same place.
bool SamePlace(const Change& one, const Change& other);

// What a person pastes into root's shell to make the change, and to undo it where nothing was there
// before; one or several lines without a final line feed, "" where there is nothing to do. Pure.
std::string CommandOf(const Change& change);
std::string UndoOf(const Change& change);

}  // namespace taskcell::probe::delegate
