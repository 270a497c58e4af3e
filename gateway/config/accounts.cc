#include "gateway/config/accounts.h"

#include <fcntl.h>
#include <string.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <ctime>
#include <optional>
#include <utility>

#include "gateway/config/document_file.h"
#include "gateway/config/home.h"
#include "gateway/config/oauth_document.h"
#include "gateway/config/secret.h"
#include "gateway/config/table_reader.h"
#include "launcher/base/text.h"
#include "launcher/sys/file.h"

namespace taskcell::gateway {
namespace {

constexpr std::string_view kInvalidConfig = "invalid_config";
constexpr int64_t kApiKeyPriority = 10;
constexpr int64_t kOauthPriority = 5;
constexpr int64_t kEnvironmentPriority = 99;

struct Provider {
  std::string_view id;
  std::array<std::string_view, 2> variables;
};
constexpr std::array<Provider, 11> kProviders = {{
    {"anthropic", {"ANTHROPIC_API_KEY", ""}},
    {"openai", {"OPENAI_API_KEY", ""}},
    {"gemini", {"GEMINI_API_KEY", "GOOGLE_API_KEY"}},
    {"xai", {"XAI_API_KEY", ""}},
    {"deepseek", {"DEEPSEEK_API_KEY", ""}},
    {"minimax", {"MINIMAX_API_KEY", ""}},
    {"groq", {"GROQ_API_KEY", ""}},
    {"together", {"TOGETHER_API_KEY", ""}},
    {"mistral", {"MISTRAL_API_KEY", ""}},
    {"openrouter", {"OPENROUTER_API_KEY", ""}},
    {"qwen", {"DASHSCOPE_API_KEY", "QWEN_API_KEY"}},
}};

struct FoundSecret {
  SecretText text;
  std::string file;  // that holds it alone; empty: it stands somewhere else
};

// Reads secrets of one home: the key file is opened when the first encrypted value asks for it.
class SecretReader {
 public:
  SecretReader(int home_fd, const Environment& environment, TokenEndpoints endpoints)
      : home_fd_(home_fd), environment_(environment), endpoints_(std::move(endpoints)) {
    Result<UniqueFd> file = sys::OpenAt2(home_fd, "config.toml", O_PATH, sys::kResolveBeneath);
    readable_by_others_ = file.ok() && OthersMayRead(file->get());
  }

  Result<FoundSecret> Encrypted(const std::string& value) {
    if (!key_.has_value()) key_ = ReadKeyfile(home_fd_);
    if (!key_->ok()) return key_->error();
    const SecretText plain = TRY(Decrypt(value, key_->value()));
    return Plain(plain);
  }

  Result<FoundSecret> Plain(std::string_view value) const {
    if (IsSecretReference(value))
      return FoundSecret{TRY(ResolveReference(value, environment_)), FileOfReference(value)};
    return FoundSecret{SecretText(Trim(value)), ""};
  }

  // A value that stands in config.toml as it is.
  Result<FoundSecret> FromFile(std::string_view value) const {
    if (readable_by_others_ && !IsSecretReference(value))
      return Error(Kind::kConfig,
                   "it stands as plain text in config.toml, which others may read: chmod 600 "
                   "config.toml, and replace the key at its provider if others were there");
    return Plain(value);
  }

  TokenEndpoint EndpointOf(std::string_view provider) const {
    auto found = endpoints_.find(provider);
    return found == endpoints_.end() ? TokenEndpoint() : found->second;
  }

