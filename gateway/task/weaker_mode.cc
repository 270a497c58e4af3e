#include "gateway/task/weaker_mode.h"

#include <string>

#include "gateway/ledger/audit.h"

namespace taskcell::gateway {

Status NoteOpenEgress(const Home& home, std::string_view family, Receipt& receipt) {
  if (receipt.plan.network != cell::NetworkMode::kOpen) return Ok();
  receipt.warnings.emplace_back(
      "the cell's network is open: its programs reach whatever the engine's bridge reaches, "
      "services of this host and of its network too ([taskcell] egress = \"open\")");
  Status written =
      AppendAudit(home.fd.get(), {"task_sandbox_egress_open",
                                  receipt.agent,
                                  "warning",
                                  {{"run_id", receipt.run_id}, {"runtime", std::string(family)}}});
  if (written.ok()) return written;
  return std::move(written)
      .error()
      .With("[taskcell] egress = \"open\" is audited, and that failed")
      .Coded("workspace_failed");
}

Status NoteMissingCpu(const Home& home, std::string_view event,
                      const std::pair<std::string, std::string>& of, Receipt& receipt) {
  if (!receipt.verified || receipt.seen.outside.limits.cpu_quota_us.has_value()) return Ok();
  receipt.warnings.emplace_back(
      "the cell had no processor limit: the cpu controller is not delegated, and allow_missing "
      "names it");
  return AppendAudit(
      home.fd.get(),
      {event, receipt.agent, "warning", {{"missing", std::string("cpu")}, {of.first, of.second}}});
}

}  // namespace taskcell::gateway
