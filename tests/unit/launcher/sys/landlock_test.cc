#include "launcher/sys/landlock.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>

#include "launcher/base/text.h"
#include "launcher/sys/privilege.h"
#include "launcher/sys/socket.h"
#include "tests/support/fixture.h"

namespace taskcell::sys {
namespace {

constexpr int kAbiWithScope = 6;

// An abstract name that nobody else uses, and its size as an address.
struct Name {
  struct sockaddr_un address = {};
  socklen_t size = 0;
  const struct sockaddr* get() const {
    const void* generic = &address;
    return static_cast<const struct sockaddr*>(generic);
  }
};

Name AbstractName(const char* purpose) {
  Name name;
  std::string text = Text("taskcell-landlock-", ::getpid(), purpose);
  name.address.sun_family = AF_UNIX;
  text.copy(name.address.sun_path + 1, text.size());
  name.size = static_cast<socklen_t>(offsetof(struct sockaddr_un, sun_path) + 1 + text.size());
  return name;
}

UniqueFd Listen(const Name& name) {
  UniqueFd socket = MakeSocket(AF_UNIX, SOCK_STREAM).value();
  if (::bind(socket.get(), name.get(), name.size) != 0 || ::listen(socket.get(), 4) != 0) {
    return UniqueFd();
  }
  return socket;
}

// 0, or the errno of connecting.
int Connect(const Name& name) {
  UniqueFd socket = MakeSocket(AF_UNIX, SOCK_STREAM).value();
  return ::connect(socket.get(), name.get(), name.size) == 0 ? 0 : errno;
}

bool Restrict(uint64_t scoped) {
  Result<UniqueFd> ruleset = MakeLandlockRuleset(LandlockAbi(), {0, 0, scoped});
  return ruleset.ok() && SetNoNewPrivileges().ok() && RestrictSelf(ruleset->get()).ok();
}

// Everything here is one network namespace, so that nothing but the scope can refuse.
TEST(LandlockTest, AScopedProcessReachesNoAbstractSocketFromOutsideItsDomain) {
  TASKCELL_REQUIRE(LandlockAbi() >= kAbiWithScope, "the kernel's Landlock has no scopes");
  Name outside = AbstractName("-outside");
  UniqueFd listener = Listen(outside);
  ASSERT_TRUE(listener.valid());
  int status = test::InChild([&] {
    if (Connect(outside) != 0) return 1;  // control
    if (!Restrict(kScopeAbstractUnix)) return 2;
    if (Connect(outside) != EPERM) return 3;
    Name inside = AbstractName("-inside");
    UniqueFd own = Listen(inside);
    if (!own.valid()) return 4;
    return Connect(inside) == 0 ? 0 : 5;
  });
  EXPECT_EQ(status, 0);
}

TEST(LandlockTest, WithoutThatScopeItDoes) {
  TASKCELL_REQUIRE(LandlockAbi() >= kAbiWithScope, "the kernel's Landlock has no scopes");
  Name outside = AbstractName("-outside");
  UniqueFd listener = Listen(outside);
  ASSERT_TRUE(listener.valid());
  int status = test::InChild([&] {
    if (!Restrict(kScopeSignal)) return 2;
    return Connect(outside) == 0 ? 0 : 3;
  });
  EXPECT_EQ(status, 0);
}

}  // namespace
}  // namespace taskcell::sys
