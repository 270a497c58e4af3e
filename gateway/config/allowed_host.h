#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "launcher/base/result.h"

namespace taskcell::gateway {

// A place outside that a cell may open a TLS connection to.
struct AllowedHost {
  std::string host;  // lower case
  uint16_t port = 0;

  bool operator==(const AllowedHost&) const = default;
  std::string Spelling() const;  // "host:port", the one spelling of it
};

// True for dot-separated labels of lower-case letters, digits and hyphens. A last label that begins
// with a digit is how every odd spelling of an IPv4 address ends (0x7f000001, 127.1, 2130706433),
// and no top-level domain does.
bool IsHostName(std::string_view host);

// Parses "host:port" in its one spelling: a whole lower-case name, of which the last label is one
// that public names have, a colon, and the port without leading zeros. Addresses, names of this
// machine or of local networks, wildcards, user names, schemes, paths, trailing dots, and letters
// outside ASCII (which are written as xn--...) are an Error of kind kConfig that says what is
// wrong.
Result<AllowedHost> ParseAllowedHost(std::string_view text);

}  // namespace taskcell::gateway
