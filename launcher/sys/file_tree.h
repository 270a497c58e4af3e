#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

#include "launcher/base/result.h"
#include "launcher/base/unique_fd.h"
#include "launcher/sys/file.h"

namespace taskcell::sys {

// What one look at a file found.
struct FileSeen {
  enum class State : uint8_t {
    kAbsent,      // there is no such file
    kPresent,     // it is there, and was read where that was asked
    kUnreadable,  // it is there or not: `err` says what is in the way
  };
  State state = State::kAbsent;
  int err = 0;
  bool owner_known = false;  // whether the next three mean anything
  uint32_t uid = 0;
  uint32_t gid = 0;
  uint32_t mode = 0;    // st_mode, with the file's type
  uint64_t device = 0;  // st_dev where the tree is this host's, else 0
  std::string text;     // by Read: the bytes

  bool present() const { return state == State::kPresent; }
  bool absent() const { return state == State::kAbsent; }
  bool IsKind(uint32_t kind) const { return owner_known && (mode & S_IFMT) == kind; }
};

// A read-only view of a host's files, by absolute paths: of this host, of a directory that holds
// files as a host has them, or of an archive. Nothing is ever changed through it, and links lead
// to no file outside.
class FileTree {
 public:
  virtual ~FileTree() = default;

  // The file's owner, mode and bytes. More than `limit` bytes: kUnreadable with EFBIG. What is no
  // regular file is kUnreadable with EINVAL (a directory: EISDIR).
  virtual FileSeen Read(const std::string& path, std::size_t limit) = 0;

  // The file's owner and mode; a link is followed.
  virtual FileSeen Look(const std::string& path) = 0;

  // Where a link points to. An Error's `err` is ENOENT where there is none, EINVAL for another
  // kind.
  virtual Result<std::string> ReadLink(const std::string& path) = 0;

  // An extended attribute of a file. An Error's `err` is ENODATA where the file has none.
  virtual Result<std::string> ReadAttribute(const std::string& path, const char* name) = 0;

  // The entries of a directory, at most `limit` (more is an Error).
  virtual Result<std::vector<DirectoryEntry>> List(const std::string& path, std::size_t limit) = 0;
};

// The files of this host, or those below a directory as if it were the root.
class RootedTree : public FileTree {
 public:
  // The host's own files, opened as open(2) does, so that a host without openat2(2) can be looked
  // at.
  static Result<RootedTree> OpenHost();

  // The files below `directory`: every path is resolved inside it (openat2(2), RESOLVE_IN_ROOT),
  // and what is no regular file is never opened.
  static Result<RootedTree> OpenDirectory(const std::string& directory);

  FileSeen Read(const std::string& path, std::size_t limit) override;
  FileSeen Look(const std::string& path) override;
  Result<std::string> ReadLink(const std::string& path) override;
  Result<std::string> ReadAttribute(const std::string& path, const char* name) override;
  Result<std::vector<DirectoryEntry>> List(const std::string& path, std::size_t limit) override;

 private:
  RootedTree(UniqueFd root, bool is_host) : root_(std::move(root)), is_host_(is_host) {}
  Result<UniqueFd> OpenFile(const std::string& path, int flags) const;
  void Describe(int fd, FileSeen& seen) const;

  UniqueFd root_;
  bool is_host_;
};

}  // namespace taskcell::sys
