#include "launcher/sys/file_tree.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <cerrno>

#include "launcher/sys/failure.h"

namespace taskcell::sys {
namespace {

constexpr int kReadFlags = O_RDONLY | O_NONBLOCK | O_NOCTTY;

FileSeen NotSeen(const Error& error) {
  FileSeen seen;
  if (error.err == ENOENT || error.err == ENOTDIR) return seen;
  seen.state = FileSeen::State::kUnreadable;
  seen.err = error.err;
  return seen;
}

}  // namespace

Result<RootedTree> RootedTree::OpenHost() {
  return RootedTree(TRY(Open("/", O_PATH | O_DIRECTORY)), true);
}

Result<RootedTree> RootedTree::OpenDirectory(const std::string& directory) {
  return RootedTree(TRY(Open(directory, O_PATH | O_DIRECTORY)), false);
}

Result<UniqueFd> RootedTree::OpenFile(const std::string& path, int flags) const {
  if (is_host_) return Open(path, flags);
  return OpenAt2(root_.get(), path, flags, RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS);
}

void RootedTree::Describe(int fd, FileSeen& seen) const {
  Result<struct stat> info = Stat(fd);
  if (!info.ok()) return;
  seen.owner_known = true;
  seen.uid = info->st_uid;
  seen.gid = info->st_gid;
  seen.mode = info->st_mode;
  if (is_host_) seen.device = info->st_dev;
}

FileSeen RootedTree::Look(const std::string& path) {
  Result<UniqueFd> fd = OpenFile(path, O_PATH);
  if (!fd.ok()) return NotSeen(fd.error());
  FileSeen seen;
  seen.state = FileSeen::State::kPresent;
  Describe(fd->get(), seen);
  return seen;
}

FileSeen RootedTree::Read(const std::string& path, std::size_t limit) {
  FileSeen seen;
  // A device or FIFO that someone put there must not notice us; the host's own files are known.
  if (!is_host_) {
    seen = Look(path);
    if (!seen.present()) return seen;
  }
  auto unreadable = [&seen](int err) {
    seen.state = FileSeen::State::kUnreadable;
    seen.err = err;
    return seen;
  };
  auto wrong_kind = [&seen] { return seen.owner_known && !S_ISREG(seen.mode); };
  if (wrong_kind()) return unreadable(S_ISDIR(seen.mode) ? EISDIR : EINVAL);
  Result<UniqueFd> fd = OpenFile(path, kReadFlags);
  if (!fd.ok()) {
    int err = fd.error().err;
    seen = Look(path);
    return seen.present() ? unreadable(err) : seen;
  }
  Describe(fd->get(), seen);
  if (wrong_kind()) return unreadable(S_ISDIR(seen.mode) ? EISDIR : EINVAL);
  Result<std::string> text = ReadAll(fd->get(), limit);
  if (!text.ok()) return unreadable(text.error().err);
  seen.state = FileSeen::State::kPresent;
  seen.text = std::move(text).value();
  return seen;
}

Result<std::string> RootedTree::ReadLink(const std::string& path) {
  UniqueFd fd = TRY(OpenFile(path, O_PATH | O_NOFOLLOW));
  return sys::ReadLink(fd.get(), "");
}

Result<std::string> RootedTree::ReadAttribute(const std::string& path, const char* name) {
  FileSeen seen = Look(path);
  if (!seen.IsKind(S_IFREG)) return FailureOf(ENODATA, "fgetxattr");
  UniqueFd fd = TRY(OpenFile(path, kReadFlags));
  return sys::ReadAttribute(fd.get(), name);
}

Result<std::vector<DirectoryEntry>> RootedTree::List(const std::string& path, std::size_t limit) {
  UniqueFd fd = TRY(OpenFile(path, kReadFlags | O_DIRECTORY));
  return ListDirectory(fd.get(), limit);
}

}  // namespace taskcell::sys
