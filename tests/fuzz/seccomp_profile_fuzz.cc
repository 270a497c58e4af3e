// A user's own seccomp profile: whatever text it is, it is refused with a reason or becomes a
// program that answers every call and kills those of other architectures.
#include <linux/audit.h>

#include "seccomp/evaluator.h"
#include "seccomp/profile_loader.h"
#include "tests/fuzz/fuzz.h"

namespace taskcell {
namespace {

void CheckProgram(const seccomp::LoadedProfile& profile, seccomp::Architecture architecture) {
  bool x86 = architecture == seccomp::Architecture::kX86_64;
  fuzz::Require(profile.code.size() <= BPF_MAXINSNS);
  seccomp_data call = {};
  call.arch = x86 ? AUDIT_ARCH_X86_64 : AUDIT_ARCH_AARCH64;
  for (int number = 0; number < 600; ++number) {
    call.nr = number;
    call.args[0] = static_cast<uint64_t>(number) << 30U;
    fuzz::Require(seccomp::Evaluate(profile.code, call).has_value());
  }
  call.arch = x86 ? AUDIT_ARCH_I386 : AUDIT_ARCH_ARM;
  std::optional<seccomp::Evaluation> foreign = seccomp::Evaluate(profile.code, call);
  fuzz::Require(foreign.has_value() && foreign->action == SECCOMP_RET_KILL_PROCESS);
}

}  // namespace
}  // namespace taskcell

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, std::size_t size) {
  using namespace taskcell;
  for (seccomp::Architecture each :
       {seccomp::Architecture::kX86_64, seccomp::Architecture::kAarch64}) {
    std::string error;
    std::optional<seccomp::LoadedProfile> profile =
        seccomp::LoadProfile(fuzz::TextOf(data, size), each, error);
    fuzz::Require(profile.has_value() || !error.empty());
    if (profile) CheckProgram(*profile, each);
  }
  return 0;
}
