// What is bounded that no cgroup bounds as such: inotify of the caller's own id, and a file whose
// pages a cell brings into memory.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>
#include <iterator>
#include <regex>

#include "launcher/base/text.h"
#include "launcher/sys/file.h"
#include "tests/support/launch.h"

namespace taskcell::test {
namespace {

using testing::HasSubstr;

using InotifyQuotaTest = LaunchTest;

// Makes inotify instances, and then watches on one of them, until the kernel says no.
constexpr char kUseUp[] = R"(
import ctypes, os, sys
libc = ctypes.CDLL(None, use_errno=True)
most, files, where = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
made = []
while len(made) < most:
    fd = libc.inotify_init1(0o2000000)
    if fd < 0: break
    made.append(fd)
print(len(made), ctypes.get_errno() if len(made) < most else 0)
for fd in made[1:]: os.close(fd)
watched = 0
for i in range(files):
    path = '%s/%d' % (where, i)
    open(path, 'w').close()
    if libc.inotify_add_watch(made[0], path.encode(), 2) < 0: break
    watched += 1
print(watched, ctypes.get_errno() if watched < files else 0)
)";

// In a cell of the caller's own id, whose quota it is; the figures are in CAVEATS of
// taskcell-launch(1).
TEST_F(InotifyQuotaTest, ACellHas32InstancesAnd4096WatchesAndNotOneMore) {
  const std::vector<std::string> script = {"/usr/bin/python3", "-c", kUseUp, "33", "4097"};
  std::vector<std::string> inside = {"--userns=own", "--",  "/usr/bin/python3", "-c", kUseUp, "33",
                                     "4097",         "/tmp"};
  Outcome ran = Launch(inside);
  EXPECT_EQ(ran.out, Text("32 ", EMFILE, "\n4096 ", ENOSPC, "\n")) << ran.err;
  RunOptions options;
  options.user = user_;
  std::vector<std::string> outside = script;
  outside.push_back(scratch_);
  EXPECT_EQ(test::Run(outside, options).out, "33 0\n4097 0\n") << "control";
}

class PageCacheTest : public LaunchTest {
 protected:
  static constexpr uint64_t kMiB = uint64_t{1} << 20U;
  static constexpr uint64_t kLimit = 32 * kMiB;
  static constexpr uint64_t kFileBytes = 3 * kLimit;

  // A file on disk of which nothing is in memory: who reads it brings it in.
  std::string MakeColdFile() const {
    const std::string path = scratch_ + "/large";
    UniqueFd file = sys::Open(path, O_WRONLY | O_CREAT | O_EXCL, 0644).value();
    const std::string block(kMiB, 'x');
    for (uint64_t size = 0; size < kFileBytes; size += block.size())
      EXPECT_TRUE(sys::WriteAll(file.get(), block).ok());
    EXPECT_EQ(::fsync(file.get()), 0);
    EXPECT_EQ(::posix_fadvise(file.get(), 0, 0, POSIX_FADV_DONTNEED), 0);
    return path;
  }

  // What the report says that the cell had at most.
  uint64_t PeakOf(uint64_t limit) const {
    const std::string path = MakeColdFile();
    const std::string report = scratch_ + "/report";
    Outcome ran =
        Launch({Text("--memory=", limit), "--ro=" + path + ":/large", "--report=" + report, "--",
                "/bin/sh", "-c", "wc -l </large; wc -c </large"});
    EXPECT_EQ(ran.status, 0) << ran.err;
    EXPECT_EQ(ran.out, Text("0\n", kFileBytes, "\n")) << ran.err;
    EXPECT_EQ(::unlink(path.c_str()), 0);
    std::ifstream file(report);
    const std::string text(std::istreambuf_iterator<char>(file), {});
    EXPECT_THAT(text, HasSubstr(R"("oom_kills":0)"));
    std::smatch found;
    if (!std::regex_search(text, found, std::regex(R"re("peak_memory_bytes":(\d+))re"))) return 0;
    return std::stoull(found[1]);
  }
};

// The kernel gives back what was read before, so that reading goes on within the limit.
TEST_F(PageCacheTest, AFileLargerThanTheMemoryIsReadWholeWithinTheLimit) {
  EXPECT_GT(PeakOf(4 * kFileBytes), kFileBytes) << "control: what is read counts for the cell";
  const uint64_t peak = PeakOf(kLimit);
  EXPECT_LE(peak, kLimit);
  EXPECT_GT(peak, kLimit / 2);
}

}  // namespace
}  // namespace taskcell::test
