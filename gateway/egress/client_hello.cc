#include "gateway/egress/client_hello.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "launcher/base/text.h"

namespace taskcell::gateway {
namespace {

constexpr std::size_t kRecordHeaderBytes = 5;
constexpr std::size_t kMostRecordBytes = 1U << 14;
constexpr std::size_t kMessageHeaderBytes = 4;
constexpr uint64_t kChangeCipherSpecRecord = 20;
constexpr uint64_t kAlertRecord = 21;
constexpr uint64_t kHandshakeRecord = 22;
constexpr uint64_t kDataRecord = 23;
constexpr std::size_t kMostProtectedBytes = kMostRecordBytes + 256;
constexpr uint64_t kClientHelloType = 1;
constexpr uint64_t kServerHelloType = 2;
// The random of a ServerHello that is a HelloRetryRequest.
constexpr std::string_view kRetryRandom(
    "\xcf\x21\xad\x74\xe5\x9a\x61\x11\xbe\x1d\x8c\x02\x1e\x65\xb8\x91"
    "\xc2\xa2\x11\x16\x7a\xbb\x8c\x5e\x07\x9e\x09\xe2\xc8\xa8\x33\x9c",
    32);
constexpr uint64_t kMostVersion = 3;  // 3.1 to 3.3 are TLS 1.0 to 1.3
constexpr std::size_t kRandomBytes = 32;
constexpr std::size_t kMostSessionBytes = 32;
constexpr uint64_t kServerName = 0;
constexpr std::size_t kMostNameBytes = 255;
// encrypted_client_hello with its drafts, encrypted_server_name, ech_outer_extensions.
constexpr std::array<uint64_t, 10> kEncryptedHellos = {0xfe08, 0xfe09, 0xfe0a, 0xfe0b, 0xfe0c,
                                                       0xfe0d, 0xff02, 0xff03, 0xffce, 0xfd00};

Refusal Refused(std::string_view why) {
  return Refusal{403, "egress_tls", Text("the tunnel was cut before a byte went on: ", why)};
}

// Cuts big-endian numbers and length-prefixed parts off the front; the first that is not there
// fails it.
class Cutter {
 public:
  explicit Cutter(std::string_view bytes) : rest_(bytes) {}

  std::string_view Bytes(std::size_t size) {
    if (size > rest_.size()) {
      failed_ = true;
      size = 0;
    }
    std::string_view part = rest_.substr(0, size);
    rest_.remove_prefix(size);
    return part;
  }
  uint64_t Number(std::size_t size) {
    uint64_t number = 0;
    for (char byte : Bytes(size)) number = number << 8U | static_cast<unsigned char>(byte);
    return number;
  }
  // A part behind its length of `size` bytes.
  std::string_view Part(std::size_t size) { return Bytes(Number(size)); }

  bool failed() const { return failed_; }
  bool at_end() const { return rest_.empty(); }
  std::size_t left() const { return rest_.size(); }

