#include "gateway/config/agent_config.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <vector>

#include "gateway/config/toml_document.h"
#include "launcher/base/text.h"
#include "launcher/mounts/tree.h"
#include "launcher/sys/file.h"
#include "tests/support/fixture.h"
#include "tests/support/hung_files.h"

namespace taskcell::gateway {
namespace {

namespace fs = std::filesystem;

Result<AgentConfig> Read(std::string_view lines) {
  return ReadAgentConfig(ParseToml(Text("[agent]\nname = \"a1\"\n", lines), "agent.toml").value());
}

TEST(AgentConfigTest, DefaultsAreTheSafeOnes) {
  AgentConfig config = Read("").value();
  EXPECT_EQ(config.name, "a1");
  EXPECT_FALSE(config.sandbox_enabled);
  EXPECT_FALSE(config.network_access);
  EXPECT_EQ(config.timeout_ms, 1800000U);
  EXPECT_EQ(config.model, "");
  EXPECT_EQ(config.denied_tools, std::vector<std::string>{"computer"});
}

TEST(AgentConfigTest, KeysOfATaskAreRead) {
  AgentConfig config =
      Read(
          "[runtime]\nprovider = \"codex\"\n[model]\npreferred = \"  m \"\n"
          "account_pool = [\" x \", \"\", \"y\"]\n[container]\nsandbox_enabled = true\n"
          "network_access = true\ntimeout_ms = 20000\n[capabilities]\n"
          "denied_tools = [\"b\", \"a\", \"b\"]\ncomputer_use = true\n"
          "[taskcell.limits]\npids = 7\n")
          .value();
  EXPECT_EQ(config.provider, "codex");
  EXPECT_EQ(config.model, "m");
  EXPECT_EQ(config.account_pool, (std::vector<std::string>{"x", "y"}));
  EXPECT_TRUE(config.sandbox_enabled);
  EXPECT_TRUE(config.network_access);
  EXPECT_EQ(config.timeout_ms, 20000U);
  EXPECT_EQ(config.denied_tools, (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(config.limits.pids, 7U);
}

TEST(AgentConfigTest, WrongTypesAreRefusedByName) {
  for (std::string_view lines :
       {"[container]\nsandbox_enabled = \"yes\"", "[container]\nnetwork_access = 1",
        "[container]\ntimeout_ms = -1", "[container]\ntimeout_ms = \"1s\"",
        "[container]\ntimeout_ms = 604800001", "[model]\npreferred = 1",
        "[model]\naccount_pool = [1]", "[capabilities]\ndenied_tools = \"x\"",
        "[taskcell]\nallow_hosts = [\"a:1\"]", "[taskcell]\nexport = \"yes\"",
        "[taskcell]\ncolour = 1", "[taskcell.limits]\npids = 0", "[taskcell.limits]\nnofile = 1"}) {
    Result<AgentConfig> config = Read(lines);
    ASSERT_FALSE(config.ok()) << lines;
    EXPECT_EQ(config.error().code, "invalid_config");
    std::string_view last = lines.substr(lines.rfind('\n') + 1);
    EXPECT_NE(config.error().text.find(last.substr(0, last.find(' '))), std::string::npos)
        << config.error().text;
  }
  EXPECT_TRUE(Read("[container]\ntimeout_ms = 604800000").ok());
}

TEST(AgentConfigTest, AllowedHostsAreReadAndWithoutTheKeyThereAreNone) {
  EXPECT_TRUE(Read("")->allow_hosts.empty());
  EXPECT_TRUE(Read("[taskcell]\nallow_hosts = []")->allow_hosts.empty());
  EXPECT_EQ(Read("[taskcell]\nallow_hosts = [\"pypi.org:443\", \"pypi.org:8443\"]")->allow_hosts,
            (std::vector<AllowedHost>{{"pypi.org", 443}, {"pypi.org", 8443}}));
}

TEST(AgentConfigTest, AnOddAllowedHostIsRefusedWithTheLineAndTheReason) {
  struct Row {
    std::string_view value;
    std::string_view reason;
  };
  for (const Row& row :
       std::initializer_list<Row>{{"\"pypi.org\"", "the port is missing"},
                                  {"\"*.pypi.org:443\"", "no wildcards"},
                                  {"\"PyPI.org:443\"", "not in lower case"},
                                  {"\"pypi.org.:443\"", "ends with a dot"},
                                  {"\"https://pypi.org:443\"", "without scheme"},
                                  {"\"me@pypi.org:443\"", "no user name"},
                                  {"\"1.2.3.4:443\"", "not given as an address"},
                                  {"\"[2606:4700::1]:443\"", "not given as an address"},
                                  {"\"localhost:443\"", "of this machine"},
                                  {"\"metadata.google.internal:80\"", "of this machine"},
                                  {"\"pypi:443\"", "no dot"},
                                  {"\"p\u00fcpi.org:443\"", "xn--"},
                                  {"\"pypi.org:0443\"", "without leading zeros"},
                                  {"\"pypi.org:443\", \"pypi.org:443\"", "twice"},
                                  {"443", "allow_hosts"}}) {
    Result<AgentConfig> config = Read(Text("[taskcell]\nallow_hosts = [", row.value, "]"));
    ASSERT_FALSE(config.ok()) << row.value;
    EXPECT_EQ(config.error().code, "invalid_config");
    EXPECT_NE(config.error().text.find(row.reason), std::string::npos) << config.error().text;
    EXPECT_NE(config.error().text.find("(line "), std::string::npos) << config.error().text;
  }
}

TEST(AgentConfigTest, SixtyFourHostsAreTakenAndOneMoreIsRefused) {
  std::string list;
  for (std::size_t i = 0; i < kMaxAllowedHosts; ++i) list += Text("\"a", i, ".org:443\", ");
  EXPECT_EQ(Read(Text("[taskcell]\nallow_hosts = [", list, "]"))->allow_hosts.size(), 64U);
  EXPECT_FALSE(Read(Text("[taskcell]\nallow_hosts = [", list, "\"b.org:443\"]")).ok());
}

TEST(AgentConfigTest, NamesOutsideTheAlphabetAreRefused) {
  EXPECT_TRUE(IsAgentName("A-z_09"));
  EXPECT_TRUE(IsAgentName(std::string(128, 'a')));
  for (const std::string& name :
       {std::string(), std::string("a/b"), std::string(".."), std::string("a b"),
        std::string(129, 'a'), std::string("a\0", 2), std::string("\xc3\xa9")})
    EXPECT_FALSE(IsAgentName(name)) << name;
}

class FindAgentTest : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_NE(::mkdtemp(path_.data()), nullptr);
    home_ = OpenHome(path_).value();
  }
  void TearDown() override {
    UniqueFd tmp = sys::Open("/tmp", O_RDONLY | O_DIRECTORY).value();
    EXPECT_TRUE(mounts::RemoveTree(tmp.get(), path_.substr(5)).ok());
  }
  void Put(const std::string& name, std::string_view content) const {
    fs::create_directories(fs::path(path_ + "/" + name).parent_path());
    std::ofstream(path_ + "/" + name, std::ios::binary) << content;
  }

  std::string path_ = "/tmp/taskcell-config-test-XXXXXX";
  Home home_;
};

TEST_F(FindAgentTest, KeyIsTheNameInTheFileAndNotTheDirectory) {
  Put("agents/dir1/agent.toml", "[agent]\nname = \"other\"\n");
  Put("agents/dir2/agent.toml", "[agent]\nname = \"a1\"\nrole = \"main\"\n");
  EXPECT_EQ(FindAgent(home_, "a1").value().directory_name, "dir2");
  EXPECT_EQ(FindAgent(home_, "default").value().directory_name, "dir2");
  EXPECT_EQ(FindAgent(home_, "dir2").error().code, "agent_not_found");
  EXPECT_EQ(FindAgent(home_, "../dir2").error().code, "agent_not_found");
}

TEST_F(FindAgentTest, HiddenAndRemovedDirectoriesAreNoAgents) {
  Put("agents/_trash/agent.toml", "[agent]\nname = \"a1\"\n");
  Put("agents/.ephemeral/agent.toml", "[agent]\nname = \"a1\"\n");
  EXPECT_EQ(FindAgent(home_, "a1").error().code, "agent_not_found");
}

TEST_F(FindAgentTest, AnEphemeralAgentIsFoundInItsOwnPlaceAndNowhereElse) {
  EXPECT_EQ(FindAgent(home_, "eph-1").error().code, "agent_not_found");
  Put("agents/dir1/agent.toml", "[agent]\nname = \"eph-1\"\n");
  Put("agents/eph-1/agent.toml", "[agent]\nname = \"eph-1\"\n");
  EXPECT_EQ(FindAgent(home_, "eph-1").error().code, "agent_not_found");
  Put("agents/.ephemeral/eph-1/agent.toml",
      "[agent]\nname = \"a1\"\n[container]\nsandbox_enabled = true\n");
  const Agent agent = FindAgent(home_, "eph-1").value();
  EXPECT_EQ(agent.directory_name, ".ephemeral/eph-1");
  EXPECT_EQ(agent.config.name, "eph-1");
  EXPECT_TRUE(agent.config.sandbox_enabled);
  EXPECT_EQ(FindAgent(home_, "a1").error().code, "agent_not_found");
  EXPECT_EQ(FindAgent(home_, "eph-2").error().code, "agent_not_found");
  fs::create_directory_symlink("../dir1", path_ + "/agents/.ephemeral/eph-3");
  EXPECT_EQ(FindAgent(home_, "eph-3").error().code, "agent_dir_unmountable");
  Put("agents/.ephemeral/eph-4/agent.toml", "[agent");
  EXPECT_EQ(FindAgent(home_, "eph-4").error().code, "invalid_config");
  const std::vector<ListedAgent> all = ListAgents(home_).value();
  for (const ListedAgent& listed : all)
    EXPECT_EQ(listed.directory_name.find(".ephemeral"), std::string::npos);
}

TEST_F(FindAgentTest, HomeWithoutAgentsHasNone) {
  EXPECT_EQ(FindAgent(home_, "a1").error().code, "agent_not_found");
}

TEST_F(FindAgentTest, BrokenFileOfAnotherAgentDoesNotMatterButTheOwnIsNamed) {
  Put("agents/a1/agent.toml", "[agent]\nname = \"a1\"\n");
  Put("agents/b/agent.toml", "not toml");
  EXPECT_TRUE(FindAgent(home_, "a1").ok());
  Result<Agent> broken = FindAgent(home_, "b");
  ASSERT_FALSE(broken.ok());
  EXPECT_EQ(broken.error().code, "invalid_config");
  EXPECT_NE(broken.error().text.find("b/agent.toml is not valid TOML"), std::string::npos)
      << broken.error().text;
}

TEST_F(FindAgentTest, LinksAreNotFollowed) {
  Put("outside/agent.toml", "[agent]\nname = \"a1\"\n");
  fs::create_directories(path_ + "/agents");
  fs::create_directory_symlink("../outside", path_ + "/agents/a1");
  EXPECT_FALSE(FindAgent(home_, "a1").ok());
  fs::remove(path_ + "/agents/a1");
  fs::create_directories(path_ + "/agents/a1");
  fs::create_symlink("../../outside/agent.toml", path_ + "/agents/a1/agent.toml");
  EXPECT_EQ(FindAgent(home_, "a1").error().code, "invalid_config");
  fs::remove(path_ + "/agents/a1/agent.toml");
  Put("agents/a1/agent.toml", "[agent]\nname = \"a1\"\n");
  EXPECT_TRUE(FindAgent(home_, "a1").ok());
}

TEST_F(FindAgentTest, ALinkOfAnotherNameIsNamedWhereTheAgentIsNotFound) {
  Put("outside/agent.toml", "[agent]\nname = \"a1\"\n");
  Put("agents/b/agent.toml", "[agent]\nname = \"b\"\n");
  Put("agents/notes.txt", "no agent");
  EXPECT_EQ(FindAgent(home_, "a1").error().text.find("link"), std::string::npos);
  fs::create_directory_symlink("../outside", path_ + "/agents/x");
  Error error = FindAgent(home_, "a1").error();
  EXPECT_EQ(error.code, "agent_not_found");
  EXPECT_TRUE(error.text.ends_with("no symbolic link: agents/x")) << error.text;
  for (const char* name : {"v", "w", "y"})
    fs::create_directory_symlink("../outside", Text(path_, "/agents/", name));
  error = FindAgent(home_, "a1").error();
  EXPECT_TRUE(error.text.ends_with("agents/v, agents/w, agents/x and 1 more")) << error.text;
}

TEST_F(FindAgentTest, DuplicateNameIsWarnedAbout) {
  Put("agents/x/agent.toml", "[agent]\nname = \"a1\"\n");
  Put("agents/y/agent.toml", "[agent]\nname = \"a1\"\n");
  Agent agent = FindAgent(home_, "a1").value();
  EXPECT_EQ(agent.directory_name, "y");
  EXPECT_EQ(agent.warnings.size(), 1U);
}

// Whoever may write another agent's file cannot take this one's place with it.
TEST_F(FindAgentTest, ADirectoryOfTheAgentsOwnNameSettlesIt) {
  Put("agents/b/agent.toml", "[agent]\nname = \"b\"\n");
  Put("agents/z/agent.toml", "[agent]\nname = \"b\"\n");
  Agent agent = FindAgent(home_, "b").value();
  EXPECT_EQ(agent.directory_name, "b");
  EXPECT_TRUE(agent.warnings.empty()) << "z was not even read";
  Put("agents/b/agent.toml", "[agent]\nname = \"another\"\n");
  EXPECT_EQ(FindAgent(home_, "b").value().directory_name, "z");
}

// The time is no part of the promise: it is that no other directory is waited for as long as the
// own one would be.
TEST_F(FindAgentTest, AnotherAgentThatHangsIsNotWaitedFor) {
  TASKCELL_REQUIRE(test::HasFuse(), test::kNeedsFuse);
  Put("agents/own/agent.toml", "[agent]\nname = \"own\"\nrole = \"main\"\n");
  Put("agents/z/agent.toml", "[agent]\nname = \"renamed\"\n");
  for (const char* name : {"hung-1", "hung-2", "hung-3"})
    fs::create_directories(path_ + "/agents/" + name);
  EXPECT_EQ(test::InChild([this] {
              if (!test::EnterOwnMounts()) return 90;
              std::vector<std::unique_ptr<test::HungFiles>> hung;
              for (const char* name : {"hung-1", "hung-2", "hung-3"}) {
                hung.push_back(std::make_unique<test::HungFiles>(
                    path_ + "/agents/" + name, test::HungFiles::Answers::kNothing));
                if (!hung.back()->mounted()) return 91;
              }
              Home home = OpenHome(path_).value();
              const auto limit = std::chrono::minutes(10);  // past what a test may take
              home.files =
                  std::make_shared<mounts::FileReader>(test::Program("taskcell-launch"), limit);
              home.hasty_files = std::make_shared<mounts::FileReader>(
                  test::Program("taskcell-launch"), std::chrono::seconds(2));
              if (FindAgent(home, "own").value().directory_name != "own") return 1;
              if (FindAgent(home, "default").value().directory_name != "own") return 2;
              if (FindAgent(home, "renamed").value().directory_name != "z") return 3;
              home.hasty_files = nullptr;  // an own directory needs no look into another
              return FindAgent(home, "own").value().directory_name == "own" ? 0 : 4;
            }),
            0);
}

TEST_F(FindAgentTest, BoundPresetReplacesTheFile) {
  Put("agents/a1/agent.toml", "[agent]\nname = \"a1\"\n[model]\npreferred = \"old\"\n");
  Put("agent_resolved/a1.toml", "[agent]\nname = \"a1\"\n[model]\npreferred = \"new\"\n");
  EXPECT_EQ(FindAgent(home_, "a1").value().config.model, "new");
  Put("agent_resolved/a1.toml", "broken");
  EXPECT_EQ(FindAgent(home_, "a1").error().code, "invalid_config");
}

TEST_F(FindAgentTest, FifoAsAgentFileIsRefusedAtOnce) {
  fs::create_directories(path_ + "/agents/a1");
  ASSERT_EQ(::mkfifo((path_ + "/agents/a1/agent.toml").c_str(), 0600), 0);
  EXPECT_EQ(FindAgent(home_, "a1").error().code, "invalid_config");
}

TEST_F(FindAgentTest, HomeIsChosenInOrder) {
  Environment environment = {{"HOME", path_}};
  EXPECT_EQ(ChooseHome("", environment).value(), path_ + "/.taskcell");
  fs::create_directories(path_ + "/.duduclaw");
  EXPECT_EQ(ChooseHome("", environment).value(), path_ + "/.duduclaw");
  fs::create_directories(path_ + "/.taskcell");
  EXPECT_EQ(ChooseHome("", environment).value(), path_ + "/.taskcell");
  environment["DUDUCLAW_HOME"] = "/d";
  EXPECT_EQ(ChooseHome("", environment).value(), "/d");
  environment["TASKCELL_HOME"] = "/t";
  EXPECT_EQ(ChooseHome("", environment).value(), "/t");
  environment["TASKCELL_HOME"] = "  ";
  EXPECT_EQ(ChooseHome("", environment).value(), "/d");
  EXPECT_EQ(ChooseHome("/o", environment).value(), "/o");
  EXPECT_EQ(ChooseHome("", {}).error().kind, Kind::kConfig);
}

TEST_F(FindAgentTest, HomeIsCanonicalAndLabelled) {
  Home with_detours = OpenHome(path_ + "/../" + path_.substr(5) + "//./").value();
  EXPECT_EQ(with_detours.path, home_.path);
  EXPECT_EQ(with_detours.label, home_.label);
  EXPECT_EQ(HomeLabel("/home/agent1/.duduclaw"), "b5ba79b6f0ef7d75db812d5ff825cfa6");
  Result<Home> missing = OpenHome(path_ + "/none");
  ASSERT_FALSE(missing.ok());
  EXPECT_NE(missing.error().text.find("it does not exist"), std::string::npos);
}

// Who else can exchange a part of the way could have every task run in a home of their own.
TEST_F(FindAgentTest, AHomeByAWayThatOthersCanExchangeIsRefused) {
  fs::create_directories(path_ + "/open/home");
  ASSERT_EQ(::chmod((path_ + "/open").c_str(), 0777), 0);
  Result<Home> open = OpenHome(path_ + "/open/home");
  ASSERT_FALSE(open.ok());
  EXPECT_EQ(open.error().kind, Kind::kConfig);
  EXPECT_NE(open.error().text.find("chmod go-w " + path_ + "/open"), std::string::npos)
      << open.error().text;
  ASSERT_EQ(::chmod((path_ + "/open").c_str(), 0755), 0);
  EXPECT_TRUE(OpenHome(path_ + "/open/home").ok());
  // Links are root's, or nobody follows them.
  fs::create_directory_symlink(path_ + "/open/home", path_ + "/link");
  if (::geteuid() == 0) {
    EXPECT_EQ(OpenHome(path_ + "/link")->path, path_ + "/open/home");
    ASSERT_EQ(::lchown((path_ + "/link").c_str(), 65534, 65534), 0);
  }
  Result<Home> linked = OpenHome(path_ + "/link");
  ASSERT_FALSE(linked.ok());
  EXPECT_NE(linked.error().text.find("name what it leads to instead"), std::string::npos)
      << linked.error().text;
}

}  // namespace
}  // namespace taskcell::gateway
