#include "gateway/task/account_list.h"

#include <algorithm>
#include <optional>

#include "gateway/config/accounts.h"
#include "gateway/ledger/ledger.h"
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
  std::optional<Ledger> ledger = TRY(Ledger::OpenExisting(home.fd.get(), home.path));
  std::vector<AccountState> states;
  if (ledger.has_value()) states = TRY(ledger->Accounts());
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
    } else {
      const std::string fingerprint = account.Fingerprint();
      for (const AccountState& state : states) {
        const bool rests =
            state.id == account.id && state.fingerprint == fingerprint && IsResting(state, now_s);
        if (!rests) continue;
        row.state = ListedAccount::State::kResting;
        row.why = state.cooling_because;
        row.until_s = state.cooling_until;
      }
    }
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
    json.Key("until").Number(account.until_s).Close('}');
  }
  json.Close(']');
  return json.text();
}

}  // namespace taskcell::gateway
