#include "gateway/egress/connect_request.h"

#include <gtest/gtest.h>

#include "launcher/base/text.h"

namespace taskcell::gateway {
namespace {

using namespace std::string_literals;

std::string Connect(std::string_view target, std::string_view headers = "") {
  return Text("CONNECT ", target, " HTTP/1.1\r\n", headers, "\r\n");
}

TEST(ConnectRequestTest, AHostAndItsPortAreRead) {
  const std::string heads[] = {
      Connect("pypi.org:443"),
      Connect("pypi.org:443", "Host: pypi.org:443\r\nProxy-Connection: keep-alive\r\n"),
      Connect("pypi.org:443", "Host: pypi.org\r\nProxy-Authorization: Basic eA==\r\n"),
      "CONNECT pypi.org:443 HTTP/1.0\r\n\r\n",  // Python's http.client up to 3.11
      Connect("pypi.org:443", "Content-Length: 0\r\n"),
  };
  for (const std::string& head : heads) {
    auto parsed = ParseConnect(head);
    auto* host = std::get_if<AllowedHost>(&parsed);
    ASSERT_NE(host, nullptr) << head;
    EXPECT_EQ(*host, (AllowedHost{"pypi.org", 443}));
  }
}

struct Odd {
  const char* name;
  std::string head;
  int status;
  const char* code;
};

TEST(ConnectRequestTest, EveryOtherFormIsRefused) {
  const Odd rows[] = {
      {"GET of plain HTTP", "GET http://evil.example/ HTTP/1.1\r\nHost: evil.example\r\n\r\n", 403,
       "egress_plain_http"},
      {"POST of plain HTTP", "POST http://evil.example/ HTTP/1.1\r\n\r\n", 403,
       "egress_plain_http"},
      {"GET of a path", "GET / HTTP/1.1\r\nHost: pypi.org\r\n\r\n", 405, "egress_connect"},
      {"lower case", "connect pypi.org:443 HTTP/1.1\r\n\r\n", 405, "egress_connect"},
      {"absolute form", Connect("https://pypi.org:443"), 400, "egress_connect"},
      {"absolute form of http", Connect("http://pypi.org:443/"), 400, "egress_connect"},
      {"HTTP/2", "CONNECT pypi.org:443 HTTP/2.0\r\n\r\n", 505, "egress_connect"},
      {"no version", "CONNECT pypi.org:443\r\n\r\n", 400, "egress_connect"},
      {"two targets", Connect("pypi.org:443 evil.example:443"), 400, "egress_connect"},
      {"two spaces", "CONNECT  pypi.org:443 HTTP/1.1\r\n\r\n", 400, "egress_connect"},
      {"another Host", Connect("pypi.org:443", "Host: evil.example\r\n"), 400, "egress_connect"},
      {"another port in Host", Connect("pypi.org:443", "Host: pypi.org:22\r\n"), 400,
       "egress_connect"},
      {"a body", Connect("pypi.org:443", "Content-Length: 1\r\n"), 400, "egress_connect"},
      {"a chunked body", Connect("pypi.org:443", "Transfer-Encoding: chunked\r\n"), 400,
       "egress_connect"},
      {"two Hosts", Connect("pypi.org:443", "Host: pypi.org\r\nHost: pypi.org\r\n"), 400,
       "egress_http"},
      {"a folded line", Connect("pypi.org:443", "X: a\r\n b\r\n"), 400, "egress_http"},
      {"a bare line feed", "CONNECT pypi.org:443 HTTP/1.1\n\n", 400, "egress_http"},
      {"NUL in a header", Connect("pypi.org:443", "X: a\0b\r\n"s), 400, "egress_http"},
  };
  for (const Odd& row : rows) {
    auto parsed = ParseConnect(row.head);
    auto* refusal = std::get_if<Refusal>(&parsed);
    ASSERT_NE(refusal, nullptr) << row.name;
    EXPECT_EQ(refusal->status, row.status) << row.name;
    EXPECT_EQ(refusal->code, row.code) << row.name;
  }
}

TEST(ConnectRequestTest, EveryOddSpellingOfAPlaceIsRefused) {
  const std::string targets[] = {
      "pypi.org",
      "pypi.org:",
      "pypi.org:0",
      "pypi.org:0443",
      "pypi.org:65536",
      "pypi.org:+443",
      "pypi.org:443:443",
      ":443",
      "pypi.org.:443",
      ".pypi.org:443",
      "pypi..org:443",
      "PYPI.org:443",
      "*.pypi.org:443",
      "user@pypi.org:443",
      "user:secret@pypi.org:443",
      "pypi.org%00.evil.example:443",
      "pypi.org\0.evil.example:443"s,
      "p\xc3\xbcpi.org:443",
      "pypi_.org:443",
      "-pypi.org:443",
      "pypi.org:443/",
      "pypi.org:443#x",
      "127.0.0.1:443",
      "127.1:443",
      "2130706433:443",
      "0x7f000001:443",
      "0177.0.0.1:443",
      "0x7f.1:443",
      "1.2.3.4:443",
      "[::1]:443",
      "[::ffff:169.254.169.254]:443",
      "[64:ff9b::a9fe:a9fe]:443",
      "[fe80::1%25eth0]:443",
      "::1:443",
      "169.254.169.254:80",
      "localhost:443",
      "a.localhost:443",
      "localhost.localdomain:443",
      "printer.local:443",
      "metadata.google.internal:443",
      "pypi:443",
      std::string(64, 'a') + ".org:443",
  };
  for (const std::string& target : targets) {
    auto parsed = ParseConnect(Connect(target));
    EXPECT_TRUE(std::holds_alternative<Refusal>(parsed)) << target;
    EXPECT_FALSE(ParseAllowedHost(target).ok()) << target;
  }
  EXPECT_TRUE(ParseAllowedHost("xn--ppi-hoa.org:65535").ok());
  EXPECT_TRUE(ParseAllowedHost(std::string(63, 'a') + ".org:1").ok());
}

TEST(ConnectRequestTest, AnEmptyListHasNoPlaceAndOthersAreComparedWhole) {
  const AllowedHost wanted{"pypi.org", 443};
  EXPECT_EQ(CheckAllowed({}, wanted)->code, "egress_host");
  EXPECT_FALSE(CheckAllowed({{"a.b", 1}, wanted}, wanted).has_value());
  for (const AllowedHost& other : {AllowedHost{"pypi.org", 22}, AllowedHost{"evilpypi.org", 443},
                                   AllowedHost{"pypi.org.evil.example", 443},
                                   AllowedHost{"files.pypi.org", 443}, AllowedHost{"org", 443}}) {
    std::optional<Refusal> refusal = CheckAllowed({wanted}, other);
    ASSERT_TRUE(refusal.has_value()) << other.host;
    EXPECT_EQ(refusal->status, 403);
    EXPECT_NE(refusal->message.find(other.Spelling()), std::string::npos);
  }
}

TEST(ConnectRequestTest, TheServerNameIsTheHostWhateverItsCase) {
  const AllowedHost wanted{"pypi.org", 443};
  EXPECT_FALSE(CheckServerName(wanted, "pypi.org").has_value());
  EXPECT_FALSE(CheckServerName(wanted, "PyPI.ORG").has_value());
  for (std::string_view name : {"evil.example", "pypi.org.", "pypi.org:443", "www.pypi.org", ""})
    EXPECT_EQ(CheckServerName(wanted, name)->code, "egress_sni") << name;
}

TEST(ConnectRequestTest, WhatIsShownOfATargetIsShortAndPrintable) {
  EXPECT_EQ(ShownTarget("CONNECT a:1 HTTP/1.1\r\n\r\n"), "a:1");
  EXPECT_EQ(ShownTarget("x\r\n"), "x");
  EXPECT_EQ(ShownTarget(""), "");
  EXPECT_EQ(ShownTarget("CONNECT " + std::string(9000, 'a') + " HTTP/1.1\r\n").size(), 256U);
  EXPECT_EQ(ShownTarget("CONNECT \x1b[2J HTTP/1.1\r\n"), "\\x1b[2J");
}

}  // namespace
}  // namespace taskcell::gateway
