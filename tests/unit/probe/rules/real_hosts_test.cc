// Real hosts, as `taskcell-probe collect` wrote them in the lab's guests (Debian 12 with systemd;
// the users and places are those of tests/lab): what was true there stays the verdict, also of a
// version that looks at more than they hold.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "launcher/base/text.h"
#include "launcher/sys/file.h"
#include "probe/facts/bundle.h"
#include "probe/print/print.h"

namespace taskcell::probe {
namespace {

using testing::HasSubstr;

struct RealHost {
  const char* name;
  Verdict verdict;
  const char* mode;
  const char* limits;    // states of memory, pids and cpu, and who must act for cpu
  const char* headline;  // what it holds
};

std::ostream& operator<<(std::ostream& out, const RealHost& host) { return out << host.name; }

class RealHostTest : public testing::TestWithParam<RealHost> {};

TEST_P(RealHostTest, KeepsItsVerdict) {
  const RealHost& host = GetParam();
  std::string path = Text(TASKCELL_TEST_DATA "/hosts/", host.name, ".tar");
  Result<std::string> archive = sys::ReadFile(AT_FDCWD, path, kMaxBundleBytes);
  ASSERT_TRUE(archive.ok()) << archive.error().text;
  Result<Bundle> bundle = ReadBundle(archive.value());
  ASSERT_TRUE(bundle.ok()) << bundle.error().text;
  RecordedTree tree(std::move(bundle->record));
  HostFacts facts = ReadHostFacts(tree, bundle->request);
  facts.live = std::move(bundle->live);
  ASSERT_TRUE(facts.live.has_value());
  Report report = Judge(facts);
  std::string limits;
  for (const cgroup::Diagnosis& limit : report.limits) limits += Text(Name(limit.state), ' ');
  EXPECT_EQ(limits + std::string(Name(report.limits.back().who)), host.limits);
  EXPECT_EQ(report.verdict, host.verdict) << TableOf(report, {});
  EXPECT_EQ(Name(report.mode), host.mode);
  EXPECT_THAT(report.Headline(), HasSubstr(host.headline));
  EXPECT_EQ(report.subids.state, "ok");
}

INSTANTIATE_TEST_SUITE_P(
    Lab, RealHostTest,
    testing::Values(
        RealHost{"unified-scope", Verdict::kReady, "v2", "yes yes yes none", "ready"},
        RealHost{"unified-no-cpu", Verdict::kLimited, "v2", "yes yes no admin",
                 "ready with limits missing: cpu"},
        RealHost{"unified-su", Verdict::kNot, "v2", "no no no user",
                 "own cgroup is not delegated: /sys/fs/cgroup/user.slice/user-0.slice/session-"},
        RealHost{"unified-hardened", Verdict::kReady, "v2", "yes yes yes none", "ready"},
        RealHost{"hybrid-login", Verdict::kNot, "hybrid", "no no no admin", "cgroup v1 hierarchy"},
        RealHost{"legacy-login", Verdict::kNot, "v1", "no no no admin", "cgroup v1 hierarchy"}),
    [](const auto& tested) {
      std::string name = tested.param.name;
      for (char& c : name) c = c == '-' ? '_' : c;
      return name;
    });

}  // namespace
}  // namespace taskcell::probe
