#include "seccomp/never_allowed.h"

#include <asm/ioctls.h>
#include <linux/seccomp.h>
#include <sys/resource.h>

#include <cerrno>
#include <utility>
#include <vector>

namespace taskcell::seccomp {
namespace {

constexpr uint32_t kRefuse = SECCOMP_RET_ERRNO | EPERM;
constexpr uint64_t kInt = 0xffffffff;    // the kernel reads the argument as 32 bits
constexpr uint64_t kGroup = 0xffffff00;  // all requests of one kind of device

struct Request {
  uint64_t value;
  uint64_t mask;
};

constexpr Request kRequests[] = {
    {TIOCSTI, kInt},   // types into the terminal behind a descriptor (CVE-2017-5226)
    {0x541c, kInt},    // TIOCLINUX: pastes into a virtual console (CVE-2023-28100)
    {TCXONC, kInt},    // stops the caller's terminal for good
    {TIOCEXCL, kInt},  // nobody else opens the caller's terminal any more
    {TIOCSETD, kInt},  // another line discipline outlives the cell in the caller's terminal
    {0x4b00, kGroup},  // KD...: the caller's virtual console, left without keyboard or text
    {0x5600, kGroup},  // VT_...: switching the host's virtual consoles
};

Condition Masked(uint32_t argument, uint64_t value, uint64_t mask) {
  return {argument, Comparison::kMaskedEqual, value, mask};
}

}  // namespace

void AddNeverAllowed(Profile& profile) {
  auto refuse = [&](const char* call, std::vector<Condition> conditions) {
    profile.rules.push_back({{call}, kRefuse, std::move(conditions)});
  };
  for (const Request& request : kRequests)
    refuse("ioctl", {Masked(1, request.value, request.mask)});
  refuse("setrlimit", {Masked(0, RLIMIT_CORE, kInt)});
  // It may be asked for: then there is no new limit.
  refuse("prlimit64", {Masked(1, RLIMIT_CORE, kInt), {2, Comparison::kNotEqual, 0, ~uint64_t{0}}});
}

}  // namespace taskcell::seccomp
