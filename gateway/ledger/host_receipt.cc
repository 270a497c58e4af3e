#include "gateway/ledger/host_receipt.h"

#include <initializer_list>
#include <string_view>
#include <utility>

#include "launcher/base/json_text.h"

namespace taskcell::gateway {
namespace {

void PutAsked(JsonText& json, const HostReceipt& receipt) {
  json.Key("asked").Open('{').Key("kind").String(receipt.kind);
  json.Key("bypassed").Bool(receipt.bypassed);
  json.Key("max_turns").Unsigned(receipt.max_turns);
  json.Key("timeout_ms").Unsigned(receipt.timeout_ms).Close('}');
}

void PutUsed(JsonText& json, const HostReceipt& receipt) {
  json.Key("used").Open('{').Key("told_by").String("program");
  json.Key("started").Bool(receipt.started_program);
  json.Key("steps").Unsigned(receipt.steps).Key("used_tool").Bool(receipt.used_tool);
  for (const auto& [key, tokens] : std::initializer_list<std::pair<std::string_view, uint64_t>>{
           {"input_tokens", receipt.input_tokens},
           {"cached_tokens", receipt.cached_tokens},
           {"output_tokens", receipt.output_tokens}}) {
    json.Key(key);
    if (receipt.tokens_told) {
      json.Unsigned(tokens);
    } else {
      json.Null();
    }
  }
  json.Close('}');
}

}  // namespace

std::string ReceiptJson(const HostReceipt& receipt) {
  JsonText json;
  json.Open('{');
  PutHead(json, receipt);
  json.Key("wall_ms").Unsigned(receipt.wall_ms);
  json.Key("attested").Bool(false).Key("verified").Bool(false);
  PutAsked(json, receipt);
  PutUsed(json, receipt);
  json.Key("job_end").String(receipt.job_end);
  json.Key("warnings").Open('[');
  for (const std::string& warning : receipt.warnings) json.String(warning);
  json.Close(']').Close('}');
  return json.text();
}

}  // namespace taskcell::gateway
