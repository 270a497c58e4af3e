#include "launcher/mounts/ancestors.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <linux/openat2.h>
#include <sys/stat.h>

#include <cerrno>
#include <utility>

#include "launcher/base/accounts.h"
#include "launcher/base/text.h"
#include "launcher/mounts/server.h"
#include "launcher/sys/entry.h"
#include "launcher/sys/file.h"
#include "launcher/sys/self.h"

namespace taskcell::mounts {
namespace {

constexpr int kMaxLinks = 40;  // the kernel's own bound (path_resolution(7))
constexpr std::size_t kMaxComponents = 4096;

// One directory on the way.
struct Level {
  UniqueFd fd;
  std::string name;  // "" for the root
  struct stat info = {};
};

class PathWalk {
 public:
  explicit PathWalk(const Trust& trust) : trust_(trust) {}

  Result<PinnedPath> Start(const std::string& path) {
    Level root;
    root.fd = TRY(sys::Open("/", O_PATH | O_DIRECTORY));
    root.info = TRY(sys::Stat(root.fd.get()));
    TRY(JudgeServer(root, "/"));
    levels_.push_back(std::move(root));
    Push(path);
    while (!waiting_.empty()) TRY(Step());
    PinnedPath pinned;
    pinned.path = Path();
    std::erase_if(remote_, [device = levels_.back().info.st_dev](const RemoteLevel& each) {
      return each.device == device;
    });
    pinned.remote = std::move(remote_);
    pinned.fd = std::move(levels_.back().fd);
    pinned.concerns = std::move(concerns_);
    return pinned;
  }

 private:
  // What is still to be resolved, the next component last.
  void Push(std::string_view path) {
    std::vector<std::string_view> parts = Split(path, '/');
    for (std::size_t i = parts.size(); i > 0; --i) {
      // "name/" and "name/." mean a directory: the dot keeps that.
      bool trailing = i == parts.size() && parts[i - 1].empty() && parts.size() > 1;
      if (!parts[i - 1].empty())
        waiting_.emplace_back(parts[i - 1]);
      else if (trailing)
        waiting_.emplace_back(".");
    }
  }

  std::string Path() const {
    std::string path;
    for (const Level& level : levels_) {
      if (!level.name.empty()) path += "/" + level.name;
    }
    return path.empty() ? "/" : path;
  }

  void Add(Concern::What what, std::string path, std::string found, std::string fix) {
    for (const Concern& each : concerns_) {
      if (each.what == what && each.path == path) return;
    }
    concerns_.push_back({what, std::move(path), std::move(found), std::move(fix)});
  }

  bool IsOurs(uid_t uid) const { return uid == 0 || uid == trust_.owner; }

  // How others may write the directory, as a sentence; empty where they may not. Under an access
  // control list the group's bits are its mask (acl(5)), whatever the group: then the list counts.
  std::string WritableBy(const Level& level) const {
    const struct stat& info = level.info;
    std::string others = "others may write it and exchange what is in it";
    if ((info.st_mode & S_IWOTH) != 0) return others;
    if ((info.st_mode & S_IWGRP) == 0) return {};
    if (info.st_gid != 0 && info.st_gid != trust_.own_group) return others;
    Result<bool> listed = sys::HasAccessList(level.fd.get());
    if (!listed.ok())
      return Text("whether others may write it is not known: ", listed.error().text);
    return listed.value()
               ? "an access control list may let others write it and exchange what is in it"
               : "";
  }

  // Root is not to take a user's directory away.
  std::string OwnerFix(const std::string& path) const {
    if (trust_.owner == 0) return "do this as that user, or with a copy where only root may write";
    return Text("chown ", trust_.owner, " ", ShellWord(path));
  }

  // Whether others could put something else at `name` in the directory on top.
  void JudgeDirectory(const struct stat& child, const std::string& name) {
    const Level& top = levels_.back();
    std::string path = Path();
    if (!IsOurs(top.info.st_uid)) {
      Add(Concern::What::kOwner, path,
          Text("it belongs to uid ", top.info.st_uid, ", who can exchange what is in it"),
          OwnerFix(path));
    }
    const std::string writable = WritableBy(top);
    if (writable.empty()) return;
    bool sticky = (top.info.st_mode & S_ISVTX) != 0 && top.info.st_uid == 0;
    if (!sticky) {
      // The group's bits are an access control list's mask: this takes away what it gives, too.
      Add(Concern::What::kWritable, path, writable, Text("chmod go-w ", ShellWord(path)));
    } else if (!IsOurs(child.st_uid)) {
      const std::string inner = PathOf(name);
      Add(Concern::What::kOwner, inner,
          Text("it belongs to uid ", child.st_uid, ", who can exchange it"), OwnerFix(inner));
    }
  }

  // What a file system says of owners and modes is worth as much as whoever serves it.
  Status JudgeServer(const Level& entered, const std::string& path) {
    const Server server = TRY(ServerOf(entered.fd.get()));
    switch (server.what) {
      case Server::What::kKernel:
        break;
      case Server::What::kHost:
        remote_.push_back({path, server.type, entered.info.st_dev});
        break;
      case Server::What::kUser:
        if (server.uid && IsOurs(*server.uid)) break;
        Add(Concern::What::kOwner, path,
            Text("its file system is served by ",
                 server.uid ? Text("uid ", *server.uid) : "a process of an unknown user",
                 ", who decides what is in it, and whose it seems"),
            Text("fusermount -u ", ShellWord(path)));
        break;
    }
    return Ok();
  }

