#include "probe/cli/host_command.h"

#include <unistd.h>

#include "launcher/base/accounts.h"
#include "launcher/base/text.h"
#include "launcher/sys/file.h"
#include "probe/cli/output.h"
#include "probe/facts/host_facts.h"
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
  request.subject.uid = options.uid;
  request.user = options.user;
  request.subuid = options.subuid;
  request.subgid = options.subgid;
  if (options.user.empty() || options.uid) return request;
  constexpr std::size_t kMaxPasswdBytes = 4U << 20U;
  request.subject.uid = UserId(tree.Read("/etc/passwd", kMaxPasswdBytes).text, options.user);
  if (request.subject.uid) return request;
  return Error(Kind::kUsage, Text("--user: there is no user '", Printable(options.user), "'"));
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
  Result<sys::RootedTree> tree = options.root.empty()
                                     ? sys::RootedTree::OpenHost()
                                     : sys::RootedTree::OpenDirectory(options.root);
  if (!tree.ok()) return Complain(tree.error());
  Result<FactsRequest> request = RequestOf(options, tree.value());
  if (!request.ok()) return Complain(request.error());
  Report report = Judge(ReadHostFacts(tree.value(), request.value()));
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
