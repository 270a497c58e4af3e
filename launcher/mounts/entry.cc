#include "launcher/mounts/entry.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>

#include <cerrno>
#include <utility>
#include <vector>

#include "launcher/base/text.h"
#include "launcher/mounts/component.h"
#include "launcher/sys/entry.h"
#include "launcher/sys/file.h"

namespace taskcell::mounts {
namespace {

Finding Skip(Reason reason, std::string note) {
  Finding finding;
  finding.verdict = Verdict::kSkip;
  finding.reason = reason;
  finding.note = std::move(note);
  return finding;
}

// What a failed open of one component says about the entry; an Error when it says something about
// the system instead.
Result<Finding> FromOpenError(Error error) {
  switch (error.err) {
    case ENOENT:
      return Finding{};
    case ELOOP:
      return Skip(Reason::kSymlink, "it is a symbolic link");
    case EXDEV:
      return Skip(Reason::kMount, "something is mounted on it");
    case EACCES:
    case EPERM:
      return Skip(Reason::kUnreadable, "it cannot be read by this user");
    case EAGAIN:
    case ENXIO:
    case ENOTDIR:
    case EISDIR:
    case ESTALE:
      return Skip(Reason::kRace, "it changed while it was looked at");
    default:
      return error;
  }
}

// What an entry is to be.
struct Wanted {
  cell::EntryKind kind;
  uint64_t max_links;
};

Finding FromKind(const struct stat& info, const Wanted& wanted) {
  if (S_ISLNK(info.st_mode)) return Skip(Reason::kSymlink, "it is a symbolic link");
  if (!S_ISREG(info.st_mode) && !S_ISDIR(info.st_mode))
    return Skip(Reason::kSpecial, Text("it is ", KindName(info.st_mode)));
  bool want_directory = wanted.kind == cell::EntryKind::kDirectory;
  if (S_ISDIR(info.st_mode) != want_directory) {
    return Skip(Reason::kWrongKind, Text("it is ", KindName(info.st_mode), ", expected ",
                                         want_directory ? "a directory" : "a regular file"));
  }
  Finding finding;
  finding.verdict = Verdict::kSafe;
  if (!want_directory && info.st_nlink > wanted.max_links)
    finding = Skip(Reason::kHardlink, Text("it has ", info.st_nlink, " hard links, expected 1"));
  finding.device = info.st_dev;
  finding.inode = info.st_ino;
  finding.links = info.st_nlink;
  return finding;
}

// Opens for reading what `pinned` is, by the same name, and proves that it is the same.
Result<Finding> OpenSame(int dir_fd, const std::string& name, const Wanted& wanted,
                         const struct stat& pinned) {
  int flags = O_RDONLY | O_NONBLOCK | O_NOCTTY;
  if (wanted.kind == cell::EntryKind::kDirectory) flags |= O_DIRECTORY;
  Result<UniqueFd> opened = OpenComponent(dir_fd, name, flags);
  if (!opened.ok()) {
    if (opened.error().err == ENOENT)
      return Skip(Reason::kRace, "it changed while it was looked at");
    return FromOpenError(std::move(opened).error());
  }
  struct stat now = TRY(sys::Stat(opened->get()));
  if (now.st_dev != pinned.st_dev || now.st_ino != pinned.st_ino)
    return Skip(Reason::kRace, "it changed while it was looked at");
  Finding finding = FromKind(now, wanted);
  if (finding.verdict != Verdict::kSafe) return finding;
  finding.fd = std::move(opened).value();
  finding.size = static_cast<uint64_t>(now.st_size);
  return finding;
}

// Whether the directory `name`, whose fstat is `info`, may be what a container engine made for a
// missing bind source: an empty one of root, or, without root, of the user it runs for.
Result<bool> MayBeAnEngines(int dir_fd, const std::string& name, const struct stat& info) {
  if (info.st_uid != 0 && info.st_uid != TRY(sys::Stat(dir_fd)).st_uid) return false;
  Result<UniqueFd> opened = OpenComponent(dir_fd, name, O_RDONLY | O_DIRECTORY);
  if (!opened.ok()) return false;  // ignoring: a hint less
  Result<std::vector<sys::DirectoryEntry>> listed = sys::ListDirectory(opened->get(), 0);
  return listed.ok() && listed->empty();
}

// `kind` is what is expected, or nullptr: then `found` decides.
Result<Finding> JudgeOnce(int dir_fd, const std::string& name, const cell::EntryKind* kind,
                          uint64_t max_links, cell::EntryKind& found) {
  Result<UniqueFd> pin = OpenComponent(dir_fd, name, O_PATH);
  if (!pin.ok()) return FromOpenError(std::move(pin).error());
  // A link in the last position is returned itself: only fstat tells.
  struct stat info = TRY(sys::Stat(pin->get()));
  found = S_ISDIR(info.st_mode) ? cell::EntryKind::kDirectory : cell::EntryKind::kFile;
  const Wanted wanted = {kind != nullptr ? *kind : found, max_links};
  Finding finding = FromKind(info, wanted);
  if (finding.reason == Reason::kWrongKind && S_ISDIR(info.st_mode) &&
      TRY(MayBeAnEngines(dir_fd, name, info)))
    finding.note +=
        "; a container engine may have made it for a missing source: it is empty, remove it";
  if (finding.verdict != Verdict::kSafe) return finding;
  return OpenSame(dir_fd, name, wanted, info);
}

// The same, again where the name was given to another inode in between: an honest save renames a
// new file over the old one, and whichever of the two the name stands for can be judged.
Result<Finding> JudgePinned(int dir_fd, const std::string& name, const cell::EntryKind* kind,
                            uint64_t max_links, cell::EntryKind& found) {
  constexpr int kRaceTries = 128;  // against somebody who renames all the time
  for (int tries = 1;; ++tries) {
    Finding finding = TRY(JudgeOnce(dir_fd, name, kind, max_links, found));
    if (finding.reason != Reason::kRace || tries == kRaceTries) return finding;
  }
}

}  // namespace

bool IsPersonaText(std::string_view text) {
  return IsUtf8(text) && text.find('\0') == std::string_view::npos;
}

Result<std::set<std::string_view>> ListedEntries(int dir_fd) {
  constexpr std::size_t kBufferBytes = 16384;
  UniqueFd own = TRY(sys::OpenNoFollow(dir_fd, ".", O_RDONLY | O_DIRECTORY));
  std::set<std::string_view> listed;
  std::string records(kBufferBytes, '\0');
  while (std::size_t got = TRY(sys::ReadRecords(own.get(), records))) {
    for (std::size_t at = 0; at < got;) {
      const auto* record = reinterpret_cast<const struct dirent64*>(records.data() + at);
      at += record->d_reclen;
      for (const AllowedEntry& allowed : kAgentEntries) {
        if (allowed.name == record->d_name) listed.insert(allowed.name);
      }
    }
  }
  return listed;
}

std::string_view Name(Verdict verdict) {
  switch (verdict) {
    case Verdict::kSafe:
      return "safe";
    case Verdict::kSkip:
      return "skip";
    case Verdict::kAbsent:
      return "absent";
  }
  return "";
}

std::string_view Name(Reason reason) {
  switch (reason) {
    case Reason::kNone:
      return "";
    case Reason::kSymlink:
      return "symlink";
    case Reason::kHardlink:
      return "hardlink";
    case Reason::kWrongKind:
      return "wrong_kind";
    case Reason::kMount:
      return "mount";
    case Reason::kSpecial:
      return "special";
    case Reason::kUnreadable:
      return "unreadable";
    case Reason::kRace:
      return "race";
  }
  return "";
}

std::string_view KindName(mode_t mode) {
  switch (mode & S_IFMT) {
    case S_IFREG:
      return "a regular file";
    case S_IFDIR:
      return "a directory";
    case S_IFLNK:
      return "a symbolic link";
    case S_IFIFO:
      return "a FIFO";
    case S_IFSOCK:
      return "a socket";
    case S_IFCHR:
      return "a character device";
    case S_IFBLK:
      return "a block device";
    default:
      return "of an unknown kind";
  }
}

Result<Finding> Judge(int dir_fd, const std::string& name, cell::EntryKind kind) {
  cell::EntryKind found;
  return JudgePinned(dir_fd, name, &kind, 1, found);
}

Result<Finding> JudgeAllowed(int dir_fd, const AllowedEntry& allowed,
                             const std::set<std::string_view>& listed) {
  Finding finding = TRY(Judge(dir_fd, std::string(allowed.name), allowed.kind));
  if (finding.verdict != Verdict::kSafe || listed.contains(allowed.name)) return finding;
  return Skip(Reason::kWrongKind, "the directory lists it under another spelling of its name");
}

Result<Finding> JudgeAny(int dir_fd, const std::string& name, cell::EntryKind& kind,
                         uint64_t max_links) {
  return JudgePinned(dir_fd, name, nullptr, max_links, kind);
}

}  // namespace taskcell::mounts
