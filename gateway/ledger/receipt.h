#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "gateway/ledger/receipt_head.h"
#include "launcher/base/result.h"
#include "launcher/cell/attestation.h"
#include "launcher/cell/cell_plan.h"
#include "launcher/cell/compare.h"
#include "launcher/mounts/snapshot.h"

namespace taskcell::gateway {

// A point in which what a program's own output told of its run is not what the broker recorded.
struct EvidenceDifference {
  std::string_view what;  // "steps", "tools", "finish", "reply" or "tokens"
  std::string told;       // by the output: fixed words, numbers and a tool's sanitised name
  std::string recorded;   // by the broker
};

// What one run was and did, for the operator: written when a run began (a refusal before that
// leaves nothing). It holds no prompt, no reply, no secret and nothing the AI printed.
struct Receipt : ReceiptHead {
  uint64_t setup_ms = 0;  // from the admission to the verified cell
  uint64_t wall_ms = 0;   // the whole task

  cell::CellPlan plan;
  bool attested = false;  // `seen` is filled in
  cell::Attestation seen;
  std::vector<cell::Mismatch> mismatches;
  bool verified = false;  // attested and without a mismatch: the job was handed over after that
  mounts::Snapshot snapshot;

  std::string upstream;                   // where the broker's route led
  bool upstream_overridden = false;       // by the gateway's environment
  std::vector<std::string> tunnel_hosts;  // "host:port" a tunnel might lead to
  bool credential_inside = false;         // the program signs in by itself: there was no route
  std::string egress_json;                // RecordJson; empty: no broker
  std::string usage_json;                 // tokens and cost; empty: no job was handed over

  std::vector<EvidenceDifference> differences;
  std::string export_json;  // what became of the files the job left; empty: nobody asked
  std::string events_json;  // what the cgroup counted; empty: unknown
  std::string job_end;      // how the job ended, for a person
  std::vector<std::string> warnings;
};

// The receipt as one JSON object. Limits stand side by side: what was asked, what the inside saw,
// what the outside saw.
std::string ReceiptJson(const Receipt& receipt);

// Writes `json` to <sandbox>/receipts/<run_id>.json (0600, never over an existing one), making the
// directory (0700).
Status WriteReceipt(int sandbox_fd, std::string_view run_id, std::string_view json);

}  // namespace taskcell::gateway
