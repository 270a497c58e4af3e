#include "gateway/egress/record.h"

#include <algorithm>

#include "launcher/base/json_text.h"

namespace taskcell::gateway {
namespace {

void AppendNames(JsonText* json, std::string_view key, const std::vector<std::string>& names) {
  json->Key(key).Open('[');
  for (const std::string& name : names) json->String(name);
  json->Close(']');
}

void AppendTotals(JsonText* json, const EgressTotals& totals) {
  json->Key("totals").Open('{');
  json->Key("requests").Unsigned(totals.requests);
  json->Key("refused").Unsigned(totals.refused);
  json->Key("model_calls").Unsigned(totals.model_calls);
  json->Key("steps").Unsigned(totals.steps);
  json->Key("tool_calls").Unsigned(totals.tool_calls);
  json->Key("input_tokens").Unsigned(totals.input_tokens);
  json->Key("output_tokens").Unsigned(totals.output_tokens);
  json->Key("bytes_up").Unsigned(totals.bytes_up);
  json->Key("bytes_down").Unsigned(totals.bytes_down);
  json->Key("auth_failures").Unsigned(totals.auth_failures);
  json->Key("billing").Unsigned(totals.billing);
  json->Key("rate_limited").Unsigned(totals.rate_limited);
  json->Key("model_not_found").Unsigned(totals.model_not_found);
  json->Key("provider_errors").Unsigned(totals.provider_errors);
  json->Key("upstream_failures").Unsigned(totals.upstream_failures);
  json->Key("connections_refused").Unsigned(totals.connections_refused);
  json->Key("tunnels").Unsigned(totals.tunnels);
  json->Key("tunnels_refused").Unsigned(totals.tunnels_refused);
  json->Key("retry_after_seconds").Number(totals.retry_after_seconds);
  json->Key("last_upstream_status").Number(totals.last_upstream_status);
  json->Key("credential_echoed").Bool(totals.credential_echoed);
  json->Close('}');
}

void AppendRequest(JsonText* json, const EgressRequest& request) {
  json->Open('{');
  json->Key("method").String(request.method);
  json->Key("path").String(request.path);
  json->Key("status").Number(request.status);
  json->Key("upstream_status").Number(request.upstream_status);
  json->Key("code").String(request.code);
  json->Key("model").String(request.model);
  json->Key("tools_offered").Unsigned(request.tools_offered);
  AppendNames(json, "tools_called", request.tools_called);
  json->Key("input_tokens").Unsigned(request.input_tokens);
  json->Key("cached_tokens").Unsigned(request.cached_tokens);
  json->Key("cache_write_tokens").Unsigned(request.cache_write_tokens);
  json->Key("output_tokens").Unsigned(request.output_tokens);
  json->Key("finish").String(request.finish);
  json->Key("error_type").String(request.error_type);
  json->Key("bytes_up").Unsigned(request.bytes_up);
  json->Key("bytes_down").Unsigned(request.bytes_down);
  json->Key("started_ms").Number(request.started_ms);
  json->Key("duration_ms").Number(request.duration_ms);
  json->Close('}');
}

void AppendTunnel(JsonText* json, const EgressTunnel& tunnel) {
  json->Open('{');
  json->Key("host").String(tunnel.host);
  json->Key("port").Unsigned(tunnel.port);
  json->Key("code").String(tunnel.code);
  json->Key("bytes_up").Unsigned(tunnel.bytes_up);
  json->Key("bytes_down").Unsigned(tunnel.bytes_down);
  json->Key("started_ms").Number(tunnel.started_ms);
  json->Key("duration_ms").Number(tunnel.duration_ms);
  json->Close('}');
}

void AppendRefusal(JsonText* json, const EgressRefusal& refusal) {
  json->Open('{').Key("host").String(refusal.host);
  json->Key("code").String(refusal.code);
  json->Key("count").Unsigned(refusal.count).Close('}');
}

}  // namespace

void CountRefusal(std::string_view host, std::string_view code, EgressRecord& record) {
  constexpr std::string_view kFurther = "*";
  std::size_t hosts = 0;
  for (EgressRefusal& refusal : record.refusals) {
    if (refusal.code != code) continue;
    const bool is_full = ++hosts > kEgressRefusedHosts;
    if (refusal.host != host && !is_full) continue;
    ++refusal.count;
    return;
  }
  if (hosts == kEgressRefusedHosts) host = kFurther;
  record.refusals.push_back({std::string(host), std::string(code), 1});
}

bool IsTokenCount(const EgressRequest& request) { return request.path.ends_with("/count_tokens"); }

std::string RecordJson(const EgressRecord& record) {
  JsonText json;
  json.Open('{');
  AppendTotals(&json, record.totals);
  AppendNames(&json, "tools_offered", record.tools_offered);
  AppendNames(&json, "tools_called", record.tools_called);
  std::size_t shown = std::min(record.requests.size(), kEgressRequestsShown);
  json.Key("requests_omitted").Unsigned(record.requests.size() - shown);
  json.Key("requests").Open('[');
  for (std::size_t index = 0; index < shown; ++index) AppendRequest(&json, record.requests[index]);
  json.Close(']');
  json.Key("tunnels").Open('[');
  for (const EgressTunnel& tunnel : record.tunnels) AppendTunnel(&json, tunnel);
  json.Close(']').Key("refusals").Open('[');
  for (const EgressRefusal& refusal : record.refusals) AppendRefusal(&json, refusal);
  json.Close(']').Close('}');
  return json.text();
}

}  // namespace taskcell::gateway
