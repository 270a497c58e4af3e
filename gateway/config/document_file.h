#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "launcher/base/result.h"
#include "launcher/base/unique_fd.h"
#include "launcher/sys/secret_text.h"

namespace taskcell::gateway {

// The file of one credential document, NAME, which only this user may exchange. Beside it stand,
// while they are needed, NAME.lock, NAME.new (a renewed document on its way) and NAME.previous (the
// one it replaced, until the new one has been proven). Whoever changes anything holds the lock.
class DocumentFile {
 public:
  // kConfig, with the remedy, where the file is not a plain one of this user, or somebody else
  // could exchange it. Changes nothing.
  static Result<DocumentFile> Pin(const std::string& path);

  // NAME.lock, made where it is missing; for flock(2).
  Result<UniqueFd> OpenLock() const;

  Result<sys::SecretText> Read() const;
  // The document that the one in NAME took the place of; nullopt where it is not the one of this
  // ShortDigest, since NAME has been exchanged by somebody else.
  Result<std::optional<sys::SecretText>> ReadPrevious(std::string_view wanted_digest) const;
  // A renewed document that was written whole, and newer than NAME, when whoever wrote it was
  // killed.
  Result<std::optional<sys::SecretText>> ReadUnfinished() const;

  // Writes `document` aside and removes that, and what was left there: an Error where there is no
  // room, or no right, to. To be called before Replace, which then has nothing to do first.
  Status TryToWrite(std::string_view document) const;
  // Puts `document` in the place of NAME: written aside, on disk before it is renamed, so that at
  // no moment neither is there. `previous_stays`: NAME itself is not proven, so NAME.previous is
  // kept as it is; else it becomes what NAME was.
  Status Replace(std::string_view document, bool previous_stays) const;
  // The same with what ReadUnfinished gave, which is aside already.
  Status FinishReplacing(bool previous_stays) const;
  // Removes NAME.previous.
  Status ForgetPrevious() const;

 private:
  DocumentFile(UniqueFd directory, std::string name)
      : directory_(std::move(directory)), name_(std::move(name)) {}
  std::string New() const { return name_ + ".new"; }
  std::string Previous() const { return name_ + ".previous"; }
  Status WriteNew(std::string_view document) const;

  UniqueFd directory_;
  std::string name_;
};

}  // namespace taskcell::gateway
