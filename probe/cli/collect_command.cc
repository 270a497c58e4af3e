#include "probe/cli/collect_command.h"

#include <cerrno>

#include "launcher/base/text.h"
#include "launcher/sys/new_file.h"
#include "probe/cli/host_command.h"
#include "probe/cli/output.h"
#include "probe/facts/look_live.h"
#include "probe/facts/reduce.h"
#include "probe/facts/trials.h"

namespace taskcell::probe {
namespace {

// All that any command asks about the subject: the host's facts, the place of the user's service
// manager, and the place that --pid or --path mean.
Result<Bundle> Collect(const CollectOptions& options) {
  const CgroupOptions& about = options.about;
  Source source = TRY(OpenSource(about.root, ""));
  RecordingTree tree(*source.tree);
  Bundle bundle;
  bundle.program = TASKCELL_VERSION;
  bundle.collector = source.caller;
  bundle.request.user = about.user;
  bundle.request.subject = TRY(SubjectOf(about.user, about.uid, source, tree));
  HostFacts facts = ReadHostFacts(tree, bundle.request);
  cgroup::Subject at_manager = bundle.request.subject;
  at_manager.uid = facts.cgroups.around.uid;
  at_manager.user_manager = true;
  (void)cgroup::ReadSituation(tree, at_manager);  // ignoring: the tree records it
  // ignoring: as above
  (void)cgroup::ReadSituation(tree, TRY(PlaceAskedFor(about, source, tree)));
  bool own = source.is_this_host && facts.cgroups.around.uid == source.caller;
  if (own) bundle.live = Reduced(LookLive(*source.tree, facts));
  bundle.record = tree.record();
  return bundle;
}

std::string BytesColumn(std::string_view bytes) {
  constexpr std::size_t kWidth = 8;
  return Text(std::string(kWidth - std::min(kWidth, bytes.size()), ' '), bytes, "  ");
}

Status Write(const CollectOptions& options, const Bundle& bundle) {
  std::string archive = TRY(WriteBundle(bundle));
  Status written = sys::WriteNewFile(options.output, archive);
  if (!written.ok() && written.error().err == EEXIST)
    return Error(Kind::kUsage,
                 Text(Printable(options.output), " exists already and is left as it is"));
  TRY(std::move(written));
  return Ok();
}

}  // namespace

std::string ContentsOf(const Bundle& bundle) {
  std::string held;
  std::string unreadable;
  std::size_t looks = 0;
  std::size_t absent = 0;
  for (const auto& [key, answer] : bundle.record) {
    int err = FailureIn(key, answer);
    if (err == ENOENT || err == ENODATA) {
      ++absent;
    } else if (err != 0) {
      unreadable += Text("  ", ErrorName(err), "  ", Printable(key.path), '\n');
    } else if (key.question == Question::kLook) {
      ++looks;
    } else {
      std::string_view text = key.question == Question::kRead ? answer.seen.text : answer.text;
      held += Text(BytesColumn(std::to_string(text.size())), Printable(key.path), '\n');
    }
  }
  if (bundle.live)
    held += Text(BytesColumn(std::to_string(ToJson(*bundle.live).size() + 1)),
                 "taskcell/trials.json (what came of trying features, and the room on disk)\n");
  std::string text = Text(BytesColumn("BYTES"), "HELD (as far as rules look at it)\n", held);
  text += Text("owner and mode alone of ", looks, " files; not there: ", absent, " files\n");
  if (!unreadable.empty()) text += "not readable, and recorded as that:\n" + unreadable;
  return text;
}

int CollectCommand(const CollectOptions& options) {
  Result<Bundle> bundle = Collect(options);
  if (!bundle.ok()) return Complain(bundle.error());
  Status written = Write(options, bundle.value());
  if (!written.ok()) return Complain(written.error());
  bool printed = Print(Text(ContentsOf(bundle.value()), "\nwritten to ", Printable(options.output),
                            ": names, ids, numbers and paths only (tar -tvf shows all of it)\n"
                            "its verdict, on any machine: taskcell-probe --from ",
                            ShellWord(options.output), '\n'));
  return printed ? kExitReady : kExitUnknown;
}

}  // namespace taskcell::probe
