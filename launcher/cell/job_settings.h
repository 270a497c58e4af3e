#pragma once

#include <sys/resource.h>

#include <array>
#include <cstdint>
#include <string_view>

namespace taskcell::cell {

// A resource limit that a job has at most, whatever whoever started its cell has: what it could
// hold of the kernel's, or of its user's share, beyond the limits of its cgroup.
struct LimitCeiling {
  int resource = 0;  // RLIMIT_*
  std::string_view name;
  uint64_t highest = 0;
};

inline constexpr std::array kLimitCeilings = std::to_array<LimitCeiling>({
    {RLIMIT_RTPRIO, "rtprio", 0},  // no real-time policy: it would starve the host's processors
    {RLIMIT_RTTIME, "rttime", 0},
    {RLIMIT_NICE, "nice", 0},               // no better nice value than it was given
    {RLIMIT_MSGQUEUE, "msgqueue", 819200},  // bytes in POSIX message queues: the kernel's default
    {RLIMIT_SIGPENDING, "sigpending", 4096},
    {RLIMIT_MEMLOCK, "memlock", uint64_t{8} << 20U},  // the kernel's default
});

// The file mode creation mask of a job.
inline constexpr uint32_t kFileMask = 022;

// Securebits of a job in a native cell: NOROOT, NO_SETUID_FIXUP and NO_CAP_AMBIENT_RAISE, each
// locked, and KEEP_CAPS locked off (capabilities(7)).
inline constexpr uint32_t kSecurebits = 0xEF;

// What a job was left of its caller's settings, as the witness has them.
struct SettingsSeen {
  uint32_t file_mask = 0;
  uint32_t personality = 0;  // personality(2): 0 is PER_LINUX
  uint32_t securebits = 0;
  uint32_t policy = 0;    // sched(7), SCHED_*
  uint32_t io_class = 0;  // ioprio_set(2), IOPRIO_CLASS_*
  std::array<uint64_t, kLimitCeilings.size()> limits = {};
};

// The ones that no job has: SCHED_FIFO, SCHED_RR and SCHED_DEADLINE; IOPRIO_CLASS_RT. What gives it
// less than others (SCHED_IDLE, SCHED_BATCH, a nice value, the idle class) stays the caller's wish.
bool IsRealTime(uint32_t policy);
inline constexpr uint32_t kRealTimeIo = 1;

// For a WireWriter or a WireReader.
template <typename Io, typename Value>
void SettingsFields(Io& io, Value& settings) {
  io.Number(settings.file_mask);
  io.Number(settings.personality);
  io.Number(settings.securebits);
  io.Number(settings.policy);
  io.Number(settings.io_class);
  io.List(settings.limits, settings.limits.size(),
          [](auto& each, auto& limit) { each.Number(limit); });
}

}  // namespace taskcell::cell
