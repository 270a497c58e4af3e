#include "probe/cli/host_command.h"

#include <unistd.h>

#include "launcher/base/text.h"
#include "launcher/sys/file.h"
#include "probe/cli/output.h"
#include "probe/cli/subject.h"
#include "probe/facts/host_facts.h"
#include "probe/facts/look_live.h"
#include "probe/print/print.h"
#include "probe/rules/report.h"
#include "probe/rules/topics.h"

namespace taskcell::probe {
namespace {

int StatusOf(Verdict verdict) {
  switch (verdict) {
    case Verdict::kReady:
    case Verdict::kNote:
      return kExitReady;
    case Verdict::kLimited:
    case Verdict::kNot:
      return kExitNotReady;
    case Verdict::kUnknown:
      return kExitUnknown;
  }
  return kExitUnknown;
}

Result<FactsRequest> RequestOf(const HostOptions& options, sys::FileTree& tree) {
  FactsRequest request;
  request.subject = TRY(SubjectOf(options.user, options.uid, tree));
  request.user = options.user;
  request.subuid = options.subuid;
  request.subgid = options.subgid;
  return request;
}

int Explain(const HostOptions& options) {
  const Topic* topic = FindTopic(options.explain);
  if (topic != nullptr) return Print(ExplanationOf(*topic)) ? kExitReady : kExitUnknown;
  std::string known;
  for (const Topic& each : AllTopics()) known += Text("\n  ", each.id);
  Complain(Error(Kind::kUsage, Text("--explain: there is no row '", Printable(options.explain),
                                    "'; the rows are:", known)));
  return kExitUsage;
}

}  // namespace

int HostCommand(const HostOptions& options) {
  if (!options.explain.empty()) return Explain(options);
  Result<sys::RootedTree> tree = OpenTree(options.root);
  if (!tree.ok()) return Complain(tree.error());
  Result<FactsRequest> request = RequestOf(options, tree.value());
  if (!request.ok()) return Complain(request.error());
  HostFacts facts = ReadHostFacts(tree.value(), request.value());
  // Trials tell of the caller, not of another user.
  bool own = facts.cgroups.around.uid == ::geteuid();
  if (tree->is_this_host() && own) facts.live = LookLive(tree.value(), facts);
  Report report = Judge(facts);
  std::string text;
  if (options.json)
    text = JsonOf(report);
  else if (options.quiet)
    text = report.Headline() + "\n";
  else
    text = TableOf(report, StyleOfOutput());
  return Print(text) ? StatusOf(report.verdict) : kExitUnknown;
}

}  // namespace taskcell::probe
