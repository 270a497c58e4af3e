#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "gateway/ledger/receipt_head.h"

namespace taskcell::gateway {

// What one run on the host itself was and did: with no cell there is nothing that was attested, and
// with no broker the program's own word is all that is known of what it used. It holds no prompt,
// no reply, no secret and nothing the AI printed.
struct HostReceipt : ReceiptHead {
  HostReceipt() {
    engine = "host";
    uid_separation = "none";
  }

  uint64_t wall_ms = 0;  // the whole task

  std::string kind;       // what started the task
  bool bypassed = false;  // the sandbox was to run it and could not
  uint64_t max_turns = 0;
  uint64_t timeout_ms = 0;

  bool started_program = false;  // else the rest of what was used is nothing
  uint64_t steps = 0;
  bool used_tool = false;
  bool tokens_told = false;
  uint64_t input_tokens = 0;  // with those of the provider's cache
  uint64_t cached_tokens = 0;
  uint64_t output_tokens = 0;

  std::string job_end;  // how the program ended, for a person
  std::vector<std::string> warnings;
};

// The receipt as one JSON object; the members that a cell's receipt has too are named as there.
std::string ReceiptJson(const HostReceipt& receipt);

}  // namespace taskcell::gateway
