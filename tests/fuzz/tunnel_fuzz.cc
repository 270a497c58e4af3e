// What a program in the cell sends to the listener for tunnels: a CONNECT request with what follows
// it (first byte 'c'), a ClientHello alone, or one after a server's answer (first byte 's').
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

// Promises: once an answer is decided more of it changes nothing; a name that is read behind other
// records is the one that is read without them.
void CheckSecondHello(std::string_view bytes) {
  using gateway::ServerHello;
  const ServerHello said = gateway::ReadServerHello(bytes);
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    const ServerHello part = gateway::ReadServerHello(bytes.substr(0, size));
    fuzz::Require(part == ServerHello::kIncomplete || part == said);
  }
  auto second = gateway::ReadSecondClientHello(bytes);
  const auto* hello = std::get_if<gateway::ClientHello>(&second);
  auto first = ReadClientHello(bytes);
  const auto* alone = std::get_if<gateway::ClientHello>(&first);
  if (alone != nullptr) fuzz::Require(hello != nullptr && hello->server_name == alone->server_name);
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
  const auto what = fuzz::TakeByte(input);
  if (what == 'c') {
    CheckConnect(input);
  } else if (what == 's') {
    CheckSecondHello(input);
  } else {
    CheckHello(input);
  }
  return 0;
}