 private:
  bool readable_by_others_ = false;
  int home_fd_;
  const Environment& environment_;
  TokenEndpoints endpoints_;
  std::optional<Result<SecretText>> key_;
};

// Keeps the secret, or the reason why it is none: `name` is where it stands.
void Keep(SecretText secret, std::string_view name, Account& account) {
  const std::string_view wrong = WhyNoToken(secret);
  if (wrong.empty()) {
    account.secret = std::move(secret);
    return;
  }
  account.unavailable = Text(name, " ", wrong);
}

// Why the login of a document can't be renewed; empty when it can.
std::string WhyNotRenewed(const OauthDocument& document, const Account& account,
                          const OauthLogin& login) {
  if (document.refresh_token.empty()) return "its document holds no refresh token: sign in anew";
  if (login.file.empty())
    return "a renewed one can only take its place in a file of its own: store the document there "
           "and name it by secret://file//absolute/path";
  if (login.endpoint.url.empty())
    return Text("[taskcell.oauth.", account.provider,
                "] does not say where to renew it (token_endpoint, client_id)");
  Result<DocumentFile> file = DocumentFile::Pin(login.file);
  return file.ok() ? "" : Text("a renewed one can't take its place: ", file.error().text);
}

// A document is usable while its token lasts, and as long as that can be renewed.
void KeepDocument(FoundSecret found, std::string_view name, const SecretReader& secrets,
                  Account& account) {
  Result<OauthDocument> document = ReadOauthDocument(found.text, account.provider);
  if (!document.ok()) {
    account.unavailable = Text(name, " holds a credential document ", document.error().text);
    return;
  }
  OauthLogin login;
  login.expires_at = document->expires_at;
  login.account = document->account;
  login.file = std::move(found.file);
  login.endpoint = secrets.EndpointOf(account.provider);
  login.not_renewed = WhyNotRenewed(document.value(), account, login);
  if (!login.CanBeRenewed() && login.expires_at <= ::time(nullptr) + kTokenSlackSeconds)
    account.unavailable = Text(name, " holds a login that has ended, and ", login.not_renewed);
  if (account.unavailable.empty()) account.secret = std::move(document->access_token);
  account.login = std::move(login);
}

// Fills in the secret from the first of `encrypted` and `plain` keys that is set, or the reason why
// there is none. A broken encrypted value is never passed over for a plain one.
Status ReadSecret(const TableReader& reader, SecretReader& secrets, Account& account,
                  std::initializer_list<std::string_view> encrypted,
                  std::initializer_list<std::string_view> plain, bool only_references) {
  for (bool is_encrypted : {true, false}) {
    for (std::string_view key : is_encrypted ? encrypted : plain) {
      std::string value;
      TRY(reader.String(key, value));
      value = Trim(value);
      if (value.empty()) continue;
      if (!is_encrypted && only_references && !IsSecretReference(value)) continue;
      Result<FoundSecret> secret =
          is_encrypted ? secrets.Encrypted(value) : secrets.FromFile(value);
      if (!secret.ok()) {
        account.unavailable = Text(key, ": ", secret.error().text);
      } else if (account.type == AccountType::kOauth && IsOauthDocument(secret->text)) {
        KeepDocument(std::move(secret).value(), key, secrets, account);
      } else {
        Keep(std::move(secret->text), key, account);
      }
      return Ok();
    }
  }
  account.unavailable = "it has no secret";
  return Ok();
}

// True when an RFC 3339 time lies in the past; unreadable counts as past.
bool IsPast(const std::string& expires_at) {
  struct tm parts = {};
  const char* rest = ::strptime(expires_at.c_str(), "%Y-%m-%dT%H:%M:%S", &parts);
  if (rest == nullptr) rest = ::strptime(expires_at.c_str(), "%Y-%m-%d %H:%M:%S", &parts);
  if (rest == nullptr) return true;
  if (*rest == '.') do
      ++rest;
    while (*rest >= '0' && *rest <= '9');
  int64_t offset = 0;
  if (*rest == '+' || *rest == '-') {
    auto hours = ParseUnsigned(std::string_view(rest + 1).substr(0, 2));
    std::string_view tail = std::string_view(rest).size() == 6 ? rest + 4 : "";
    auto minutes = ParseUnsigned(tail);
    if (!hours.has_value() || !minutes.has_value()) return true;
    offset = static_cast<int64_t>(*hours * 3600 + *minutes * 60) * (*rest == '-' ? -1 : 1);
  } else if (std::string_view(rest) != "Z") {
    return true;
  }
  return ::timegm(&parts) - offset <= ::time(nullptr);
}

Status ReadOauth(const TableReader& reader, SecretReader& secrets, Account& account) {
  TRY(ReadSecret(reader, secrets, account, {"oauth_token_enc"}, {"oauth_token"}, true));
  const ConfigValue* expires = reader.Find("expires_at");
  if (expires == nullptr) return Ok();
  if (expires->type != ConfigValue::Type::kString && expires->type != ConfigValue::Type::kDateTime)
    account.unavailable = Text("its expires_at is ", TypeName(expires->type),
                               " and no RFC 3339 time", AtLine(*expires));
  else if (!expires->text.empty() && IsPast(expires->text))
    account.unavailable = "it is past its expires_at, or that is no RFC 3339 time";
  return Ok();
}

// An account of 0 is never used.
Status ReadBudget(const TableReader& reader, Account& account) {
  constexpr std::string_view kKey = "monthly_budget_cents";
  if (account.type == AccountType::kApiKey) account.budget_cents = kDefaultBudgetCents;
  const ConfigValue* value = reader.Find(kKey);
  if (value == nullptr) return Ok();
  const bool fits = value->type == ConfigValue::Type::kInteger && value->integer >= 0 &&
                    static_cast<uint64_t>(value->integer) <= kMaxBudgetCents;
  if (!fits) return reader.Complain(kKey, Text("must be an integer, 0 to ", kMaxBudgetCents));
  account.budget_cents = static_cast<uint64_t>(value->integer);
  return Ok();
}

Result<Account> ReadAccount(const ConfigValue& table, SecretReader& secrets) {
  TableReader reader(&table, "[accounts]");
  Account account;
  account.id = "unnamed";
  account.provider = "anthropic";
  std::string type = "api_key";
  TRY(reader.String("id", account.id));
  TRY(reader.String("type", type));
  TRY(reader.String("provider", account.provider));
  TRY(reader.String("label", account.label));
  TRY(reader.Strings("tags", account.tags));
  if (account.provider == "google") account.provider = "gemini";
  if (type != "api_key" && type != "oauth")
    return reader.Complain("type", "must be \"api_key\" or \"oauth\"");
  account.type = type == "oauth" ? AccountType::kOauth : AccountType::kApiKey;
  account.priority = account.type == AccountType::kOauth ? kOauthPriority : kApiKeyPriority;
  if (const ConfigValue* priority = reader.Find("priority"); priority != nullptr) {
    if (priority->type != ConfigValue::Type::kInteger)
      return reader.Complain("priority", "must be an integer");
    account.priority = priority->integer;
  }
  TRY(ReadBudget(reader, account));
  if (account.type == AccountType::kOauth) {
    TRY(ReadOauth(reader, secrets, account));
  } else {
    TRY(ReadSecret(reader, secrets, account, {"anthropic_api_key_enc", "api_key_enc"},
                   {"anthropic_api_key", "api_key"}, false));
  }
  return account;
}

Result<std::vector<Account>> ReadConfigured(const ConfigValue& config, SecretReader& secrets) {
  std::vector<Account> accounts;
  const ConfigValue* list = config.Find("accounts");
  if (list == nullptr) return accounts;
  if (list->type != ConfigValue::Type::kArray || list->array.size() > kMaxAccounts)
    return Error(Kind::kConfig, Text("[[accounts]] must be an array of at most ", kMaxAccounts,
                                     " tables", AtLine(*list)));
  for (const ConfigValue& table : list->array) {
    if (!table.IsTable())
      return Error(Kind::kConfig, Text("[[accounts]] must hold tables only", AtLine(table)));
    accounts.push_back(TRY(ReadAccount(table, secrets)));
  }
  return accounts;
}

Account FromEnvironment(std::string id, std::string_view provider, AccountType type,
                        int64_t priority, std::string_view variable,
                        const Environment& environment) {
  Account account;
  account.id = std::move(id);
  account.provider = provider;
  account.type = type;
  account.priority = priority;
  Keep(SecretText(Trim(Lookup(environment, variable))), variable, account);
  return account;
}

// [api] of config.toml: one Anthropic key, used when no account is configured.
Status AddApiTable(const ConfigValue& config, SecretReader& secrets,
                   std::vector<Account>& accounts) {
  TableReader reader(TRY(FindTable(config, {"api"})), "api");
  bool set = false;
  for (std::string_view key :
       {"anthropic_api_key_enc", "api_key_enc", "anthropic_api_key", "api_key"})
    set = set || reader.Find(key) != nullptr;
  if (!set) return Ok();
  Account account;
  account.id = "main";
  account.provider = "anthropic";
  account.priority = kApiKeyPriority;
  TRY(ReadSecret(reader, secrets, account, {"anthropic_api_key_enc", "api_key_enc"},
                 {"anthropic_api_key", "api_key"}, false));
  accounts.push_back(std::move(account));
  return Ok();
}

void AddEnvironment(const Environment& environment, std::vector<Account>& accounts) {
  const std::vector<Account> configured = accounts;
  constexpr std::string_view kToken = "CLAUDE_CODE_OAUTH_TOKEN";
  if (!Trim(Lookup(environment, kToken)).empty())
    accounts.push_back(
        FromEnvironment("oauth-default", "anthropic", AccountType::kOauth, 1, kToken, environment));
  for (const Provider& provider : kProviders) {
    bool has = std::any_of(configured.begin(), configured.end(),
                           [&](const Account& account) { return account.provider == provider.id; });
    if (has) continue;
    for (std::string_view variable : provider.variables) {
      std::string_view secret = variable.empty() ? "" : Lookup(environment, variable);
      if (Trim(secret).empty()) continue;
      std::string id = provider.id == "anthropic" ? std::string("env") : Text(provider.id, "-env");
      accounts.push_back(FromEnvironment(std::move(id), provider.id, AccountType::kApiKey,
                                         kEnvironmentPriority, variable, environment));
      break;
    }
  }
}

Result<std::vector<Account>> Load(const ConfigValue& config, int home_fd,
                                  const Environment& environment) {
  SecretReader secrets(home_fd, environment, TRY(ReadTokenEndpoints(config)));
  std::vector<Account> accounts = TRY(ReadConfigured(config, secrets));
  if (accounts.empty()) TRY(AddApiTable(config, secrets, accounts));
  bool inherit = true;
  TableReader loading(TRY(FindTable(config, {"account_loading"})), "account_loading");
  TRY(loading.Boolean("inherit_host_credentials", inherit));
  if (inherit) AddEnvironment(environment, accounts);
  std::stable_sort(accounts.begin(), accounts.end(),
                   [](const Account& a, const Account& b) { return a.priority < b.priority; });
  return accounts;
}

}  // namespace

std::string FingerprintOf(std::string_view id, std::string_view secret) {
  const SecretText both = SecretText::Take(Text("account ", id, " ", secret));
  return ShortDigest(both);
}

std::string Account::Fingerprint() const { return FingerprintOf(id, secret); }

std::vector<std::string_view> KeyVariables(std::string_view provider) {
  std::vector<std::string_view> names;
  for (const Provider& known : kProviders) {
    if (known.id != provider) continue;
    for (std::string_view name : known.variables)
      if (!name.empty()) names.push_back(name);
  }
  return names;
}

Result<std::vector<Account>> LoadAccounts(const ConfigValue& config, int home_fd,
                                          const Environment& environment) {
  Result<std::vector<Account>> accounts = Load(config, home_fd, environment);
  if (accounts.ok()) return accounts;
  return std::move(accounts).error().Coded(kInvalidConfig);
}

}  // namespace taskcell::gateway
