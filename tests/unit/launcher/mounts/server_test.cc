#include "launcher/mounts/server.h"

#include <fcntl.h>
#include <gtest/gtest.h>

#include "launcher/sys/file.h"

namespace taskcell::mounts {
namespace {

Server ServerWith(const std::string& type, const std::string& super_options) {
  MountInfoLine line;
  line.type = type;
  line.super_options = super_options;
  return ServerOf(line);
}

TEST(ServerTest, FilesOfAProcessAreOfTheUserWhoMountedThem) {
  for (const char* type : {"fuse", "fuseblk", "fuse.sshfs", "fuseblk.ntfs"}) {
    EXPECT_TRUE(IsServed(type)) << type;
    const Server server = ServerWith(type, "rw,user_id=1500,group_id=0,allow_other");
    EXPECT_EQ(server.what, Server::What::kUser) << type;
    EXPECT_EQ(server.uid, uid_t{1500}) << type;
  }
}

TEST(ServerTest, NobodyIsTakenForTheUserWhereNoneIsNamed) {
  for (const char* options : {"rw", "rw,user_id=", "rw,user_id=-1", "rw,user_id=4294967295",
                              "rw,xuser_id=0", "rw,user_id=0,user_id=x"}) {
    EXPECT_EQ(ServerWith("fuse", options).what, Server::What::kUser) << options;
    EXPECT_FALSE(ServerWith("fuse", options).uid) << options;
  }
}

// A label of SELinux comes before it, and its text is the mounter's.
TEST(ServerTest, TheLastUserNamedCounts) {
  EXPECT_EQ(ServerWith("fuse", "rw,context=\"x,user_id=0,y\",user_id=1500").uid, uid_t{1500});
}

TEST(ServerTest, FilesOfOtherHostsAreToldFromThoseOfThisOne) {
  for (const char* type : {"nfs", "nfs4", "cifs", "smb3", "9p", "ceph", "virtiofs", "afs"}) {
    EXPECT_TRUE(IsServed(type)) << type;
    EXPECT_EQ(ServerWith(type, "rw").what, Server::What::kHost) << type;
  }
  for (const char* type : {"ext4", "tmpfs", "overlay", "btrfs", "fusectl", "nfsd", "proc", ""}) {
    EXPECT_FALSE(IsServed(type)) << type;
    EXPECT_EQ(ServerWith(type, "rw,user_id=1500").what, Server::What::kKernel) << type;
  }
}

TEST(ServerTest, TheKernelAnswersForItsOwn) {
  const UniqueFd proc = sys::Open("/proc", O_PATH).value();
  const Server server = ServerOf(proc.get()).value();
  EXPECT_EQ(server.what, Server::What::kKernel);
  EXPECT_EQ(server.type, "proc");
}

}  // namespace
}  // namespace taskcell::mounts
