#include "gateway/config/allowed_host.h"

#include <algorithm>
#include <array>
#include <optional>
#include <vector>

#include "launcher/base/text.h"

namespace taskcell::gateway {
namespace {

constexpr std::size_t kMostNameBytes = 253;
constexpr std::size_t kMostLabelBytes = 63;
constexpr std::size_t kMostPortDigits = 5;
constexpr uint64_t kMostPort = 65535;
// Names below these are of one machine or one network, never of the public internet.
constexpr std::array<std::string_view, 4> kLocalTops = {"localhost", "localdomain", "local",
                                                        "internal"};

bool IsLowerAlnum(char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'); }

bool Holds(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

Error Odd(std::string_view why) { return Error(Kind::kConfig, std::string(why)); }

// What is wrong with a host that IsHostName refuses, in the words of whoever wrote it.
Error OddHost(std::string_view host) {
  if (host.empty()) return Odd("the host is missing");
  if (Holds(host, "*")) return Odd("there are no wildcards: each host is named whole");
  if (Holds(host, "@")) return Odd("there is no user name in a host");
  if (Holds(host, "[") || Holds(host, ":")) return Odd("a host is named, not given as an address");
  if (host.ends_with('.')) return Odd("the host ends with a dot");
  if (std::any_of(host.begin(), host.end(), [](char c) { return (c & '\x80') != 0; }))
    return Odd("letters outside ASCII are written as xn--...");
  if (Lower(host) != host && IsHostName(Lower(host))) return Odd("the host is not in lower case");
  char last = host[host.rfind('.') + 1];
  if (last >= '0' && last <= '9') return Odd("a host is named, not given as an address");
  return Odd("the host is no name of letters, digits and hyphens between dots");
}

Result<uint16_t> ParsePortText(std::string_view text) {
  std::optional<uint64_t> port = ParseUnsigned(text);
  bool is_sound = port && *port > 0 && *port <= kMostPort && text.size() <= kMostPortDigits;
  if (!is_sound || text[0] == '0')
    return Odd("the port is no number from 1 to 65535 without leading zeros");
  return static_cast<uint16_t>(*port);
}

}  // namespace

std::string AllowedHost::Spelling() const { return Text(host, ":", port); }

bool IsHostName(std::string_view host) {
  if (host.empty() || host.size() > kMostNameBytes) return false;
  std::vector<std::string_view> labels = Split(host, '.');
  for (std::string_view label : labels) {
    if (label.empty() || label.size() > kMostLabelBytes) return false;
    if (label.front() == '-' || label.back() == '-') return false;
    if (!std::all_of(label.begin(), label.end(),
                     [](char c) { return IsLowerAlnum(c) || c == '-'; }))
      return false;
  }
  char first = labels.back().front();
  return first < '0' || first > '9';
}

Result<AllowedHost> ParseAllowedHost(std::string_view text) {
  if (Holds(text, "://") || Holds(text, "/"))
    return Odd("it is host:port alone, without scheme and path");
  std::size_t colon = text.rfind(':');
  if (colon == std::string_view::npos) return Odd("the port is missing");
  AllowedHost allowed;
  allowed.host = text.substr(0, colon);
  if (!IsHostName(allowed.host)) return OddHost(allowed.host);
  std::vector<std::string_view> labels = Split(allowed.host, '.');
  if (std::find(kLocalTops.begin(), kLocalTops.end(), labels.back()) != kLocalTops.end())
    return Odd("the name is one of this machine or of a local network");
  if (labels.size() == 1) return Odd("the name is not whole: it has no dot");
  allowed.port = TRY(ParsePortText(text.substr(colon + 1)));
  return allowed;
}

}  // namespace taskcell::gateway
