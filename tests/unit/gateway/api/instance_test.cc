#include "gateway/api/instance.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <filesystem>

#include "gateway/api/service_manager.h"
#include "gateway/cli/gateway_client.h"
#include "launcher/base/text.h"
#include "launcher/sys/socket.h"
#include "tests/support/temp_directory.h"

namespace taskcell::gateway {
namespace {

namespace fs = std::filesystem;

class InstanceTest : public testing::Test {
 protected:
  void SetUp() override { fs::permissions(directory_.path(), fs::perms::owner_all); }
  test::TempDirectory directory_{"instance"};
};

TEST_F(InstanceTest, AHomeHasOneGatewayAndAnotherAfterIt) {
  const Home home = OpenHome(directory_.path()).value();
  {
    const Instance first = ClaimHome(home).value();
    Result<Instance> second = ClaimHome(home);
    ASSERT_FALSE(second.ok());
    EXPECT_EQ(second.error().code, "gateway_running");
    EXPECT_NE(second.error().text.find(Text("process ", ::getpid())), std::string::npos)
        << second.error().text;
    struct stat info = {};
    ASSERT_EQ(::stat(directory_.At("taskcell.sock").c_str(), &info), 0);
    EXPECT_EQ(info.st_mode & 07777U, 0600U);
  }
  EXPECT_TRUE(fs::exists(directory_.At("taskcell.sock"))) << "as after a SIGKILL";
  EXPECT_FALSE(GatewayClient::Find(home).value().has_value()) << "nobody listens";
  EXPECT_TRUE(ClaimHome(home).ok());
  ReleaseHome(home);
  EXPECT_FALSE(fs::exists(directory_.At("taskcell.sock")));
  EXPECT_FALSE(GatewayClient::Find(home).value().has_value());
}

TEST_F(InstanceTest, AHomeAsDeepAs250BytesIsServedAndFound) {
  std::string deep = directory_.path();
  while (deep.size() < 250)
    deep += Text("/", std::string(std::min<std::size_t>(60, 249 - deep.size()), 'd'));
  ASSERT_EQ(deep.size(), 250U);
  ASSERT_TRUE(fs::create_directories(deep));
  const Home home = OpenHome(deep).value();
  const Instance instance = ClaimHome(home).value();
  EXPECT_TRUE(GatewayClient::Find(home).value().has_value());
}

TEST_F(InstanceTest, WhatIsInTheWayIsNeitherFollowedNorRemoved) {
  directory_.Put("taskcell.sock", "precious");
  const Home home = OpenHome(directory_.path()).value();
  EXPECT_FALSE(ClaimHome(home).ok());
  EXPECT_EQ(directory_.Get("taskcell.sock"), "precious");
  fs::remove(directory_.At("taskcell.sock"));
  fs::remove_all(directory_.At("locks"));
  directory_.Put("elsewhere/keep", "");
  directory_.Link(directory_.At("elsewhere"), "locks");
  EXPECT_FALSE(ClaimHome(home).ok());
  EXPECT_FALSE(fs::exists(directory_.At("elsewhere/taskcell.lock")));
}

TEST_F(InstanceTest, TheServiceManagerIsToldWhatItAskedFor) {
  for (const bool is_abstract : {false, true}) {
    const std::string name =
        is_abstract ? Text("@taskcell-notify-", ::getpid()) : directory_.At("notify");
    UniqueFd socket = sys::MakeSocket(AF_UNIX, SOCK_DGRAM).value();
    struct sockaddr_un address = {};
    address.sun_family = AF_UNIX;
    std::copy(name.begin(), name.end(), address.sun_path);
    if (is_abstract) address.sun_path[0] = '\0';
    ASSERT_EQ(::bind(socket.get(), reinterpret_cast<struct sockaddr*>(&address),
                     static_cast<socklen_t>(offsetof(struct sockaddr_un, sun_path) + name.size())),
              0);
    const ServiceManager manager =
        ServiceManager::In({{"NOTIFY_SOCKET", name}, {"WATCHDOG_USEC", "30000000"}});
    EXPECT_EQ(manager.watchdog(), std::chrono::milliseconds(15000));
    manager.Tell("READY=1");
    std::array<char, 64> text = {};
    ASSERT_EQ(::recv(socket.get(), text.data(), text.size(), MSG_DONTWAIT), 7);
    EXPECT_STREQ(text.data(), "READY=1");
  }
  EXPECT_FALSE(ServiceManager::In({}).watchdog().has_value());
  EXPECT_FALSE(ServiceManager::In({{"WATCHDOG_USEC", "9000000"}, {"WATCHDOG_PID", "1"}})
                   .watchdog()
                   .has_value());
  ServiceManager::In({{"NOTIFY_SOCKET", "/nobody/listens"}}).Tell("READY=1");
}

}  // namespace
}  // namespace taskcell::gateway
