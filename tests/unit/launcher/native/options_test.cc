#include "launcher/native/options.h"

#include <gtest/gtest.h>

namespace taskcell::native {
namespace {

Result<Options> Parse(std::vector<std::string> words) {
  words.insert(words.begin(), "taskcell-launch");
  std::vector<char*> pointers;
  for (std::string& word : words) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  return ParseOptions(static_cast<int>(words.size()), pointers.data());
}

TEST(OptionsTest, TheProgramBeginsAtTheFirstWordThatIsNoOption) {
  Options options = Parse({"--pids", "5", "ls", "--pids", "6"}).value();
  EXPECT_EQ(options.limits.pids, 5U);
  EXPECT_EQ(options.command, (std::vector<std::string>{"ls", "--pids", "6"}));
  EXPECT_EQ(Parse({"--", "--memory"}).value().command, (std::vector<std::string>{"--memory"}));
}

TEST(OptionsTest, TheDefaultsAreTheSandboxs) {
  Options options = Parse({"true"}).value();
  EXPECT_EQ(options.limits.memory_bytes, 4294967296U);
  EXPECT_EQ(options.limits.pids, 128U);
  EXPECT_EQ(options.limits.cpu_millis, 1000U);
  EXPECT_TRUE(options.rootfs.empty());
}

TEST(OptionsTest, EveryOptionIsTaken) {
  Options options = Parse({"--memory=64M",   "--pids=32",         "--cpus=0.5",     "--nofile=99",
                           "--rootfs=/r",    "--ro=/a:/b",        "--bind-rw=/c",   "--tmpfs=/t:1M",
                           "--agent-dir=/g", "--file=/e:f:7",     "--uid=7",        "--gid=8",
                           "--timeout=10s",  "--kill-after=50ms", "--net=none",     "--hostname=h",
                           "--env=A=b",      "--chdir=/x",        "--report=/q",    "--userns=own",
                           "--file-size=8M", "--cpu-set=1,0",     "--io-weight=50", "true"})
                        .value();
  EXPECT_EQ(options.limits.memory_bytes, 67108864U);
  EXPECT_EQ(options.limits.cpu_millis, 500U);
  EXPECT_EQ(options.limits.nofile, 99U);
  EXPECT_EQ(options.limits.file_bytes, 8388608U);
  EXPECT_EQ(options.limits.cpu_set, "0-1");
  EXPECT_EQ(options.limits.io_weight, 50U);
  EXPECT_EQ(options.rootfs, "/r");
  ASSERT_EQ(options.binds.size(), 2U);
  EXPECT_EQ(options.binds[0].source, "/a");
  EXPECT_EQ(options.binds[0].target, "/b");
  EXPECT_FALSE(options.binds[0].writable);
  EXPECT_EQ(options.binds[1].target, "");
  EXPECT_TRUE(options.binds[1].writable);
  ASSERT_EQ(options.tmpfs.size(), 1U);
  EXPECT_EQ(options.tmpfs[0].size_bytes, 1048576U);
  EXPECT_FALSE(options.tmpfs[0].exec);
  ASSERT_EQ(options.files.size(), 1U);
  EXPECT_EQ(options.files[0].target, "/e:f");
  EXPECT_EQ(options.files[0].fd, 7);
  EXPECT_EQ(options.uid, 7U);
  EXPECT_EQ(options.gid, 8U);
  EXPECT_EQ(options.time_limit.timeout_ms, 10'000U);
  EXPECT_EQ(options.time_limit.grace_ms, 50U);
  EXPECT_EQ(options.user_namespace, UserNamespaceMode::kOwn);
}

TEST(OptionsTest, WhatIsWrongIsNamed) {
  const std::vector<std::pair<std::vector<std::string>, std::string>> rows = {
      {{"--memory", "x", "true"}, "--memory"},
      {{"--pids", "0", "true"}, "--pids"},
      {{"--file-size", "0", "true"}, "--file-size"},
      {{"--cpu-set", "", "true"}, "list of processors"},
      {{"--cpu-set", "1-0", "true"}, "list of processors"},
      {{"--io-weight", "1001", "true"}, "1 to 1000"},
      {{"--file", "/x", "true"}, "TARGET:DESCRIPTOR"},
      {{"--file", "/x:1", "true"}, "below 3"},
      {{"--allow-missing", "pids", "true"}, "only the cpu limit"},
      {{"--pids", "4194305", "true"}, "--pids"},
      {{"--uid", "0", "true"}, "--uid"},
      {{"--uid", "4294967295", "true"}, "--uid"},
      {{"--net", "host", "true"}, "--net"},
      {{"--env", "NOEQUALS", "true"}, "--env"},
      {{"--env", "=x", "true"}, "--env"},
      {{"--tmpfs", "/t", "true"}, "--tmpfs"},
      {{"--tmpfs", "/t:1M:suid", "true"}, "--tmpfs"},
      {{"--tmpfs=/t:1M", "--tmpfs=/t:2M:exec", "true"}, "--tmpfs '/t' is given twice"},
      {{"--userns", "host", "true"}, "--userns"},
      {{"--memory=1G", "--memory", "2G", "true"},
       "--memory: it is given twice, with '1G' and '2G'"},
      {{"--report=/a", "--report=/a", "true"}, "--report: it is given twice, with '/a' and '/a'"},
      {{"--hostname", "-x", "true"}, "--hostname: '-x' is no host name"},
      {{"--hostname=", "true"}, "--hostname: '' is no host name"},
      {{"--report", "--tty", "true"}, "--report: '--tty' is an option where a path was to be"},
      {{"--rootfs", "--check"}, "--rootfs: '--check' is an option"},
      {{"--proc", "none", "true"}, "--proc: a cell cannot be without /proc"},
      {{"--proc", "x", "true"}, "neither full nor pids"},
      {{"--check", "--tty"}, "leave --tty out"},
      {{"--check", "--rootfs=/r"}, "leave --rootfs out"},
      {{"--check", "--report=r"}, "leave --report out"},
      {{"--ro=/a", "--check"}, "leave --ro out"},
      {{"--check", "--bind-rw=/a"}, "leave --bind-rw out"},
      {{"--check", "--timeout=1s"}, "leave --timeout out"},
      {{"--check", "--hostname=a"}, "leave --hostname out"},
      {{"--check", "--memory=1G"}, "leave --memory out"},
      {{"--check", "--allow-missing=cpu"}, "leave --allow-missing out"},
      {{"--check", "--die-with-parent"}, "leave --die-with-parent out"},
      {{"--bogus", "true"}, "--bogus"},
      {{"--memory"}, "--memory"},
      {{}, "no program"},
      {{"--plan-fd", "5"}, "go together"},
      {{"--plan-fd", "2", "--gate-fd", "5", "--status-fd", "6"}, "--plan-fd"},
      {{"--plan-fd", "4", "--gate-fd", "5", "--status-fd", "6", "true"}, "over the gate"},
  };
  for (const auto& [words, named] : rows) {
    Result<Options> options = Parse(words);
    ASSERT_FALSE(options.ok()) << named;
    EXPECT_EQ(options.error().kind, Kind::kUsage);
    EXPECT_NE(options.error().text.find(named), std::string::npos) << options.error().text;
  }
}

TEST(OptionsTest, WhatMayBeGivenAgainIs) {
  Options options = Parse({"--ro=/a", "--ro=/b", "--env=A=1", "--env=A=2", "--tmpfs=/c:1M",
                           "--tmpfs=/d:1M", "--tty", "--tty", "--dev-minimal", "true"})
                        .value();
  EXPECT_EQ(options.binds.size(), 2U);
  EXPECT_EQ(options.environment.size(), 2U);
  EXPECT_EQ(options.tmpfs.size(), 2U);
  EXPECT_TRUE(options.terminal);
}

TEST(OptionsTest, LinksOfAMountAreFollowedUnlessToldNotTo) {
  std::vector<BindOption> binds =
      Parse({"--ro=/a:/b", "--ro=/a:/b:nosymfollow", "--bind-rw=/c:nosymfollow", "true"})
          .value()
          .binds;
  ASSERT_EQ(binds.size(), 3U);
  EXPECT_TRUE(binds[0].follows_links);
  EXPECT_FALSE(binds[1].follows_links);
  EXPECT_EQ(binds[1].target, "/b");
  EXPECT_FALSE(binds[2].follows_links);
  EXPECT_EQ(binds[2].source, "/c");
  EXPECT_EQ(binds[2].target, "");
}

TEST(OptionsTest, ProcIsWholeUnlessAskedOtherwise) {
  EXPECT_FALSE(Parse({"true"}).value().proc_is_subset);
  EXPECT_FALSE(Parse({"--proc=full", "true"}).value().proc_is_subset);
  EXPECT_TRUE(Parse({"--proc=pids", "true"}).value().proc_is_subset);
}

TEST(CheckStringsTest, OneByteBelow128KiBIsTakenAnd128KiBNamesTheWayOut) {
  std::string fits(131071, 'a');
  std::string over(131072, 'a');
  EXPECT_TRUE(CheckStrings({"x", fits}, {fits}).ok());
  for (const Status& status : {CheckStrings({"x", over}, {}), CheckStrings({"x"}, {over})}) {
    ASSERT_FALSE(status.ok());
    EXPECT_NE(status.error().text.find("128 KiB"), std::string::npos);
    EXPECT_NE(status.error().text.find("standard input"), std::string::npos);
  }
}

TEST(FindReportOptionTest, TheReportIsFoundWhateverElseIsWrong) {
  struct Row {
    std::vector<std::string> words;
    std::string report;
  };
  const Row rows[] = {
      {{"--report", "r", "--memory", "x", "true"}, "r"},
      {{"--bogus", "--report=r", "--pids"}, "r"},
      {{"--report=a", "--report=b"}, "b"},
      {{"true", "--report=r"}, ""},
      {{"--memory", "--report=r"}, ""},
      {{"--report", "--timeout", "5s", "true"}, ""},
      {{"--bogus", "true", "--report=r"}, ""},  // it may be the program's own
      {{"--report"}, ""},
  };
  for (const Row& row : rows) {
    std::vector<std::string> words = row.words;
    words.insert(words.begin(), "taskcell-launch");
    std::vector<char*> argv;
    for (std::string& word : words) argv.push_back(word.data());
    argv.push_back(nullptr);
    EXPECT_EQ(FindReportOption(static_cast<int>(words.size()), argv.data()), row.report);
  }
}

}  // namespace
}  // namespace taskcell::native
