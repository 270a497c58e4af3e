#include "probe/mounts/inspector.h"

#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <utility>

#include "launcher/base/text.h"
#include "launcher/mounts/entry.h"
#include "launcher/mounts/server.h"
#include "launcher/sys/entry.h"
#include "launcher/sys/file.h"
#include "probe/mounts/symlink.h"

namespace taskcell::probe::audit {
namespace {

constexpr char kCapability[] = "security.capability";
constexpr char kAccessList[] = "system.posix_acl_access";
constexpr std::string_view kDefaultList = "system.posix_acl_default";
constexpr std::array<const char*, 2> kMetacopy = {"trusted.overlay.metacopy",
                                                  "user.overlay.metacopy"};
// Those of overlayfs, and of fuse-overlayfs, which shows a file with the owner and mode of one.
constexpr std::array<std::string_view, 4> kOverlayPrefixes = {
    "trusted.overlay.", "user.overlay.", "user.fuseoverlayfs.", "user.containers.override_"};

std::string Octal(mode_t mode) {
  std::string text;
  for (int shift = 9; shift >= 0; shift -= 3)
    text += static_cast<char>('0' + (mode >> static_cast<unsigned>(shift) & 7U));
  return text;
}

// What an access control list lets others write shows in the group's bits, which are its mask
// (acl(5)).
bool MayHaveList(mode_t mode) { return (S_ISREG(mode) || S_ISDIR(mode)) && (mode & S_IWGRP) != 0; }

bool MayBeRun(mode_t mode) { return S_ISREG(mode) && (mode & (S_IXUSR | S_IXGRP | S_IXOTH)) != 0; }

// In a layer of an overlay such a file may stand for one elsewhere (metacopy): what it has is a
// size. A block it may have all the same, for its attributes.
bool IsHollow(const struct statx& info) {
  constexpr uint64_t kBlockBytes = 512;  // statx(2)
  return S_ISREG(info.stx_mode) && info.stx_blocks * kBlockBytes < info.stx_size;
}

bool IsOverlays(std::string_view name) {
  return std::any_of(kOverlayPrefixes.begin(), kOverlayPrefixes.end(),
                     [name](std::string_view prefix) { return name.starts_with(prefix); });
}

}  // namespace

Inspector::Inspector(int root_fd, Ruler ruler, FindingList& list, LinkSets& links)
    : root_fd_(root_fd), ruler_(std::move(ruler)), list_(list), links_(links) {}

bool Inspector::Add(Code code, std::string path, std::string detail) {
  list_.Add(code, path.empty() ? "." : std::move(path), std::move(detail));
  return false;
}

void Inspector::Miss(Code code, std::string path, std::string detail) {
  if (ruler_.meter != nullptr && code == Code::kUnreadable) ruler_.leaves_out(path);
  Add(code, std::move(path), std::move(detail));
}

template <typename PathOf>
bool Inspector::JudgeOwner(const struct statx& info, const PathOf& path) {
  constexpr uint64_t kFixed = STATX_ATTR_IMMUTABLE | STATX_ATTR_APPEND;
  bool fine = true;
  bool by_group =
      (info.stx_mode & S_IWGRP) != 0 && info.stx_gid != 0 && info.stx_gid != ruler_.trust.own_group;
  if ((info.stx_mode & S_IWOTH) != 0 || by_group)
    fine = Add(Code::kWritable, path(), Text("mode ", Octal(info.stx_mode)));
  if (info.stx_uid != 0 && info.stx_uid != ruler_.trust.owner)
    fine = Add(Code::kForeignOwner, path(), Text("it belongs to uid ", info.stx_uid));
  if ((info.stx_attributes & kFixed) != 0) {
    Add(Code::kImmutable, path(),
        (info.stx_attributes & STATX_ATTR_IMMUTABLE) != 0 ? "it is immutable"
                                                          : "it can only be appended to");
  }
  return fine;
}

// As the snapshot does: what it leaves out takes none of its room.
void Inspector::Measure(const Met& met) {
  ruler_.meter->Look();
  if (IsCopied(met)) {
    ruler_.meter->Count(met);
  } else {
    ruler_.leaves_out(met.Path());
  }
}

bool Inspector::IsCopied(const Met& met) {
  const struct statx& info = met.info;
  if (met.is_other_mount) return false;
  if (S_ISLNK(info.stx_mode)) return true;
  if (!S_ISREG(info.stx_mode) && !S_ISDIR(info.stx_mode)) return false;
  const Result<bool> readable = sys::IsReadable(met.dir_fd, met.name);
  if (readable.ok() && readable.value())
    return S_ISDIR(info.stx_mode) || info.stx_nlink == 1 || ruler_.copies_linked(info);
  if (S_ISREG(info.stx_mode))  // of a directory the walk says so
    Add(Code::kUnreadable, met.Path(), readable.ok() ? "permission denied" : readable.error().text);
  return false;
}

bool Inspector::Meet(const Met& met) {
  const struct statx& info = met.info;
  if (ruler_.meter != nullptr) Measure(met);
  if (met.is_other_mount) {
    JudgeFileSystem(info, met.Path());
    return Add(Code::kMount, met.Path(), mounts_.Describe(info.stx_mnt_id));
  }
  const auto path = [&met] { return met.Path(); };
  bool fine = S_ISREG(info.stx_mode) ? JudgeLinks(met) : JudgeSpecial(met);
  if (!S_ISLNK(info.stx_mode)) {
    if (!JudgePlain({met.dir_fd, met.name, info}, path, ruler_.all_attributes)) fine = false;
  } else if (info.stx_uid != 0 && info.stx_uid != ruler_.trust.owner) {
    fine = Add(Code::kForeignOwner, met.Path(), Text("it belongs to uid ", info.stx_uid));
  }
  if (fine && !met.below_finding && S_ISREG(info.stx_mode) && ruler_.safe_file)
    ruler_.safe_file(met.Path());
  return fine;
}

bool Inspector::JudgeLinks(const Met& met) {
  if (met.info.stx_nlink <= 1) return true;
  // What is mounted twice shows one name twice.
  if (met.is_below_mount)
    return Add(Code::kHardLinkUnresolved, met.Path(),
               Text(met.info.stx_nlink, " links; not looked for in what is mounted"));
  links_.Meet(met.info, [&met] { return met.Path(); });
  return false;
}

template <typename PathOf>
bool Inspector::JudgePlain(const Subject& subject, const PathOf& path, bool all) {
  const mode_t mode = subject.info.stx_mode;
  bool fine = JudgeOwner(subject.info, path);
  if (S_ISREG(mode) && !JudgeSetId(subject.info, path)) fine = false;
  if (!all || !S_ISREG(mode)) return JudgeExpected(subject, path) && fine;
  return HasProc(path) &&
         JudgeNames(sys::AttributeNames(subject.dir_fd, subject.name), mode, path) && fine;
}

// Without it attributes cannot be asked for by a name.
template <typename PathOf>
bool Inspector::HasProc(const PathOf& path) {
  return ruler_.has_proc || Add(Code::kUnreadable, path(), "its attributes: /proc is not mounted");
}

template <typename PathOf>
bool Inspector::JudgeSetId(const struct statx& info, const PathOf& path) {
  const bool set_group = (info.stx_mode & S_ISGID) != 0 && (info.stx_mode & S_IXGRP) != 0;
  if ((info.stx_mode & S_ISUID) == 0 && !set_group) return true;
  return Add(
      Code::kSetId, path(),
      Text("mode ", Octal(info.stx_mode), ", of uid ", info.stx_uid, " and gid ", info.stx_gid));
}

bool Inspector::JudgeSpecial(const Met& met) {
  switch (met.info.stx_mode & S_IFMT) {
    case S_IFDIR:
      return true;
    case S_IFLNK: {
      if (ruler_.meter != nullptr) return true;
      std::string path = met.Path();
      Leads leads = WhereLinkLeads(root_fd_, path, met.dir_fd, met.name);
      return Add(leads.code, std::move(path), std::move(leads.detail));
    }
    case S_IFSOCK:
      return Add(Code::kSocket, met.Path(), "a socket");
    case S_IFIFO:
      return Add(Code::kFifo, met.Path(), "a FIFO");
    default:
      return Add(Code::kDevice, met.Path(),
                 Text(mounts::KindName(met.info.stx_mode), ' ', met.info.stx_rdev_major, ':',
                      met.info.stx_rdev_minor));
  }
}

// Asks only for what the mode and the size leave possible.
template <typename PathOf>
bool Inspector::JudgeExpected(const Subject& subject, const PathOf& path) {
  const mode_t mode = subject.info.stx_mode;
  bool fine = true;
  const auto ask = [&](const char* attribute, Code code) {
    const Result<bool> has = sys::HasAttribute(subject.dir_fd, subject.name, attribute);
    if (!has.ok())
      fine = Add(Code::kUnreadable, path(), has.error().text);
    else if (has.value())
      fine = Add(code, path(), Text("it has ", attribute));
  };
  const bool any = MayBeRun(mode) || MayHaveList(mode) || IsHollow(subject.info);
  if (any && !HasProc(path)) return false;
  if (MayBeRun(mode)) ask(kCapability, Code::kFileCapability);
  if (MayHaveList(mode)) ask(kAccessList, Code::kAccessList);
  if (IsHollow(subject.info)) {
    for (const char* attribute : kMetacopy) ask(attribute, Code::kOverlayAttribute);
  }
  return fine;
}

template <typename PathOf>
bool Inspector::JudgeNames(const Result<std::string>& names, mode_t mode, const PathOf& path) {
  if (!names.ok()) return Add(Code::kUnreadable, path(), names.error().text);
  bool fine = true;
  for (std::string_view name : Split(names.value(), '\0')) {
    if (IsOverlays(name)) fine = Add(Code::kOverlayAttribute, path(), Printable(name));
    if (name == kDefaultList)
      fine = Add(Code::kAccessList, path(), Text("it has ", name, ", for new files"));
    if (name == kAccessList && S_ISREG(mode) && MayHaveList(mode))
      fine = Add(Code::kAccessList, path(), Text("it has ", name));
    if (name == kCapability && S_ISREG(mode))
      fine = Add(Code::kFileCapability, path(), Text("it has ", name));
  }
  return fine;
}

bool Inspector::Enter(int fd, const Whereabouts& where) {
  return JudgeNames(sys::AttributeNames(fd), S_IFDIR, [&where] { return where.Directory(); });
}

void Inspector::JudgeItself(int fd, const struct statx& info, const std::string& path) {
  // ignoring: it is in the list; so below
  (void)JudgePlain(
      {fd, "", info}, [&path] { return path; }, true);
}

void Inspector::JudgeUnentered(int fd, const std::string& path) {
  const auto path_of = [&path] { return path; };
  if (HasProc(path_of)) (void)JudgeNames(sys::AttributeNames(fd, ""), S_IFDIR, path_of);
}

void Inspector::JudgeFileSystem(const struct statx& info, const std::string& path) {
  if (mounts::IsServed(mounts_.TypeOf(info.stx_mnt_id)))
    Add(Code::kForeignContent, path, mounts_.Describe(info.stx_mnt_id));
}

void LinkNamer::Miss(Code code, std::string path, std::string detail) {
  if (IsOfTheWalk(code)) list_.Add(code, path.empty() ? "." : std::move(path), std::move(detail));
}

bool LinkNamer::Meet(const Met& met) {
  if (!met.is_below_mount && S_ISREG(met.info.stx_mode) && met.info.stx_nlink > 1)
    links_.AddFinding(met.info, met.Path(), list_);
  return true;
}

}  // namespace taskcell::probe::audit
