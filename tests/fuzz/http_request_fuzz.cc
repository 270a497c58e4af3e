// A request from inside a cell to the provider broker: its head, then its body, which is the same
// however the connection cuts it.
#include "gateway/egress/http_body.h"
#include "gateway/egress/http_request.h"
#include "tests/fuzz/fuzz.h"

namespace taskcell {
namespace {

// Promises: no header twice, names in lower case, no byte that could end a line in what is passed
// on.
void CheckHead(const gateway::RequestHead& head) {
  for (const gateway::HeaderField& each : head.headers) {
    fuzz::Require(head.Find(each.name) == &each.value);
    fuzz::Require((each.name + each.value).find_first_of(std::string_view("\r\n\0", 3)) ==
                  std::string::npos);
    for (char c : each.name) fuzz::Require(c < 'A' || c > 'Z');
  }
  fuzz::Require(!head.path.empty() && head.path[0] == '/');
  fuzz::Require((head.path + head.query).find_first_of(" \r\n") == std::string::npos);
  fuzz::Require(!head.is_chunked || head.content_length == 0);
}

constexpr std::size_t kBodyLimit = 4096;

// The body, or nothing where it was refused or is not whole.
std::optional<std::string> ReadBody(const gateway::RequestHead& head, std::string_view bytes,
                                    std::size_t piece) {
  gateway::BodyReader reader(head, kBodyLimit);
  while (!bytes.empty() && !reader.done()) {
    std::string_view part = bytes.substr(0, piece);
    std::size_t before = part.size();
    if (reader.Take(&part)) return std::nullopt;
    fuzz::Require(part.empty() || reader.done());
    bytes.remove_prefix(before - part.size());
  }
  fuzz::Require(reader.body().size() <= kBodyLimit);
  if (!reader.done()) return std::nullopt;
  return reader.TakeBody();
}

}  // namespace
}  // namespace taskcell

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, std::size_t size) {
  using namespace taskcell;
  std::string_view input = fuzz::TextOf(data, size);
  std::size_t length = gateway::HeadLength(input);
  fuzz::Require(length <= input.size());
  if (length == 0) return 0;
  auto parsed = gateway::ParseRequestHead(input.substr(0, length));
  const auto* head = std::get_if<gateway::RequestHead>(&parsed);
  if (head == nullptr) return 0;
  CheckHead(*head);
  std::string_view body = input.substr(length);
  std::optional<std::string> whole = ReadBody(*head, body, body.size());
  fuzz::Require(whole == ReadBody(*head, body, 1) && whole == ReadBody(*head, body, 7));
  return 0;
}
