#include "gateway/egress/http_request.h"

#include <algorithm>

#include "launcher/base/text.h"

namespace taskcell::gateway {
namespace {

constexpr std::size_t kMethodBytes = 16;
constexpr std::size_t kLengthDigits = 12;

bool IsTokenChar(char c) {
  bool is_alnum = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
  return is_alnum || std::string_view("!#$%&'*+-.^_`|~").find(c) != std::string_view::npos;
}

bool IsToken(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), IsTokenChar);
}

bool IsVisible(char c) { return c > ' ' && c < '\x7f'; }

// RFC 9110 OWS: space and tab only.
std::string_view TrimBlanks(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t')) text.remove_suffix(1);
  return text;
}

Refusal Malformed(std::string_view what) {
  return Refusal{400, "egress_http", Text("the request was refused: ", what)};
}

std::optional<Refusal> ParseRequestLine(std::string_view line, RequestHead* head) {
  std::vector<std::string_view> parts = Split(line, ' ');
  if (parts.size() != 3) return Malformed("its first line is not METHOD PATH HTTP/1.1");
  std::string_view method = parts[0];
  std::string_view target = parts[1];
  std::string_view version = parts[2];
  if (!IsToken(method) || method.size() > kMethodBytes) return Malformed("its method is no token");
  if (version != "HTTP/1.1") {
    return Refusal{version.starts_with("HTTP/") ? 505 : 400, "egress_http",
                   "the request was refused: only HTTP/1.1 is spoken here"};
  }
  if (!target.starts_with('/')) {
    return Malformed("its target is not a path; this is no proxy, the provider is fixed");
  }
  if (!std::all_of(target.begin(), target.end(), IsVisible) ||
      target.find('#') != std::string_view::npos) {
    return Malformed("its path holds a byte that does not belong there");
  }
  head->method = method;
  std::size_t question = std::min(target.find('?'), target.size());
  head->path = target.substr(0, question);
  if (question < target.size()) head->query = target.substr(question + 1);
  return std::nullopt;
}

std::optional<Refusal> ParseHeaderLine(std::string_view line, std::vector<HeaderField>* headers) {
  if (line.front() == ' ' || line.front() == '\t') return Malformed("a header line is folded");
  std::size_t colon = line.find(':');
  if (colon == std::string_view::npos || !IsToken(line.substr(0, colon)))
    return Malformed("a header line is not NAME: VALUE");
  std::string_view value = TrimBlanks(line.substr(colon + 1));
  if (!std::all_of(value.begin(), value.end(),
                   [](char c) { return IsVisible(c) || c == ' ' || c == '\t'; }))
    return Malformed("a header value holds a byte that is not printable ASCII");
  std::string name = Lower(line.substr(0, colon));
  if (FindHeader(*headers, name) != nullptr)
    return Malformed(Text("the header ", name, " came twice"));
  if (headers->size() == kEgressHeaders)
    return Refusal{431, "egress_head_size", Text("more than ", kEgressHeaders, " headers")};
  headers->push_back({std::move(name), std::string(value)});
  return std::nullopt;
}

std::optional<Refusal> ReadFraming(RequestHead* head) {
  const std::string* coding = head->Find("transfer-encoding");
  const std::string* length = head->Find("content-length");
  if (coding != nullptr && length != nullptr)
    return Malformed("it has both Content-Length and Transfer-Encoding");
  if (coding != nullptr) {
    if (Lower(*coding) != "chunked") return Malformed("its transfer coding is not chunked");
    head->is_chunked = true;
  }
  if (length != nullptr) {
    std::optional<uint64_t> bytes = ParseUnsigned(*length);
    if (!bytes || length->size() > kLengthDigits)
      return Malformed("its Content-Length is not a plain number");
    head->content_length = *bytes;
  }
  return std::nullopt;
}

std::optional<Refusal> ReadConnection(RequestHead* head) {
  const std::string* connection = head->Find("connection");
  bool upgrades = head->Find("upgrade") != nullptr || head->Find("http2-settings") != nullptr;
  if (connection != nullptr) {
    for (std::string_view part : Split(*connection, ',')) {
      std::string option = Lower(TrimBlanks(part));
      if (option == "upgrade") upgrades = true;
      if (option == "close") head->keeps_alive = false;
    }
  }
  if (upgrades) {
    return Refusal{400, "egress_upgrade",
                   "the connection can't change its protocol here (no WebSocket, no HTTP/2)"};
  }
  if (const std::string* expect = head->Find("expect"); expect != nullptr) {
    if (Lower(*expect) != "100-continue")
      return Refusal{417, "egress_http", "the only expectation met here is 100-continue"};
    head->expects_continue = true;
  }
  return std::nullopt;
}

}  // namespace

const std::string* FindHeader(const std::vector<HeaderField>& headers, std::string_view name) {
  for (const HeaderField& field : headers) {
    if (field.name == name) return &field.value;
  }
  return nullptr;
}

const std::string* RequestHead::Find(std::string_view name) const {
  return FindHeader(headers, name);
}

std::size_t HeadLength(std::string_view bytes) {
  std::size_t at = 0;
  while ((at = bytes.find('\n', at)) != std::string_view::npos) {
    std::string_view rest = bytes.substr(at + 1);
    if (rest.starts_with('\n')) return at + 2;
    if (rest.starts_with("\r\n")) return at + 3;
    ++at;
  }
  return 0;
}

std::optional<Refusal> ReadHead(
    std::string_view head,
    const std::function<std::optional<Refusal>(std::string_view)>& take_first,
    std::vector<HeaderField>* headers) {
  bool is_first = true;
  for (std::string_view rest = head; !rest.empty();) {
    std::size_t end = rest.find('\n');
    if (end == std::string_view::npos || end == 0 || rest[end - 1] != '\r')
      return Malformed("a line does not end with CR LF");
    std::string_view line = rest.substr(0, end - 1);
    rest.remove_prefix(end + 1);
    if (line.find('\r') != std::string_view::npos) return Malformed("a line holds a bare CR");
    if (line.empty() && (is_first || !rest.empty()))
      return Malformed("a blank line where none belongs");
    if (line.empty()) break;
    std::optional<Refusal> refusal = is_first ? take_first(line) : ParseHeaderLine(line, headers);
    if (refusal) return refusal;
    is_first = false;
  }
  return std::nullopt;
}

std::variant<RequestHead, Refusal> ParseRequestHead(std::string_view head_bytes) {
  RequestHead head;
  auto take_first = [&head](std::string_view line) { return ParseRequestLine(line, &head); };
  if (std::optional<Refusal> refusal = ReadHead(head_bytes, take_first, &head.headers))
    return std::move(*refusal);
  if (std::optional<Refusal> refusal = ReadFraming(&head)) return std::move(*refusal);
  if (std::optional<Refusal> refusal = ReadConnection(&head)) return std::move(*refusal);
  return head;
}

}  // namespace taskcell::gateway
