#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "gateway/egress/refusal.h"

namespace taskcell::gateway {

struct HeaderField {
  std::string name;  // lower case
  std::string value;
};

// The value of a header by its lower-case name, or nullptr.
const std::string* FindHeader(const std::vector<HeaderField>& headers, std::string_view name);

// The head of one HTTP/1.1 request in the one form the broker takes.
struct RequestHead {
  std::string method;
  std::string path;   // as sent, before '?': nothing is decoded
  std::string query;  // as sent, after '?'
  std::vector<HeaderField> headers;
  bool is_chunked = false;
  uint64_t content_length = 0;  // 0 when chunked or absent
  bool keeps_alive = true;
  bool expects_continue = false;

  // The value of a header by its lower-case name, or nullptr.
  const std::string* Find(std::string_view name) const;
};

// Returns the length of the head at the start of `bytes` with its blank line, or 0 while there is
// none. A blank line of bare line feeds ends a head too, so that ParseRequestHead can refuse it.
std::size_t HeadLength(std::string_view bytes);

// Takes the lines of a head as HeadLength delimits it: gives the first to `take_first` and parses
// the others into `headers`. Refuses what ParseRequestHead says about lines and headers, and what
// `take_first` refuses.
std::optional<Refusal> ReadHead(
    std::string_view head,
    const std::function<std::optional<Refusal>(std::string_view)>& take_first,
    std::vector<HeaderField>* headers);

// Parses a head as HeadLength delimits it. RFC 9112 with everything refused that two parsers could
// read in two ways: line folding, bare CR or LF, NUL, space before a colon, any header twice, both
// framings, two lengths, another transfer coding than chunked, absolute or authority form, another
// version than 1.1, bytes that are not ASCII, an upgrade, an expectation but 100-continue.
// (Measured: libmicrohttpd 0.9.75 joins a folded line to the header's name, takes bare line feeds,
// cuts a value at NUL, drops a bare CR and decodes the path before its caller sees it.)
std::variant<RequestHead, Refusal> ParseRequestHead(std::string_view head);

}  // namespace taskcell::gateway
