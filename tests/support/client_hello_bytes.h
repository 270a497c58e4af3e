#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace taskcell::test {

// Makes the bytes of TLS ClientHellos, sound ones and every kind of broken one.

inline std::string BigEndian(std::size_t value, std::size_t bytes) {
  std::string text;
  while (bytes-- > 0) text += static_cast<char>(value >> (8 * bytes) & 0xffU);
  return text;
}

// A part behind its length of `bytes` bytes.
inline std::string Behind(std::size_t bytes, std::string_view part) {
  return BigEndian(part.size(), bytes).append(part);
}

inline std::string Extension(std::size_t type, std::string_view content) {
  return BigEndian(type, 2) + Behind(2, content);
}

inline std::string ServerName(std::string_view name) {
  return Extension(0, Behind(2, std::string(1, '\0') + Behind(2, name)));
}

// What a message of TLS 1.3 holds beside the names: GREASE, versions, groups, ALPN.
inline std::string OtherExtensions() {
  using namespace std::string_view_literals;
  return Extension(0x2a2a, "") + Extension(43, "\x04\x03\x04\x03\x03"sv) +
         Extension(10, "\0\x04\x3a\x3a\0\x1d"sv) + Extension(16, "\0\x03\x02h2"sv) +
         Extension(0xdada, "\0"sv);
}

// The message itself, without a record.
inline std::string HelloMessage(std::string_view extensions) {
  std::string body = "\x03\x03" + std::string(32, 'r') + Behind(1, std::string(32, 's')) +
                     Behind(2, "\x1a\x1a\x13\x01\x13\x02") + Behind(1, std::string(1, '\0')) +
                     Behind(2, extensions);
  return '\x01' + Behind(3, body);
}

inline std::string Record(std::string_view content) { return "\x16\x03\x01" + Behind(2, content); }

// A whole ClientHello in one record that asks for `name`.
inline std::string ClientHelloFor(std::string_view name) {
  return Record(HelloMessage(ServerName(name) + OtherExtensions()));
}

}  // namespace taskcell::test