 private:
  std::string_view rest_;
  bool failed_ = false;
};

bool IsVersion(uint64_t version) {
  return version >> 8U == 3 && (version & 0xffU) >= 1 && (version & 0xffU) <= kMostVersion;
}

// The handshake message without its records. Empty `refusal` and not `whole`: more bytes are
// needed.
struct Message {
  std::string bytes;
  bool whole = false;
  std::optional<Refusal> refusal;
};

std::size_t WantedBytes(const std::string& message) {
  Cutter header(message);
  (void)header.Number(1);  // ignoring: the type, which is looked at as soon as it is there
  return kMessageHeaderBytes + header.Number(3);
}

Message Assemble(std::string_view bytes) {
  Message message;
  Cutter records(bytes);
  while (records.left() > 0) {
    std::size_t available = records.left();
    if (records.Number(1) != kHandshakeRecord) {
      message.refusal = Refused("it does not begin with a TLS handshake");
      return message;
    }
    if (available < kRecordHeaderBytes) return message;
    if (!IsVersion(records.Number(2))) {
      message.refusal = Refused("its first record is of no version of TLS");
      return message;
    }
    auto length = records.Number(2);
    if (length == 0 || length > kMostRecordBytes) {
      message.refusal = Refused("a record of it has a length that none has");
      return message;
    }
    bool is_cut = length > records.left();
    message.bytes += records.Bytes(std::min(length, records.left()));
    if (message.bytes.empty()) return message;
    if (message.bytes[0] != static_cast<char>(kClientHelloType)) {
      message.refusal = Refused("its first message is no ClientHello");
      return message;
    }
    if (message.bytes.size() < kMessageHeaderBytes) continue;
    std::size_t wanted = WantedBytes(message.bytes);
    if (wanted > kClientHelloBytes || message.bytes.size() > wanted) {
      message.refusal =
          Refused(wanted > kClientHelloBytes ? "its ClientHello is too long"
                                             : "something follows the ClientHello in its record");
      return message;
    }
    if (!is_cut && message.bytes.size() == wanted) {
      message.whole = true;
      return message;
    }
  }
  return message;
}

// The extension server_name (RFC 6066): one list with one host name.
std::optional<std::string> ReadServerName(std::string_view extension) {
  Cutter outer(extension);
  Cutter list(outer.Part(2));
  bool is_host = list.Number(1) == 0;
  std::string name(list.Part(2));
  bool is_sound = is_host && !outer.failed() && !list.failed() && outer.at_end() && list.at_end();
  bool is_visible =
      std::all_of(name.begin(), name.end(), [](char c) { return c > ' ' && c < '\x7f'; });
  if (!is_sound || !is_visible || name.empty() || name.size() > kMostNameBytes) return std::nullopt;
  return name;
}

std::variant<HelloIncomplete, ClientHello, Refusal> ReadExtensions(std::string_view bytes) {
  ClientHello hello;
  std::vector<uint64_t> seen;
  Cutter extensions(bytes);
  while (!extensions.at_end()) {
    uint64_t type = extensions.Number(2);
    std::string_view content = extensions.Part(2);
    if (extensions.failed()) return Refused("an extension of its ClientHello is cut off");
    if (std::find(seen.begin(), seen.end(), type) != seen.end())
      return Refused("an extension of its ClientHello comes twice");
    seen.push_back(type);
    if (std::find(kEncryptedHellos.begin(), kEncryptedHellos.end(), type) != kEncryptedHellos.end())
      return Refused("its ClientHello is encrypted (ECH); switch that off");
    if (type != kServerName) continue;
    std::optional<std::string> name = ReadServerName(content);
    if (!name) return Refused("its server name is not one host name");
    hello.server_name = *std::move(name);
  }
  if (hello.server_name.empty()) return Refused("its ClientHello names no server (SNI)");
  return hello;
}

std::variant<HelloIncomplete, ClientHello, Refusal> ReadMessage(std::string_view message) {
  Cutter hello(message.substr(kMessageHeaderBytes));
  bool is_version = IsVersion(hello.Number(2));
  (void)hello.Bytes(kRandomBytes);  // ignoring: any will do
  bool is_session = hello.Part(1).size() <= kMostSessionBytes;
  std::size_t ciphers = hello.Part(2).size();
  bool is_compression = !hello.Part(1).empty();
  if (hello.failed() || !is_version || !is_session || !is_compression || ciphers == 0 ||
      ciphers % 2 != 0)
    return Refused("its ClientHello is malformed");
  if (hello.at_end()) return Refused("its ClientHello names no server (SNI)");
  std::string_view extensions = hello.Part(2);
  if (hello.failed() || !hello.at_end()) return Refused("its ClientHello is malformed");
  return ReadExtensions(extensions);
}

}  // namespace

std::variant<HelloIncomplete, ClientHello, Refusal> ReadClientHello(std::string_view bytes) {
  Message message = Assemble(bytes.substr(0, kClientHelloBytes));
  if (message.refusal) return *std::move(message.refusal);
  if (message.whole) return ReadMessage(message.bytes);
  if (bytes.size() >= kClientHelloBytes) return Refused("its ClientHello is too long");
  return HelloIncomplete{};
}

ServerHello ReadServerHello(std::string_view bytes) {
  constexpr std::size_t kRandomAt = kMessageHeaderBytes + 2;
  std::string message;
  Cutter records(bytes);
  while (records.left() > 0) {
    if (records.Number(1) != kHandshakeRecord) return ServerHello::kOther;
    (void)records.Number(2);  // ignoring: a client checks the version
    uint64_t length = records.Number(2);
    if (records.failed()) return ServerHello::kIncomplete;
    message += records.Bytes(std::min<std::size_t>(length, records.left()));
    if (!message.empty() && message[0] != static_cast<char>(kServerHelloType))
      return ServerHello::kOther;
    if (message.size() < kRandomAt + kRetryRandom.size()) continue;
    const bool is_retry = message.compare(kRandomAt, kRetryRandom.size(), kRetryRandom) == 0;
    return is_retry ? ServerHello::kRetry : ServerHello::kOther;
  }
  return ServerHello::kIncomplete;
}

std::variant<HelloIncomplete, ClientHello, Refusal> ReadSecondClientHello(std::string_view bytes) {
  Cutter records(bytes);
  while (records.left() > 0) {
    const std::string_view here = bytes.substr(bytes.size() - records.left());
    const uint64_t type = records.Number(1);
    if (type == kHandshakeRecord) return ReadClientHello(here);
    if (type != kChangeCipherSpecRecord && type != kAlertRecord && type != kDataRecord)
      return Refused("something else than TLS follows its ClientHello");
    (void)records.Number(2);  // ignoring: the version is not looked at in what is passed over
    const uint64_t length = records.Number(2);
    if (length > kMostProtectedBytes) return Refused("a record of it has a length that none has");
    (void)records.Bytes(length);  // ignoring: whatever it is
    if (records.failed()) break;
  }
  if (bytes.size() >= kSecondHelloBytes) return Refused("no ClientHello follows the first");
  return HelloIncomplete{};
}

}  // namespace taskcell::gateway
