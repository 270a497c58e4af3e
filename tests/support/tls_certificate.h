#pragma once

#include <string>
#include <string_view>

namespace taskcell::test {

enum class Validity { kNow, kExpired };

// Makes a key and a certificate for the DNS name `host` that vouches for itself, so that a client
// which trusts it trusts nobody else by it, as one PEM file in `directory` (openssl's command).
// Returns its path, empty (and a failed test) where that does not work.
std::string MakeCertificate(const std::string& directory, std::string_view host,
                            Validity validity = Validity::kNow);

}  // namespace taskcell::test
