#include "launcher/sys/spawn.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>

#include "launcher/sys/file.h"
#include "launcher/sys/socket.h"

namespace taskcell::sys {
namespace {

// Runs a shell script whose output goes to descriptor 4.
std::string Output(const std::string& script, const std::vector<std::string>& environment) {
  Pipe pipe = MakePipe().value();
  UniqueFd input = Open("/proc/self/status", O_RDONLY).value();
  std::array<PassedDescriptor, 2> passed = {{{input.get(), 3}, {pipe.write_end.get(), 4}}};
  auto child = SpawnProgram("/bin/sh", {"sh", "-c", script}, environment, passed);
  EXPECT_TRUE(child.ok());
  pipe.write_end.Reset();
  std::string out = ReadAll(pipe.read_end.get(), 65536).value();
  EXPECT_EQ(child->Wait()->status, 0);
  return out;
}

TEST(SpawnProgramTest, TheProgramGetsExactlyTheDescriptorsPassed) {
  UniqueFd null = Open("/dev/null", O_RDONLY).value();
  UniqueFd leaked(::fcntl(null.get(), F_DUPFD, 7));  // NOLINT(android-cloexec-dup): on purpose
  ASSERT_EQ(::fcntl(leaked.get(), F_GETFD), 0) << "control: it would be inherited";
  EXPECT_EQ(Output("cd /proc/$$/fd; for f in 0 1 2 3 4 5 6 7 8 9; do "
                   "[ -e $f ] && printf '%s ' $f; done >&4; true",
                   {}),
            "0 1 2 3 4 ");
}

TEST(SpawnProgramTest, TheEnvironmentIsTheOneGiven) {
  EXPECT_EQ(Output("/usr/bin/env | grep -v '^_=\\|^PWD=' >&4", {"A=1", "B=2"}), "A=1\nB=2\n");
}

TEST(SpawnProgramTest, PassedNumbersMayBeThoseOfOtherDescriptorsHere) {
  Pipe pipe = MakePipe().value();
  UniqueFd text = MakeMemfd("text", 0).value();
  ASSERT_TRUE(WriteAll(text.get(), "crossed").ok());
  ASSERT_EQ(::lseek(text.get(), 0, SEEK_SET), 0);
  // Each wants the number the other has now.
  std::array<PassedDescriptor, 2> passed = {
      {{text.get(), pipe.write_end.get()}, {pipe.write_end.get(), text.get()}}};
  std::string script =
      "cat <&" + std::to_string(pipe.write_end.get()) + " >&" + std::to_string(text.get());
  auto child = SpawnProgram("/bin/sh", {"sh", "-c", script}, {"PATH=/usr/bin:/bin"}, passed);
  ASSERT_TRUE(child.ok());
  pipe.write_end.Reset();
  EXPECT_EQ(ReadAll(pipe.read_end.get(), 100).value(), "crossed");
}

TEST(SpawnProgramTest, AProcessGroupOfItsOwn) {
  EXPECT_EQ(Output("read -r _ _ _ _ group _ </proc/$$/stat; [ $group = $$ ] && echo own >&4", {}),
            "own\n");
}

TEST(SpawnProgramTest, AProgramThatIsNotThereIsNamed) {
  auto child = SpawnProgram("/nonexistent/x", {"x"}, {}, {});
  ASSERT_FALSE(child.ok());
  EXPECT_EQ(child.error().err, ENOENT);
  EXPECT_NE(child.error().text.find("/nonexistent/x"), std::string::npos);
}

}  // namespace
}  // namespace taskcell::sys
