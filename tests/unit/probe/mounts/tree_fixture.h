#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <string>

#include "probe/mounts/audit.h"
#include "tests/support/fixture.h"

namespace taskcell::test {

namespace fs = std::filesystem;

// A directory "tree" to audit, and one beside it that is none of its business.
class TreeTest : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_NE(::mkdtemp(path_.data()), nullptr);
    fs::create_directories(At("tree"));
    Put("outside/key", "the host's secret");
  }
  void TearDown() override {
    // rm takes a tree of any depth.
    EXPECT_EQ(test::Run({"rm", "-rf", "--", path_}).status, 0);
  }

  std::string At(const std::string& name) const { return path_ + "/" + name; }
  void Put(const std::string& name, std::string_view content) const {
    fs::create_directories(fs::path(At(name)).parent_path());
    std::ofstream(At(name), std::ios::binary) << content;
  }
  void Link(const std::string& target, const std::string& name) const {
    fs::create_directories(fs::path(At(name)).parent_path());
    ASSERT_EQ(::symlink(target.c_str(), At(name).c_str()), 0);
  }
  void HardLink(const std::string& from, const std::string& to) const {
    fs::create_directories(fs::path(At(to)).parent_path());
    ASSERT_EQ(::link(At(from).c_str(), At(to).c_str()), 0);
  }

  probe::audit::AuditRequest Request(
      probe::audit::Policy policy = probe::audit::Policy::kStrict) const {
    probe::audit::AuditRequest request;
    request.directory = At("tree");
    request.policy = policy;
    request.walk.threads = 2;
    return request;
  }
  probe::audit::Report Audit(probe::audit::Policy policy = probe::audit::Policy::kStrict) const {
    return probe::audit::Audit(Request(policy)).value();
  }

  // The code names found, by path.
  using Found = std::map<std::string, std::set<std::string>>;
  static Found FoundIn(const std::vector<probe::audit::Finding>& findings) {
    Found found;
    for (const probe::audit::Finding& each : findings)
      found[each.path].insert(std::string(TextOf(each.code).name));
    return found;
  }
  static Found FoundIn(const probe::audit::Report& report) { return FoundIn(report.findings); }

  std::string path_ = "/tmp/taskcell-audit-XXXXXX";
};

}  // namespace taskcell::test
