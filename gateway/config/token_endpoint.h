#pragma once

#include <map>
#include <string>

#include "gateway/config/value.h"
#include "launcher/base/result.h"

namespace taskcell::gateway {

// Where the logins of one provider are renewed (RFC 6749 section 6), and as which public client.
struct TokenEndpoint {
  std::string url;
  std::string client_id;
  bool takes_json = false;  // else a form, as the RFC has it
};

// By provider id: those that a provider publishes, and those of [taskcell.oauth.<provider>], which
// win. kConfig for an unknown key or a wrong type or value. Pure.
using TokenEndpoints = std::map<std::string, TokenEndpoint, std::less<>>;
Result<TokenEndpoints> ReadTokenEndpoints(const ConfigValue& config);

}  // namespace taskcell::gateway
