#pragma once

#include <sys/types.h>

#include <string>

namespace taskcell::test {

// A file system whose server says of all that is in it that it is root's: directories, each of
// which has a link "link" to `target` and a directory "dir". Mounted, with access for all, as if by
// the user `server_uid`. For a process that may mount where it is (EnterOwnMounts).
class LyingFiles {
 public:
  LyingFiles(const std::string& path, uid_t server_uid, const std::string& target);
  ~LyingFiles();
  LyingFiles(const LyingFiles&) = delete;
  LyingFiles& operator=(const LyingFiles&) = delete;

  bool mounted() const { return server_ > 0; }

 private:
  pid_t server_ = -1;
};

}  // namespace taskcell::test
