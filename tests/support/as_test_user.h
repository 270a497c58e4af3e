#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace taskcell::test {

// A file the build left beside this test program: "weak/taskcell-init", "../bin/taskcell-attacker".
std::string BuiltBeside(const std::string& path);

// Gives root up for the user of the fixture before the first test: a gateway is never root. What
// the tests need and the user might not be able to read is copied first, below a directory of the
// user's own, which goes after the last test. Without root nothing changes but the directory.
class AsTestUser : public testing::Environment {
 public:
  explicit AsTestUser(std::vector<std::string> programs) : programs_(std::move(programs)) {}

  void SetUp() override;
  void TearDown() override;

  // Empty when there is no such user to become.
  static const std::string& directory() { return directory_; }
  // The copy of a program named to the constructor, by its last component.
  static std::string Copy(const std::string& name) { return directory_ + "/" + name; }

 private:
  std::vector<std::string> programs_;
  static inline std::string directory_;
};

}  // namespace taskcell::test
