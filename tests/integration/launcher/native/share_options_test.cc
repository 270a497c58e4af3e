// Limits a cell has only when they are asked for: --file-size, --cpu-set, --io-weight.
#include <gmock/gmock.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>

#include "launcher/base/text.h"
#include "launcher/cgroup/io_weight.h"
#include "launcher/cgroup/layout.h"
#include "tests/support/launch.h"

namespace taskcell::test {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::HasSubstr;

class ShareOptionsTest : public LaunchTest {
 protected:
  void TearDown() override {
    for (auto each = made_.rbegin(); each != made_.rend(); ++each)
      EXPECT_EQ(::rmdir(each->c_str()), 0) << *each;
    LaunchTest::TearDown();
  }

  static std::string ReadText(const std::string& path) {
    std::ifstream file(path);
    return {std::istreambuf_iterator<char>(file), {}};
  }

  // What a host's administrator does: `taskcell/uid-UID` on the v1 hierarchy that holds the
  // controller, with processors and memory in a cpuset.
  void DelegateV1(const cgroup::Hierarchy& hierarchy) {
    std::string path = hierarchy.mount_point;
    for (const std::string& name : {std::string("taskcell"), Text("uid-", user_->uid)}) {
      std::string above = path;
      path += "/" + name;
      if (::mkdir(path.c_str(), 0755) == 0) made_.push_back(path);
      for (const char* kind : {"cpus", "mems"}) {
        std::string file = path + "/cpuset." + kind;
        if (!fs::exists(file)) continue;
        std::ofstream(file) << ReadText(above + "/cpuset.effective_" + kind);
      }
    }
    ASSERT_EQ(::chown(path.c_str(), user_->uid, user_->gid), 0);
  }

  std::string Report() const { return ReadText(scratch_ + "/report.json"); }

  std::vector<std::string> made_;
};

TEST_F(ShareOptionsTest, AFileLargerThanAllowedIsCutAndItsWriterEnded) {
  const std::vector<std::string> write = {
      "--", "/bin/sh", "-c", "head -c 100000 /dev/zero >/tmp/f; echo $? $(wc -c </tmp/f)"};
  EXPECT_EQ(Launch(write).out, "0 100000\n") << "control";
  std::vector<std::string> limited = write;
  limited.insert(limited.begin(), {"--file-size=64K", "--report=" + scratch_ + "/report.json"});
  Outcome ran = Launch(limited);
  EXPECT_EQ(ran.status, 0) << ran.err;
  EXPECT_EQ(ran.out, Text(128 + SIGXFSZ, " 65536\n"));
  EXPECT_THAT(Report(), HasSubstr(R"("file_bytes":65536)"));
}

TEST_F(ShareOptionsTest, AFileSizeAboveTheCallersOwnHardLimitIsRefused) {
  RunOptions options;
  options.in_child = [] {
    struct rlimit limit = {8U << 20U, 8U << 20U};
    if (::setrlimit(RLIMIT_FSIZE, &limit) != 0) ::_exit(90);
  };
  Outcome ran = Launch({"--file-size=16M", "--", "/bin/echo", "ran"}, options);
  EXPECT_EQ(ran.status, 125);
  EXPECT_THAT(ran.err, AllOf(HasSubstr("RLIMIT_FSIZE"), HasSubstr("8388608")));
  EXPECT_EQ(Launch({"--file-size=8M", "--", "/bin/echo", "ran"}, options).out, "ran\n");
}

TEST_F(ShareOptionsTest, AProgramRunsOnTheProcessorsOfItsSetAlone) {
  cgroup::Layout layout = cgroup::ReadLayout().value();
  const cgroup::Hierarchy* hierarchy = layout.Find(cgroup::Controller::kCpuset);
  TASKCELL_REQUIRE(hierarchy != nullptr && !hierarchy->mount_point.empty(),
                   "needs a mounted hierarchy with cpuset");
  const std::vector<std::string> show = {"--cpu-set=0",
                                         "--report=" + scratch_ + "/report.json",
                                         "--",
                                         "/bin/grep",
                                         "Cpus_allowed_list",
                                         "/proc/self/status"};
  if (!hierarchy->unified) {  // there the fixture hands it on
    Outcome refused = Launch(show);
    EXPECT_EQ(refused.status, 125);
    EXPECT_THAT(refused.err, AllOf(HasSubstr("resource_limits_unenforced"),
                                   HasSubstr("the cpuset limit"), HasSubstr("mkdir -p")));
    DelegateV1(*hierarchy);
  }
  Outcome ran = Launch(show);
  EXPECT_EQ(ran.status, 0) << ran.err;
  EXPECT_EQ(ran.out, "Cpus_allowed_list:\t0\n");
  EXPECT_THAT(Report(), HasSubstr(R"("cpu_set":"0")"));
  Outcome beyond = Launch({"--cpu-set=0,8191", "--", "/bin/true"});
  EXPECT_EQ(beyond.status, 125);
  EXPECT_THAT(beyond.err, AllOf(HasSubstr("resource_limits_unenforced"), HasSubstr("0,8191 can")));
}

// A disk that nobody uses, switched to the scheduler that knows weights and back.
class BfqDisk {
 public:
  BfqDisk() {
    for (int number = 7; number >= 0; --number) {
      std::string file = Text("/sys/block/loop", number, "/queue/scheduler");
      std::ifstream in(file);
      std::string text{std::istreambuf_iterator<char>(in), {}};
      if (text.find("bfq") == text.npos || cgroup::IsScheduledByBfq(text)) continue;
      std::size_t start = text.find('[');
      before_ = text.substr(start + 1, text.find(']') - start - 1);
      std::ofstream(file) << "bfq";
      file_ = file;
      return;
    }
  }
  ~BfqDisk() {
    if (!file_.empty()) std::ofstream(file_) << before_;
  }
  bool found() const { return !file_.empty(); }

 private:
  std::string file_;
  std::string before_;
};

TEST_F(ShareOptionsTest, AWeightIsSetOnlyWhereADiskHonoursIt) {
  cgroup::Layout layout = cgroup::ReadLayout().value();
  const cgroup::Hierarchy* hierarchy = layout.Find(cgroup::Controller::kIo);
  const std::vector<std::string> run = {"--io-weight=50", "--report=" + scratch_ + "/report.json",
                                        "--", "/bin/echo", "ran"};
  Outcome refused = Launch(run);
  EXPECT_EQ(refused.status, 125);
  EXPECT_THAT(refused.err, HasSubstr("resource_limits_unenforced"));
  if (hierarchy == nullptr) return;
  if (!hierarchy->unified) DelegateV1(*hierarchy);
  EXPECT_THAT(Launch(run).err, HasSubstr("queue/scheduler"));
  BfqDisk disk;
  if (!disk.found()) return;
  Outcome ran = Launch(run);
  EXPECT_EQ(ran.status, 0) << ran.err;
  EXPECT_THAT(Report(), HasSubstr(R"("io_weight":50)"));
}

}  // namespace
}  // namespace taskcell::test
