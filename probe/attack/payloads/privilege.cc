// Capabilities, ids and groups that were given up, taken back.
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/securebits.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <vector>

#include "launcher/base/text.h"
#include "launcher/sys/file.h"
#include "launcher/sys/process.h"
#include "probe/attack/payloads/call.h"
#include "probe/attack/payloads/topics.h"

namespace taskcell::attack {
namespace {

constexpr std::string_view kTopic = "privilege";

// What `program` (taskcell-attacker) says of the ids and capabilities it came up with: see
// kReportPrivilege.
Result<std::string> Ask(const std::string& program) {
  sys::Pipe pipe = TRY(sys::MakePipe());
  sys::Cloned cloned = TRY(sys::CloneProcess(0));
  if (cloned.in_child) {
    if (!sys::PlaceDescriptor(pipe.write_end.get(), STDOUT_FILENO).ok()) sys::ExitNow(1);
    Error failed = sys::Execute(program, {"taskcell-attacker", kReportPrivilege}, {});
    (void)sys::WriteAll(STDOUT_FILENO, Text("errno ", failed.err));  // ignoring: then it is silent
    sys::ExitNow(1);
  }
  pipe.write_end.Reset();
  std::string told = TRY(sys::ReadAll(pipe.read_end.get(), 4096));
  TRY(cloned.child.Wait());
  return told;
}

Attempted Regain(const std::string& program, std::string_view proof) {
  if (program.empty()) return {ENOENT, "there is no such program"};
  Result<std::string> told = Ask(program);
  if (!told.ok()) return {told.error().err, told.error().text};
  constexpr std::string_view kErrno = "errno ";
  if (told->starts_with(kErrno)) {
    std::optional<uint64_t> err = ParseUnsigned(told->substr(kErrno.size()));
    return {static_cast<int32_t>(err.value_or(EIO)), "not started"};
  }
  if (told->find(proof) != std::string::npos) return {0, told.value()};
  return {EPERM, told.value()};
}

Attempted RunSetuidProgram(const Targets& targets) {
  return Regain(targets.setuid_program, "euid 0 ");
}

Attempted RunCapableProgram(const Targets& targets) {
  return Regain(targets.capable_program, "capable");
}

struct Capabilities {
  struct __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
  struct __user_cap_data_struct data[2] = {};
};

int64_t SetCapabilities(uint32_t inheritable) {
  constexpr uint32_t kLow = (1U << CAP_SYS_ADMIN) | (1U << CAP_NET_ADMIN);
  Capabilities wanted;
  wanted.data[0] = {kLow, kLow, inheritable};
  return Call(SYS_capset, &wanted.header, &wanted.data);
}

Attempted RaiseCapabilities(const Targets& /*targets*/) { return Of(SetCapabilities(0)); }

Attempted RaiseAmbient(const Targets& /*targets*/) {
  // Its outcome shows in the next call.
  (void)SetCapabilities(1U << CAP_NET_ADMIN);
  return Of(Call(SYS_prctl, PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, CAP_NET_ADMIN, 0, 0));
}

Attempted JoinGroup(const Targets& /*targets*/) {
  constexpr uint32_t kShadow = 42;
  return Of(Call(SYS_setgroups, 1, &kShadow));
}

Attempted UseGroupOfTheCaller(const Targets& targets) {
  if (targets.group_secret.empty()) return {ENOENT, "there is no such file"};
  return TryReading(targets.group_secret);
}

constexpr Payload kPayloads[] = {
    {"setuid-program",
     kTopic,
     "become root by a set-user-id program that lies in the cell",
     Control::kUser,
     {EPERM},
     RunSetuidProgram},
    {"file-capabilities",
     kTopic,
     "gain capabilities by a program that carries them",
     Control::kUser,
     {EPERM},
     RunCapableProgram},
    // EINVAL where the id has no mapping in the cell's user namespace.
    {"uid-0",
     kTopic,
     "become uid 0",
     Control::kNamespace,
     {EPERM, EINVAL},
     Make<SYS_setresuid, 0, 0, 0>},
    {"gid-0",
     kTopic,
     "become gid 0",
     Control::kNamespace,
     {EPERM, EINVAL},
     Make<SYS_setresgid, 0, 0, 0>},
    {"join-group", kTopic, "join the group shadow", Control::kRoot, {EPERM}, JoinGroup},
    {"group-of-the-caller",
     kTopic,
     "read what only a supplementary group of the user who made the cell may read",
     Control::kGroup,
     {EACCES},
     UseGroupOfTheCaller},
    {"raise-capabilities",
     kTopic,
     "give itself SYS_ADMIN and NET_ADMIN",
     Control::kNamespace,
     {EPERM},
     RaiseCapabilities},
    {"ambient-capability",
     kTopic,
     "hand a capability on to every program it starts",
     Control::kNamespace,
     {EPERM},
     RaiseAmbient},
    {"securebits",
     kTopic,
     "let uid 0 mean all capabilities again",
     Control::kNamespace,
     {EPERM},
     Make<SYS_prctl, PR_SET_SECUREBITS, 0, 0, 0, 0>},
};

}  // namespace

std::span<const Payload> PrivilegePayloads() { return kPayloads; }

}  // namespace taskcell::attack
