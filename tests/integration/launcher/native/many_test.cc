// Many cells at once: what matters is that each is whole and that none is left, not how fast.
#include <gmock/gmock.h>
#include <grp.h>
#include <poll.h>
#include <unistd.h>

#include "launcher/base/text.h"
#include "launcher/cgroup/layout.h"
#include "launcher/sys/file.h"
#include "launcher/sys/process.h"
#include "launcher/sys/socket.h"
#include "tests/support/launch.h"

namespace taskcell::test {
namespace {

constexpr std::size_t kCells = 200;
constexpr int kTimeoutMs = 100'000;

class ManyCellsTest : public LaunchTest {
 protected:
  std::size_t CgroupsNow() const {
    cgroup::Layout layout = cgroup::ReadLayout().value();
    std::string place =
        Text(layout.Find(cgroup::Controller::kPids)->mount_point, "/taskcell/uid-", user_->uid);
    std::size_t count = 0;
    for (const auto& entry : std::filesystem::directory_iterator(place))
      count += entry.path().filename().string().starts_with("run-") ? 1U : 0U;
    return count;
  }

  sys::Child Start(int input, int output) const {
    sys::Cloned cloned = sys::CloneProcess(0).value();
    if (!cloned.in_child) return std::move(cloned.child);
    EnterDelegatedCgroup(user_->uid);
    bool ready = sys::PlaceDescriptor(input, 0).ok() && sys::PlaceDescriptor(output, 1).ok() &&
                 ::setgroups(0, nullptr) == 0 &&
                 ::setresgid(user_->gid, user_->gid, user_->gid) == 0 &&
                 ::setresuid(user_->uid, user_->uid, user_->uid) == 0;
    if (ready) {
      (void)sys::Execute(Program("taskcell-launch"),
                         {"taskcell-launch", "--memory=16M", "--pids=8", "--", "/bin/sh", "-c",
                          "echo up; read x; exit 0"},
                         {});
    }
    sys::ExitNow(99);
  }
};

TEST_F(ManyCellsTest, TwoHundredAtOnceAreAllVerifiedAndNoneIsLeft) {
  sys::Pipe hold = sys::MakePipe().value();
  sys::Pipe told = sys::MakePipe().value();
  std::vector<sys::Child> cells;
  for (std::size_t i = 0; i < kCells; ++i)
    cells.push_back(Start(hold.read_end.get(), told.write_end.get()));
  told.write_end.Reset();
  // A program runs only in a cell that was verified.
  std::string lines;
  while (lines.size() < 3 * kCells) {
    ASSERT_NE(sys::Poll(told.read_end.get(), POLLIN, kTimeoutMs).value(), 0) << lines.size() / 3;
    std::array<char, 4096> piece;
    std::size_t got = sys::Read(told.read_end.get(), piece).value();
    ASSERT_GT(got, 0U) << lines.size() / 3 << " cells came up";
    lines.append(piece.data(), got);
  }
  EXPECT_EQ(CgroupsNow(), kCells);
  hold.read_end.Reset();
  hold.write_end.Reset();  // the end of everybody's input
  std::size_t whole = 0;
  for (sys::Child& cell : cells) {
    sys::ExitInfo ended = cell.Wait().value();
    whole += ended.signal == 0 && ended.status == 0 ? 1U : 0U;
  }
  EXPECT_EQ(whole, kCells);
  EXPECT_EQ(CgroupsNow(), 0U);
}

}  // namespace
}  // namespace taskcell::test
