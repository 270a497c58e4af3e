// Renews the login of one credential document if it is due, as the gateway does before a task, and
// prints the access token to use, or why there is none.
//   renew_once FILE TOKEN_ENDPOINT CA_FILE
#include <cstdio>
#include <ctime>

#include "gateway/config/accounts.h"
#include "gateway/config/oauth_document.h"
#include "gateway/config/taskcell_settings.h"
#include "gateway/task/renew_login.h"
#include "launcher/sys/file.h"

int main(int count, char** words) {
  using namespace taskcell;
  using namespace taskcell::gateway;
  if (count != 4) return 2;
  TaskcellSettings settings;
  settings.ca_file = words[3];
  Result<std::string> text = sys::ReadFile(AT_FDCWD, words[1], 65536);
  Result<Uplink> uplink = ReadUplink(settings);
  if (!text.ok() || !uplink.ok()) return 2;
  Result<OauthDocument> document = ReadOauthDocument(text.value(), "anthropic");
  if (!document.ok()) return 3;
  OauthLogin login;
  login.expires_at = document->expires_at;
  login.file = words[1];
  login.endpoint = {words[2], "client-1", false};
  RenewalTerms terms;
  terms.provider = "anthropic";
  terms.access_token = document->access_token;
  terms.needed_until = ::time(nullptr) + kTokenSlackSeconds;
  terms.uplink = uplink.value();
  terms.is_cancelled = [] { return false; };
  std::vector<std::string> warnings;
  Result<std::optional<sys::SecretText>> renewed = RenewLogin(login, terms, warnings);
  if (!renewed.ok()) {
    (void)std::fprintf(stderr, "%s: %s\n", std::string(renewed.error().code).c_str(),
                       renewed.error().text.c_str());
    return 1;
  }
  (void)std::printf("%s", std::string(renewed->value_or(terms.access_token).view()).c_str());
  return 0;
}
