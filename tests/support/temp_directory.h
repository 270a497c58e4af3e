#pragma once

#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>

#include "launcher/base/text.h"
#include "tests/support/fixture.h"

namespace taskcell::test {

// A directory of a test's own, which goes with all that is in it. Names are relative to
// it; parents are made.
class TempDirectory {
 public:
  // `purpose` stands in its name, `base` is where it is made: /dev/shm for what waits for a disk.
  explicit TempDirectory(std::string_view purpose, std::string_view base = "/tmp")
      : path_(Text(base, "/taskcell-", purpose, "-XXXXXX")) {
    if (::mkdtemp(path_.data()) == nullptr) ADD_FAILURE() << "mkdtemp " << path_;
  }
  ~TempDirectory() {
    // Programs, since a tree may be deeper than any path, or read-only.
    EXPECT_EQ(Run({"/bin/sh", "-c", "chmod -R u+rwX -- \"$0\"; rm -rf -- \"$0\"", path_}).status, 0)
        << path_;
  }
  TempDirectory(const TempDirectory&) = delete;
  TempDirectory& operator=(const TempDirectory&) = delete;

  const std::string& path() const { return path_; }
  std::string At(std::string_view name) const { return Text(path_, "/", name); }

  void Put(std::string_view name, std::string_view content) const {
    MakeParent(name);
    std::ofstream(At(name), std::ios::binary) << content;
  }
  void Link(const std::string& target, std::string_view name) const {
    MakeParent(name);
    ASSERT_EQ(::symlink(target.c_str(), At(name).c_str()), 0) << name;
  }
  void HardLink(std::string_view from, std::string_view to) const {
    MakeParent(to);
    ASSERT_EQ(::link(At(from).c_str(), At(to).c_str()), 0) << to;
  }
  std::string Get(std::string_view name) const {
    std::ifstream in(At(name), std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }

 private:
  void MakeParent(std::string_view name) const {
    std::filesystem::create_directories(std::filesystem::path(At(name)).parent_path());
  }

  std::string path_;
};

}  // namespace taskcell::test
