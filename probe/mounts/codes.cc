#include "probe/mounts/codes.h"

#include <array>

namespace taskcell::probe::audit {
namespace {

struct Row {
  CodeText text;
  Severity severity;
};

constexpr std::array<Row, kCodes> kRows = {{
    {{"symlink_escapes", "a symbolic link that leads out of the directory",
      "Whoever follows it reads or writes a file that is not in the directory.",
      "Replace the link by a copy of what it leads to, or remove it."},
     Severity::kError},
    {{"magic_link", "a symbolic link through /proc",
      "Links in /proc lead past every check of names, to whatever a process has open.",
      "Remove it."},
     Severity::kError},
    {{"symlink_unresolved", "a symbolic link whose end could not be found out",
      "It may lead out of the directory.", "Replace the link by a copy, or remove it."},
     Severity::kError},
    {{"symlink_dangling", "a symbolic link that leads to nothing",
      "Whoever makes what it leads to decides what is read.", "Remove it."},
     Severity::kWarning},
    {{"symlink_inside", "a symbolic link that stays in the directory",
      "A change of the link changes what is read; where links are refused it is missing.",
      "Replace the link by a copy of what it leads to."},
     Severity::kWarning},
    {{"hard_link_leaves", "a file with a name outside of the directory",
      "It is the very file that the other name stands for: a secret linked in is read, and a "
      "change through one name is seen through the other.",
      "Replace it by a copy: cp -p FILE FILE.new && mv FILE.new FILE"},
     Severity::kError},
    {{"hard_link_unresolved", "a file with further names that cannot be looked for",
      "One of the other names may be outside: treated as hard_link_leaves.",
      "Audit a smaller directory, or replace the links by copies."},
     Severity::kError},
    {{"hard_link_closed", "a file with several names, all of them in the directory",
      "Nothing from outside; a change through one name is seen through the others.",
      "Nothing to do, unless every file is to be plain: then copy it."},
     Severity::kWarning},
    {{"mount", "something is mounted there",
      "What is mounted is not of the directory, and can be exchanged by whoever mounts.",
      "Unmount it, or mount the directory without it."},
     Severity::kError},
    {{"mount_loop", "a mount that shows a directory above itself",
      "A walk that follows it does not end.", "Unmount it."},
     Severity::kError},
    {{"socket", "a socket", "A cell that sees it talks to the process at its other end.",
      "Keep sockets elsewhere, as in $XDG_RUNTIME_DIR."},
     Severity::kError},
    {{"fifo", "a FIFO", "A reader hangs until somebody writes; a cell talks to the other end.",
      "Remove it."},
     Severity::kError},
    {{"device", "a device node", "A cell that may open it acts on the host's device.",
      "Remove it."},
     Severity::kError},
    {{"set_id", "a program that changes ids when it is run",
      "Where the mount honours it, a cell runs it with its owner's rights.", "chmod ug-s FILE"},
     Severity::kError},
    {{"file_capability", "a program with capabilities",
      "Where the mount honours them, a cell gets capabilities by running it.", "setcap -r FILE"},
     Severity::kError},
    {{"writable_by_others", "others may write it",
      "Any process of those users exchanges the content between a check and its use.",
      "chmod go-w FILE"},
     Severity::kWarning},
    {{"access_list", "an access control list that may let others write it",
      "Whoever is named in it may change it, which the mode does not show.", "setfacl -b FILE"},
     Severity::kWarning},
    {{"foreign_owner", "it belongs to somebody else",
      "Its owner changes content and mode at any time.",
      "Have its owner say what it is for, or replace it by a copy of your own."},
     Severity::kWarning},
    {{"overlay_attribute", "an attribute of an overlay file system",
      "Used as a layer, the directory shows or hides files by it, also from elsewhere.",
      "Find out who uses it as a layer; copy the files without attributes."},
     Severity::kWarning},
    {{"immutable", "it is immutable or can only be appended to",
      "None; but it cannot be replaced or removed, so repairs and clean-ups fail.",
      "chattr -i -a FILE (as root)"},
     Severity::kNote},
    {{"foreign_content", "its file system is served by a process or another host",
      "Whoever serves it gives another answer to each reader, whatever was checked.",
      "Copy it to a local file system and audit the copy."},
     Severity::kWarning},
    {{"ancestor_owner", "a directory on the way belongs to somebody else",
      "Its owner exchanges the next directory for another at any time.",
      "Move the directory below one of your own."},
     Severity::kError},
    {{"ancestor_writable", "others may write a directory on the way",
      "They exchange the next directory for another at any time.", "chmod go-w DIRECTORY"},
     Severity::kError},
    {{"ancestor_link", "a symbolic link on the way",
      "Who owns the link decides what the path means, also between a check and its use.",
      "Name the directory it leads to."},
     Severity::kError},
    {{"entry_skipped", "an allowed entry that is not as it must be",
      "It would be shown to a cell if it was mounted by its name.",
      "Replace it by a plain file or directory."},
     Severity::kWarning},
    {{"over_limit", "more than a snapshot or a prompt may hold",
      "None; the whole of it is left out of a cell, or the task is refused.", "Make it smaller."},
     Severity::kWarning},
    {{"not_text", "text for a prompt that is not UTF-8, or has a NUL byte in it",
      "None; every task of the agent is refused.", "Save it as UTF-8."},
     Severity::kWarning},
    {{"changed", "it changed while it was looked at",
      "What was judged may not be what is there now.",
      "Run the audit again when nobody writes there."},
     Severity::kUnknown},
    {{"unreadable", "it cannot be looked at", "Anything may be behind it.",
      "Run the audit as its owner, or leave it out."},
     Severity::kUnknown},
    {{"too_deep", "directories nested too deep to be followed", "Anything may be behind it.",
      "Find out who made them; remove them."},
     Severity::kUnknown},
    {{"too_many", "more entries than were to be looked at", "Anything may be among the rest.",
      "Give a larger --max-entries, or a smaller directory."},
     Severity::kUnknown},
    {{"timeout", "the time was up", "Anything may be among the rest.",
      "Give a longer --timeout, or a smaller directory."},
     Severity::kUnknown},
    {{"hangs", "a file system that does not answer",
      "None; but whoever looks at it hangs, and what is behind it is not known.",
      "Unmount it (fusermount -u, umount -l), or restart its server."},
     Severity::kUnknown},
}};

}  // namespace

std::string_view Name(Policy policy) {
  switch (policy) {
    case Policy::kAgent:
      return "agent";
    case Policy::kStrict:
      return "strict";
    case Policy::kBind:
      return "bind";
  }
  return "";
}

std::optional<Policy> PolicyNamed(std::string_view name) {
  for (Policy policy : {Policy::kAgent, Policy::kStrict, Policy::kBind}) {
    if (Name(policy) == name) return policy;
  }
  return std::nullopt;
}

std::string_view Name(Severity severity) {
  switch (severity) {
    case Severity::kError:
      return "error";
    case Severity::kWarning:
      return "warning";
    case Severity::kUnknown:
      return "unknown";
    case Severity::kNote:
      return "note";
  }
  return "";
}

bool IsOfTheWalk(Code code) { return code == Code::kTimeout || code == Code::kHangs; }

const CodeText& TextOf(Code code) { return kRows[static_cast<std::size_t>(code)].text; }

Severity SeverityOf(Code code, Policy policy) {
  // A snapshot keeps both.
  if (policy == Policy::kAgent && (code == Code::kSymlinkInside || code == Code::kHardLinkClosed))
    return Severity::kNote;
  return kRows[static_cast<std::size_t>(code)].severity;
}

}  // namespace taskcell::probe::audit
