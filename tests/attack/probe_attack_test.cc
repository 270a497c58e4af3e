// taskcell-probe attack as a program: every payload gets through outside, is contained in a cell,
// and nothing is left.
#include <grp.h>
#include <gtest/gtest.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "launcher/base/text.h"
#include "probe/attack/payload.h"
#include "tests/engine/task_engine.h"
#include "tests/support/hung_files.h"
#include "tests/support/launch.h"

namespace taskcell::test {
namespace {

using Json = nlohmann::json;

// Who attacks, and whose ids the cell has natively: a subordinate one, the user's own, or nobody's.
enum class By : uint8_t { kUser, kOwnIds, kRoot };

class ProbeAttackTest : public LaunchTest {
 protected:
  void SetUp() override {
    LaunchTest::SetUp();
    if (IsSkipped() || HasFatalFailure() || !OnDocker()) return;
    std::string socket = DockerSocket();
    TASKCELL_REQUIRE(!socket.empty(), "needs the private engine (tests/support/fixture.sh)");
    engine_ = "unix://" + socket;
  }

  Outcome Attack(std::vector<std::string> arguments, By by) const {
    arguments.insert(arguments.begin(), {Program("taskcell-probe"), "attack", "--engine", engine_});
    RunOptions options;
    if (by == By::kUser) options.user = user_;
    if (by == By::kOwnIds) options = WithoutARange();
    options.timeout_ms = 110'000;
    return test::Run(arguments, options);
  }

  // As the user where no subordinate ids are granted to anybody: cells have the user's own.
  RunOptions WithoutARange() const {
    RunOptions options;
    options.environment = {"HOME=" + user_->home};
    options.in_child = [user = *user_] {
      for (const char* file : {"/etc/subuid", "/etc/subgid"}) {
        if (::access(file, F_OK) != 0) continue;
        if (!EnterOwnMounts() || ::mount("/dev/null", file, nullptr, MS_BIND, nullptr) != 0)
          ::_exit(90);
      }
      EnterDelegatedCgroup(user.uid);
      if (::setgroups(0, nullptr) != 0 || ::setresgid(user.gid, user.gid, user.gid) != 0 ||
          ::setresuid(user.uid, user.uid, user.uid) != 0)
        ::_exit(91);
    };
    return options;
  }

  std::string engine_{kTaskEngine};
};

struct Case {
  std::string topic;
  By by;
};
void PrintTo(const Case& each, std::ostream* out) { *out << each.topic; }

// A gateway is never root; natively root gives its cells up to nobody, and can show more outside.
std::vector<Case> Cases() {
  std::set<std::string> topics;
  for (const attack::Payload& payload : attack::AllPayloads())
    topics.insert(std::string(payload.topic));
  std::vector<Case> cases;
  for (const std::string& topic : topics) {
    cases.push_back({topic, By::kUser});
    if (OnDocker()) continue;
    cases.push_back({topic, By::kOwnIds});
    cases.push_back({topic, By::kRoot});
  }
  return cases;
}

// What neither user nor root of this host can show, with what the kernel answers outside: it lacks
// the thing.
const std::map<std::string, std::set<std::string>> kLacking = {
    {"console-paste", {"ENOTTY"}},
    {"device-fuse", {"ENOENT"}},
    {"device-log", {"ENOENT"}},
    {"device-loop", {"ENOENT"}},
    {"device-mapper", {"ENOENT"}},
    {"device-memory", {"ENOENT", "EPERM"}},
    {"device-tunnel", {"ENOENT"}},
    {"huge-page-segment", {"ENOMEM", "EPERM"}},
    {"huge-pages", {"ENOMEM"}},  // none set aside
    {"i386-call", {"SIGSEGV"}},
    {"io-uring", {"ENOSYS", "EPERM"}},  // kernel.io_uring_disabled
    {"kernel-crypto", {"EAFNOSUPPORT", "ENOENT"}},
    {"modprobe-path", {"ENOENT"}},
    {"mount-overlay", {"ENODEV"}},
    {"parent-output", {"EACCES"}},  // as nobody, whose parent is root's
    {"perf-event", {"EACCES"}},     // kernel.perf_event_paranoid above 2
    {"port-access", {"ENOSYS"}},
    {"raise-limits", {"ENOENT"}},  // in the root of the unified hierarchy
    {"release-agent", {"ENOENT"}},
    {"sysrq", {"ENOENT"}},
    {"uevent-helper", {"ENOENT"}},
    {"vsock", {"EAFNOSUPPORT"}},
    {"x32-call", {"ENOSYS"}},
    // A container's or a small machine's root has less than all capabilities, and no disk.
    {"device-disk", {"EPERM", "ENOENT"}},
    {"oom-immunity", {"EACCES"}},
    // An engine's root is an image, not a directory.
    {"cve-2021-30465-exchanged-target", {"EOPNOTSUPP"}},
    {"cve-2021-30465-mount-target", {"EOPNOTSUPP"}},
    {"cve-2025-52565-root-dev", {"EOPNOTSUPP"}},
    {"cve-2025-52881-root-proc", {"EOPNOTSUPP"}},
    {"hostile-root-parent-link", {"EOPNOTSUPP"}},
    {"hostile-root-relative-link", {"EOPNOTSUPP"}},
    // A busy host gives nobody more than the share.
    {"processor-hog", {"HELD_BACK"}},
};

// What tests/README.md names as shown by no machine.
std::set<std::string> ShownNowhere() {
  std::set<std::string> names;
  std::ifstream file(TESTS_README);
  bool in_table = false;
  for (std::string line; std::getline(file, line);) {
    std::vector<std::string_view> words = Words(line);
    if (in_table && (words.size() < 2 || words[0] != "|")) {
      if (!line.starts_with("|-")) break;
    } else if (in_table) {
      names.emplace(words[1]);
    }
    if (line == "| attack | why |") in_table = true;
  }
  return names;
}

// "VARIANT ATTACK REASON" on each line: what each of the lab's machines that run the whole suite
// has not the means for. Its checks fail where one more or one less is shown.
std::map<std::string, std::set<std::string>> LackedInTheLab() {
  std::map<std::string, std::set<std::string>> lacked;
  std::ifstream file(LAB_LACKING);
  for (std::string line; std::getline(file, line);) {
    std::vector<std::string_view> words = Words(line);
    if (words.size() > 2 && !line.starts_with('#')) lacked[std::string(words[0])].emplace(words[1]);
  }
  return lacked;
}

class TopicTest : public ProbeAttackTest, public testing::WithParamInterface<Case> {
 protected:
  // What cannot be shown outside here was tried in the cell all the same, and is refused there as
  // where it can be shown. Only what was never laid out is missing in the cell, too.
  static void ExpectRefusedAlike(const Json& row) {
    const attack::Payload* payload = attack::FindPayload(row["attack"].get<std::string>());
    ASSERT_NE(payload, nullptr);
    if (attack::IsOfRoot(*payload) && OnDocker()) return;  // not tried
    bool unlaid = row["outside"]["name"] == "ENOENT" || row["control"] == "group";
    bool missing = unlaid && row["inside"]["name"] == "ENOENT";
    EXPECT_TRUE(missing || attack::IsContained(*payload, row["inside"]["result"]));
  }

