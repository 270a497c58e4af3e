#pragma once

#include <sys/types.h>

#include <string>

namespace taskcell::test {

// A file system of a process that finds names in any case: lists "soul.md" (which holds "soul") and
// the directory "wiki", with "one" and "two" for one file (which holds "linked"). For a process
// that may mount where it is (EnterOwnMounts).
class FoldingFiles {
 public:
  explicit FoldingFiles(const std::string& path);
  ~FoldingFiles();
  FoldingFiles(const FoldingFiles&) = delete;
  FoldingFiles& operator=(const FoldingFiles&) = delete;

  bool mounted() const { return server_ > 0; }

 private:
  pid_t server_ = -1;
};

}  // namespace taskcell::test
