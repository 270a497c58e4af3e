#pragma once

#include <string>

#include "probe/rules/report.h"
#include "tests/support/memory_host.h"

namespace taskcell::probe {

// A host of the unified hierarchy on which an ordinary user has everything: each test breaks one
// thing.
class GoodHost : public test::MemoryHost {
 public:
  static constexpr uint32_t kUser = 1500;
  static inline const std::string kRoot = "/sys/fs/cgroup";
  static inline const std::string kSlice = kRoot + "/user.slice/user-1500.slice";
  static inline const std::string kManager = kSlice + "/user@1500.service";
  static inline const std::string kApp = kManager + "/app.slice";
  static inline const std::string kScope = kApp + "/t.scope";

  GoodHost() {
    constexpr std::string_view kOn = "cpu memory pids";
    Process(kUser, "0::/user.slice/user-1500.slice/user@1500.service/app.slice/t.scope\n",
            test::kUnifiedMount);
    Put("/etc/passwd", "root:x:0:0::/:/bin/sh\nagent1:x:1500:1500::/home/a:/bin/sh\n");
    Put("/etc/subuid", "agent1:100000:65536\n");
    Put("/etc/subgid", "agent1:100000:65536\n");
    Put("/usr/bin/newuidmap", "", 0, 04755);
    Put("/usr/bin/newgidmap", "", 0, 04755);
    Directory("/run/systemd/system");
    Socket("/run/user/1500/bus", kUser);
    Cgroup(kRoot, 0, "cpuset cpu io memory hugetlb pids", "cpu io memory pids", "-", "1");
    Cgroup(kRoot + "/user.slice", 0, "cpu io memory pids", kOn);
    Cgroup(kSlice, 0, kOn, kOn);
    Cgroup(kManager, kUser, kOn, kOn);
    Cgroup(kApp, kUser, kOn, kOn);
    Cgroup(kScope, kUser, kOn, "", "domain", "4242");
  }

  HostFacts Facts() { return ReadHostFacts(*this, {}); }
  probe::Report Report() { return Judge(Facts()); }
};

// What can only be tried there: all of it works.
inline LiveFacts GoodLive() {
  LiveFacts live;
  for (const char* feature :
       {"openat2", "clone3", "clone-into-cgroup", "pidfd", "close-range", "landlock",
        "seccomp-filter", "seccomp-notify", "user-namespace", "mount-api", "tmpfs", "mount-setattr",
        "overlay", "proc", "proc-subset", "user-namespace-depth", "idmapped-mounts"})
    live.trials.push_back({feature, Outcome::kWorks, 0, ""});
  live.runtime_directory = "/run/user/1500";
  live.engine_socket = "/run/user/1500/podman/podman.sock";
  live.unix_time_s = 1'800'000'000;
  live.max_tasks = 10'000;
  live.own_tasks = 12;
  live.spaces.push_back({"/home/a", uint64_t{100} << 30U, uint64_t{50} << 30U});
  return live;
}

inline const Finding& Row(const Report& report, std::string_view id) {
  static const Finding kNone{"(no such row)", Verdict::kUnknown, ""};
  for (const Finding& each : report.findings) {
    if (each.id == id) return each;
  }
  return kNone;
}

}  // namespace taskcell::probe
