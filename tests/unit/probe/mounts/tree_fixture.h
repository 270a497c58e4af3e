#pragma once

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <map>
#include <set>
#include <string>

#include "probe/mounts/audit.h"
#include "tests/support/temp_directory.h"

namespace taskcell::test {

namespace fs = std::filesystem;

// A directory "tree" to audit, and one beside it that is none of its business.
class TreeTest : public testing::Test, protected TempDirectory {
 protected:
  TreeTest() : TempDirectory("audit") {
    fs::create_directories(At("tree"));
    Put("outside/key", "the host's secret");
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
};

}  // namespace taskcell::test
