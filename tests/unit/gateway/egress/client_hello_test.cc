#include "gateway/egress/client_hello.h"

#include <gtest/gtest.h>

#include "tests/support/client_hello_bytes.h"

namespace taskcell::gateway {
namespace {

using namespace test;
using namespace std::string_literals;
using namespace std::string_view_literals;

std::string NameIn(std::string_view bytes) {
  auto read = ReadClientHello(bytes);
  if (auto* hello = std::get_if<ClientHello>(&read)) return hello->server_name;
  return std::holds_alternative<HelloIncomplete>(read) ? "incomplete" : "refused";
}

TEST(ClientHelloTest, TheServerNameIsReadAmongGreaseAndOtherExtensions) {
  EXPECT_EQ(NameIn(ClientHelloFor("pypi.org")), "pypi.org");
  EXPECT_EQ(NameIn(ClientHelloFor("PyPI.org")), "PyPI.org");
  EXPECT_EQ(NameIn(Record(HelloMessage(OtherExtensions() + ServerName("a.b")))), "a.b");
}

TEST(ClientHelloTest, EveryBeginningOfOneIsIncompleteAndWhatFollowsIsNotLookedAt) {
  const std::string hello = ClientHelloFor("pypi.org");
  for (std::size_t size = 0; size < hello.size(); ++size)
    EXPECT_EQ(NameIn(std::string_view(hello).substr(0, size)), "incomplete") << size;
  // Early data or a change of ciphers in a record of its own belongs to the tunnel.
  EXPECT_EQ(NameIn(hello + "\x14\x03\x03\0\x01\x01"), "pypi.org");
}

TEST(ClientHelloTest, AMessageInManyRecordsIsOneMessage) {
  const std::string message = HelloMessage(ServerName("pypi.org") + OtherExtensions());
  for (std::size_t piece : {1U, 2U, 3U, 4U, 5U, 7U, 100U}) {
    std::string bytes;
    for (std::size_t at = 0; at < message.size(); at += piece)
      bytes += Record(std::string_view(message).substr(at, piece));
    EXPECT_EQ(NameIn(bytes), "pypi.org") << piece;
    for (std::size_t size = 0; size < bytes.size(); ++size)
      ASSERT_EQ(NameIn(std::string_view(bytes).substr(0, size)), "incomplete") << piece;
  }
}

TEST(ClientHelloTest, WhateverIsNotOneClearNameIsRefused) {
  const std::string name = ServerName("pypi.org");
  const std::string message = HelloMessage(name + OtherExtensions());
  const std::string body = message.substr(4);
  struct Row {
    const char* what;
    std::string bytes;
  };
  const Row rows[] = {
      {"plain HTTP", "GET / HTTP/1.1\r\n\r\n"},
      {"a nested CONNECT", "CONNECT evil.example:443 HTTP/1.1\r\n\r\n"},
      {"SSH", "SSH-2.0-OpenSSH_9.2\r\n"},
      {"an SSL 2 hello", "\x80\x2e\x01\x03\x01"},
      {"an alert first", "\x15\x03\x01\0\x02\x02\x28"s},
      {"SSL 3", "\x16\x03\0\0\x05"s + message},
      {"version 4", "\x16\x04\x01" + Behind(2, message)},
      {"an empty record", "\x16\x03\x01\0\0"s + Record(message)},
      {"a record too long", "\x16\x03\x01\x40\x01"s + message},
      {"a ServerHello", Record('\x02' + Behind(3, body))},
      {"a message too long", Record('\x01' + BigEndian(16 * 1024, 3) + body)},
      {"two messages in a record", Record(message + message)},
      {"a byte behind the message", Record(message + "x")},
      {"no extensions", Record(HelloMessage(""))},
      {"no server name", Record(HelloMessage(OtherExtensions()))},
      {"an empty server name", Record(HelloMessage(ServerName("")))},
      {"an empty list", Record(HelloMessage(Extension(0, "\0\0"sv)))},
      {"two names", Record(HelloMessage(Extension(
                        0, Behind(2, "\0"s + Behind(2, "pypi.org") + "\0"s + Behind(2, "b.c")))))},
      {"another kind of name",
       Record(HelloMessage(Extension(0, Behind(2, "\x01" + Behind(2, "pypi.org")))))},
      {"the extension twice", Record(HelloMessage(name + name))},
      {"GREASE twice", Record(HelloMessage(name + Extension(0x2a2a, "") + Extension(0x2a2a, "")))},
      {"bytes behind the name",
       Record(HelloMessage(Extension(0, Behind(2, "\0"s + Behind(2, "pypi.org")) + "x")))},
      {"NUL in the name", Record(HelloMessage(ServerName("pypi.org\0.evil"sv)))},
      {"a name outside ASCII", Record(HelloMessage(ServerName("p\xc3\xbcpi.org")))},
      {"a name too long", Record(HelloMessage(ServerName(std::string(256, 'a'))))},
      {"ECH", Record(HelloMessage(name + Extension(0xfe0d, "\0outer"sv)))},
      {"a draft of ECH", Record(HelloMessage(Extension(0xfe0a, "") + name))},
      {"ESNI", Record(HelloMessage(name + Extension(0xffce, "x")))},
      {"an extension cut off", Record(HelloMessage(name + "\0\x17\0\x09x"s))},
      {"a length that is short", Record('\x01' + Behind(3, body.substr(0, body.size() - 1)))},
      {"nothing but the version", Record('\x01' + Behind(3, "\x03\x03"))},
  };
  for (const Row& row : rows) {
    auto read = ReadClientHello(row.bytes);
    auto* refusal = std::get_if<Refusal>(&read);
    ASSERT_NE(refusal, nullptr) << row.what;
    EXPECT_EQ(refusal->code, "egress_tls") << row.what;
    EXPECT_EQ(refusal->message.find("egress_"), std::string::npos);
  }
}

TEST(ClientHelloTest, TheBoundHoldsForAllBytesThatAreLookedAt) {
  // Records of one byte: five bytes of header for each of the message.
  auto padded = [](std::size_t padding) {
    return HelloMessage(ServerName("a.b") + Extension(21, std::string(padding, '\0')));
  };
  const std::size_t fixed = Record(padded(0)).size();
  EXPECT_EQ(NameIn(Record(padded(kClientHelloBytes - fixed))), "a.b");
  EXPECT_EQ(NameIn(Record(padded(kClientHelloBytes - fixed + 1))), "refused");
}

// The random that makes a ServerHello a HelloRetryRequest.
const std::string kRetryRandom =
    "\xcf\x21\xad\x74\xe5\x9a\x61\x11\xbe\x1d\x8c\x02\x1e\x65\xb8\x91"
    "\xc2\xa2\x11\x16\x7a\xbb\x8c\x5e\x07\x9e\x09\xe2\xc8\xa8\x33\x9c"s;

std::string ServerMessage(const std::string& random) {
  return "\x02" + Behind(3, "\x03\x03" + random + std::string(40, 's'));
}

TEST(ServerHelloTest, ARetryIsToldFromEveryOtherAnswerHoweverItIsCut) {
  const std::string retry = ServerMessage(kRetryRandom);
  EXPECT_EQ(ReadServerHello(Record(retry)), ServerHello::kRetry);
  EXPECT_EQ(ReadServerHello(Record(ServerMessage(std::string(32, 'r')))), ServerHello::kOther);
  std::string changed = kRetryRandom;
  changed[31] = '\x9d';
  EXPECT_EQ(ReadServerHello(Record(ServerMessage(changed))), ServerHello::kOther);
  EXPECT_EQ(ReadServerHello("\x15\x03\x03\0\x02\x02\x28"s), ServerHello::kOther) << "an alert";
  EXPECT_EQ(ReadServerHello("HTTP/1.1 400 Bad Request\r\n"), ServerHello::kOther);
  std::string pieces;
  for (char byte : retry) pieces += Record(std::string(1, byte));
  EXPECT_EQ(ReadServerHello(pieces), ServerHello::kRetry);
  const std::string whole = Record(retry);
  for (std::size_t size = 0; size < 43; ++size)
    EXPECT_EQ(ReadServerHello(whole.substr(0, size)), ServerHello::kIncomplete) << size;
}

TEST(ServerHelloTest, TheSecondClientHelloIsReadBehindWhatMayStandBeforeIt) {
  const std::string change = "\x14\x03\x03\0\x01\x01"s;
  const std::string early =
      "\x17\x03\x03\0\x03"
      "abc"s;
  auto name_in = [](std::string_view bytes) -> std::string {
    auto read = ReadSecondClientHello(bytes);
    if (auto* hello = std::get_if<ClientHello>(&read)) return hello->server_name;
    return std::holds_alternative<HelloIncomplete>(read) ? "incomplete" : "refused";
  };
  const std::string hello = ClientHelloFor("other.example");
  for (const std::string& before :
       {std::string(), change, early + change, change + early + early}) {
    EXPECT_EQ(name_in(before + hello), "other.example");
    for (std::size_t size = 0; size < before.size() + hello.size(); ++size)
      EXPECT_EQ(name_in((before + hello).substr(0, size)), "incomplete") << size;
  }
  EXPECT_EQ(name_in("GET / HTTP/1.1\r\n"), "refused");
  EXPECT_EQ(name_in("\x17\x03\x03\xff\xff"s), "refused");
  std::string endless;
  while (endless.size() < kSecondHelloBytes)
    endless += "\x17\x03\x03\x10\0"s + std::string(4096, 'e');
  EXPECT_EQ(name_in(endless), "refused");
}

}  // namespace
}  // namespace taskcell::gateway
