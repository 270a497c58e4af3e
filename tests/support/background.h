#pragma once

#include <sys/types.h>

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "tests/support/fixture.h"

namespace taskcell::test {

// Executes a program in this process, which was forked for it, as `options` say; its input, output
// and time limit are the caller's matter.
[[noreturn]] void Become(const std::vector<std::string>& argv, const RunOptions& options);

// A program that runs beside the test, in a process group of its own, with nothing to read and both
// its outputs appended to the file `output`. The destructor kills it.
class Background {
 public:
  Background(const std::vector<std::string>& argv, RunOptions options, const std::string& output);
  ~Background();
  Background(const Background&) = delete;
  Background& operator=(const Background&) = delete;

  pid_t pid() const { return pid_; }
  void Signal(int signal) const;
  // Its exit status, or 128 + n when signal n ended it; nullopt when it has not ended in time.
  std::optional<int> Wait(std::chrono::milliseconds timeout);

 private:
  pid_t pid_ = -1;
  std::optional<int> status_;
};

// The same options with both outputs appended to a file.
RunOptions WithOutputIn(RunOptions options, const std::string& output);

}  // namespace taskcell::test
