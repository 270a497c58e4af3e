#pragma once

#include <string>
#include <string_view>

#include "gateway/egress/route.h"

namespace taskcell::gateway {

// Why the broker does not relay a request, said to the program in the cell: a status, a stable code
// and a sentence, so that it stops retrying.
struct Refusal {
  int status = 403;
  std::string_view code;  // a literal: "egress_path", "egress_server_tool", ...
  std::string message;
};

// The refusal as a JSON body in the shape of the API's own errors.
std::string RefusalBody(WireApi api, const Refusal& refusal);

// The standard phrase of a status line ("Bad Request"), or "Status".
std::string_view StatusPhrase(int status);

}  // namespace taskcell::gateway
