// What comes out of a probe's cell, and the words that go in.
#include "probe/live/payload.h"
#include "tests/fuzz/fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, std::size_t size) {
  using namespace taskcell;
  std::string_view text = fuzz::TextOf(data, size);
  Result<live::Finding> finding = live::ParseFinding(text);
  if (finding.ok()) fuzz::Require(live::ParseFinding(live::Line(finding.value())).ok());
  Result<live::Attempt> attempt = live::ParseAttempt(text);
  if (attempt.ok()) fuzz::Require(live::ParseAttempt(live::Word(attempt.value())).ok());
  return 0;
}
