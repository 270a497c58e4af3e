// What of an agent's directory reaches the cell and the provider, from end to end, also while
// somebody who may write the directory changes it all the time. Runs on each engine.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <sched.h>
#include <sys/fsuid.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <set>

#include "launcher/base/text.h"
#include "tests/engine/task_engine.h"
#include "tests/engine/task_fixture.h"
#include "tests/race/swapper.h"
#include "tests/support/hung_files.h"
#include "tests/support/wait_for.h"
#include "tests/support/without_openat2.h"

namespace taskcell::test {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;
using testing::Not;

constexpr char kCanary[] = "the canary that no cell and no provider may see";
constexpr uid_t kAttacker = 65534;

class AgentDirectoryTest : public TaskFixture {
 protected:
  void SetUp() override {
    TaskFixture::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    // The gateway itself may read it: only what it refuses to show keeps it from the cell.
    MakeSecret("key");
    MakeSecret("outside/page");
    Put("agents/a1/SOUL.md", "good");
    Put("agents/a1/wiki/page", "good");
  }

  void MakeSecret(const std::string& name) const {
    fs::create_directories(fs::path(At(name)).parent_path());
    std::ofstream(At(name)) << kCanary;
    ASSERT_EQ(::chown(At(name).c_str(), user_->uid, user_->gid), 0);
    ASSERT_EQ(::chmod(At(name).c_str(), 0600), 0);
  }

