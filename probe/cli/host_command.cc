#include "probe/cli/host_command.h"

#include "launcher/base/text.h"
#include "launcher/sys/file.h"
#include "probe/cli/output.h"
#include "probe/cli/source.h"
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

Result<FactsRequest> RequestOf(const HostOptions& options, const Source& source) {
  FactsRequest request = source.collected_for;
  request.subject = TRY(SubjectOf(options.user, options.uid, source, *source.tree));
  if (!options.user.empty() || options.uid) request.user = options.user;
  request.subuid = options.subuid;
  request.subgid = options.subgid;
  return request;
}

// Trials tell of whoever runs them, not of another user.
std::optional<LiveFacts> LiveFactsOf(const Source& source, const HostFacts& facts) {
  if (facts.cgroups.around.uid != source.caller) return std::nullopt;
  return source.is_this_host ? LookLive(*source.tree, facts) : source.live;
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
  Result<Source> source = OpenSource(options.root, options.from);
  if (!source.ok()) return Complain(source.error());
  Result<FactsRequest> request = RequestOf(options, source.value());
  if (!request.ok()) return Complain(request.error());
  HostFacts facts = ReadHostFacts(*source->tree, request.value());
  Status held = CheckHeld(source.value(), !options.user.empty() || options.uid);
  if (!held.ok()) return Complain(held.error());
  facts.live = LiveFactsOf(source.value(), facts);
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
