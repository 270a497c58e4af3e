// A provider's answer as taskcell-loop reads it. First byte: where it is cut. However it is cut,
// the body is the same, and it keeps its bound.
#include <optional>
#include <string>

#include "gateway/runtimes/loop/http_response.h"
#include "tests/fuzz/fuzz.h"

namespace taskcell {
namespace {

using gateway::loop::HttpResponseReader;

// The body, where `bytes` and then the end of the connection make a proper response.
std::optional<std::string> BodyOf(std::string_view bytes, std::size_t piece) {
  HttpResponseReader reader;
  for (std::size_t at = 0; at < bytes.size(); at += piece) {
    Result<bool> whole = reader.Take(bytes.substr(at, piece));
    if (!whole.ok()) return std::nullopt;
    if (whole.value()) return reader.body();
  }
  if (!reader.End().ok()) return std::nullopt;
  return reader.body();
}

}  // namespace
}  // namespace taskcell

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, std::size_t size) {
  using namespace taskcell;
  std::string_view input = fuzz::TextOf(data, size);
  std::size_t piece = std::size_t{fuzz::TakeByte(input)} + 1;
  std::optional<std::string> whole = BodyOf(input, input.size() + 1);
  fuzz::Require(whole == BodyOf(input, piece));
  if (whole) fuzz::Require(whole->size() <= gateway::loop::kMaxBodyBytes);
  return 0;
}
