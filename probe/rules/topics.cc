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
     "trying.",
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