  // The path of `name` in the directory on top.
  std::string PathOf(const std::string& name) const {
    return levels_.size() == 1 ? "/" + name : Text(Path(), "/", name);
  }

  // Some links of /proc lead to what has another name in another place, or none: their text is no
  // way to it (symlink(7), magic links).
  Status CheckPlain(int link_fd, const std::string& name) const {
    if (TRY(sys::FileSystemOf(link_fd)).type != PROC_SUPER_MAGIC) return Ok();
    const Result<UniqueFd> led =
        sys::OpenAt2(levels_.back().fd.get(), name, O_PATH, RESOLVE_NO_MAGICLINKS);
    if (led.ok() || led.error().err != ELOOP) return Ok();
    return Error(Kind::kViolation,
                 Text("'", Printable(Path()), "/", Printable(name),
                      "' is a magic link of /proc, which leads to no path: name the file itself"),
                 ELOOP);
  }

  Status Follow(int link_fd, const struct stat& link, const std::string& name) {
    if (++links_ > kMaxLinks)
      return Error(Kind::kViolation, "too many symbolic links on the way", ELOOP);
    TRY(CheckPlain(link_fd, name));
    const Level& top = levels_.back();
    bool roots = link.st_uid == 0 && top.info.st_uid == 0;
    std::string target = TRY(sys::ReadLink(link_fd, ""));
    if (!roots) {
      Add(Concern::What::kLink, PathOf(name),
          Text("it is a symbolic link of uid ", link.st_uid, " to '", Printable(target), "'"),
          Text("name what it leads to instead: ", ShellWord(target)));
    }
    if (target.empty()) return Error(Kind::kViolation, "an empty symbolic link", ENOENT);
    if (target[0] == '/') levels_.erase(levels_.begin() + 1, levels_.end());
    Push(target);
    return Ok();
  }

  Status Step() {
    std::string name = std::move(waiting_.back());
    waiting_.pop_back();
    Level& top = levels_.back();
    if (!S_ISDIR(top.info.st_mode))
      return Error(Kind::kUsage, Text("'", Printable(Path()), "' is not a directory"), ENOTDIR);
    if (name == ".") return Ok();
    if (name == "..") {
      if (levels_.size() > 1) levels_.pop_back();
      return Ok();
    }
    if (levels_.size() > kMaxComponents || waiting_.size() > kMaxComponents)
      return Error(Kind::kViolation, "the path is too long", ENAMETOOLONG);
    Level next;
    next.fd = TRY(sys::OpenNoFollow(top.fd.get(), name, O_PATH));
    next.info = TRY(sys::Stat(next.fd.get()));
    JudgeDirectory(next.info, name);
    if (next.info.st_dev != top.info.st_dev) TRY(JudgeServer(next, PathOf(name)));
    if (S_ISLNK(next.info.st_mode)) return Follow(next.fd.get(), next.info, name);
    next.name = std::move(name);
    levels_.push_back(std::move(next));
    return Ok();
  }

  const Trust& trust_;
  std::vector<Level> levels_;
  std::vector<std::string> waiting_;
  std::vector<Concern> concerns_;
  std::vector<RemoteLevel> remote_;
  int links_ = 0;
};

// The path from the root, checked to lead to the working directory where it is relative.
Result<std::string> Absolute(const std::string& path) {
  if (path.empty()) return Error(Kind::kUsage, "the path is empty", ENOENT);
  if (path[0] == '/') return path;
  std::string here = TRY(sys::ReadLink(AT_FDCWD, "/proc/self/cwd"));
  struct stat named = TRY(sys::StatAt(AT_FDCWD, here));
  struct stat real = TRY(sys::StatAt(AT_FDCWD, "."));
  if (named.st_ino != real.st_ino || named.st_dev != real.st_dev)
    return Error(Kind::kViolation, "the working directory cannot be reached from the root", ESTALE);
  return Text(here, "/", path);
}

}  // namespace

Trust TrustIn(uid_t owner) {
  constexpr std::size_t kMaxBytes = 4U << 20U;
  Trust trust{owner, std::nullopt};
  Result<std::string> passwd = sys::ReadFile(AT_FDCWD, "/etc/passwd", kMaxBytes);
  Result<std::string> group = sys::ReadFile(AT_FDCWD, "/etc/group", kMaxBytes);
  if (passwd.ok() && group.ok())  // else no group is known to be anybody's own
    trust.own_group = OwnGroup(passwd.value(), group.value(), owner);
  return trust;
}

Result<PinnedPath> PinPath(const std::string& path, const Trust& trust) {
  std::string intent = Text("path '", Printable(path), "'");
  if (path.find('\0') != std::string::npos)
    return Error(Kind::kUsage, Text(intent, " holds a NUL byte"), EINVAL);
  return PathWalk(trust).Start(TRY(Absolute(path).With(intent))).With(intent);
}

Result<PinnedPath> PinTrustedPath(const std::string& path, const Trust& trust) {
  PinnedPath pinned = TRY(PinPath(path, trust));
  if (pinned.concerns.empty()) return pinned;
  const Concern& first = pinned.concerns.front();
  return Error(Kind::kViolation, Text("path '", Printable(path), "': '", Printable(first.path),
                                      "' cannot be trusted: ", first.found, "; ", first.fix));
}

}  // namespace taskcell::mounts
