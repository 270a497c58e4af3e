#include "gateway/egress/connect_request.h"

#include <algorithm>

#include "gateway/egress/http_request.h"
#include "launcher/base/text.h"

namespace taskcell::gateway {
namespace {

constexpr std::size_t kShownBytes = 256;

Refusal Malformed(std::string_view what) {
  return Refusal{400, "egress_connect", Text("the request was refused: ", what)};
}

std::optional<Refusal> CheckMethod(std::string_view method, std::string_view target) {
  if (method == "CONNECT") return std::nullopt;
  if (target.starts_with("http://"))
    return Refusal{403, "egress_plain_http",
                   "plain HTTP is not relayed from a sandboxed task; https to the hosts of "
                   "allow_hosts is"};
  return Refusal{405, "egress_connect", "only CONNECT is answered here"};
}

std::optional<Refusal> ParseConnectLine(std::string_view line, AllowedHost* wanted) {
  std::vector<std::string_view> parts = Split(line, ' ');
  if (parts.size() != 3) return Malformed("its first line is not CONNECT HOST:PORT HTTP/1.1");
  if (std::optional<Refusal> refusal = CheckMethod(parts[0], parts[1])) return refusal;
  if (parts[2] != "HTTP/1.1" && parts[2] != "HTTP/1.0")
    return Refusal{505, "egress_connect", "the request was refused: only HTTP/1.1 is spoken here"};
  Result<AllowedHost> parsed = ParseAllowedHost(parts[1]);
  if (!parsed.ok()) return Malformed(parsed.error().text);
  *wanted = std::move(parsed).value();
  return std::nullopt;
}

}  // namespace

std::variant<AllowedHost, Refusal> ParseConnect(std::string_view head) {
  AllowedHost wanted;
  std::vector<HeaderField> headers;
  auto take_first = [&wanted](std::string_view line) { return ParseConnectLine(line, &wanted); };
  if (std::optional<Refusal> refusal = ReadHead(head, take_first, &headers))
    return *std::move(refusal);
  const std::string* host = FindHeader(headers, "host");
  if (host != nullptr && *host != wanted.Spelling() && *host != wanted.host)
    return Malformed("its Host header names another place than its first line");
  const std::string* length = FindHeader(headers, "content-length");
  if ((length != nullptr && *length != "0") || FindHeader(headers, "transfer-encoding") != nullptr)
    return Malformed("CONNECT has no body");
  return wanted;
}

std::optional<Refusal> CheckAllowed(const std::vector<AllowedHost>& allowed,
                                    const AllowedHost& wanted) {
  if (std::find(allowed.begin(), allowed.end(), wanted) != allowed.end()) return std::nullopt;
  return Refusal{403, "egress_host",
                 Text(wanted.Spelling(),
                      " is not among the hosts this task may reach; asking again "
                      "does not help")};
}

std::optional<Refusal> CheckServerName(const AllowedHost& wanted, std::string_view server_name) {
  if (Lower(server_name) == wanted.host) return std::nullopt;
  return Refusal{403, "egress_sni",
                 Text("the tunnel to ", wanted.host,
                      " was cut before a byte went on: its TLS "
                      "client asks for ",
                      Printable(server_name))};
}

std::string ShownTarget(std::string_view head) {
  std::vector<std::string_view> parts = Split(head.substr(0, head.find_first_of("\r\n")), ' ');
  return Printable(parts.size() > 1 ? parts[1] : parts[0]).substr(0, kShownBytes);
}

}  // namespace taskcell::gateway
