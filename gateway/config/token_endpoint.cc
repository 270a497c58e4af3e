#include "gateway/config/token_endpoint.h"

#include <algorithm>

#include "gateway/config/table_reader.h"
#include "launcher/base/text.h"

namespace taskcell::gateway {
namespace {

constexpr std::size_t kMostBytes = 512;

bool IsVisible(std::string_view text) {
  return !text.empty() && text.size() <= kMostBytes &&
         std::all_of(text.begin(), text.end(), [](char c) { return c > ' ' && c < '\x7f'; });
}

Result<TokenEndpoint> ReadOne(const ConfigValue& table, const std::string& provider) {
  TableReader reader(&table, Text("taskcell.oauth.", Printable(provider)));
  if (!table.IsTable())
    return Error(Kind::kConfig,
                 Text("[taskcell.oauth] ", Printable(provider),
                      " must be a table with token_endpoint and client_id", AtLine(table)));
  TRY(reader.CheckKeys({"token_endpoint", "client_id", "request"}));
  TokenEndpoint endpoint;
  std::string request = "form";
  TRY(reader.String("token_endpoint", endpoint.url));
  TRY(reader.String("client_id", endpoint.client_id));
  TRY(reader.String("request", request));
  const bool is_address =
      endpoint.url.starts_with("https://") || endpoint.url.starts_with("http://");
  if (!is_address || !IsVisible(endpoint.url) ||
      endpoint.url.find_first_of("@?#") != std::string::npos)
    return reader.Complain("token_endpoint",
                           "must be https://host[:port]/path (http for loopback only), without a "
                           "user name, query or fragment");
  if (!IsVisible(endpoint.client_id))
    return reader.Complain("client_id", "must be one word of printable ASCII");
  if (request != "form" && request != "json")
    return reader.Complain("request", "must be \"form\" or \"json\"");
  endpoint.takes_json = request == "json";
  return endpoint;
}

}  // namespace

Result<TokenEndpoints> ReadTokenEndpoints(const ConfigValue& config) {
  TokenEndpoints endpoints;
  // As in the published source of the codex program.
  endpoints["openai"] = {"https://auth.openai.com/oauth/token", "app_EMoamEEZ73f0CkXaXp7hrann",
                         true};
  const ConfigValue* table = TRY(FindTable(config, {"taskcell", "oauth"}));
  if (table == nullptr) return endpoints;
  for (const ConfigEntry& entry : table->table)
    endpoints[entry.key] = TRY(ReadOne(entry.value, entry.key));
  return endpoints;
}

}  // namespace taskcell::gateway
