#include "probe/rules/topics.h"

#include "launcher/base/text.h"

namespace taskcell::probe {
namespace {

constexpr std::string_view kDelegation =
    "cgroups(7) \"Delegation\", kernel Documentation/admin-guide/cgroup-v2.rst";

constexpr Topic kTopics[] = {
    {"limits.memory", "Memory limit",
     "Without it one cell can use up the host's memory, and engines often drop the limit silently.",
     "Every cgroup from the mounted root down to the own one is looked at: the controller must be "
     "offered "
     "at the root, handed on (cgroup.subtree_control) at each level, and the last cgroup with its "
     "cgroup.procs and cgroup.subtree_control must be the user's own, of type domain, and "
     "reachable. The "
     "first level from the root that breaks this is named. On v1 the user needs a directory of its "
     "own on "
     "the hierarchy that holds the controller.",
     kDelegation},
    {"limits.pids", "Limit on processes",
     "Without it one fork bomb takes the host's process ids. RLIMIT_NPROC counts per user, not per "
     "cell.",
     "As limits.memory, for the pids controller.", kDelegation},
    {"limits.cpu", "Limit on processor time",
     "Without it one cell takes all cores. Distributions often do not delegate this controller to "
     "users.",
     "As limits.memory, for the cpu controller; the kernel must also have cpu.max "
     "(CONFIG_CFS_BANDWIDTH).",
     "cgroups(7), systemd.resource-control(5) Delegate="},
    {"cgroup.mode", "Which hierarchies there are",
     "Rules of delegation differ: service managers delegate the unified hierarchy (v2) only.",
     "From /proc/self/cgroup and /proc/self/mountinfo: v2, v1, hybrid (v1 controllers beside a "
     "unified "
     "hierarchy) or none. Paths are resolved through the mount's root, never by a fixed name.",
     "cgroups(7)"},
    {"cgroup.own", "The own cgroup",
     "Cells are made below it, so it must be the user's own with its control files.",
     "Its path, owner, type and controllers.", kDelegation},
    {"cgroup.mount-options", "Options of the cgroup mount",
     "nsdelegate keeps root in a container with a cgroup namespace from changing the limits of "
     "that "
     "container itself (measured: without it memory.max can be raised from inside).",
     "From /proc/self/mountinfo. A note where nsdelegate is missing.", "cgroups(7) \"nsdelegate\""},
    {"cgroup.internal-processes", "Processes in the delegated cgroup",
     "A cgroup with processes cannot hand memory on (EBUSY), and handing on pids or cpu turns it "
     "into a "
     "threaded domain, which is worse.",
     "cgroup.procs of the own cgroup. taskcell-launch moves them into 'supervisor' below it first; "
     "for other "
     "engines use DelegateSubgroup= or start them in a child.",
     "cgroups(7) \"no internal processes\""},
    {"cgroup.outer-limits", "Limits already in force",
     "The smallest limit of all levels above counts: a cell with 4 GiB in a container of 1 GiB has "
     "1 GiB.",
     "The limit files of every visible level; a note where one is below a cell's default.",
     "kernel Documentation/admin-guide/cgroup-v2.rst"},
    {"cgroup.pids-room", "Room for processes",
     "At a full cgroup every fork fails, also that of a cell that has a limit of its own.",
     "pids.current and pids.max of every visible level, the own cgroup and the prepared one among "
     "them.",
     "cgroups(7) \"pids\""},
    {"cgroup.oom-group", "Killed as a whole",
     "Where memory runs out outside of a cell the kernel can kill the supervisor together with all "
     "its cells.",
     "memory.oom.group of the own cgroup and those above it.",
     "kernel Documentation/admin-guide/cgroup-v2.rst"},
    {"cgroup.leftovers", "Cgroups of earlier cells",
     "A supervisor that was killed cannot remove what it made. Nothing depends on it.",
     "Directories run-ID without processes where cells are made; one that is being made just now "
     "looks the same.",
     "taskcell-launch(1)"},
    {"cgroup.v2-beside-v1", "Unified controllers beside v1",
     "The runtime crun refuses every container on a hybrid host where a controller is active on "
     "the "
     "unified hierarchy; that is not why limits are missing.",
     "cgroup.controllers of the unified hierarchy's root on a hybrid host.", "crun(1)"},
    {"userns", "User namespaces",
     "A cell is built in a user namespace of its own; without it nothing can be started "
     "unprivileged.",
     "user.max_user_namespaces (0: switched off; the error then says \"no space left on device\"), "
     "kernel.unprivileged_userns_clone, AppArmor's restriction; on the running host also by "
     "trying, and how many more can be made in each other.",
     "user_namespaces(7)"},
    {"subids", "Subordinate ids",
     "With a range of its own a cell's files and processes belong to an id that is nobody else's. "
     "Without "
     "it cells map the caller's own id alone, which holds by other means and is named in the "
     "receipt.",
     "/etc/subuid and /etc/subgid: missing, malformed (a carriage return is named), past 2^32, "
     "covering ids "
     "of real accounts, overlapping another user's, or shorter than 65536.",
     "subuid(5), newuidmap(1)"},
    {"newuidmap", "The programs that write id maps",
     "Only they may map ids besides the caller's own.",
     "newuidmap and newgidmap need the set-user-id bit or capabilities, and a process without "
     "no_new_privs.",
     "newuidmap(1)"},
    {"setgroups", "Giving up groups",
     "A process that keeps the caller's supplementary groups reads what those groups may read.",
     "/proc/self/setgroups and the id map of the own user namespace. A note where it is denied.",
     "user_namespaces(7)"},
    {"kernel.release", "Kernel and distribution",
     "Only for reading: nothing is concluded from a version.",
     "/proc/sys/kernel/osrelease and os-release.", "os-release(5)"},
    {"kernel.openat2", "openat2",
     "Every path that is not trusted is resolved with it; a walk serves where it is missing. A "
     "unit "
     "with RestrictSUIDSGID=yes hides it (ENOSYS).",
     "By calling it.", "openat2(2), systemd.exec(5)"},
    {"kernel.clone3", "clone3",
     "New processes with a pidfd and a cgroup come from it; clone serves where it is missing.",
     "By calling it without arguments, which makes nothing.", "clone3(2)"},
    {"kernel.clone-into-cgroup", "Starting a process in a cgroup",
     "A process born in its cgroup is limited from its first instruction.",
     "By a child that ends at once, in the own cgroup of the unified hierarchy.",
     "clone3(2) CLONE_INTO_CGROUP"},
    {"kernel.pidfd", "Process descriptors",
     "A process id can be given to another process, a descriptor cannot; the id serves where "
     "it is missing.",
     "By opening one for the own process.", "pidfd_open(2)"},
    {"kernel.close-range", "close_range", "Descriptors of the caller must not leak into a cell.",
     "By closing descriptors that are not open.", "close_range(2)"},
    {"kernel.landlock", "Landlock",
     "A second wall around the files a job may use. Cells hold without it.",
     "By asking for its ABI.", "landlock(7)"},
    {"kernel.seccomp-filter", "System call filter", "Every job runs under one.",
     "By installing one that allows everything on a child.", "seccomp(2)"},
    {"kernel.seccomp-notify", "Filter with a listener",
     "Lets an observer see refused calls; nothing depends on it.", "By installing one on a child.",
     "seccomp_unotify(2)"},
    {"kernel.mount-api", "File systems by descriptor",
     "The root of a cell is built from detached mounts, so no path is taken twice; mount(2) "
     "serves where they are missing.",
     "By making a tmpfs in a user namespace, attached nowhere.", "fsopen(2)"},
    {"kernel.tmpfs", "tmpfs in a user namespace",
     "/tmp and /workspace of a cell are such file systems with a fixed size.",
     "By making one with a size, attached nowhere.", "tmpfs(5)"},
    {"kernel.mount-setattr", "Attributes of mounts",
     "Read-only and no-symlink mounts are set with it, recursively and without a gap; mount(2) "
     "serves where it is missing.",
     "By setting them on that mount.", "mount_setattr(2)"},
    {"kernel.overlay", "overlay in a user namespace",
     "Engines store images with it when they run rootless; native cells do not need it.",
     "By making one from two directories, attached nowhere; not tried where the module is not "
     "loaded.",
     "kernel Documentation/filesystems/overlayfs.rst"},
    {"kernel.proc", "A new /proc",
     "A cell sees only its own processes. The kernel refuses where something is mounted below "
     "/proc (\"Mount too revealing\").",
     "By making one in a new pid namespace, attached nowhere.", "proc(5), mount_namespaces(7)"},
    {"kernel.proc-subset", "/proc with processes only",
     "Hides the rest of /proc. Cells hold without it.", "As kernel.proc, with subset=pid.",
     "proc(5)"},
    {"kernel.idmapped-mounts", "Mounts with mapped ids",
     "Let one copy of files serve cells of different uids; depends on the file system. Nothing "
     "depends on it.",
     "As root, on a detached copy of the home directory's mount, which decides, and of one for "
     "each "
     "other type of file system among /, /tmp and /var.",
     "mount_setattr(2) MOUNT_ATTR_IDMAP"},
    {"systemd.manager", "Service manager", "It decides what is delegated.",
     "/run/systemd/system or the cgroups' names, and the version from its library's file name.",
     "sd_booted(3)"},
    {"systemd.user-manager", "The user's own manager",
     "It holds what is delegated to the user: systemd-run --user needs it.",
     "Whether user@UID.service has a cgroup.", "user@.service(5)"},
    {"systemd.linger", "Lingering", "Without it everything of the user ends with the last logout.",
     "/var/lib/systemd/linger.", "loginctl(1)"},
    {"systemd.runtime-directory", "Runtime directory and bus",
     "systemctl --user and rootless engines talk over /run/user/UID/bus, found through "
     "XDG_RUNTIME_DIR; su and sudo leave it unset.",
     "Whether they exist, and what the variable says.", "pam_systemd(8)"},
    {"systemd.delegate", "What is configured against what is live",
     "A drop-in with Delegate= takes effect after daemon-reload and a new start of the manager.",
     "The unit's files and drop-ins in their order of rank, and cgroup.controllers of the running "
     "manager.",
     "systemd.resource-control(5)"},
    {"systemd.hardening", "Settings of the own unit",
     "A hardened unit takes away what cells are built with, and the errors name something else.",
     "RestrictNamespaces, RestrictSUIDSGID, ProtectControlGroups, NoNewPrivileges, PrivateUsers "
     "and ProtectKernelTunables in the files of the unit this process is in; where a trial or a "
     "mount shows that one is not in force, the row is a note.",
     "systemd.exec(5)"},
    {"security.modules", "Security modules",
     "They refuse beyond owners and modes, and say so in the kernel's log only.",
     "/sys/kernel/security/lsm and SELinux's enforce.", "kernel Documentation/admin-guide/LSM"},
    {"security.own-filter", "Filter on this process",
     "A refusal may be the doing of whoever started this process.",
     "Seccomp and NoNewPrivs of /proc/self/status.", "proc(5)"},
    {"security.links", "Protected links and files",
     "Guards against link tricks of other users in /tmp.",
     "The sysctls fs.protected_symlinks, _hardlinks, _fifos and _regular.",
     "kernel Documentation/admin-guide/sysctl/fs.rst"},
    {"security.ptrace", "Tracing",
     "Where it is free, any program of a user can read the memory of all others of that user.",
     "kernel.yama.ptrace_scope; where Yama is not active there is none.",
     "kernel Documentation/admin-guide/LSM/Yama.rst"},
    {"security.bpf", "BPF for ordinary users", "A large part of the kernel that cells do not need.",
     "kernel.unprivileged_bpf_disabled.", "bpf(2)"},
    {"security.core-pattern", "Core dumps", "A core dump holds what a process had in memory.",
     "kernel.core_pattern.", "core(5)"},
    {"engine.sockets", "Sockets of engines", "Who may use a rootful engine's socket is root.",
     "The usual places: owner, mode, whether something listens, and whether this user may use it. "
     "None is connected to, since that can start a service.",
     "docker(1), podman-system-service(1)"},
    {"engine.choice", "The engine that would be used",
     "Settings that differ lead to another engine than the one looked at: other images, other "
     "rules.",
     "CONTAINER_HOST, DOCKER_HOST, DOCKER_CONTEXT or else the current context, the user's Podman "
     "socket if there is one, in this order, else the default; and whether the socket can be used.",
     "taskcell-config(5)"},
    {"engine.tcp", "Engines on TCP", "An engine's interface is root on its host.",
     "Listeners on ports 2375 and 2376 in /proc/net/tcp and tcp6.", "dockerd(8)"},
    {"engine.docker-group", "Members of the group docker",
     "They can start a privileged container, hence are root.", "/etc/group.", "dockerd(8)"},
    {"host.tasks", "Threads of the user",
     "RLIMIT_NPROC counts all threads of a uid on the host: at it a fork in a cell fails though "
     "the cell's own limit is far away.",
     "The limit, and the threads that are visible.", "getrlimit(2)"},
    {"host.clock", "Clock", "A clock in the past makes every certificate invalid.", "The time.",
     "clock_gettime(2)"},
    {"host.disk", "Room in the home directory",
     "Snapshots, receipts and an engine's images are kept there.",
     "The free space of its file system.", "statfs(2)"},
    {"host.entropy", "Random numbers", "A start waits while the kernel has none.",
     "kernel.random.entropy_avail.", "random(4)"},
    {"host.swap", "Swap", "Memory that is swapped out is not counted as memory: a cell gets none.",
     "/proc/swaps.", "swapon(8)"},
};

}  // namespace

std::span<const Topic> AllTopics() { return kTopics; }

const Topic* FindTopic(std::string_view id) {
  for (const Topic& topic : kTopics) {
    if (topic.id == id) return &topic;
  }
  return nullptr;
}

std::string ExplanationOf(const Topic& topic) {
  return Text(topic.id, ": ", topic.title, "\n\nWhy it matters: ", topic.why,
              "\n\nHow it is found out: ", topic.how, "\n\nRead more: ", topic.reference, "\n");
}

}  // namespace taskcell::probe
