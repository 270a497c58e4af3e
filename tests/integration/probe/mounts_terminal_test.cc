// taskcell-probe mounts as somebody at a terminal sees it.
#include <gmock/gmock.h>

#include <string>

#include "tests/support/hung_files.h"
#include "tests/support/on_terminal.h"
#include "tests/support/temp_directory.h"

namespace taskcell::test {
namespace {

using testing::EndsWith;
using testing::HasSubstr;

constexpr char kClearLine[] = "\r\x1b[K";
constexpr char kAnyColour[] = "\x1b[";

class MountsTerminalTest : public testing::Test, protected TempDirectory {
 protected:
  MountsTerminalTest() : TempDirectory("mounts-terminal") {
    Put("safe/file", "x");
    Link("/etc/passwd", "unsafe/link");
  }
  std::vector<std::string> Words(std::vector<std::string> more) const {
    std::vector<std::string> words = {Program("taskcell-probe"), "mounts"};
    words.insert(words.end(), more.begin(), more.end());
    return words;
  }
};

TEST_F(MountsTerminalTest, SeverityAndSummaryHaveColoursThereAndNowhereElse) {
  OnTerminal unsafe(Words({At("unsafe")}));
  const std::string screen = unsafe.WholeScreen();
  EXPECT_THAT(screen, HasSubstr("\x1b[31merror"));
  EXPECT_THAT(screen, HasSubstr("\x1b[31munsafe: " + At("unsafe")));
  EXPECT_THAT(screen, EndsWith(": 1 entries, 1 errors, 0 warnings, 0 not judged, 0 notes\r\n"));
  EXPECT_EQ(unsafe.Wait(), 1);
  OnTerminal safe(Words({At("safe")}));
  EXPECT_THAT(safe.WholeScreen(), HasSubstr("\x1b[32msafe: " + At("safe")));
  EXPECT_EQ(safe.Wait(), 0);
  std::vector<std::string> plain = Words({At("unsafe")});
  plain.insert(plain.begin(), {"/usr/bin/env", "NO_COLOR=1"});
  OnTerminal without(plain);
  EXPECT_THAT(without.WholeScreen(), Not(HasSubstr(kAnyColour)));
  EXPECT_EQ(without.Wait(), 1);
  const Outcome piped = test::Run(Words({At("unsafe")}));
  EXPECT_THAT(piped.out + piped.err, Not(HasSubstr(kAnyColour)));
  EXPECT_THAT(piped.out, HasSubstr("unsafe: " + At("unsafe")));
}

// A file system that does not answer makes a walk as long as it may be.
TEST_F(MountsTerminalTest, ALongWalkShowsHowFarItIsAndLeavesNothingOfThat) {
  TASKCELL_REQUIRE(HasFuse(), kNeedsFuse);
  std::filesystem::create_directories(At("safe/hung"));
  EXPECT_EQ(InChild([this] {
              if (!EnterOwnMounts()) return 90;
              const HungFiles hung(At("safe/hung"));
              if (!hung.mounted()) return 91;
              OnTerminal walk(Words({"--cross-mounts", "--timeout", "4s", At("safe")}));
              const std::string screen = walk.WholeScreen();
              const std::size_t shown = screen.find("\r2 entries ");
              const std::size_t cleared = screen.find(kClearLine);
              const std::size_t report = screen.find("hangs");
              if (shown == screen.npos || cleared == screen.npos || report == screen.npos) return 1;
              if (shown > cleared || cleared > report) return 2;
              return walk.Wait() == 1 ? 0 : 3;  // the mount is certain
            }),
            0);
}

TEST_F(MountsTerminalTest, AShortWalkShowsNoProgress) {
  OnTerminal walk(Words({At("safe")}));
  EXPECT_THAT(walk.WholeScreen(), Not(HasSubstr(kClearLine)));
}

}  // namespace
}  // namespace taskcell::test
