#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "launcher/mounts/snapshot.h"
#include "launcher/mounts/tree.h"
#include "launcher/sys/file.h"
#include "tests/support/temp_directory.h"

namespace taskcell::mounts {

namespace fs = std::filesystem;

// A directory "agent", the empty directory "target" for its snapshot, and a secret beside them.
class SnapshotTest : public testing::Test, protected test::TempDirectory {
 protected:
  SnapshotTest() : TempDirectory("snapshot-test") {
    fs::create_directories(agent());
    fs::create_directories(target());
    EXPECT_EQ(::chmod(target().c_str(), 0700), 0);
    Put("outside/key", "the host's secret");
  }

  std::string agent() const { return At("agent"); }
  std::string target() const { return At("target"); }
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
};

}  // namespace taskcell::mounts
