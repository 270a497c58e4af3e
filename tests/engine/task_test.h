#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "tests/engine/task_fixture.h"

namespace taskcell::test {

// Tasks whose agent has a value that only a tool call in the cell can read.
class TaskTest : public TaskFixture {
 protected:
  void SetUp() override;

  Outcome RunTask(const std::string& url, std::vector<std::string> options,
                  std::vector<std::string> before = {}, std::string_view key = kKey) const;
  // A file that the client's process id can be written to, what has it written there, and a signal
  // to that process.
  std::string MakePidFile() const;
  static std::vector<std::string> TellingPidTo(const std::string& path);
  static int SignalTo(const std::string& path, int signal);
  static Json Steps();

  std::string value_;
};

}  // namespace taskcell::test
