#pragma once

#include <sys/types.h>

#include <string>
#include <string_view>
#include <vector>

#include "tests/engine/task_fixture.h"

namespace taskcell::test {

// A home like TaskFixture's whose cells have a shell and python3, on the engine kTaskEngine names.
class ScriptFixture : public TaskFixture {
 protected:
  static void SetUpTestSuite();
  static void TearDownTestSuite();
  void SetUp() override;

  std::string Home() const { return path_ + "/home"; }
  // What of [taskcell] and [container.sandbox] a home needs, and `more` of the latter.
  void Configure(std::string_view more = "") const;

  RunOptions AsUser() const;
  // The client with these words and the home's.
  std::vector<std::string> Command(std::vector<std::string> words) const;
  Outcome Client(std::vector<std::string> words, std::string_view input = "",
                 const std::vector<std::string>& environment = {}) const;
  // `taskcell script --language LANGUAGE` with the code on its standard input.
  Outcome RunIt(const std::string& language, std::string_view code,
                std::vector<std::string> options = {}) const;
  Json RunJson(const std::string& language, std::string_view code,
               std::vector<std::string> options = {}) const;

  // A number of seconds that no other sleep of this host has.
  static std::string Mark();
  // Whether a process of this host has that among its arguments.
  static bool IsRunning(const std::string& mark);
  // How many containers of cells the engine has; natively none.
  int Containers() const;
  // What a sweep as in an hour removes.
  Json SweepLater() const;
  // Ends the last program of the pipeline that `shell` runs.
  static void EndPipeReader(pid_t shell);
};

}  // namespace taskcell::test
