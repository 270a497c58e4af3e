#include "gateway/script/poc.h"

#include <algorithm>
#include <array>

#include "gateway/script/output.h"
#include "launcher/base/json_text.h"
#include "launcher/base/text.h"

namespace taskcell::gateway {
namespace {

constexpr std::string_view kMark = "<redacted>";
constexpr std::string_view kTokenBytes =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-.";
constexpr std::size_t kShortestRest = 16;

// What tokens of the providers and forges people use begin with; of the last, only the rest is one.
constexpr std::array<std::string_view, 12> kPrefixes = {
    "sk-",    "AIza", "ghp_",  "gho_",  "ghs_", "github_pat_",
    "glpat-", "AKIA", "xoxb-", "xoxp-", "xai-", "Bearer "};

void MaskTokens(std::string_view prefix, std::string& text) {
  for (std::size_t at = text.find(prefix); at != text.npos;) {
    const std::size_t rest = at + prefix.size();
    const std::size_t end = std::min(text.find_first_not_of(kTokenBytes, rest), text.size());
    const bool is_token = end - rest >= kShortestRest;
    const std::size_t begin = prefix.ends_with(' ') ? rest : at;
    if (is_token) text.replace(begin, end - begin, kMark);
    at = text.find(prefix, is_token ? begin + kMark.size() : rest);
  }
}

void MaskPrivateKeys(std::string& text) {
  constexpr std::string_view kBegin = "-----BEGIN ";
  constexpr std::string_view kKey = "PRIVATE KEY-----";
  constexpr std::string_view kEnd = "-----END ";
  for (std::size_t at = text.find(kBegin); at != text.npos; at = text.find(kBegin, at + 1)) {
    const std::size_t line = std::min(text.find('\n', at), text.size());
    if (text.substr(at, line - at).find(kKey) == text.npos) continue;
    const std::size_t end = text.find(kEnd, line);
    const std::size_t last =
        end == text.npos ? text.size() : std::min(text.find('\n', end), text.size());
    text.replace(at, last - at, kMark);
  }
}

}  // namespace

std::string MaskSecrets(std::string_view text) {
  std::string masked(text);
  MaskPrivateKeys(masked);
  for (std::string_view prefix : kPrefixes) MaskTokens(prefix, masked);
  return masked;
}

std::string PocText(std::string_view text) {
  const std::string masked = MaskSecrets(text);
  bool truncated = false;
  std::string kept = KeptText(masked, kMaxPocBytes, truncated);
  return truncated ? KeptText(masked, kMaxPocBytes - kTruncated.size(), truncated) : kept;
}

PocEvidence RunPoc(const ScriptRequest& request, Surroundings& surroundings) {
  const ScriptAnswer answer = RunScriptInCell(request, surroundings);
  auto skipped = [](std::string_view why) {
    return PocEvidence{"poc_skipped", Text("sandbox unavailable: ", PocText(why))};
  };
  constexpr uint64_t kMillis = 1000;
  if (answer.timed_out)
    return skipped(
        Text("container execution exceeded the ", request.timeout_ms / kMillis, "s hard timeout"));
  if (answer.code == "image_missing") return skipped(Text(answer.why, ". ", answer.remedy));
  if (!answer.ok()) return skipped(answer.why.empty() ? answer.message : answer.why);
  std::string output = answer.out;
  if (!answer.err.empty())
    output += Text(output.empty() || output.ends_with('\n') ? "" : "\n", answer.err);
  return {"poc_transcript",
          Text("exit_code=", answer.exit_code, "\n--- script (", LanguageName(request.language),
               ") ---\n", PocText(request.code), "\n--- output ---\n", PocText(output))};
}

std::string PocJson(const PocEvidence& evidence) {
  JsonText json;
  json.Open('{').Key("kind").String(evidence.kind).Key("detail").String(evidence.detail);
  json.Close('}');
  return json.text();
}

}  // namespace taskcell::gateway
