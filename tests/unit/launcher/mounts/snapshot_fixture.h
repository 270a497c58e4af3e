#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "launcher/mounts/snapshot.h"
#include "launcher/mounts/tree.h"
#include "launcher/sys/file.h"

namespace taskcell::mounts {

namespace fs = std::filesystem;

// A directory "agent", the empty directory "target" for its snapshot, and a secret beside them.
class SnapshotTest : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_NE(::mkdtemp(path_.data()), nullptr);
    fs::create_directories(agent());
    fs::create_directories(target());
    ASSERT_EQ(::chmod(target().c_str(), 0700), 0);
    fs::create_directories(path_ + "/outside");
    Put("outside/key", "the host's secret");
  }
  void TearDown() override {
    UniqueFd tmp = sys::Open("/tmp", O_RDONLY | O_DIRECTORY).value();
    EXPECT_TRUE(RemoveTree(tmp.get(), path_.substr(5)).ok());
  }

  std::string agent() const { return path_ + "/agent"; }
  std::string target() const { return path_ + "/target"; }
  void Put(const std::string& name, std::string_view content) const {
    fs::create_directories(fs::path(path_ + "/" + name).parent_path());
    std::ofstream(path_ + "/" + name, std::ios::binary) << content;
  }
  static std::string Get(const std::string& path) {
    std::ifstream in(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  Result<Snapshot> Run(const SnapshotBounds& bounds = {}, Subtree subtree = Subtree::kPrune) const {
    UniqueFd from = sys::Open(agent(), O_RDONLY | O_DIRECTORY).value();
    UniqueFd to = sys::Open(target(), O_RDONLY | O_DIRECTORY).value();
    return SnapshotAgentDirectory(from.get(), to.get(), subtree, bounds);
  }
  static SnapshotEntry Entry(const Snapshot& snapshot, std::string_view name) {
    for (const SnapshotEntry& entry : snapshot.entries)
      if (entry.name == name) return entry;
    ADD_FAILURE() << "no entry " << name;
    return {};
  }

  std::string path_ = "/tmp/taskcell-snapshot-test-XXXXXX";
};

}  // namespace taskcell::mounts
