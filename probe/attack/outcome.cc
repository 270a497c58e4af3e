#include "probe/attack/outcome.h"

#include <charconv>

#include "launcher/base/json_text.h"
#include "launcher/base/json_value.h"

namespace taskcell::attack {

std::string OutcomeLine(std::string_view payload, const Attempted& attempted) {
  JsonText json;
  json.Open('{').Key("payload").String(payload).Key("result").Number(attempted.result);
  json.Key("name").String(NameOf(attempted.result));
  return json.Key("detail").String(attempted.detail).Close('}').text() + "\n";
}

Result<Attempted> ParseOutcome(std::string_view line, std::string_view payload) {
  JsonValue value = TRY(ParseJson(line));
  if (!value.is_object() || value.String("payload") != payload)
    return Error(Kind::kViolation, "a line that is no outcome of this payload");
  const JsonValue* result = value.Find("result");
  Attempted attempted;
  bool whole = false;
  if (result != nullptr && result->kind == JsonKind::kNumber) {
    const char* end = result->text.data() + result->text.size();
    auto [rest, error] = std::from_chars(result->text.data(), end, attempted.result);
    whole = rest == end && error == std::errc();
  }
  if (!whole) return Error(Kind::kViolation, "an outcome without a whole number");
  attempted.detail = value.String("detail");
  return attempted;
}

}  // namespace taskcell::attack