  // What is a quota of its user's was not missed by a process of that user outside.
  static void ExpectBystanderSeen(const Json& row) {
    const attack::Payload* payload = attack::FindPayload(row["attack"].get<std::string>());
    ASSERT_NE(payload, nullptr);
    if (payload->way != attack::Way::kQuota) return;
    const std::string detail = row["inside"]["detail"];
    EXPECT_NE(detail.find("outside its user had an inotify instance, a pipe of "), detail.npos)
        << detail;
  }

  void ExpectContained() const {
    const bool as_root = GetParam().by == By::kRoot;
    Outcome outcome = Attack({GetParam().topic, "--json"}, GetParam().by);
    ASSERT_EQ(outcome.out.substr(0, 1), "{") << outcome.err;
    Json report = Json::parse(outcome.out);
    EXPECT_TRUE(report["refusal"].is_null()) << report["refusal"];
    EXPECT_EQ(report["differences"], Json::array());
    EXPECT_FALSE(report["attacks"].empty());
    for (const Json& row : report["attacks"]) {
      ExpectBystanderSeen(row);
      if (GetParam().by == By::kOwnIds) {
        EXPECT_NE(row["inside"]["result"], attack::kOtherUser) << row.dump();
      }
      if (row["verdict"] == "contained") continue;
      SCOPED_TRACE(row.dump());
      EXPECT_EQ(row["verdict"], "not_provable");
      EXPECT_NE(row["outside"]["result"], 0);
      ExpectRefusedAlike(row);
      // An ordinary user lacks what takes root to show; root lacks only what the kernel does.
      if (!as_root && (row["control"] == "root" || row["control"] == "group")) continue;
      if (!as_root && row["outside"]["name"] == "ENOENT") continue;  // what only root can lay out
      auto lacking = kLacking.find(row["attack"]);
      ASSERT_NE(lacking, kLacking.end());
      EXPECT_TRUE(lacking->second.contains(row["outside"]["name"]));
    }
    EXPECT_EQ(outcome.status, report["overall"] == "contained" ? 0 : 3);
  }
};

TEST_P(TopicTest, IsContained) { ExpectContained(); }

INSTANTIATE_TEST_SUITE_P(Each, TopicTest, testing::ValuesIn(Cases()), [](const auto& row) {
  std::string name = row.param.topic;
  name[0] = static_cast<char>(std::toupper(name[0]));
  switch (row.param.by) {
    case By::kUser:
      return name + "OfUser";
    case By::kOwnIds:
      return name + "OfOwnIds";
    case By::kRoot:
      return name + "OfRoot";
  }
  return name;
});

// What the topics above go by: with the option that the attack's cells are made with.
TEST_F(ProbeAttackTest, WhereNoRangeIsGrantedACellHasItsUsersOwnIds) {
  if (OnDocker()) return;
  const std::string report = scratch_ + "/report";
  const std::vector<std::string> command =
      Command({"--userns=prefer-subids", "--report=" + report, "--", "/bin/true"});
  auto separation = [&](const RunOptions& options) -> std::string {
    Outcome ran = test::Run(command, options);
    EXPECT_EQ(ran.status, 0) << ran.err;
    std::ifstream file(report);
    return Json::parse(file)["uid_separation"];
  };
  EXPECT_EQ(separation(WithoutARange()), "none");
  RunOptions as_user;
  as_user.user = user_;
  EXPECT_EQ(separation(as_user), "subordinate");
}

// With the topics above: every attack was shown to work on this host or is in the lab.
TEST_F(ProbeAttackTest, EveryAttackIsShownByOneOfTheLabsMachines) {
  const auto lacked = LackedInTheLab();
  const std::set<std::string> nowhere = ShownNowhere();
  ASSERT_FALSE(nowhere.empty());
  ASSERT_EQ(lacked.size(), 3U);
  for (const auto& [variant, names] : lacked) {
    for (const std::string& name : names)
      EXPECT_NE(attack::FindPayload(name), nullptr) << variant << " " << name;
  }
  for (const attack::Payload& payload : attack::AllPayloads()) {
    const std::string name(payload.name);
    bool everywhere = std::all_of(lacked.begin(), lacked.end(),
                                  [&](const auto& each) { return each.second.contains(name); });
    EXPECT_EQ(everywhere, nowhere.contains(name)) << name;
  }
}

TEST_F(ProbeAttackTest, TheListTriesNothing) {
  RunOptions options;
  options.user = User{"none", 64000, 64000, "/"};  // could make no cell
  Outcome outcome = test::Run({Program("taskcell-probe"), "attack", "--list"}, options);
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_NE(outcome.out.find("user-namespace"), std::string::npos);
}

TEST_F(ProbeAttackTest, WithoutACellThereIsNoVerdict) {
  RunOptions options;
  options.user = User{"none", 64000, 64000, "/"};
  Outcome outcome = test::Run({Program("taskcell-probe"), "attack", "uid-0"}, options);
  EXPECT_EQ(outcome.status, 3) << outcome.out << outcome.err;
  EXPECT_TRUE(outcome.out.starts_with("there was no cell to attack (native)\n")) << outcome.out;
  EXPECT_NE(outcome.out.find("[resource_limits_unenforced]"), std::string::npos) << outcome.out;
}

// With a hard limit that the descriptors of a cell, which is of the same user, go past.
TEST_F(ProbeAttackTest, WhatACellUsesUpOfItsUsersIsAnEscape) {
  RunOptions options;
  options.in_child = [] {
    constexpr rlim_t kDescriptors = 260;
    struct rlimit limit = {kDescriptors, kDescriptors};
    if (::setrlimit(RLIMIT_NOFILE, &limit) != 0) ::_exit(90);
  };
  std::vector<std::string> command = {Program("taskcell-probe"), "attack",
                                      "descriptors-on-their-way", "--json"};
  Outcome outcome = test::Run(command, options);
  EXPECT_EQ(outcome.status, 1);
  ASSERT_EQ(outcome.out.substr(0, 1), "{") << outcome.err;
  Json row = Json::parse(outcome.out)["attacks"][0];
  EXPECT_EQ(row["verdict"], "escaped") << row;
  EXPECT_NE(row["why"].get<std::string>().find("outside its user was denied: ETOOMANYREFS"),
            std::string::npos)
      << row;
  command.back() = "--sarif";
  Outcome sarif = test::Run(command, options);
  EXPECT_EQ(sarif.status, 1);
  EXPECT_NE(sarif.out.find(R"("kind":"fail","level":"error")"), std::string::npos) << sarif.out;
}

TEST_F(ProbeAttackTest, AnUnusableCommandLineIsUsage) {
  for (const std::vector<std::string>& arguments : std::vector<std::vector<std::string>>{
           {"no-such-attack"}, {"--json", "--sarif"}, {"--sarif", "--quiet"}, {"--what"}}) {
    Outcome outcome = Attack(arguments, By::kUser);
    EXPECT_EQ(outcome.status, 2) << outcome.out;
    EXPECT_EQ(outcome.out, "");
    EXPECT_NE(outcome.err, "");
  }
}

TEST_F(ProbeAttackTest, TheAttackerDoesNothingOutsideOfACell) {
  Outcome outcome = test::Run({Program("taskcell-attacker"), "uid-0"});
  EXPECT_EQ(outcome.status, 2);
  EXPECT_EQ(outcome.out, "");
  EXPECT_NE(outcome.err.find("taskcell-probe attack"), std::string::npos) << outcome.err;
}

}  // namespace
}  // namespace taskcell::test
