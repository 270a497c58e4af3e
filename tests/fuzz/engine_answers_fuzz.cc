// The bodies of an engine's answers.
#include "probe/engine/answers.h"
#include "tests/fuzz/fuzz.h"

namespace taskcell {
namespace {

template <typename T>
void OnlyViolations(const Result<T>& result) {
  fuzz::Require(result.ok() || result.error().kind == Kind::kViolation);
}

}  // namespace
}  // namespace taskcell

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, std::size_t size) {
  using namespace taskcell;
  std::string_view body = fuzz::TextOf(data, size);
  OnlyViolations(probe::ParseVersion(body));
  OnlyViolations(probe::ParseInfo(body));
  OnlyViolations(probe::ParseImage(body));
  OnlyViolations(probe::ParseCreate(body));
  OnlyViolations(probe::ParseContainer(body));
  OnlyViolations(probe::ParseList(body));
  OnlyViolations(probe::ParseReportedLimits(body));
  OnlyViolations(probe::ParseImageList(body));
  std::string message = probe::ErrorMessage(body);
  fuzz::Require(message.size() <= 300 && message.find('\n') == std::string::npos);
  return 0;
}
