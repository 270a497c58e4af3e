#include "probe/live/payload.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <vector>

#include "launcher/base/json_text.h"
#include "launcher/base/json_value.h"
#include "launcher/base/text.h"

namespace taskcell::live {
namespace {

std::optional<Payload> PayloadOf(std::string_view name) {
  const auto* at = std::find_if(std::begin(kPayloads), std::end(kPayloads),
                                [&](Payload payload) { return Name(payload) == name; });
  return at == std::end(kPayloads) ? std::nullopt : std::optional(*at);
}

}  // namespace

std::string_view Name(Payload payload) {
  switch (payload) {
    case Payload::kPids:
      return "pids";
    case Payload::kFiles:
      return "files";
    case Payload::kTmpfs:
      return "tmpfs";
    case Payload::kCpu:
      return "cpu";
    case Payload::kMemory:
      return "memory";
    case Payload::kFlood:
      return "flood";
    case Payload::kLinger:
      return "linger";
  }
  return "";
}

std::string Word(const Attempt& attempt) {
  std::string word = Text(Name(attempt.payload), ":", attempt.limit);
  return attempt.payload == Payload::kTmpfs ? Text(word, ":", attempt.target) : word;
}

Result<Attempt> ParseAttempt(std::string_view word) {
  Error refused(Kind::kUsage, Text("'", Printable(word), "' is no attempt such as pids:64"));
  std::size_t colon = word.find(':');
  if (colon == word.npos) return refused;
  std::optional<Payload> payload = PayloadOf(word.substr(0, colon));
  if (!payload) return refused;
  std::string_view rest = word.substr(colon + 1);
  Attempt attempt{*payload};
  if (*payload == Payload::kTmpfs) {
    std::size_t second = rest.find(':');
    if (second == rest.npos) return refused;
    attempt.target = rest.substr(second + 1);
    rest = rest.substr(0, second);
    if (!attempt.target.starts_with('/')) return refused;
  }
  std::optional<uint64_t> limit = ParseUnsigned(rest);
  if (!limit || *limit == 0 || *limit > kMaxAttemptLimit) return refused;
  attempt.limit = *limit;
  return attempt;
}

std::string Line(const Finding& finding) {
  JsonText json;
  json.Open('{').Key("payload").String(Name(finding.payload));
  json.Key("target").String(finding.target);
  json.Key("reached").Unsigned(finding.reached);
  json.Key("errno").Number(finding.err);
  json.Key("signal").Number(finding.signal);
  json.Key("wall_us").Unsigned(finding.wall_us).Close('}');
  return json.text();
}

Result<Finding> ParseFinding(std::string_view line) {
  JsonValue json = TRY(ParseJson(line).With("taskcell-breaker's line"));
  std::optional<Payload> payload = PayloadOf(json.String("payload"));
  uint64_t err = json.Unsigned("errno");
  uint64_t signal = json.Unsigned("signal");
  constexpr uint64_t kMost = std::numeric_limits<int32_t>::max();
  if (!payload || err > kMost || signal > kMost || json.Find("reached") == nullptr)
    return Error(Kind::kViolation, "taskcell-breaker's line has another shape");
  Finding finding{*payload};
  finding.target = json.String("target");
  finding.reached = json.Unsigned("reached");
  finding.err = static_cast<int32_t>(err);
  finding.signal = static_cast<int32_t>(signal);
  finding.wall_us = json.Unsigned("wall_us");
  return finding;
}

}  // namespace taskcell::live
