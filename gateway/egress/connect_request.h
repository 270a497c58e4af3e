#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "gateway/config/allowed_host.h"
#include "gateway/egress/refusal.h"

namespace taskcell::gateway {

// The most bytes of a CONNECT request with its headers.
inline constexpr std::size_t kConnectHeadBytes = 8U << 10;

// Parses the head of a request to the listener for tunnels, as HeadLength delimits it: CONNECT with
// host:port in its one spelling (ParseAllowedHost), HTTP/1.1 or 1.0, headers as ParseRequestHead
// takes them, a Host that names no other place, no body. Every other method is refused, plain HTTP
// through a proxy (GET http://...) among them. Of the headers nothing is passed on. Pure.
std::variant<AllowedHost, Refusal> ParseConnect(std::string_view head);

// Refuses a place that is not on the list. An empty list has none. Pure.
std::optional<Refusal> CheckAllowed(const std::vector<AllowedHost>& allowed,
                                    const AllowedHost& wanted);

// Refuses a tunnel whose TLS client asks for another server than the tunnel was opened to; letters
// of either case are the same. Pure.
std::optional<Refusal> CheckServerName(const AllowedHost& wanted, std::string_view server_name);

// Where the first line of a request would go, printable and at most 256 bytes, for the record.
std::string ShownTarget(std::string_view head);

}  // namespace taskcell::gateway