  // The agent in the cell reads these, and what it read is the reply.
  static Json Read(const std::vector<std::string>& names) {
    Json steps = Json::array();
    for (const std::string& name : names)
      steps.push_back({{"do", "read"}, {"path", "/agent/" + name}});
    return {{"steps", steps}, {"reply", "{all}"}};
  }
  // All that was sent to the provider.
  static std::string Sent(const gateway::ProviderProcess& provider) {
    std::string sent;
    for (const gateway::LoggedRequest& request : provider.Log()) sent += request.body;
    return sent;
  }
};

TEST_F(AgentDirectoryTest, ALinkedCanaryReachesNeitherTheCellNorTheProvider) {
  Put("agents/a1/CLAUDE.md", "a plain file");
  for (bool soul_is_symbolic : {true, false}) {
    fs::remove(AgentFile("SOUL.md"));
    fs::remove(AgentFile("IDENTITY.md"));
    fs::create_symlink(At("key"), AgentFile(soul_is_symbolic ? "SOUL.md" : "IDENTITY.md"));
    fs::create_hard_link(At("key"), AgentFile(soul_is_symbolic ? "IDENTITY.md" : "SOUL.md"));
    GiveHomeToUser();
    gateway::ProviderProcess provider = MakeProvider(Read({"SOUL.md", "IDENTITY.md", "CLAUDE.md"}));
    ASSERT_TRUE(provider.IsUp());
    Outcome run = RunClient(provider.Url("/v1"), {"--json"});
    ASSERT_EQ(run.status, 0) << run.err;
    EXPECT_THAT(run.out + run.err, Not(HasSubstr(kCanary)));
    const std::string sent = Sent(provider);
    EXPECT_THAT(sent, Not(HasSubstr(kCanary)));
    EXPECT_THAT(sent, HasSubstr("a plain file")) << "control: what is sent is looked at";
    EXPECT_THAT(sent, Not(HasSubstr("system_instructions"))) << "nothing stands for the two";
    EXPECT_THAT(run.err, HasSubstr("'SOUL.md' left out"));
    EXPECT_THAT(run.err, HasSubstr("'IDENTITY.md' left out"));
  }
}

// Neither its own directory nor another agent's keeps a task, or a look at the configuration, from
// coming to its end.
TEST_F(AgentDirectoryTest, AFileSystemThatHangsHoldsNoTaskAndNoDoctor) {
  TASKCELL_REQUIRE(HasFuse(), kNeedsFuse);
  fs::create_directories(AgentFile("../hung"));
  GiveHomeToUser();
  gateway::ProviderProcess provider = MakeProvider(Read({"SOUL.md"}));
  ASSERT_TRUE(provider.IsUp());
  struct Row {
    const char* place;
    HungFiles::Answers answers;
    std::string code;
  };
  for (const Row& row : {Row{"../hung", HungFiles::Answers::kNothing, "ok"},
                         Row{"", HungFiles::Answers::kNothing, "agent_dir_unmountable"},
                         Row{"", HungFiles::Answers::kRoot, "invalid_config"}}) {
    EXPECT_EQ(InChild([&] {
                if (!EnterOwnMounts()) return 90;
                const HungFiles hung(AgentFile(row.place), row.answers);
                if (!hung.mounted()) return 91;
                const Outcome run = RunClient(provider.Url("/v1"), {"--json"});
                const Json answer = Json::parse(run.out, nullptr, false);
                EXPECT_EQ(answer.value("code", ""), row.code) << run.out << run.err;
                RunOptions as_user;
                as_user.user = user_;
                const Outcome doctor =
                    test::Run({Program("taskcell"), "doctor", "--home", path_ + "/home"}, as_user);
                EXPECT_FALSE(doctor.timed_out) << doctor.out;
                EXPECT_THAT(doctor.out, HasSubstr("it was not read within"));
                return HasFailure() ? 1 : 0;
              }),
              0)
        << row.code;
  }
}

// One way to change the agent directory while tasks are made of it.
struct Attack {
  const char* name;
  bool as_root;                    // else as a user that is not the gateway's
  std::set<std::string> refusals;  // codes a task may be refused with
  bool never_fails;                // what is good stays untouched
  std::function<void()> (*make)(const std::string& outside);  // names below the agent directory
};
void PrintTo(const Attack& attack, std::ostream* out) { *out << attack.name; }

class AgentDirectoryRaceTest : public AgentDirectoryTest,
                               public testing::WithParamInterface<Attack> {
 protected:
  // For ./dev check more of them, on engines that take long.
  static int Rounds() {
    // NOLINTNEXTLINE(concurrency-mt-unsafe): before any thread
    const char* rounds = ::getenv("TASKCELL_RACE_ROUNDS");
    if (rounds != nullptr) return std::atoi(rounds);
    if (IsWithoutOpenat2()) return 10;
    return OnDocker() ? 10 : 72;
  }

  // The exit status of a child.
  int Race(const Attack& attack, const gateway::ProviderProcess& provider) {
    fs::create_directories(AgentFile("traps/dir"));
    fs::create_symlink(At("key"), AgentFile("traps/link"));
    fs::create_hard_link(At("key"), AgentFile("traps/hard"));
    fs::create_directory_symlink(At("outside"), AgentFile("traps/outside"));
    fs::create_hard_link(At("key"), AgentFile("traps/dir/page"));
    fs::create_symlink(At("key"), AgentFile("traps/dir/link"));
    GiveHomeToUser();
    // The way to it stays the gateway's; the directory and all in it is the attacker's.
    auto owned = test::Run({"chown", "-hR", Text(kAttacker), AgentFile("")});
    EXPECT_EQ(owned.status, 0) << owned.err;
    MakeSecret("key");
    const std::string directory = AgentFile("");
    std::function<void()> step = attack.make(path_);
    bool is_ready = false;
    Swapper swapper([&] {
      if (!is_ready) {
        // Of this thread alone. The attacker's way is not the gateway's, whose home is closed; and
        // with the id goes what root may do to files.
        if (::unshare(CLONE_FS) != 0 || ::chdir(directory.c_str()) != 0) std::abort();
        // It tells of no failure but by what the next call returns.
        if (!attack.as_root && (::setfsuid(kAttacker), ::setfsuid(kAttacker)) != kAttacker)
          std::abort();
        is_ready = true;
      }
      step();
    });
    int good = 0;
    int met = 0;
    int rounds = 0;
    const Patience patience;
    for (; rounds < Rounds() || ((good == 0 || met == 0) && patience.Lasts()); ++rounds) {
      Outcome run = RunClient(provider.Url("/v1"), {"--json"});
      EXPECT_THAT(run.out + run.err, Not(HasSubstr(kCanary)));
      const Json answer = Json::parse(run.out, nullptr, false);
      EXPECT_TRUE(answer.is_object()) << run.out << run.err;
      const std::string code = answer.is_object() ? answer["code"].get<std::string>() : "";
      EXPECT_TRUE(code == "ok" || attack.refusals.contains(code)) << run.out << run.err;
      if (code == "ok" && answer["reply"].get<std::string>().find("good") != std::string::npos)
        ++good;
      if (attack.refusals.contains(code) || run.err.find("left out") != run.err.npos) ++met;
    }
    EXPECT_GE(good, attack.never_fails ? rounds : 1) << "control: tasks read what is there";
    EXPECT_GT(met, 0) << "control: the attack is met";
    return HasFailure() ? 1 : 0;
  }
};

TEST_P(AgentDirectoryRaceTest, OnlyWhatIsTheAgentsOwnIsEverSeen) {
  const Attack& attack = GetParam();
  gateway::ProviderProcess provider =
      MakeProvider(Read({"SOUL.md", "wiki/page", "wiki/added", "wiki/link"}));
  ASSERT_TRUE(provider.IsUp());
  // Mounts are made where the tasks look and nobody else does.
  const int status = InChild([&] {
    if (attack.as_root && (::unshare(CLONE_NEWNS) != 0 ||
                           ::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0))
      return 90;
    return Race(attack, provider);
  });
  EXPECT_EQ(status, 0);
  EXPECT_THAT(Sent(provider), Not(HasSubstr(kCanary)));
}

std::function<void()> ExchangeADirectory(const std::string& /*outside*/) {
  return [link = Exchange("wiki", "traps/outside"), other = Exchange("wiki", "traps/dir")] {
    link();
    other();
  };
}

std::function<void()> AddLinks(const std::string& outside) {
  return [key = outside + "/key"] {
    (void)::rename("traps/hard", "wiki/added");
    if (::symlink(key.c_str(), "wiki/link") == 0) (void)::usleep(500);
    (void)::unlink("wiki/link");
    (void)::rename("wiki/added", "traps/hard");
  };
}

// One that is shown, since it stays inside, for one that does not.
std::function<void()> FlipALink(const std::string& outside) {
  const std::string link = outside + "/home/agents/a1/wiki/link";
  fs::create_symlink("page", link);
  EXPECT_EQ(::lchown(link.c_str(), kAttacker, kAttacker), 0);
  return Exchange("wiki/link", "traps/link");
}

std::function<void()> MountOver(const std::string& outside) {
  return [key = outside + "/key", directory = outside + "/outside"] {
    (void)::mount(key.c_str(), "SOUL.md", nullptr, MS_BIND, nullptr);
    (void)::mount(directory.c_str(), "wiki", nullptr, MS_BIND, nullptr);
    (void)::usleep(2000);
    (void)::umount2("SOUL.md", MNT_DETACH);
    (void)::umount2("wiki", MNT_DETACH);
    (void)::usleep(2000);
  };
}

// By somebody who may do what no attacker may: the way to the directory is exchanged.
std::function<void()> ExchangeTheWay(const std::string& outside) {
  const std::string other = outside + "/home/elsewhere";
  fs::create_directories(other);
  fs::copy(outside + "/home/agents", other,
           fs::copy_options::recursive | fs::copy_options::copy_symlinks);
  fs::remove(other + "/a1/SOUL.md");
  fs::create_symlink(outside + "/key", other + "/a1/SOUL.md");
  return Exchange(outside + "/home/agents", other);
}

INSTANTIATE_TEST_SUITE_P(
    Attacks, AgentDirectoryRaceTest,
    testing::Values(Attack{"ExchangeWithASymbolicLink",
                           false,
                           {},
                           false,
                           [](const std::string&) { return Exchange("SOUL.md", "traps/link"); }},
                    Attack{"ExchangeWithAHardLink",
                           false,
                           {},
                           false,
                           [](const std::string&) { return Exchange("SOUL.md", "traps/hard"); }},
                    Attack{"ExchangeOfADirectory", false, {}, false, ExchangeADirectory},
                    Attack{"LinksAddedAllTheTime", false, {}, true, AddLinks},
                    Attack{"FlipsOfALink", false, {}, true, FlipALink},
                    Attack{"MountsOnTop", true, {}, false, MountOver},
                    Attack{"ExchangeOfTheWay",
                           true,
                           {"agent_not_found", "agent_dir_unmountable", "invalid_config"},
                           false,
                           ExchangeTheWay}),
    [](const auto& row) { return std::string(row.param.name); });

}  // namespace
}  // namespace taskcell::test
