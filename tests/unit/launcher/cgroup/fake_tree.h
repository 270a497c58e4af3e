#pragma once

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>

#include "launcher/cgroup/layout.h"
#include "launcher/sys/file.h"

namespace taskcell::cgroup {

// A temporary directory with files as a cgroup tree would have them.
class FakeTreeTest : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_NE(::mkdtemp(path_.data()), nullptr);
    ASSERT_EQ(::chmod(path_.c_str(), 0755), 0);
    dir_ = sys::Open(path_, O_RDONLY | O_DIRECTORY).value();
  }
  void TearDown() override { std::filesystem::remove_all(path_); }

  int dir() const { return dir_.get(); }
  const std::string& path() const { return path_; }

  void Put(const std::string& name, std::string_view content) {
    std::filesystem::create_directories(std::filesystem::path(path_ + "/" + name).parent_path());
    std::ofstream(path_ + "/" + name) << content;
  }
  std::string Get(const std::string& name) {
    Result<std::string> text = sys::ReadFile(dir(), name, 4096);
    return text.ok() ? text.value() : "(" + text.error().text + ")";
  }
  void Remove(const std::string& name) { std::filesystem::remove_all(path_ + "/" + name); }

  // A cgroup directory of the unified hierarchy.
  void PutUnified(const std::string& below, std::string_view controllers,
                  std::string_view subtree_control = "", std::string_view processes = "") {
    std::string prefix = below.empty() ? "" : below + "/";
    Put(prefix + "cgroup.controllers", controllers);
    Put(prefix + "cgroup.subtree_control", subtree_control);
    Put(prefix + "cgroup.procs", processes);
    if (!below.empty()) Put(prefix + "cgroup.type", "domain\n");
  }
  // Gives a directory and the files in it that a delegated one has to a user.
  void Delegate(const std::string& below, uid_t uid) {
    std::string full = path_ + "/" + below;
    ASSERT_EQ(::chown(full.c_str(), uid, uid), 0);
    for (const char* name : {"cgroup.procs", "cgroup.subtree_control"}) {
      std::string file = full + "/" + name;
      if (!std::filesystem::exists(file)) continue;
      ASSERT_EQ(::chown(file.c_str(), uid, uid), 0);
    }
  }

  // The hierarchy that would be mounted on the temporary directory.
  Hierarchy Fake(bool unified, const std::string& own_path) const {
    struct stat info = {};
    EXPECT_EQ(::stat(path_.c_str(), &info), 0);
    Hierarchy hierarchy;
    hierarchy.unified = unified;
    if (!unified) hierarchy.controllers = {"memory", "pids", "cpu"};
    hierarchy.own_path = own_path;
    hierarchy.mount_point = path_;
    hierarchy.mount_root = "/";
    hierarchy.major = major(info.st_dev);
    hierarchy.minor = minor(info.st_dev);
    return hierarchy;
  }

 private:
  std::string path_ = "/tmp/taskcell-cgroup-test-XXXXXX";
  UniqueFd dir_;
};

}  // namespace taskcell::cgroup
