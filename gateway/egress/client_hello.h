#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <variant>

#include "gateway/egress/refusal.h"

namespace taskcell::gateway {

// The most bytes of a tunnel that are looked at for its ClientHello.
inline constexpr std::size_t kClientHelloBytes = 16U << 10;

// What the first message of a TLS client says.
struct ClientHello {
  std::string server_name;  // as sent: not empty, visible ASCII
};

struct HelloIncomplete {};  // more bytes are needed

// Reads the ClientHello that a TLS connection begins with (RFC 8446 section 4.1.2, RFC 6066 section
// 3), in one record or several. Refused (`egress_tls`): anything that is no TLS handshake, a
// message of more than kClientHelloBytes, lengths that do not fit, an extension twice, no server
// name or more than one, an encrypted ClientHello (its name is not the one that counts), and bytes
// between the message and the end of its last record. GREASE is passed over. Pure.
std::variant<HelloIncomplete, ClientHello, Refusal> ReadClientHello(std::string_view bytes);

// What a server answers to a ClientHello, as far as it bears on whose name is asked for.
enum class ServerHello {
  kIncomplete,  // more bytes are needed
  kRetry,       // HelloRetryRequest (RFC 8446 section 4.1.4): another ClientHello is to come
  kOther,       // no further ClientHello counts
};
ServerHello ReadServerHello(std::string_view bytes);

// The most bytes of a client that are looked at for its ClientHello after a retry.
inline constexpr std::size_t kSecondHelloBytes = 64U << 10;

// Reads the ClientHello that follows a HelloRetryRequest, as ReadClientHello does; what may stand
// before it (change_cipher_spec, early data, alerts) is passed over. Pure.
std::variant<HelloIncomplete, ClientHello, Refusal> ReadSecondClientHello(std::string_view bytes);

}  // namespace taskcell::gateway
