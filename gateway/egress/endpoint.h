#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "gateway/egress/http_request.h"
#include "gateway/egress/route.h"

namespace taskcell::gateway {

// What one allowed method and path leads to.
struct Endpoint {
  bool is_local = false;  // answered by the broker itself with an empty 200
  std::string url;        // at the upstream, whole
};

// Finds where a request of a cell may go, by exact comparison of method, path and query as sent.
// The list is what each program was seen to need (claude 2.1.197, codex 0.171.0):
//   messages   HEAD / (answered here), POST /v1/messages, POST /v1/messages/count_tokens, each with
//              the query "beta=true" or none
//   responses  POST /v1/responses
//   chat       POST /v1/chat/completions, POST <prefix of the upstream>/chat/completions
// Also refused here: a Host that is not the cell's own listener, a body that is not JSON by its
// content type or is encoded, an anthropic-beta name that is not on the list.
std::variant<Endpoint, Refusal> FindEndpoint(const Route& route, uint16_t port,
                                             const RequestHead& head);

// The headers of the request to the provider, the credential left out: a fixed content type and
// accept, and of the cell's own only what is listed by name. Everything else stays behind, every
// credential header with it.
std::vector<HeaderField> UpstreamHeaders(const Route& route, const RequestHead& head);

}  // namespace taskcell::gateway
