// Output that is counted (--output-size).
#include <gmock/gmock.h>
#include <unistd.h>

#include <csignal>

#include "launcher/base/text.h"
#include "tests/support/launch.h"

namespace taskcell::test {
namespace {

using testing::AllOf;
using testing::HasSubstr;

class StreamsTest : public LaunchTest {
 protected:
  Outcome Print(const std::string& script, RunOptions options = {}) const {
    return Launch({"--output-size=100000", "--report=" + scratch_ + "/report.json", "--", "/bin/sh",
                   "-c", script},
                  options);
  }
  std::string Report() const {
    std::ifstream file(scratch_ + "/report.json");
    return {std::istreambuf_iterator<char>(file), {}};
  }
};

TEST_F(StreamsTest, OutputUpToTheBoundComesWholeAndInOrder) {
  Outcome ran = Print("head -c 99994 /dev/zero | tr '\\0' x; echo end >&2; exit 3");
  EXPECT_EQ(ran.status, 3);
  EXPECT_EQ(ran.out, std::string(99994, 'x'));
  EXPECT_EQ(ran.err, "end\n");
  EXPECT_THAT(Report(), AllOf(HasSubstr(R"("output_exceeded":false)"),
                              HasSubstr(R"("output_bytes":100000)"), HasSubstr(R"("exit":3)")));
}

TEST_F(StreamsTest, OneByteMoreEndsTheProgramAndGoesNowhere) {
  Outcome ran = Print("head -c 99998 /dev/zero | tr '\\0' x; printf abc >&2; sleep 1000");
  EXPECT_EQ(ran.status, 123);
  EXPECT_EQ(ran.out.size() + ran.err.size(), 100000U);
  EXPECT_THAT(Report(), AllOf(HasSubstr(R"("output_exceeded":true)"), HasSubstr(R"("status":123)"),
                              HasSubstr(R"("exit":null,"signal":null)")));
}

TEST_F(StreamsTest, AProgramThatNeverStopsPrintingIsEnded) {
  Outcome ran = Print("trap '' PIPE TERM; yes & yes >&2 & wait");
  EXPECT_EQ(ran.status, 123);
  EXPECT_EQ(ran.out.size() + ran.err.size(), 100000U);
}

TEST_F(StreamsTest, InputStillReachesTheProgram) {
  RunOptions options;
  options.input = "typed";
  EXPECT_EQ(Print("cat", options).out, "typed");
}

TEST_F(StreamsTest, TheDeadlineHoldsWhileOutputFlows) {
  // That it is asked to end is the launcher's doing: init's own deadline, long after, kills.
  Outcome asked =
      Launch({"--output-size=1024G", "--timeout=3s", "--kill-after=30s", "--", "/bin/sh", "-c",
              "trap 'echo asked >&2; exit 0' TERM; while :; do echo y; done & wait"});
  EXPECT_EQ(asked.status, 124);
  EXPECT_EQ(asked.err, "asked\n");
  Outcome deaf =
      Launch({"--output-size=1024G", "--timeout=500ms", "--kill-after=100ms",
              "--report=" + scratch_ + "/report.json", "--", "/bin/sh", "-c", "trap '' TERM; yes"});
  EXPECT_EQ(deaf.status, 124);
}

// Nobody reads a pipe that is held open: neither the time limit nor a signal may wait for it.
TEST_F(StreamsTest, AReaderThatTakesNothingDoesNotKeepTheLauncher) {
  RunOptions options;
  options.user = user_;
  std::string command;
  for (const std::string& word : Command({"--output-size=100M", "--timeout=500ms",
                                          "--kill-after=100ms", "--", "/bin/sh", "-c", "yes"}))
    command += "'" + word + "' ";
  Outcome ran = test::Run({"/bin/sh", "-c",
                           "mkfifo " + scratch_ + "/fifo; exec 9<>" + scratch_ + "/fifo; " +
                               command + ">&9; echo status:$?"},
                          options);
  EXPECT_EQ(ran.out, "status:124\n") << ran.err;
}

TEST_F(StreamsTest, OutputThatCannotBeWrittenIsAFailure) {
  RunOptions options;
  options.user = user_;
  std::string command;
  for (const std::string& word : Command({"--output-size=1M", "--", "/bin/echo", "hi"}))
    command += "'" + word + "' ";
  Outcome ran = test::Run({"/bin/sh", "-c", command + ">/dev/full; echo status:$?"}, options);
  EXPECT_EQ(ran.out, "status:125\n");
  EXPECT_THAT(ran.err, HasSubstr("the program's output"));
  EXPECT_THAT(ran.err, HasSubstr("No space left on device"));
}

TEST_F(StreamsTest, AReaderThatGoesAwayIsToldToTheProgram) {
  RunOptions options;
  options.user = user_;
  std::string command = "{ ";
  for (const std::string& word :
       Command({"--output-size=100M", "--timeout=30s", "--", "/bin/sh", "-c", "yes; echo $? >&2"}))
    command += "'" + word + "' ";
  Outcome ran = test::Run({"/bin/sh", "-c", command + "; } | head -n 1"}, options);
  EXPECT_EQ(ran.out, "y\n");
  EXPECT_THAT(ran.err, HasSubstr(Text(128 + SIGPIPE)));
}

}  // namespace
}  // namespace taskcell::test
