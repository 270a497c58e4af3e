#include "launcher/cell/standard_stream.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include <string>

#include "launcher/cell/kernel_file_systems.h"

namespace taskcell::cell {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

constexpr uint64_t kPidfdMagic = 0x50494446;

DescriptorSeen Stream(uint32_t mode, uint64_t device = 0, uint64_t filesystem = EXT4_SUPER_MAGIC) {
  DescriptorSeen seen;
  seen.mode = mode;
  seen.access = O_RDWR;
  seen.device = device;
  seen.filesystem = filesystem;
  return seen;
}

std::string Fault(const DescriptorSeen& seen) { return StreamFault(seen, true); }

TEST(StandardStreamTest, FilesPipesTerminalsAndHarmlessDevicesAreStreams) {
  EXPECT_THAT(Fault(Stream(S_IFREG | 0644)), IsEmpty());
  EXPECT_THAT(Fault(Stream(S_IFREG | 0777, 0, TMPFS_MAGIC)), IsEmpty());
  EXPECT_THAT(Fault(Stream(S_IFIFO | 0600)), IsEmpty());
  for (unsigned minor : {3U, 5U, 7U, 8U, 9U})
    EXPECT_THAT(Fault(Stream(S_IFCHR, makedev(1, minor))), IsEmpty()) << minor;
  DescriptorSeen terminal = Stream(S_IFCHR, makedev(136, 2));
  terminal.terminal = true;
  EXPECT_THAT(Fault(terminal), IsEmpty());
}

TEST(StandardStreamTest, NothingElseIs) {
  for (unsigned minor : {1U, 2U, 4U, 6U, 10U, 11U})
    EXPECT_THAT(Fault(Stream(S_IFCHR, makedev(1, minor))), HasSubstr("a device")) << minor;
  EXPECT_THAT(Fault(Stream(S_IFCHR, makedev(136, 2))), HasSubstr("a device"));
  DescriptorSeen multiplexer = Stream(S_IFCHR, makedev(5, 2));
  multiplexer.terminal = true;
  EXPECT_THAT(Fault(multiplexer), HasSubstr("a device"));
  EXPECT_THAT(Fault(Stream(S_IFBLK)), HasSubstr("a disk"));
  EXPECT_THAT(Fault(Stream(S_IFDIR)), HasSubstr("a directory"));
  EXPECT_THAT(Fault(Stream(0600)), HasSubstr("no file, pipe or terminal"));
  DescriptorSeen name = Stream(S_IFREG);
  name.access = O_PATH;
  EXPECT_THAT(Fault(name), HasSubstr("O_PATH"));
}

TEST(StandardStreamTest, FilesOfTheKernelsOwnAreNot) {
  for (uint64_t magic : {uint64_t{PROC_SUPER_MAGIC}, uint64_t{SYSFS_MAGIC}, uint64_t{NSFS_MAGIC},
                         uint64_t{CGROUP2_SUPER_MAGIC}, uint64_t{CGROUP_SUPER_MAGIC}, kPidfdMagic})
    EXPECT_THAT(Fault(Stream(S_IFREG | 0644, 0, magic)), HasSubstr("kernel's own")) << magic;
  EXPECT_EQ(KernelFileSystemType(PROC_SUPER_MAGIC), "proc");
  EXPECT_TRUE(IsKernelFileSystem("cgroup2"));
  EXPECT_FALSE(IsKernelFileSystem("ext4"));
}

TEST(StandardStreamTest, ASocketThatReceivesNeedsLandlock) {
  DescriptorSeen socket = Stream(S_IFSOCK | 0777);
  EXPECT_THAT(StreamFault(socket, false), IsEmpty());
  socket.receives = true;
  EXPECT_THAT(StreamFault(socket, true), IsEmpty());
  EXPECT_THAT(StreamFault(socket, false), HasSubstr("no Landlock"));
}

}  // namespace
}  // namespace taskcell::cell
