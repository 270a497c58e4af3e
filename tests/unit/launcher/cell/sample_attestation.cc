#include "tests/unit/launcher/cell/sample_attestation.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/magic.h>
#include <net/if.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "launcher/base/text.h"
#include "launcher/cell/denied_calls.h"

namespace taskcell::cell {
namespace {

void AddProcess(const CellPlan& plan, Engine engine, InsideAttestation& seen) {
  seen.pid = 1;
  seen.uids.fill(plan.uid);
  seen.gids.fill(plan.gid);
  if (engine == Engine::kDocker) seen.groups = {plan.gid};
  seen.no_new_privileges = true;
  seen.dumpable = false;
  seen.landlock_abi = 7;
  seen.landlock_applied = true;
  for (const DeniedCallRule& rule : DeniedCallRules()) {
    seen.denied_calls.push_back({std::string(rule.name), rule.allowed[0]});
  }
  seen.witness_seccomp_mode = 2;
  seen.witness_nofile = plan.limits.nofile;
  seen.witness_file_bytes = plan.limits.file_bytes;
  seen.settings.file_mask = kFileMask;
  if (engine == Engine::kNative) seen.settings.securebits = kSecurebits;
  seen.hostname = plan.hostname;
  seen.working_directory = "/";
  if (engine != Engine::kNative) seen.environment_names = {"PATH", "HOSTNAME", "HOME"};
  for (const std::string& name : plan.image_environment) seen.environment_names.push_back(name);
}

void AddEngineMounts(const CellPlan& plan, Engine engine, InsideAttestation& seen) {
  std::string root_type = plan.root == RootKind::kHost ? "tmpfs" : "ext4";
  std::string root_options = engine == Engine::kNative ? "ro,nosuid,nodev" : "ro,relatime";
  AddMount(seen, "/", root_options, root_type, S_IFDIR | 0755, "/", plan.root_device,
           plan.root_inode);
  AddMount(seen, "/proc", "rw,nosuid,nodev,noexec,relatime", "proc", S_IFDIR | 0555);
  if (engine == Engine::kNative)
    seen.mountinfo.insert(seen.mountinfo.size() - 1, ",hidepid=invisible");
  if (plan.proc_is_subset) seen.mountinfo.insert(seen.mountinfo.size() - 1, ",subset=pid");
  AddMount(seen, "/proc/sys", "ro,nosuid,nodev,noexec,relatime", "proc", S_IFDIR | 0555, "/sys");
  AddMount(seen, "/proc/acpi", "ro,relatime", "tmpfs", S_IFDIR | 0755);
  AddMount(seen, "/proc/keys", "rw,nosuid", "tmpfs", S_IFCHR | 0666, "/null");
  std::string dev = engine == Engine::kNative ? "ro,nosuid,nodev,noexec" : "rw,nosuid";
  AddMount(seen, "/dev", dev, "tmpfs", S_IFDIR | 0755);
  AddMount(seen, "/dev/pts", "rw,nosuid,noexec,relatime", "devpts", S_IFDIR | 0755);
  AddMount(seen, "/dev/shm", "rw,nosuid,nodev,noexec,relatime", "tmpfs", S_IFDIR | 01777);
  if (plan.root == RootKind::kHost) {
    AddMount(seen, "/usr", "ro,nosuid,nodev", "ext4", S_IFDIR | 0755, "/usr");
  }
}

void AddPlannedMounts(const CellPlan& plan, Engine engine, InsideAttestation& seen) {
  for (const PlannedMount& mount : plan.mounts) {
    std::string options = mount.writable ? "rw" : "ro";
    options += engine == Engine::kNative ? ",nosuid,nodev" : ",relatime";
    if (!mount.follows_links) options += ",nosymfollow";
    uint32_t mode = mount.kind == EntryKind::kDirectory ? S_IFDIR | 0555U : S_IFREG | 0444U;
    AddMount(seen, mount.target, options, "ext4", mode, mount.source, mount.device, mount.inode);
  }
  for (const PlannedTmpfs& tmpfs : plan.tmpfs) {
    std::string options = tmpfs.read_only ? "ro,nosuid,nodev" : "rw,nosuid,nodev";
    if (!tmpfs.exec) options += ",noexec";
    AddMount(seen, tmpfs.target, options, "tmpfs", S_IFDIR | tmpfs.mode);
    seen.tmpfs.push_back({tmpfs.target, tmpfs.size_bytes});
  }
}

void AddChannels(const CellPlan& plan, Engine engine, InsideAttestation& seen) {
  seen.interfaces = {{"lo", IFF_UP | IFF_LOOPBACK}, {"sit0", IFF_NOARP}};
  seen.routes =
      "Iface\tDestination\tGateway\n"
      "00000000000000000000000000000001 80 00000000000000000000000000000000 00 "
      "00000000000000000000000000000000 00000000 00000002 00000000 80200001       lo\n";
  seen.tunnel_port = plan.tunnels ? 40002 : 0;
  seen.listener_port = ListenerCount(plan) > 0 ? 40001 : 0;
  seen.descriptors = {{0, "/dev/null", S_IFCHR | 0666, O_RDWR, TMPFS_MAGIC, makedev(1, 3)},
                      {1, "pipe:[7]", S_IFIFO | 0600, O_WRONLY, PIPEFS_MAGIC},
                      {2, "/home/alice/log", S_IFREG | 0644, O_WRONLY, EXT4_SUPER_MAGIC},
                      {3, "socket:[9]", S_IFSOCK | 0777, O_RDWR, SOCKFS_MAGIC}};
  for (const auto& [path, number] :
       std::initializer_list<std::pair<const char*, uint64_t>>{{"/dev/null", makedev(1, 3)},
                                                               {"/dev/zero", makedev(1, 5)},
                                                               {"/dev/full", makedev(1, 7)},
                                                               {"/dev/random", makedev(1, 8)},
                                                               {"/dev/urandom", makedev(1, 9)},
                                                               {"/dev/tty", makedev(5, 0)},
                                                               {"/dev/pts/ptmx", makedev(5, 2)}})
    seen.devices.push_back({path, S_IFCHR | 0666, number});
  if (engine != Engine::kNative) return;
  seen.descriptors.push_back(
      {4, "/run-x/memory.limit_in_bytes", S_IFREG | 0644, O_RDONLY, CGROUP_SUPER_MAGIC});
}

LimitsSeen MatchingLimits(const Limits& planned) {
  LimitsSeen limits;
  limits.memory_bytes = planned.memory_bytes;
  limits.memory_and_swap_bytes = planned.memory_bytes;
  limits.pids = planned.pids;
  limits.cpu_quota_us = planned.cpu_millis * 100;
  limits.cpu_period_us = 100'000;
  limits.io_weight = planned.io_weight;
  limits.cpu_set = planned.cpu_set;
  limits.oom_group = planned.oom_group;
  return limits;
}

// Where the line of `target` starts and ends.
std::pair<std::size_t, std::size_t> LineOf(const std::string& mountinfo,
                                           const std::string& target) {
  std::size_t start = 0;
  while (start < mountinfo.size()) {
    std::size_t end = mountinfo.find('\n', start);
    std::string line = mountinfo.substr(start, end - start);
    if (Words(line).at(4) == target) return {start, end};
    start = end + 1;
  }
  ADD_FAILURE() << "no mount at " << target;
  return {0, 0};
}

}  // namespace

Attestation MatchingAttestation(const CellPlan& plan, Engine engine) {
  Attestation seen;
  AddProcess(plan, engine, seen.inside);
  AddEngineMounts(plan, engine, seen.inside);
  AddPlannedMounts(plan, engine, seen.inside);
  AddChannels(plan, engine, seen.inside);
  seen.inside.limits = MatchingLimits(plan.limits);
  seen.outside.limits = MatchingLimits(plan.limits);
  for (std::size_t index = 0; index < kNamespaces.size(); ++index) {
    seen.inside.namespaces[index] = {4, 4026532000 + index};
    seen.outside.host_namespaces[index] = {4, 4026531000 + index};
  }
  seen.inside.keyring = {1001, 0, engine == Engine::kNative ? "_ses" : "_ses.0123"};
  seen.outside.host_keyring = {1000, 0, "_ses"};
  seen.outside.host_pid = 4711;
  seen.outside.host_uids.fill(100'000);
  seen.outside.host_gids.fill(100'000);
  return seen;
}

void AddMount(InsideAttestation& seen, const std::string& target, const std::string& options,
              const std::string& type, uint32_t mode, const std::string& root, uint64_t device,
              uint64_t inode) {
  std::size_t id = 100 + seen.mounts.size();
  seen.mountinfo +=
      Text(id, " 99 0:", id, " ", root, " ", target, " ", options, " - ", type, " ", type, " rw\n");
  seen.mounts.push_back({target, device, inode, mode, 0});
}

void EditMount(InsideAttestation& seen, const std::string& target, const std::string& from,
               const std::string& to) {
  auto [start, end] = LineOf(seen.mountinfo, target);
  std::size_t at = seen.mountinfo.find(from, start);
  if (at == std::string::npos || at >= end) {
    ADD_FAILURE() << "no '" << from << "' in the line of " << target;
    return;
  }
  seen.mountinfo.replace(at, from.size(), to);
}

MountSeen& SeenAt(InsideAttestation& seen, const std::string& target) {
  for (MountSeen& mount : seen.mounts) {
    if (mount.target == target) return mount;
  }
  ADD_FAILURE() << "no mount at " << target;
  return seen.mounts.front();
}

}  // namespace taskcell::cell
