#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <string_view>

#include "gateway/config/token_endpoint.h"
#include "gateway/config/uplink.h"
#include "launcher/base/result.h"
#include "launcher/sys/secret_text.h"

namespace taskcell::gateway {

inline constexpr std::chrono::seconds kTokenAnswerWait{30};              // for a whole answer
inline constexpr std::size_t kTokenAnswerBytes = std::size_t{64} << 10;  // of its body

// Asks a token endpoint to renew a login (RFC 6749 section 6) and returns the body of its answer.
// The way there is a provider's: TLS verified, `uplink` obeyed, no
// redirect followed, public addresses only. Error codes: auth_failed where the endpoint says that
// the login is over (400, 401, 403), with its one-word reason; invalid_config where its address
// can't be used; provider_unavailable for everything else, a too long or too slow answer included.
// No error's text holds anything secret. `is_cancelled` is asked about once a second.
Result<sys::SecretText> AskForTokens(const TokenEndpoint& endpoint, std::string_view refresh_token,
                                     const Uplink& uplink,
                                     const std::function<bool()>& is_cancelled,
                                     std::chrono::milliseconds wait = kTokenAnswerWait);

}  // namespace taskcell::gateway
