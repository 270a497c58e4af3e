#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "launcher/base/result.h"

namespace taskcell::cell {

// What a cell's root file system is.
enum class RootKind : uint8_t {
  kImage,   // an engine's image, named by `root_source`
  kRootfs,  // a directory of the host, named by `root_source`, mounted read-only
  kHost,    // the host's /usr, /lib*, /bin, /sbin and an allowlist of /etc, read-only; nothing else
            // of the host
};

enum class EntryKind : uint8_t { kFile, kDirectory };

enum class NetworkMode : uint8_t {
  kNone,      // only lo, no listener
  kProvider,  // only lo, with taskcell-init's loopback listener handed to the broker
  kOpen,      // an engine's bridge beside lo and the listener; a named weaker mode
};

// One bind mount. Whoever makes the plan opened `source` once (openat2), took device and inode from
// that descriptor and holds it until the cell is gone, so that the inode number cannot be reused.
struct PlannedMount {
  std::string source;  // absolute path on the host, without symlinks
  std::string target;  // absolute path in the cell, normalised (no '.', '..', '//' or trailing '/')
  EntryKind kind = EntryKind::kFile;
  uint64_t device = 0;  // st_dev
  uint64_t inode = 0;   // st_ino
  bool writable = false;
  bool follows_links = true;  // false: no symbolic link in it is followed (nosymfollow)
};

struct PlannedTmpfs {
  std::string target;
  uint64_t size_bytes = 0;
  uint32_t mode = 0700;
  bool exec = false;       // nosuid and nodev always hold
  bool read_only = false;  // what covers an image's VOLUME: empty, and stays so
};

// What a cell takes for itself: its first process and the program, and what the first one opens to
// attest.
inline constexpr uint64_t kLeastPids = 2;
inline constexpr uint64_t kLeastNofile = 16;

// Every limit is required: 0 is no limit and is refused by CheckPlan, as is less than the above.
struct Limits {
  uint64_t memory_bytes = 0;  // swap is allowed nothing on top
  uint64_t pids = 0;
  uint64_t cpu_millis = 0;  // thousandths of one core
  uint64_t nofile = 1024;   // RLIMIT_NOFILE of the job
  // Native cells only. A named weaker mode: where the cpu controller cannot be had, no limit of it.
  bool cpu_may_be_missing = false;
  // Native cells on the unified hierarchy: when memory runs out the whole cell is killed, not one
  // process (memory.oom.group).
  bool oom_group = false;
  // The rest is asked for or not: 0 or empty where nothing is.
  uint64_t file_bytes = 0;  // RLIMIT_FSIZE of the job: the largest file it may write
  // Native cells: the share of a busy disk's time, 1 to kMaxIoWeight; kUsualIoWeight is
  // everybody's.
  uint64_t io_weight = 0;
  std::string cpu_set = {};  // native cells: the processors it may use, a NormalCpuList
};
inline constexpr uint64_t kUsualIoWeight = 100;
inline constexpr uint64_t kMaxIoWeight = 1000;

// What a cell must be. Made by pure code from checked configuration; the same value goes to the
// launcher, to taskcell-init's verifier and to Compare.
struct CellPlan {
  std::string run_id;      // 32 lowercase hex digits
  std::string agent;       // [A-Za-z0-9._-]
  std::string home_label;  // 32 lowercase hex digits, or empty outside the gateway
  int64_t deadline_unix_ms = 0;
  uint32_t uid = 0;  // inside the cell; never 0
  uint32_t gid = 0;  // inside the cell; never 0
  RootKind root = RootKind::kHost;
  std::string root_source;   // image reference or rootfs directory; empty for kHost
  uint64_t root_device = 0;  // kRootfs: the directory's st_dev and st_ino
  uint64_t root_inode = 0;
  std::vector<PlannedMount> mounts;
  std::vector<PlannedTmpfs> tmpfs;
  Limits limits;
  NetworkMode network = NetworkMode::kNone;
  // Not with kNone: a second loopback listener, for CONNECT to the hosts that are allowed by name.
  bool tunnels = false;
  // The job gets a terminal of the cell's own, whose other side goes over the gate
  // (JobStdio::kTerminal): for a person.
  bool terminal = false;
  std::string hostname = "taskcell";
  std::string working_directory = "/workspace";
  // The job's system call filter, an array of struct sock_filter as it lies in memory; empty: the
  // default one of seccomp/. Native cells only; a named weaker mode where it denies less.
  std::string filter;
  // Native cells: where no session keyring of the cell's own can be had, its caller's. The filter
  // denies every call that would use it.
  bool keyring_may_stay = false;
  // Native cells: /proc shows processes alone (subset=pid), also where the kernel gives a whole
  // one.
  bool proc_is_subset = false;
  // Names the image sets in the environment of PID 1 (its ENV); none of it reaches the job.
  std::vector<std::string> image_environment;
};

// RLIMIT_CORE of a job: less than any dump has, and unlike 0 it stops the kernel from piping one to
// the host's handler too (core(5): "a limit of 1 ... is treated specially").
inline constexpr uint64_t kCoreBytes = 1;

inline constexpr std::size_t kMaxPlannedMounts = 256;                  // binds and tmpfs together
inline constexpr std::size_t kMaxFilterBytes = std::size_t{4096} * 8;  // BPF_MAXINSNS instructions
inline constexpr std::size_t kMaxPathBytes = 4095;                     // PATH_MAX without its NUL

// True for an absolute path of at most kMaxPathBytes without NUL, '.', '..', '//' or trailing '/';
// "/" itself is one.
bool IsNormalPath(std::string_view path);

// True when the normal path `path` is `top` or lies below it; `top` is not "/".
bool IsAtOrBelow(std::string_view path, std::string_view top);

// How many loopback listeners the cell's first process hands out: the broker's, and the one for
// tunnels after it.
std::size_t ListenerCount(const CellPlan& plan);

// Refuses a plan that no cell could honour or that names something twice: ids of 0, limits of 0, a
// target that is not absolute and normalised, two entries on one target, a target at or below
// /proc, /sys or /dev, more than kMaxPlannedMounts mounts, a malformed run id, a tmpfs of size 0,
// tunnels without a listener, an open network without an image. Pure.
Status CheckPlan(const CellPlan& plan);

// One byte string for the way over a descriptor, and back. ParsePlan refuses anything malformed,
// truncated or with trailing bytes, and what CheckPlan refuses. `bytes` is at most kMaxPlanBytes.
inline constexpr std::size_t kMaxPlanBytes = 1U << 20U;
std::string EncodePlan(const CellPlan& plan);
Result<CellPlan> ParsePlan(std::string_view bytes);

}  // namespace taskcell::cell
