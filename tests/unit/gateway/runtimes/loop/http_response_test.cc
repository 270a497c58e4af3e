#include "gateway/runtimes/loop/http_response.h"

#include <gtest/gtest.h>

#include <string>

#include "launcher/base/text.h"

namespace taskcell::gateway::loop {
namespace {

// True when `bytes` is a whole proper response, with the connection closed after it.
bool IsProper(std::string_view bytes) {
  HttpResponseReader reader;
  Result<bool> whole = reader.Take(bytes);
  return whole.ok() && (whole.value() || reader.End().ok());
}

constexpr std::string_view kPlain =
    "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}";
constexpr std::string_view kChunked =
    "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nWiki\r\n6;x=y\r\npedia \r\nA\r\nin "
    "chunks\n\r\n0\r\nTrailer: x\r\n\r\n";

TEST(HttpResponseTest, EveryFramingIsReadInEverySplit) {
  struct Case {
    std::string_view bytes;
    std::string_view body;
  };
  for (const Case& each :
       {Case{kPlain, "{}"}, Case{kChunked, "Wikipedia in chunks\n"},
        Case{"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\ncontent-length: 1\r\n\r\nx", "x"},
        Case{"HTTP/1.1 200\r\ncontent-length: 0\r\n\r\n", ""},
        Case{"HTTP/1.1 204 No Content\r\n\r\n", ""}}) {
    for (std::size_t size = 1; size <= each.bytes.size(); ++size) {
      HttpResponseReader reader;
      bool whole = false;
      for (std::size_t at = 0; at < each.bytes.size(); at += size) {
        ASSERT_FALSE(whole) << "whole too early: " << each.bytes;
        whole = reader.Take(each.bytes.substr(at, size)).value();
      }
      ASSERT_TRUE(whole) << each.bytes;
      EXPECT_EQ(reader.body(), each.body);
    }
  }
}

TEST(HttpResponseTest, WithoutALengthTheEndOfTheConnectionEndsTheBody) {
  HttpResponseReader reader;
  EXPECT_FALSE(reader.Take("HTTP/1.0 404 Not Found\r\n\r\nno such").value());
  EXPECT_FALSE(reader.Take(" thing").value());
  EXPECT_TRUE(reader.End().ok());
  EXPECT_EQ(reader.status(), 404);
  EXPECT_EQ(reader.body(), "no such thing");
}

TEST(HttpResponseTest, ACutResponseIsNeverWhole) {
  for (std::string_view whole : {kPlain, kChunked}) {
    ASSERT_TRUE(IsProper(whole));
    for (std::size_t size = 0; size < whole.size(); ++size) {
      EXPECT_FALSE(IsProper(whole.substr(0, size))) << whole.substr(0, size);
    }
  }
}

TEST(HttpResponseTest, AmbiguousOrMalformedResponsesAreRefused) {
  std::string start = "HTTP/1.1 200 OK\r\n";
  ASSERT_TRUE(IsProper(start + "content-length: 1\r\n\r\nx"));
  for (const char* rest :
       {"content-length: 1\r\ncontent-length: 1\r\n\r\nx", "content-length: 1, 1\r\n\r\nx",
        "content-length: +1\r\n\r\nx", "content-length: 0x1\r\n\r\nx",
        "content-length: 99999999999999999999\r\n\r\nx",
        "content-length: 1\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n",
        "transfer-encoding: chunked\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n",
        "transfer-encoding: gzip, chunked\r\n\r\n0\r\n\r\n", "content-length: 1\n\r\nx",
        "content-length: 1\r\n folded\r\n\r\nx", ": no name\r\n\r\n", "no colon\r\n\r\n",
        "content-length : 1\r\n\r\nx", "content-encoding: gzip\r\ncontent-length: 1\r\n\r\nx",
        "transfer-encoding: chunked\r\n\r\n-1\r\nx\r\n0\r\n\r\n",
        "transfer-encoding: chunked\r\n\r\n1\r\nxy\r\n0\r\n\r\n",
        "transfer-encoding: chunked\r\n\r\n123456789\r\n",
        "transfer-encoding: chunked\r\n\r\n\r\n"}) {
    EXPECT_FALSE(IsProper(start + rest)) << rest;
  }
  for (const char* whole :
       {"HTTP/2 200 OK\r\n\r\n", "HTTP/1.1 20 OK\r\n\r\n", "HTTP/1.1 2000 OK\r\n\r\n",
        "HTTP/1.1 999 ?\r\n\r\n", "garbage\r\n\r\n", "HTTP/1.1 101 Switching\r\n\r\n",
        "HTTP/1.1 100 Continue\r\ncontent-length: 1\r\n\r\nx"}) {
    EXPECT_FALSE(IsProper(whole)) << whole;
  }
}

TEST(HttpResponseTest, TheHeaderIsBoundedAtTheLimitAndOnePast) {
  auto with_header_of = [](std::size_t bytes) {
    std::string head = "HTTP/1.1 200 OK\r\nx: ";
    std::string end = "\r\ncontent-length: 0\r\n\r\n";
    return Text(head, std::string(bytes - head.size() - end.size(), 'x'), end);
  };
  EXPECT_TRUE(IsProper(with_header_of(kMaxHeaderBytes)));
  EXPECT_FALSE(IsProper(with_header_of(kMaxHeaderBytes + 1)));
  std::string interim;  // many small ones count together
  while (interim.size() <= kMaxHeaderBytes) interim += "HTTP/1.1 100 Continue\r\n\r\n";
  EXPECT_FALSE(IsProper(Text(interim, kPlain)));
  HttpResponseReader endless;
  EXPECT_FALSE(endless.Take(std::string(kMaxHeaderBytes + 1, 'x')).ok());
}

TEST(HttpResponseTest, TheBodyIsBoundedAtTheLimitAndOnePast) {
  std::string body(kMaxBodyBytes, 'x');
  std::string start = "HTTP/1.1 200 OK\r\n";
  EXPECT_TRUE(IsProper(Text(start, "content-length: ", kMaxBodyBytes, "\r\n\r\n", body)));
  EXPECT_FALSE(IsProper(Text(start, "content-length: ", kMaxBodyBytes + 1, "\r\n\r\n", body, "x")));
  EXPECT_TRUE(IsProper(Text(start, "\r\n", body)));
  EXPECT_FALSE(IsProper(Text(start, "\r\n", body, "x")));
  start += "transfer-encoding: chunked\r\n\r\n";
  EXPECT_TRUE(IsProper(Text(start, "400000\r\n", body, "\r\n0\r\n\r\n")));
  EXPECT_FALSE(IsProper(Text(start, "400000\r\n", body, "\r\n1\r\nx\r\n0\r\n\r\n")));
}

}  // namespace
}  // namespace taskcell::gateway::loop
