// The library-free JSON reader of the static programs and the runtimes' streams.
#include "launcher/base/json_value.h"
#include "launcher/base/text.h"
#include "tests/fuzz/fuzz.h"

namespace taskcell {
namespace {

// Promise: every string of a value that was read is valid UTF-8.
void CheckStrings(const JsonValue& value) {
  fuzz::Require(IsUtf8(value.text));
  fuzz::Require(!value.is_object() || value.keys.size() == value.items.size());
  for (const std::string& key : value.keys) fuzz::Require(IsUtf8(key));
  for (const JsonValue& item : value.items) CheckStrings(item);
}

}  // namespace
}  // namespace taskcell

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, std::size_t size) {
  using namespace taskcell;
  std::string_view input = fuzz::TextOf(data, size);
  for (JsonStrings strings : {JsonStrings::kStrict, JsonStrings::kRawControl}) {
    JsonRead read = ReadJson(input, strings);
    if (read.end != JsonEnd::kComplete) continue;
    fuzz::Require(read.consumed <= input.size());
    CheckStrings(read.value);
  }
  Result<JsonValue> whole = ParseJson(input);
  if (whole.ok()) fuzz::Require(ReadJson(input).end == JsonEnd::kComplete);
  return 0;
}
