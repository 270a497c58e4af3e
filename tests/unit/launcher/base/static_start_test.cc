#include <gtest/gtest.h>
#include <signal.h>

#include <string>

#include "launcher/sys/group.h"

namespace taskcell {
namespace {

using sys::GroupResult;

GroupResult Shell(const std::string& command) {
  Result<GroupResult> result = sys::RunGroup({"/bin/sh", "-c", command}, 60'000, 4096);
  EXPECT_TRUE(result.ok()) << result.error().text;
  return std::move(result).value();
}

std::string Ask(const std::string& question) {
  GroupResult result = Shell("exec " STARTED_PROGRAM " " + question);
  EXPECT_EQ(result.exit.status, 7);
  return result.output;
}

TEST(StaticStartTest, MainFindsArgumentsEnvironmentAndWhatIsMadeBeforeIt) {
  ::setenv("STARTED_PROGRAM", "inherited", 1);  // NOLINT(concurrency-mt-unsafe): one thread
  EXPECT_EQ(Ask("world last"), "3 last inherited 42 1\ndestroyed\n");
  EXPECT_EQ(Shell("exec env -i " STARTED_PROGRAM " world last").output,
            "3 last - 42 1\ndestroyed\n");
}

TEST(StaticStartTest, AVariableStaticInAFunctionIsMadeOnceAndUndoneAtTheEnd) {
  EXPECT_EQ(Ask("statics"), "0 1 1\nundone\ndestroyed\n");
}

TEST(StaticStartTest, TheStackIsGuardedByARandomCanaryWithAZeroByte) {
#ifndef __x86_64__
  GTEST_SKIP() << "Skipped: the place of the canary is known on x86-64 only";
#endif
  std::string first = Ask("canary");
  std::string second = Ask("canary");
  ASSERT_EQ(first.size(), sizeof "0123456789abcdef\ndestroyed\n" - 1) << first;
  EXPECT_EQ(first.substr(14, 3), "00\n");
  EXPECT_NE(first.substr(0, 14), "00000000000000");
  EXPECT_NE(first, second);
}

TEST(StaticStartTest, WritingPastABufferEndsTheProgram) {
  GroupResult smashed = Shell("ulimit -c 0; exec " STARTED_PROGRAM " smash");
  EXPECT_EQ(smashed.exit.signal, SIGABRT) << smashed.output;
  EXPECT_EQ(smashed.output.find("survived"), std::string::npos);
}

TEST(StaticStartTest, MemoryOfEverySizeIsCopiedMovedAndSetRight) {
  EXPECT_EQ(Ask("copies"), "right\ndestroyed\n");
}

// Each CPUID is an exit to the hypervisor on a virtual machine.
TEST(StaticStartTest, TheStaticProgramsNeverAskTheProcessorWhatItIs) {
#ifndef STARTS_BY_ITSELF
  GTEST_SKIP() << "Skipped: with this C library, or linked dynamically, the programs start in its "
                  "own way";
#endif
  if (Shell("command -v objdump").exit.status != 0)
    GTEST_SKIP() << "Skipped: objdump (Debian: binutils) is not installed";
  for (const char* program : {STARTED_PROGRAM, LAUNCH_PROGRAM, INIT_PROGRAM}) {
    std::string command = std::string("objdump -d ") + program + " | grep -cw ";
    EXPECT_EQ(Shell(command + "cpuid").output, "0\n") << program;
    EXPECT_NE(Shell(command + "syscall").output, "0\n")
        << program;  // the search finds what is there
  }
}

}  // namespace
}  // namespace taskcell
