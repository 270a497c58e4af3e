#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "launcher/base/result.h"
#include "launcher/cell/job_settings.h"

namespace taskcell::cell {

// The limits some cgroup really has, as read from its files; nullopt: no such file (or "max" is
// kUnlimited). On a host that has no swap and counts none, memory_and_swap_bytes of the outside
// half is memory_bytes.
struct LimitsSeen {
  static constexpr uint64_t kUnlimited = ~uint64_t{0};
  std::optional<uint64_t> memory_bytes;
  std::optional<uint64_t> memory_and_swap_bytes;  // v1 memsw; on v2 memory.max + memory.swap.max
  std::optional<uint64_t> pids;
  std::optional<uint64_t> cpu_quota_us;  // per cpu_period_us
  std::optional<uint64_t> cpu_period_us;
  // Only looked at where the plan asks for them: those of the cell's own cgroup.
  std::optional<uint64_t> io_weight;
  std::optional<std::string> cpu_set;  // in force, as the kernel lists it
  // Whether running out of memory kills the cell as a whole. Only the outside half tells.
  std::optional<bool> oom_group;
};

// One call that must be refused, tried for real by a process that is set up exactly as the job will
// be.
struct DeniedCall {
  std::string name;    // "unshare", "mount", "socket AF_ALG", "write /", ...
  int32_t result = 0;  // 0: it succeeded; > 0: its errno; -n: the process died of signal n
  // Under a filter of the plan's own: what that one answers to the very call. 0: the filter is not
  // asked, the table decides (DeniedCallRule).
  int32_t by_filter = 0;  // > 0: the errno; else one of the following
  // Not tried, since it would succeed or end the process.
  static constexpr int32_t kLeftOpen = -1;
  static constexpr int32_t kEnds = -2;
};

struct MountSeen {  // one mount point of the cell as seen through its root
  std::string target;
  uint64_t device = 0;
  uint64_t inode = 0;
  uint32_t mode = 0;       // st_mode
  int32_t open_error = 0;  // errno of opening it without following links, 0 when it opened
};

struct TmpfsSeen {
  std::string target;
  uint64_t size_bytes = 0;  // from statfs; 0 when it is no tmpfs
};

struct InterfaceSeen {
  std::string name;
  uint32_t flags = 0;  // IFF_*
};

struct DescriptorSeen {
  int32_t fd = 0;
  std::string target;       // readlink of /proc/self/fd/N
  uint32_t mode = 0;        // st_mode
  uint32_t access = 0;      // O_RDONLY, O_WRONLY, O_RDWR or O_PATH
  uint64_t filesystem = 0;  // fstatfs f_type, 0 where there is none
  uint64_t device = 0;      // st_rdev
  bool terminal = false;    // it has terminal modes
  bool receives = false;    // a socket by which something may still come in
};

struct ProcessSeen {  // one process of the cell beside init
  int32_t pid = 0;
  std::string name;  // /proc/<pid>/comm; empty when it was gone by then
};

struct DeviceSeen {  // one device node
  std::string path;
  uint32_t mode = 0;    // st_mode
  uint64_t number = 0;  // st_rdev
};

// A namespace by its file below /proc/<pid>/ns; zeros where it could not be looked at.
struct NamespaceSeen {
  uint64_t device = 0;
  uint64_t inode = 0;
};
// The time namespace is the job's, /proc/<pid>/ns/time_for_children of init.
inline constexpr std::array<std::string_view, 8> kNamespaces = {"net", "ipc", "uts",  "cgroup",
                                                                "mnt", "pid", "user", "time"};
using Namespaces = std::array<NamespaceSeen, kNamespaces.size()>;  // in the order of the names

struct KeyringSeen {        // the session keyring of a process
  int32_t serial = 0;       // the same for everybody; 0: not seen
  int32_t err = 0;          // why not: ENOSYS where the kernel has no keys
  std::string description;  // "_ses", "_uid_ses.1000", ...
};

struct SocketSeen {    // one socket of the cell's network namespace
  std::string table;   // of /proc/net: "tcp", "unix", ...
  uint64_t inode = 0;  // 0: the kernel names none
};

// What taskcell-init found about the cell it is PID 1 of, before any job exists. Every number is
// init's own reading.
struct InsideAttestation {
  int32_t pid = 0;
  std::array<uint32_t, 4> uids = {};  // real, effective, saved, file system
  std::array<uint32_t, 4> gids = {};
  std::vector<uint32_t> groups;
  std::array<uint64_t, 5> capabilities =
      {};  // inheritable, permitted, effective, bounding, ambient
  bool no_new_privileges = false;
  bool dumpable = true;
  std::vector<DeniedCall> denied_calls;  // by the witness
  uint32_t witness_seccomp_mode = 0;     // 2: filter
  std::string witness_filter;            // the one of its plan that it installed; empty: default
  int32_t landlock_abi = 0;              // 0: none
  bool landlock_applied = false;
  uint64_t witness_nofile = 0;  // RLIMIT_NOFILE, RLIMIT_CORE and RLIMIT_FSIZE of the witness
  uint64_t witness_core = 0;
  uint64_t witness_file_bytes = LimitsSeen::kUnlimited;
  SettingsSeen settings;  // of the witness
  std::string mountinfo;  // /proc/self/mountinfo, whole
  std::vector<MountSeen> mounts;
  std::vector<TmpfsSeen> tmpfs;
  LimitsSeen limits;  // what is readable from inside
  std::vector<InterfaceSeen> interfaces;
  std::string routes;  // /proc/net/route and /proc/net/ipv6_route, as they are
  std::vector<DescriptorSeen> descriptors;
  std::vector<ProcessSeen> processes;  // whatever of /proc/<pid> is not init
  std::vector<DeviceSeen> devices;     // at and below /dev, in what is mounted there too
  Namespaces namespaces = {};
  KeyringSeen keyring;
  // In a cell of an engine, whose namespaces may be another container's: the first few sockets that
  // are not init's, and objects of System V, message queues and files of /dev/shm, by their place.
  std::vector<SocketSeen> sockets;
  std::vector<std::string> ipc_objects;
  std::vector<std::string> environment_names;  // init's own environment
  std::string hostname;
  std::string working_directory;  // readlink of /proc/self/cwd, before init left it
  uint16_t listener_port = 0;     // 0 with NetworkMode::kNone: the loopback listener handed over
  uint16_t tunnel_port = 0;       // where the plan has tunnels: the one handed over with it
};

// What is true of the cell's PID 1 as seen from the host.
struct OutsideAttestation {
  int32_t host_pid = 0;
  std::array<uint32_t, 4> host_uids = {};  // kernel ids in the observer's user namespace
  std::array<uint32_t, 4> host_gids = {};
  std::vector<std::string> cgroups;  // the lines of /proc/<pid>/cgroup
  Namespaces host_namespaces = {};   // of the observer itself
  KeyringSeen host_keyring;          // the same
  LimitsSeen limits;  // effective: the smallest from the cell's cgroup up to the root, per limit
};

struct Attestation {
  InsideAttestation inside;
  OutsideAttestation outside;
};

inline constexpr std::size_t kMaxAttestationBytes = 1U << 20U;
std::string EncodeAttestation(const InsideAttestation& inside);
Result<InsideAttestation> ParseAttestation(std::string_view bytes);

}  // namespace taskcell::cell
