#include "launcher/cell/job.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>
#include <functional>

namespace taskcell::cell {
namespace {

using ::testing::HasSubstr;

Job SampleJob() {
  Job job;
  job.argv = {"program", "", "-x"};
  job.environment = {"PATH=/usr/bin:/bin", "EMPTY="};
  job.working_directory = "/workspace/sub";
  job.home = "/tmp/home";
  job.directories = {"/tmp/cache"};
  job.files = {{"config.toml", 0600, "a\0b"}, {".claude/settings.json", 0700, ""}};
  job.stdio = JobStdio::kRelay;
  job.input = "prompt";
  job.stays = false;
  job.timeout_ms = 5000;
  job.loopback_port = 4711;
  job.tunnel_port = 4712;
  job.ignored_signals = {SIGHUP, SIGINT};
  return job;
}

TEST(JobTest, AJobComesBackAsItWasSent) {
  std::string bytes = EncodeJob(SampleJob());
  Result<Job> back = ParseJob(bytes);
  ASSERT_TRUE(back.ok()) << back.error().text;
  EXPECT_EQ(EncodeJob(back.value()), bytes);
  EXPECT_EQ(back->argv, SampleJob().argv);
  EXPECT_EQ(back->files.at(1).mode, 0700U);
  EXPECT_FALSE(back->stays);
  EXPECT_EQ(back->loopback_port, 4711);
  EXPECT_EQ(back->tunnel_port, 4712);
  EXPECT_EQ(back->ignored_signals, SampleJob().ignored_signals);
}

TEST(JobTest, EveryTruncationAndAnyTrailingByteIsRefused) {
  std::string bytes = EncodeJob(SampleJob());
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    ASSERT_FALSE(ParseJob(std::string_view(bytes).substr(0, size)).ok()) << size;
  }
  EXPECT_FALSE(ParseJob(bytes + '\0').ok());
  EXPECT_FALSE(ParseJob(std::string(kMaxJobBytes + 1, 'x')).ok());
}

TEST(JobTest, FiveMebibytesAreTheLongestInput) {
  Job job = SampleJob();
  job.input.assign(kMaxInputBytes, 'p');
  EXPECT_TRUE(ParseJob(EncodeJob(job)).ok());
  job.input += 'p';
  EXPECT_FALSE(ParseJob(EncodeJob(job)).ok());
  EXPECT_THAT(CheckJob(job).error().text, HasSubstr("5242881 bytes"));
}

TEST(JobTest, AnArgumentStaysBelow128KiBAndTheMessageNamesTheLimit) {
  Job job = SampleJob();
  job.argv[1].assign((128U << 10U) - 1, 'a');
  EXPECT_TRUE(CheckJob(job).ok());
  job.argv[1] += 'a';
  EXPECT_THAT(CheckJob(job).error().text, HasSubstr("131072 bytes"));
  EXPECT_THAT(CheckJob(job).error().text, HasSubstr("128 KiB"));
}

TEST(JobTest, ThereAreAtMost262144ArgumentsAndTheMessageNamesBothNumbers) {
  Job job = SampleJob();
  job.argv.resize(kMaxJobStrings, "a");
  EXPECT_TRUE(ParseJob(EncodeJob(job)).ok());
  job.argv.emplace_back("a");
  EXPECT_FALSE(ParseJob(EncodeJob(job)).ok());
  EXPECT_THAT(CheckJob(job).error().text, HasSubstr("262145 arguments, more than 262144"));
}

struct Refused {
  const char* name;
  std::function<void(Job&)> change;
  const char* reason;
};

class CheckJobTest : public ::testing::TestWithParam<Refused> {};

TEST_P(CheckJobTest, IsRefusedWithItsReasonAndOnlyThen) {
  Job job = SampleJob();
  ASSERT_TRUE(CheckJob(job).ok());
  GetParam().change(job);
  Status status = CheckJob(job);
  ASSERT_FALSE(status.ok());
  EXPECT_THAT(status.error().text, HasSubstr(GetParam().reason));
  EXPECT_FALSE(ParseJob(EncodeJob(job)).ok());
}

INSTANTIATE_TEST_SUITE_P(
    Each, CheckJobTest,
    ::testing::Values(
        Refused{"NoArgv", [](Job& j) { j.argv.clear(); }, "no program"},
        Refused{"NulInArgument", [](Job& j) { j.argv[1].push_back('\0'); }, "NUL"},
        Refused{"NoEquals", [](Job& j) { j.environment[0] = "PATH"; }, "NAME=value"},
        Refused{"NoName", [](Job& j) { j.environment[0] = "=x"; }, "NAME=value"},
        Refused{"Workdir", [](Job& j) { j.working_directory = ""; }, "working directory"},
        Refused{"Home", [](Job& j) { j.home = "home"; }, "the home"},
        Refused{"FilesWithoutHome", [](Job& j) { j.home.clear(); }, "without a home"},
        Refused{"Directory", [](Job& j) { j.directories[0] = "/a/../b"; }, "the directory"},
        Refused{"FileAbove", [](Job& j) { j.files[0].path = "../x"; }, "the file path"},
        Refused{"FileAbsolute", [](Job& j) { j.files[0].path = "/x"; }, "the file path"},
        Refused{"FileDeep", [](Job& j) { j.files[0].path = "1/2/3/4/5/6/7/8/9"; }, "8 names"},
        Refused{"FileLetters", [](Job& j) { j.files[0].path = "a b"; }, "the file path"},
        Refused{"FileMode", [](Job& j) { j.files[0].mode = 04755; }, "mode"},
        Refused{"InputWithoutRelay", [](Job& j) { j.stdio = JobStdio::kInherit; }, "relay"},
        Refused{"IgnoredKill", [](Job& j) { j.ignored_signals = {SIGKILL}; }, "be ignored"},
        Refused{"IgnoredStop", [](Job& j) { j.ignored_signals = {SIGSTOP}; }, "be ignored"},
        Refused{"IgnoredZero", [](Job& j) { j.ignored_signals = {0}; }, "be ignored"},
        Refused{"IgnoredPastLast", [](Job& j) { j.ignored_signals = {65}; }, "be ignored"},
        Refused{"TerminalAndRelay", [](Job& j) { j.foreground = true; }, "terminal"}),
    [](const auto& tested) { return tested.param.name; });

}  // namespace
}  // namespace taskcell::cell
