#include "probe/cli/cgroup_command.h"

#include "launcher/base/text.h"
#include "probe/cli/host_command.h"
#include "probe/cli/output.h"
#include "probe/print/cgroup_tree.h"

namespace taskcell::probe {
namespace {

int StatusOf(const CgroupView& view) {
  int status = kExitReady;
  for (const cgroup::Diagnosis& limit : view.limits) {
    if (limit.state == cgroup::LimitState::kNo) return kExitNotReady;
    if (limit.state == cgroup::LimitState::kUnknown) status = kExitUnknown;
  }
  return status;
}

}  // namespace

Result<cgroup::Subject> PlaceAskedFor(const CgroupOptions& options, const Source& source,
                                      sys::FileTree& tree) {
  cgroup::Subject subject = TRY(SubjectOf(options.user, options.uid, source, tree));
  if (!options.user.empty()) subject.user_manager = true;
  if (options.pid) {
    subject.process = std::to_string(*options.pid);
    // Its own owner is who would limit something there.
    if (tree.Look("/proc/" + subject.process).absent())
      return Error(Kind::kUsage, Text("--pid: there is no process ", *options.pid));
    subject.user_manager = false;
  }
  if (!options.path.empty()) {
    if (options.path[0] != '/')
      return Error(Kind::kUsage,
                   "--path: a cgroup's path begins with '/', as in /proc/self/cgroup");
    subject.cgroup_path = options.path;
    subject.user_manager = false;
  }
  return subject;
}

int CgroupCommand(const CgroupOptions& options) {
  Result<Source> source = OpenSource(options.root, options.from);
  if (!source.ok()) return Complain(source.error());
  sys::FileTree& tree = *source->tree;
  Result<cgroup::Subject> subject = PlaceAskedFor(options, source.value(), tree);
  if (!subject.ok()) return Complain(subject.error());
  CgroupView view = ViewOf(cgroup::ReadSituation(tree, subject.value()));
  bool asked = !options.user.empty() || options.uid || options.pid || !options.path.empty();
  Status held = CheckHeld(source.value(), asked);
  if (!held.ok()) return Complain(held.error());
  bool printed = Print(options.json ? CgroupJson(view) : CgroupTree(view, StyleOfOutput()));
  return printed ? StatusOf(view) : kExitUnknown;
}

}  // namespace taskcell::probe
