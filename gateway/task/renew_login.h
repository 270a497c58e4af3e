#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "gateway/config/accounts.h"
#include "gateway/config/uplink.h"
#include "launcher/base/result.h"
#include "launcher/sys/secret_text.h"

namespace taskcell::gateway {

// For whom and how a login is renewed.
struct RenewalTerms {
  std::string provider;
  sys::SecretText access_token;  // as it was read
  int64_t needed_until = 0;      // unix seconds; one that ends before is renewed
  Uplink uplink;
  std::function<bool()> is_cancelled;
};

// The access token to begin a task with, where it is another than `terms.access_token`; nullopt
// where that one will do: it lasts until the task's time is over, or it lasts a while and cannot be
// renewed. One renewal at a time per document, whichever processes want one: who comes second finds
// the token the first one got. The renewed document is on disk before its token is used, and the
// old one stays beside it until ProveLogin; what a killed process left is finished first. Where the
// endpoint does not take the renewed document's own refresh token, it is asked once more with the
// old one. Error codes as AskForTokens, and workspace_failed where
// the file is in the way; `warnings` hears what did not keep the task from running.
Result<std::optional<sys::SecretText>> RenewLogin(OauthLogin& login, const RenewalTerms& terms,
                                                  std::vector<std::string>& warnings);

// The provider has taken `access_token`: if the document in its file is of that token, the one it
// replaced is dropped. What fails is tried again after the next success.
void ProveLogin(const OauthLogin& login, std::string_view provider, std::string_view access_token);

}  // namespace taskcell::gateway
