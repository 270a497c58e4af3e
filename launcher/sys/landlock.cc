#include "launcher/sys/landlock.h"

#include <linux/landlock.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstddef>

#include "launcher/base/text.h"
#include "launcher/sys/failure.h"

namespace taskcell::sys {
namespace {

// struct landlock_ruleset_attr as ABI 6 has it; older kernels take its beginning.
struct RulesetAttributes {
  uint64_t files;
  uint64_t net;     // ABI 4
  uint64_t scoped;  // ABI 6
};

struct PortRule {  // struct landlock_net_port_attr
  uint64_t rights;
  uint64_t port;
};
constexpr int kRuleNetPort = 2;  // LANDLOCK_RULE_NET_PORT

constexpr int kAbiWithNet = 4;
constexpr int kAbiWithScope = 6;

std::size_t AttributesSize(int abi) {
  if (abi >= kAbiWithScope) return sizeof(RulesetAttributes);
  if (abi >= kAbiWithNet) return offsetof(RulesetAttributes, scoped);
  return offsetof(RulesetAttributes, net);
}

}  // namespace

int LandlockAbi() {
  long abi = ::syscall(SYS_landlock_create_ruleset, nullptr, 0, LANDLOCK_CREATE_RULESET_VERSION);
  return abi > 0 ? static_cast<int>(abi) : 0;
}

uint64_t LandlockFileRights(int abi) {
  constexpr uint64_t kFirst = (1U << 13U) - 1;  // execute ... make_sym
  constexpr uint64_t kRefer = 1U << 13U;        // ABI 2
  uint64_t rights = abi > 0 ? kFirst : 0;
  if (abi >= 2) rights |= kRefer;
  if (abi >= 3) rights |= kFsTruncate;
  if (abi >= 5) rights |= kFsIoctlDevice;
  return rights;
}

Result<UniqueFd> MakeLandlockRuleset(int abi, const LandlockScope& handled) {
  RulesetAttributes attributes = {handled.files & LandlockFileRights(abi), handled.net,
                                  handled.scoped};
  if (abi < kAbiWithNet) attributes.net = 0;
  if (abi < kAbiWithScope) attributes.scoped = 0;
  long fd = ::syscall(SYS_landlock_create_ruleset, &attributes, AttributesSize(abi), 0);
  if (fd < 0) return Failure("landlock_create_ruleset");
  return UniqueFd(static_cast<int>(fd));
}

Status GrantBeneath(int ruleset, int fd, uint64_t rights) {
  struct landlock_path_beneath_attr rule = {};
  rule.allowed_access = rights;
  rule.parent_fd = fd;
  if (::syscall(SYS_landlock_add_rule, ruleset, LANDLOCK_RULE_PATH_BENEATH, &rule, 0) < 0) {
    return Failure(Text("landlock_add_rule path (fd ", fd, ")"));
  }
  return Ok();
}

Status GrantPort(int ruleset, uint16_t port, uint64_t rights) {
  PortRule rule = {rights, port};
  if (::syscall(SYS_landlock_add_rule, ruleset, kRuleNetPort, &rule, 0) < 0) {
    return Failure(Text("landlock_add_rule port ", port));
  }
  return Ok();
}

Status RestrictSelf(int ruleset) {
  if (::syscall(SYS_landlock_restrict_self, ruleset, 0) < 0) {
    return Failure("landlock_restrict_self");
  }
  return Ok();
}

}  // namespace taskcell::sys
