#include "launcher/native/mount_table.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/mount.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "launcher/native/mount_source.h"
#include "launcher/native/source_walk.h"
#include "launcher/sys/file.h"
#include "tests/support/fixture.h"

namespace taskcell::native {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

MountTable TableOf(const std::string& lines) { return MountTable(ParseMountInfo(lines).value()); }

Status CheckTmp(const MountTable& table, const std::string& path) {
  return table.CheckShown(sys::Open("/tmp", O_PATH).value().get(), path);
}

TEST(MountTableTest, AKernelFileSystemAnywhereBelowIsRefusedByPlaceAndType) {
  for (const char* type : {"proc", "sysfs", "cgroup", "cgroup2", "debugfs", "tracefs", "bpf",
                           "securityfs", "mqueue", "nsfs", "hugetlbfs"}) {
    MountTable table = TableOf(std::string("30 20 0:9 / /data/a/b rw - ") + type + " none rw\n");
    Status refused = CheckTmp(table, "/data");
    ASSERT_FALSE(refused.ok()) << type;
    EXPECT_THAT(refused.error().text, HasSubstr("'/data/a/b' is on"));
    EXPECT_THAT(refused.error().text, HasSubstr(type));
    EXPECT_FALSE(CheckTmp(table, "/").ok()) << type;
    EXPECT_TRUE(CheckTmp(table, "/dat").ok()) << type;
    EXPECT_TRUE(CheckTmp(table, "/data/a/c").ok()) << type;
  }
}

TEST(MountTableTest, OtherFileSystemsBelowPass) {
  for (const char* type : {"tmpfs", "ext4", "overlay", "fuse.sshfs", "nfs4"}) {
    MountTable table = TableOf(std::string("30 20 0:9 / /data/a rw - ") + type + " none rw\n");
    EXPECT_TRUE(CheckTmp(table, "/data").ok()) << type;
  }
}

TEST(MountTableTest, AKernelFileSystemItselfIsRefusedAlsoWhereTheTableDoesNotShowIt) {
  for (const char* path : {"/proc/version", "/sys/kernel"}) {
    UniqueFd fd = sys::Open(path, O_PATH).value();
    EXPECT_FALSE(TableOf("").CheckShown(fd.get(), path).ok()) << path;
  }
}

// In a mount namespace of its own.
class MountsBelowTest : public testing::Test {
 protected:
  void SetUp() override {
    TASKCELL_REQUIRE(::geteuid() == 0, "needs root, to mount");
    std::string pattern = "/tmp/taskcell-mounts-XXXXXX";
    ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
    path_ = pattern;
    fs::create_directories(path_ + "/a/p");
    std::ofstream(path_ + "/a/file").flush();
  }
  void TearDown() override {
    if (!path_.empty()) fs::remove_all(path_);
  }

  enum class Seen : uint8_t { kPassed = 10, kRefused, kSetupFailed };
  // Mounts with `mount`, then what `check` says.
  template <typename Mount, typename Check>
  Seen After(Mount mount, Check check) {
    return static_cast<Seen>(test::InChild([&] {
      if (::unshare(CLONE_NEWNS) != 0 ||
          ::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 || !mount())
        return static_cast<int>(Seen::kSetupFailed);
      return static_cast<int>(check() ? Seen::kPassed : Seen::kRefused);
    }));
  }
  bool MountProc() const {
    return ::mount("proc", (path_ + "/a/p").c_str(), "proc", 0, "subset=pid") == 0;
  }
  // No directory: nothing that a walk over directories would come upon.
  bool MountKernelFile() const {
    return ::mount("/proc/version", (path_ + "/a/file").c_str(), nullptr, MS_BIND, nullptr) == 0;
  }
  bool MountTmpfs() const {
    return ::mount("t", (path_ + "/a/p").c_str(), "tmpfs", 0, nullptr) == 0;
  }
  bool SourcePasses() const {
    return CheckSource(sys::Open(path_, O_PATH).value().get(), path_).ok();
  }
  // As the cell's child takes it, of a plan that nobody checked.
  bool IsTaken() const {
    struct stat info = sys::Stat(sys::Open(path_, O_PATH).value().get()).value();
    cell::PlannedMount mount;
    mount.source = path_;
    mount.target = "/x";
    mount.kind = cell::EntryKind::kDirectory;
    mount.device = info.st_dev;
    mount.inode = info.st_ino;
    return TakePlannedMount(mount, MountTable::Read().value()).ok();
  }

  std::string path_;
};

TEST_F(MountsBelowTest, ASourceWithAProcBelowIsRefused) {
  EXPECT_EQ(After([&] { return MountProc(); }, [&] { return SourcePasses(); }), Seen::kRefused);
  EXPECT_EQ(After([&] { return MountTmpfs(); }, [&] { return SourcePasses(); }), Seen::kPassed);
}

TEST_F(MountsBelowTest, ASourceWithAFileOfTheKernelsMountedOnAFileIsRefused) {
  EXPECT_EQ(After([&] { return MountKernelFile(); }, [&] { return SourcePasses(); }),
            Seen::kRefused);
}

TEST_F(MountsBelowTest, TheCellsChildRefusesWhatWasMountedAfterTheCheck) {
  EXPECT_EQ(After([&] { return MountProc(); }, [&] { return IsTaken(); }), Seen::kRefused);
  EXPECT_EQ(After([&] { return MountKernelFile(); }, [&] { return IsTaken(); }), Seen::kRefused);
  EXPECT_EQ(After([&] { return MountTmpfs(); }, [&] { return IsTaken(); }), Seen::kPassed);
}

}  // namespace
}  // namespace taskcell::native
