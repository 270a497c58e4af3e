#include "gateway/task/account_list.h"

#include <optional>

#include "gateway/config/accounts.h"
#include "gateway/task/account_choice.h"
#include "gateway/task/admission.h"
#include "launcher/base/json_text.h"

namespace taskcell::gateway {

std::string_view Name(ListedAccount::State state) {
  switch (state) {
    case ListedAccount::State::kReady:
      return "ready";
    case ListedAccount::State::kResting:
      return "resting";
    case ListedAccount::State::kUnusable:
      break;
  }
  return "unusable";
}

Result<std::vector<ListedAccount>> ListAccounts(const Home& home, const Environment& environment,
                                                int64_t now_s) {
  const ConfigValue config = TRY(ReadConfig(home));
  const AccountHistory history = TRY(ReadAccountHistory(home, now_s));
  std::vector<ListedAccount> listed;
  for (const Account& account : TRY(LoadAccounts(config, home.fd.get(), environment))) {
    ListedAccount row;
    row.id = account.id;
    row.provider = account.provider;
    row.type = account.type == AccountType::kOauth ? "oauth" : "api_key";
    row.priority = account.priority;
    if (!account.unavailable.empty()) {
      row.state = ListedAccount::State::kUnusable;
      row.why = account.unavailable;
    } else if (std::optional<Pause> pause = PauseOf(account, history, now_s)) {
      row.state = ListedAccount::State::kResting;
      row.why = std::move(pause->why);
      row.until_s = pause->until_s;
    }
    row.spent_microcents = SpentBy(account.id, history.spending);
    row.budget_cents = account.budget_cents;
    listed.push_back(std::move(row));
  }
  return listed;
}

std::string AccountsJson(const std::vector<ListedAccount>& accounts) {
  JsonText json;
  json.Open('[');
  for (const ListedAccount& account : accounts) {
    json.Open('{').Key("id").String(account.id).Key("provider").String(account.provider);
    json.Key("type").String(account.type).Key("priority").Number(account.priority);
    json.Key("state").String(Name(account.state)).Key("why").String(account.why);
    json.Key("until").Number(account.until_s);
    json.Key("spent_microcents").Number(account.spent_microcents).Key("budget_cents");
    if (account.budget_cents.has_value()) {
      json.Unsigned(*account.budget_cents);
    } else {
      json.Null();
    }
    json.Close('}');
  }
  json.Close(']');
  return json.text();
}

}  // namespace taskcell::gateway
