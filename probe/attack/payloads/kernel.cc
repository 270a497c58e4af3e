// Ways into the kernel that no job needs.
#include <fcntl.h>
#include <linux/bpf.h>
#include <linux/io_uring.h>
#include <linux/perf_event.h>
#include <sys/personality.h>
#include <sys/syscall.h>

#include <cerrno>
#include <csignal>

#include "probe/attack/payloads/call.h"
#include "probe/attack/payloads/topics.h"

namespace taskcell::attack {
namespace {

constexpr std::string_view kTopic = "kernel";

Attempted SetUpIoUring(const Targets& /*targets*/) {
  struct io_uring_params parameters = {};
  return Of(Call(SYS_io_uring_setup, 1, &parameters));
}

Attempted LoadBpf(const Targets& /*targets*/) {
  constexpr char kLicense[] = "GPL";
  const struct bpf_insn program[] = {{BPF_ALU64 | BPF_MOV | BPF_K, 0, 0, 0, 0},
                                     {BPF_JMP | BPF_EXIT, 0, 0, 0, 0}};
  union bpf_attr attributes = {};
  attributes.prog_type = BPF_PROG_TYPE_SOCKET_FILTER;
  attributes.insn_cnt = 2;
  attributes.insns = sys::Address(program);
  attributes.license = sys::Address(kLicense);
  return Of(Call(SYS_bpf, BPF_PROG_LOAD, &attributes, sizeof attributes));
}

// Of itself and of user code only, which is open to everybody where nothing is hardened; software
// events exist on every machine.
Attempted OpenPerfEvent(const Targets& /*targets*/) {
  struct perf_event_attr attributes = {};
  attributes.type = PERF_TYPE_SOFTWARE;
  attributes.size = sizeof attributes;
  attributes.config = PERF_COUNT_SW_TASK_CLOCK;
  attributes.exclude_kernel = 1;
  attributes.exclude_hv = 1;
  return Of(Call(SYS_perf_event_open, &attributes, 0, -1, -1, 0));
}

Attempted ReadKernelLog(const Targets& /*targets*/) {
  constexpr int kReadAll = 3;
  char buffer[16];
  return Of(Call(SYS_syslog, kReadAll, buffer, sizeof buffer));
}

Attempted SetHostname(const Targets& /*targets*/) {
  constexpr std::string_view kName = "taken";
  return Of(Call(SYS_sethostname, kName.data(), kName.size()));
}

Attempted WatchFileSystem(const Targets& /*targets*/) {
  constexpr int kReportFileIds = 0x200;  // FAN_REPORT_FID: what ordinary users may ask for
  return Of(Call(SYS_fanotify_init, kReportFileIds | 1, O_CLOEXEC));
}

Attempted MakeBpfMap(const Targets& /*targets*/) {
  union bpf_attr attributes = {};
  attributes.map_type = BPF_MAP_TYPE_ARRAY;
  attributes.key_size = 4;
  attributes.value_size = 4;
  attributes.max_entries = 1;
  return Of(Call(SYS_bpf, BPF_MAP_CREATE, &attributes, sizeof attributes));
}

constexpr uint64_t kUserFaultsOnly = 1;  // UFFD_USER_MODE_ONLY

#if defined(__x86_64__)
Attempted CallI386(const Targets& /*targets*/) {
  constexpr int kGetpid = 20;
  int answer = 0;
  __asm__ volatile("int $0x80" : "=a"(answer) : "a"(kGetpid) : "memory", "r8", "r9", "r10", "r11");
  return Of(answer);
}

Attempted CallX32(const Targets& /*targets*/) {
  constexpr long kX32Bit = 0x40000000;
  return Of(Call(kX32Bit | SYS_getpid));
}

Attempted ModifyDescriptorTable(const Targets& /*targets*/) {
  char buffer[16];
  return Of(Call(SYS_modify_ldt, 0, buffer, sizeof buffer));
}
#endif

constexpr Payload kPayloads[] = {
    {"io-uring", kTopic, "set up an io_uring", Control::kUser, {EPERM, ENOSYS}, SetUpIoUring},
    {"userfaultfd",
     kTopic,
     "handle the page faults of its own threads",
     Control::kUser,
     {EPERM},
     Make<SYS_userfaultfd, O_CLOEXEC | kUserFaultsOnly>},
    {"bpf-program", kTopic, "load a program into the kernel", Control::kRoot, {EPERM}, LoadBpf},
    {"bpf-map", kTopic, "make a map in the kernel", Control::kRoot, {EPERM}, MakeBpfMap},
    {"perf-event", kTopic, "count events of its own", Control::kUser, {EPERM}, OpenPerfEvent},
    {"personality",
     kTopic,
     "make every readable page executable (READ_IMPLIES_EXEC)",
     Control::kUser,
     {EPERM},
     Make<SYS_personality, READ_IMPLIES_EXEC>},
    {"address-randomisation",
     kTopic,
     "switch address randomisation off",
     Control::kUser,
     {EPERM},
     Make<SYS_personality, ADDR_NO_RANDOMIZE>},
    {"kernel-log", kTopic, "read the kernel's log", Control::kRoot, {EPERM}, ReadKernelLog},
    {"hostname", kTopic, "change the host's name", Control::kNamespace, {EPERM}, SetHostname},
    {"file-system-events",
     kTopic,
     "watch whole file systems (fanotify)",
     Control::kUser,
     {EPERM},
     WatchFileSystem},
#if defined(__x86_64__)
    {"i386-call",
     kTopic,
     "call the kernel through its 32-bit entry",
     Control::kUser,
     // SIGSEGV: a kernel without 32-bit calls.
     {-SIGSYS, -SIGSEGV},
     CallI386},
    {"x32-call", kTopic, "call the kernel with x32 numbers", Control::kUser, {-SIGSYS}, CallX32},
    {"descriptor-table",
     kTopic,
     "use the processor's local descriptor table",
     Control::kUser,
     {EPERM},
     ModifyDescriptorTable},
    {"port-access",
     kTopic,
     "reach the machine's input and output ports",
     Control::kRoot,
     {EPERM},
     Make<SYS_ioperm, 0x80, 1, 1>},
#endif
};

}  // namespace

std::span<const Payload> KernelPayloads() { return kPayloads; }

}  // namespace taskcell::attack
