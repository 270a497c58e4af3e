#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <vector>

#include "tests/support/fixture.h"

namespace taskcell::test {

// Runs taskcell-launch as the unprivileged test user. Needs root (to become that user) and the
// fixture.
class LaunchTest : public testing::Test {
 protected:
  void SetUp() override {
    TASKCELL_REQUIRE(::geteuid() == 0, "needs root, to become the unprivileged test user");
    user_ = TestUser();
    TASKCELL_REQUIRE(user_.has_value(), "needs the user taskcell-test (tests/support/fixture.sh)");
    TASKCELL_REQUIRE(::access(Program("taskcell-launch").c_str(), X_OK) == 0,
                     "needs the programs where the test user can execute them");
    std::string pattern = "/tmp/taskcell-launch-test-XXXXXX";
    ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
    scratch_ = pattern;
    ASSERT_EQ(::chown(scratch_.c_str(), user_->uid, user_->gid), 0);
    ASSERT_EQ(::chmod(scratch_.c_str(), 0755), 0);
  }

  void TearDown() override {
    if (scratch_.empty()) return;
    std::filesystem::remove_all(scratch_);
  }

  std::vector<std::string> Command(const std::vector<std::string>& arguments) const {
    std::vector<std::string> argv = {Program("taskcell-launch")};
    argv.insert(argv.end(), arguments.begin(), arguments.end());
    return argv;
  }

  Outcome Launch(const std::vector<std::string>& arguments, RunOptions options = {}) const {
    options.user = user_;
    return test::Run(Command(arguments), options);
  }

  // The same as root, who becomes nobody.
  Outcome LaunchAsRoot(const std::vector<std::string>& arguments, RunOptions options = {}) const {
    return test::Run(Command(arguments), options);
  }

  // Runs a Python script in a cell.
  Outcome Python(const std::string& script, std::vector<std::string> options = {}) const {
    for (const char* word : {"--", "/usr/bin/python3", "-c"}) options.emplace_back(word);
    options.push_back(script);
    return Launch(options);
  }

  // The same script outside, as the same user.
  Outcome PythonOutside(const std::string& script) const {
    RunOptions options;
    options.user = user_;
    return test::Run({"/usr/bin/python3", "-c", script}, options);
  }

  // A file below the scratch directory with that content, readable for all.
  std::string MakeFile(const std::string& name, const std::string& content) const {
    std::filesystem::path path = std::filesystem::path(scratch_) / name;
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path) << content;
    return path;
  }

  // A root directory whose only program is a static one (/launch --version), with all the mount
  // points a cell needs.
  std::string MakeRootfs() const {
    std::filesystem::path root = std::filesystem::path(scratch_) / "rootfs";
    for (const char* name : {"proc", "dev", "tmp", "workspace", "etc", "agent"})
      std::filesystem::create_directories(root / name);
    std::filesystem::copy_file(Program("taskcell-launch"), root / "launch");
    return root;
  }

  std::optional<User> user_;
  std::string scratch_;
};

}  // namespace taskcell::test
