// What a program in the cell sends to the listener for tunnels: a CONNECT request with what follows
// it (first byte 'c'), or a ClientHello alone.
#include "gateway/egress/client_hello.h"
#include "gateway/egress/connect_request.h"
#include "gateway/egress/http_request.h"
#include "tests/fuzz/fuzz.h"

namespace taskcell {
namespace {

using gateway::ReadClientHello;

// Promises: a name is visible ASCII; what was read from some bytes is read from those and more; and
// no beginning of them says anything else.
void CheckHello(std::string_view bytes) {
  auto whole = ReadClientHello(bytes);
  const auto* hello = std::get_if<gateway::ClientHello>(&whole);
  if (hello == nullptr) return;
  fuzz::Require(!hello->server_name.empty() && hello->server_name.size() <= 255);
  for (char c : hello->server_name) fuzz::Require(c > ' ' && c < '\x7f');
  std::size_t known = 0;
  for (std::size_t size = 0; size <= bytes.size(); ++size) {
    auto part = ReadClientHello(bytes.substr(0, size));
    fuzz::Require(!std::holds_alternative<gateway::Refusal>(part));
    const auto* early = std::get_if<gateway::ClientHello>(&part);
    fuzz::Require(early == nullptr || early->server_name == hello->server_name);
    fuzz::Require(early != nullptr || known == 0);
    if (early != nullptr) ++known;
  }
}

// Promises: what is taken has one spelling, and that one is in the request.
void CheckConnect(std::string_view bytes) {
  std::size_t length = gateway::HeadLength(bytes);
  (void)gateway::ShownTarget(bytes);
  if (length == 0) return;
  auto parsed = gateway::ParseConnect(bytes.substr(0, length));
  const auto* host = std::get_if<gateway::AllowedHost>(&parsed);
  if (host == nullptr) return;
  Result<gateway::AllowedHost> again = gateway::ParseAllowedHost(host->Spelling());
  fuzz::Require(again.ok() && again.value() == *host);
  fuzz::Require(bytes.starts_with("CONNECT " + host->Spelling() + " "));
  CheckHello(bytes.substr(length));
}

}  // namespace
}  // namespace taskcell

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, std::size_t size) {
  using namespace taskcell;
  std::string_view input = fuzz::TextOf(data, size);
  if (fuzz::TakeByte(input) == 'c') {
    CheckConnect(input);
  } else {
    CheckHello(input);
  }
  return 0;
}
