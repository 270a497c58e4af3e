#include "probe/mounts/inspector.h"

#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <utility>

#include "launcher/base/text.h"
#include "launcher/mounts/entry.h"
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
constexpr std::array<std::string_view, 3> kOverlayPrefixes = {"trusted.overlay.", "user.overlay.",
                                                              "user.fuseoverlayfs."};

std::string Octal(mode_t mode) {
  std::string text;
  for (int shift = 9; shift >= 0; shift -= 3)
    text += static_cast<char>('0' + (mode >> static_cast<unsigned>(shift) & 7U));
  return text;
}

// What an access control list lets others write shows in the group's bits, which are its mask
// (acl(5)).
bool MayHaveList(mode_t mode) { return (S_ISREG(mode) || S_ISDIR(mode)) && (mode & S_IWGRP) != 0; }

// In a layer of an overlay such a file may stand for one elsewhere (metacopy): what it has is a
// size alone. Only those are asked.
bool IsHollow(const struct statx& info) {
  return S_ISREG(info.stx_mode) && info.stx_size > 0 && info.stx_blocks == 0;
}

}  // namespace

Inspector::Inspector(int root_fd, Ruler ruler, FindingList& list, LinkSets& links)
    : root_fd_(root_fd), ruler_(std::move(ruler)), list_(list), links_(links) {}

bool Inspector::Add(Code code, std::string path, std::string detail) {
  list_.Add(code, path.empty() ? "." : std::move(path), std::move(detail));
  return false;
}

void Inspector::Miss(Code code, std::string path, std::string detail) {
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
  if (met.is_other_mount) return;
  const struct statx& info = met.info;
  const bool file = S_ISREG(info.stx_mode) && (info.stx_nlink == 1 || ruler_.copies_linked(info));
  if (file || S_ISDIR(info.stx_mode) || S_ISLNK(info.stx_mode)) ruler_.meter->Count(met);
}

bool Inspector::Meet(const Met& met) {
  const struct statx& info = met.info;
  if (ruler_.meter != nullptr) Measure(met);
  if (met.is_other_mount) return Add(Code::kMount, met.Path(), mounts_.Describe(info.stx_mnt_id));
  bool fine = S_ISREG(info.stx_mode) ? JudgeFile(met) : JudgeSpecial(met);
  if (!S_ISLNK(info.stx_mode)) {
    if (!JudgeOwner(info, [&met] { return met.Path(); })) fine = false;
    if (!JudgeAttributes(met)) fine = false;
  } else if (info.stx_uid != 0 && info.stx_uid != ruler_.trust.owner) {
    fine = Add(Code::kForeignOwner, met.Path(), Text("it belongs to uid ", info.stx_uid));
  }
  if (fine && !met.below_finding && S_ISREG(info.stx_mode) && ruler_.safe_file)
    ruler_.safe_file(met.Path());
  return fine;
}

bool Inspector::JudgeFile(const Met& met) {
  const struct statx& info = met.info;
  bool fine = true;
  if (info.stx_nlink > 1) {
    links_.Meet(info, [&met] { return met.Path(); });
    fine = false;
  }
  bool set_group = (info.stx_mode & S_ISGID) != 0 && (info.stx_mode & S_IXGRP) != 0;
  if ((info.stx_mode & S_ISUID) != 0 || set_group) {
    fine = Add(
        Code::kSetId, met.Path(),
        Text("mode ", Octal(info.stx_mode), ", of uid ", info.stx_uid, " and gid ", info.stx_gid));
  }
  return fine;
}

bool Inspector::JudgeSpecial(const Met& met) {
  switch (met.info.stx_mode & S_IFMT) {
    case S_IFDIR:
      return true;
    case S_IFLNK: {
      std::string path = met.Path();
      Leads leads = WhereLinkLeads(root_fd_, path, met.dir_fd, met.name, ruler_.may_lead_to);
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

template <typename PathOf>
bool Inspector::JudgeAttribute(const Result<bool>& has, const PathOf& path, Code code,
                               const char* name) {
  if (!ruler_.has_proc)
    return Add(Code::kUnreadable, path(), "its attributes: /proc is not mounted");
  if (!has.ok()) return Add(Code::kUnreadable, path(), has.error().text);
  return !has.value() || Add(code, path(), Text("it has ", name));
}

// Asks only where the mode leaves it possible.
bool Inspector::JudgeAttributes(const Met& met) {
  const mode_t mode = met.info.stx_mode;
  bool fine = true;
  auto ask = [&](const char* attribute, Code code) {
    Result<bool> has = sys::HasAttribute(met.dir_fd, met.name, attribute);
    if (!JudgeAttribute(
            has, [&met] { return met.Path(); }, code, attribute))
      fine = false;
  };
  if (S_ISREG(mode) && (mode & (S_IXUSR | S_IXGRP | S_IXOTH)) != 0)
    ask(kCapability, Code::kFileCapability);
  if (MayHaveList(mode)) ask(kAccessList, Code::kAccessList);
  if (IsHollow(met.info)) {
    for (const char* attribute : kMetacopy) ask(attribute, Code::kOverlayAttribute);
  }
  return fine;
}

bool Inspector::Enter(int fd, const Whereabouts& where) {
  Result<std::string> names = sys::AttributeNames(fd);
  if (!names.ok()) return Add(Code::kUnreadable, where.Directory(), names.error().text);
  bool fine = true;
  for (std::string_view name : Split(names.value(), '\0')) {
    bool overlay = std::any_of(kOverlayPrefixes.begin(), kOverlayPrefixes.end(),
                               [&](std::string_view prefix) { return name.starts_with(prefix); });
    if (overlay) fine = Add(Code::kOverlayAttribute, where.Directory(), Printable(name));
    if (name == kDefaultList)
      fine = Add(Code::kAccessList, where.Directory(), Text("it has ", name, ", for new files"));
  }
  return fine;
}

void Inspector::JudgeAccess(int fd, const struct statx& info, const std::string& path) {
  auto path_of = [&path] { return path; };
  (void)JudgeOwner(info, path_of);  // ignoring: it is in the list; so below
  if (MayHaveList(info.stx_mode))
    (void)JudgeAttribute(sys::HasAccessList(fd), path_of, Code::kAccessList, kAccessList);
}

void Inspector::JudgeFileSystem(const struct statx& info) {
  std::string type = mounts_.TypeOf(info.stx_mnt_id);
  constexpr std::array<std::string_view, 9> kForeign = {
      "autofs", "nfs", "nfs4", "cifs", "smb3", "9p", "ceph", "virtiofs", "afs"};
  bool foreign = type.starts_with("fuse") ||
                 std::find(kForeign.begin(), kForeign.end(), type) != kForeign.end();
  if (foreign) Add(Code::kForeignContent, ".", mounts_.Describe(info.stx_mnt_id));
}

bool LinkNamer::Meet(const Met& met) {
  if (!met.is_other_mount && S_ISREG(met.info.stx_mode) && met.info.stx_nlink > 1)
    links_.AddFinding(met.info, met.Path(), list_);
  return true;
}

}  // namespace taskcell::probe::audit
