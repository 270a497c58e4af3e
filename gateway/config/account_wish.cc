#include "gateway/config/account_wish.h"

#include <strings.h>

#include <algorithm>

#include "launcher/base/text.h"

namespace taskcell::gateway {
namespace {

bool SameIgnoringCase(const std::string& a, const std::string& b) {
  return a.size() == b.size() && ::strncasecmp(a.c_str(), b.c_str(), a.size()) == 0;
}

bool InPool(const Account& account, const std::vector<std::string>& pool) {
  if (pool.empty()) return true;
  auto named = [&](const std::string& name) {
    return !name.empty() && std::any_of(pool.begin(), pool.end(), [&](const std::string& entry) {
      return SameIgnoringCase(entry, name);
    });
  };
  return named(account.id) || named(account.label) ||
         std::any_of(account.tags.begin(), account.tags.end(), named);
}

// What the guide's table says this family takes.
std::string Accepted(const AccountWish& wish) {
  if (wish.family == "claude")
    return "an Anthropic API key, or an OAuth account with a stored token (`claude setup-token`); "
           "an account that only lives in the host keychain cannot enter the container";
  if (wish.family == "codex" && wish.document)
    return "an OpenAI API key, or an OAuth account whose secret is a Codex auth.json";
  if (wish.family == "codex") return "an OpenAI API key";
  if (wish.family == "grok") return "an xAI API key";
  if (wish.family == "antigravity") return "a Gemini API key";
  return Text("an API key account of provider `", Printable(wish.provider), "`");
}

bool IsKnown(std::string_view provider) { return !KeyVariables(provider).empty(); }

// Why this account does not do; empty when it does.
std::string Unfit(const Account& account, const AccountWish& wish) {
  if (account.provider != wish.provider)
    return Text("its provider `", Printable(account.provider), "` is not known");
  if (!account.unavailable.empty()) return account.unavailable;
  if (account.login.has_value())
    return wish.document ? "" : "its credential document can't be used by this runtime here";
  if (account.type == AccountType::kOauth && !wish.oauth_token)
    return "an OAuth account; this runtime needs an API key in this version of taskcell";
  return "";
}

}  // namespace

Result<std::vector<Account>> FittingAccounts(const std::vector<Account>& accounts,
                                             const AccountWish& wish) {
  constexpr int kMaxReasons = 4;
  std::vector<Account> fitting;
  std::string passed_over;
  int reasons = 0;
  for (const Account& account : accounts) {
    const bool may_be_meant = account.provider == wish.provider || !IsKnown(account.provider);
    if (!may_be_meant || !InPool(account, wish.pool)) continue;
    std::string why = Unfit(account, wish);
    if (why.empty()) {
      fitting.push_back(account);
    } else if (reasons++ < kMaxReasons) {
      passed_over += Text("; account `", Printable(account.id), "`: ", why);
    }
  }
  if (!fitting.empty()) return fitting;
  return Error(Kind::kConfig,
               Text("no account can run `", wish.family, "` inside the sandbox; it needs ",
                    Accepted(wish), passed_over,
                    wish.pool.empty() ? "" : "; only the agent's account_pool counts"))
      .Coded("no_account");
}

}  // namespace taskcell::gateway
