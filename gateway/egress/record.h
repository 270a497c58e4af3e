#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace taskcell::gateway {

// One request a cell made, as the broker saw it.
struct EgressRequest {
  std::string method;
  std::string path;  // as sent, printable, at most 256 bytes
  std::string host;  // where a refused one would have gone, printable, at most 256 bytes
  int status = 0;    // what the cell was answered; 0: not yet, or the cell went away before
  int upstream_status = 0;
  bool relayed = false;  // a connection to the provider stood, and it began to leave
  std::string code;      // empty: relayed, or about to be; else why not, or what went wrong
                         // ("egress_server_tool", ...)
  std::string model;     // as asked for, printable, at most 128 bytes
  uint64_t tools_offered = 0;
  std::vector<std::string> tools_called;  // by the model, in its answer; printable
  uint64_t input_tokens = 0;              // with the next two
  uint64_t cached_tokens = 0;             // read from the provider's cache
  uint64_t cache_write_tokens = 0;        // written to it
  uint64_t output_tokens = 0;
  std::string finish;      // the provider's own word: "end_turn", "tool_calls", "completed", ...
  std::string error_type;  // of the provider's error body: "rate_limit_error", ...
  uint64_t bytes_up = 0;
  uint64_t bytes_down = 0;
  int64_t started_ms = 0;   // after the cell was attached
  int64_t duration_ms = 0;  // to the last byte
};

// Whether it asked to count a prompt's tokens: no model answers that, and nobody pays for it.
bool IsTokenCount(const EgressRequest& request);

// One tunnel a cell asked for, to a host of its list or to another place.
struct EgressTunnel {
  std::string host;   // as asked for, printable, at most 256 bytes
  uint16_t port = 0;  // 0: `host` is the whole of what could not be understood
  std::string code;   // empty: opened, or about to be; else why not, or what ended it
  uint64_t bytes_up = 0;
  uint64_t bytes_down = 0;
  int64_t started_ms = 0;  // after the cell was attached
  int64_t duration_ms = 0;
};

// What was refused of one kind, or failed: so often for one place and one reason.
struct EgressRefusal {
  std::string host;  // asked for, with its port in a tunnel; printable; "*": any of further ones
  std::string code;
  uint64_t count = 0;
};

// Sums over all requests of a cell; cheap to copy while it runs.
struct EgressTotals {
  uint64_t requests = 0;
  uint64_t refused = 0;      // by the broker's rules
  uint64_t model_calls = 0;  // relayed to the provider and answered 200; no count of tokens
  uint64_t steps = 0;        // answers in which the model called a tool
  uint64_t tool_calls = 0;
  uint64_t input_tokens = 0;
  uint64_t output_tokens = 0;
  uint64_t bytes_up = 0;
  uint64_t bytes_down = 0;
  uint64_t auth_failures = 0;  // 401 and 403
  uint64_t billing = 0;        // 402, or an error that names billing or quota
  uint64_t rate_limited = 0;   // 429
  uint64_t model_not_found = 0;
  uint64_t provider_errors = 0;      // 5xx
  uint64_t upstream_failures = 0;    // no answer, or one that broke off
  uint64_t connections_refused = 0;  // over the limit
  uint64_t tunnels = 0;              // asked for
  uint64_t tunnels_refused = 0;      // by the broker's rules
  int64_t retry_after_seconds = 0;   // of the last 429 that named it
  int last_upstream_status = 0;
  bool budget_spent = false;       // requests were refused since whoever pays has nothing left
  bool credential_echoed = false;  // the provider sent the credential back: the task must fail
};

// How many distinct names of tools a record keeps.
inline constexpr std::size_t kEgressNamesKept = 256;

// The evidence a task is classified by. What a program in the cell prints can be forged by a tool;
// this can not.
struct EgressRecord {
  EgressTotals totals;
  std::vector<EgressRequest> requests;    // in the order they were decided
  std::vector<std::string> tools_called;  // distinct names, first seen first
  std::vector<std::string> tools_offered;
  std::vector<EgressTunnel> tunnels;    // in the order they were decided; at most kEgressTunnels
  std::vector<EgressRefusal> refusals;  // first seen first; every one is counted in one of them
};

// Counts a refusal. So many hosts stand one by one for each reason, of which there are few; further
// ones share one place, so that a flood of one kind never hides another.
inline constexpr std::size_t kEgressRefusedHosts = 16;
void CountRefusal(std::string_view host, std::string_view code, EgressRecord& record);

// How many requests stand one by one in a receipt; the sums are over all.
inline constexpr std::size_t kEgressRequestsShown = 500;

// The record as one JSON object, for a receipt: the first kEgressRequestsShown requests, and how
// many more there were ("requests_omitted").
std::string RecordJson(const EgressRecord& record);

}  // namespace taskcell::gateway
