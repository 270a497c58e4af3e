#include "gateway/config/document_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>

#include "gateway/config/home.h"
#include "gateway/config/secret.h"
#include "launcher/base/text.h"
#include "launcher/mounts/ancestors.h"
#include "launcher/sys/file.h"
#include "launcher/sys/hard_link.h"
#include "launcher/sys/sync.h"

namespace taskcell::gateway {
namespace {

Status RemoveIfThere(int directory, const std::string& name) {
  Status removed = sys::RemoveFile(directory, name);
  return removed.ok() || removed.error().err == ENOENT ? Ok() : removed;
}

Result<std::optional<SecretText>> ReadIfThere(int directory, const std::string& name) {
  Result<std::string> text = sys::ReadFile(directory, name, kMaxSecretBytes);
  if (text.ok()) return std::optional(SecretText::Take(std::move(text).value()));
  if (text.error().err == ENOENT) return std::optional<SecretText>();
  return std::move(text).error();
}

bool IsOlder(const struct timespec& a, const struct timespec& b) {
  return a.tv_sec != b.tv_sec ? a.tv_sec < b.tv_sec : a.tv_nsec < b.tv_nsec;
}

}  // namespace

Result<DocumentFile> DocumentFile::Pin(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  const std::string name = path.substr(slash + 1);
  const std::string parent = slash == 0 ? "/" : path.substr(0, slash);
  if (slash == std::string::npos || name.empty() || name == "." || name == "..")
    return Error(Kind::kConfig, Text("'", Printable(path), "' names no file"));
  const mounts::Trust trust = mounts::TrustIn(::geteuid());
  mounts::PinnedPath pinned = TRY(mounts::PinTrustedPath(parent, trust));
  UniqueFd directory =
      TRY(sys::OpenAt2(pinned.fd.get(), ".", O_RDONLY | O_DIRECTORY, sys::kResolveBeneath));
  struct stat info = TRY(sys::StatAt(directory.get(), name));
  if (!S_ISREG(info.st_mode) || info.st_uid != ::geteuid())
    return Error(Kind::kConfig, Text("'", Printable(path),
                                     "' is not a plain file of the gateway's user: give it one of "
                                     "its own (no link)"));
  struct stat around = TRY(sys::Stat(directory.get()));
  const bool is_group_own = around.st_gid == trust.own_group;
  const bool others_write =
      (around.st_mode & S_IWOTH) != 0 || ((around.st_mode & S_IWGRP) != 0 && !is_group_own);
  if (around.st_uid != ::geteuid() || others_write ||
      !sys::CheckAccess(directory.get(), ".", W_OK).ok())
    return Error(Kind::kConfig, Text("the directory of '", Printable(path),
                                     "' is not the gateway user's alone to write: give it a "
                                     "directory of its own (mode 0700)"));
  return DocumentFile(std::move(directory), name);
}

Result<UniqueFd> DocumentFile::OpenLock() const {
  constexpr int kFlags = O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY;
  return sys::OpenAt2(directory_.get(), name_ + ".lock", kFlags, sys::kResolveBeneath, 0600);
}

Result<SecretText> DocumentFile::Read() const {
  return SecretText::Take(TRY(sys::ReadFile(directory_.get(), name_, kMaxSecretBytes)));
}

Result<std::optional<SecretText>> DocumentFile::ReadPrevious(std::string_view wanted_digest) const {
  std::optional<SecretText> text = TRY(ReadIfThere(directory_.get(), Previous()));
  if (!text.has_value() || ShortDigest(*text) == wanted_digest) return text;
  return std::optional<SecretText>();
}

Result<std::optional<SecretText>> DocumentFile::ReadUnfinished() const {
  Result<struct stat> written = sys::StatAt(directory_.get(), New());
  if (!written.ok() && written.error().err == ENOENT) return std::optional<SecretText>();
  if (!written.ok()) return std::move(written).error();
  struct stat present = TRY(sys::StatAt(directory_.get(), name_));
  if (IsOlder(written->st_mtim, present.st_mtim)) return std::optional<SecretText>();
  return ReadIfThere(directory_.get(), New());
}

Status DocumentFile::WriteNew(std::string_view document) const {
  UniqueFd fresh = TRY(sys::OpenAt2(directory_.get(), New(), O_WRONLY | O_CREAT | O_EXCL,
                                    sys::kResolveBeneath, 0600));
  TRY(sys::WriteAll(fresh.get(), document));
  TRY(sys::Synchronize(fresh.get()));
  return sys::Synchronize(directory_.get());
}

Status DocumentFile::TryToWrite(std::string_view document) const {
  TRY(RemoveIfThere(directory_.get(), New()));
  TRY(WriteNew(document));
  return sys::RemoveFile(directory_.get(), New());
}

Status DocumentFile::Replace(std::string_view document, bool previous_stays) const {
  TRY(WriteNew(document));
  return FinishReplacing(previous_stays);
}

Status DocumentFile::FinishReplacing(bool previous_stays) const {
  if (!previous_stays) {
    TRY(ForgetPrevious());
    TRY(sys::MakeHardLink(directory_.get(), name_, Previous()));
  }
  TRY(sys::Rename(directory_.get(), New(), name_));
  return sys::Synchronize(directory_.get());
}

Status DocumentFile::ForgetPrevious() const { return RemoveIfThere(directory_.get(), Previous()); }

}  // namespace taskcell::gateway
