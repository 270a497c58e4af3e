#include "gateway/egress/http_request.h"

#include <gtest/gtest.h>

#include "gateway/egress/http_body.h"

namespace taskcell::gateway {
namespace {

constexpr std::string_view kPlain =
    "POST /v1/messages?beta=true HTTP/1.1\r\nHost: 127.0.0.1:8\r\nContent-Length: 2\r\n\r\n";

std::string Request(std::string_view line, std::string_view headers) {
  return std::string(line) + "\r\nHost: 127.0.0.1:8\r\n" + std::string(headers) + "\r\n";
}

TEST(RequestHeadTest, APlainRequestIsRead) {
  ASSERT_EQ(HeadLength(kPlain), kPlain.size());
  auto parsed = ParseRequestHead(kPlain);
  auto* head = std::get_if<RequestHead>(&parsed);
  ASSERT_NE(head, nullptr);
  EXPECT_EQ(head->method, "POST");
  EXPECT_EQ(head->path, "/v1/messages");
  EXPECT_EQ(head->query, "beta=true");
  EXPECT_EQ(head->content_length, 2U);
  EXPECT_TRUE(head->keeps_alive);
  ASSERT_NE(head->Find("host"), nullptr);
  EXPECT_EQ(*head->Find("host"), "127.0.0.1:8");
}

TEST(RequestHeadTest, TheHeadEndsAtTheBlankLineOnly) {
  for (std::size_t length = 0; length < kPlain.size(); ++length)
    EXPECT_EQ(HeadLength(kPlain.substr(0, length)), 0U);
  EXPECT_EQ(HeadLength(std::string(kPlain) + "{}\r\n\r\n"), kPlain.size());
  EXPECT_EQ(HeadLength("GET / HTTP/1.1\n\nx"), 16U);
}

TEST(RequestHeadTest, EveryAmbiguousFormIsRefused) {
  struct Row {
    const char* name;
    std::string head;
    int status;
    const char* code;
  } rows[] = {
      {"folded", Request("POST /a HTTP/1.1", "X-A: one\r\n two\r\n"), 400, "egress_http"},
      {"folded by tab", Request("POST /a HTTP/1.1", "X-A: one\r\n\ttwo\r\n"), 400, "egress_http"},
      {"fold first", "POST /a HTTP/1.1\r\n Host: x\r\n\r\n", 400, "egress_http"},
      {"bare line feeds", "GET / HTTP/1.1\nHost: 127.0.0.1:8\n\n", 400, "egress_http"},
      {"one bare line feed", "GET / HTTP/1.1\r\nHost: a\nX: b\r\n\r\n", 400, "egress_http"},
      {"bare CR", Request("POST /a HTTP/1.1", "X-A: one\rtwo\r\n"), 400, "egress_http"},
      {"NUL", Request("POST /a HTTP/1.1", std::string_view("X-A: o\0ne\r\n", 11)), 400,
       "egress_http"},
      {"not ASCII", Request("POST /a HTTP/1.1", "X-A: \xc3\xa9\r\n"), 400, "egress_http"},
      {"space before colon", Request("POST /a HTTP/1.1", "Content-Length : 3\r\n"), 400,
       "egress_http"},
      {"no colon", Request("POST /a HTTP/1.1", "garbage\r\n"), 400, "egress_http"},
      {"no name", Request("POST /a HTTP/1.1", ": value\r\n"), 400, "egress_http"},
      {"two hosts", Request("POST /a HTTP/1.1", "Host: evil.example\r\n"), 400, "egress_http"},
      {"two hosts, other case", Request("POST /a HTTP/1.1", "hOST: 127.0.0.1:8\r\n"), 400,
       "egress_http"},
      {"two lengths", Request("POST /a HTTP/1.1", "Content-Length: 3\r\nContent-Length: 4\r\n"),
       400, "egress_http"},
      {"two equal lengths",
       Request("POST /a HTTP/1.1", "Content-Length: 3\r\ncontent-length: 3\r\n"), 400,
       "egress_http"},
      {"length list", Request("POST /a HTTP/1.1", "Content-Length: 3, 3\r\n"), 400, "egress_http"},
      {"signed length", Request("POST /a HTTP/1.1", "Content-Length: +3\r\n"), 400, "egress_http"},
      {"hex length", Request("POST /a HTTP/1.1", "Content-Length: 0x3\r\n"), 400, "egress_http"},
      {"empty length", Request("POST /a HTTP/1.1", "Content-Length: \r\n"), 400, "egress_http"},
      {"overflowing length",
       Request("POST /a HTTP/1.1", "Content-Length: 18446744073709551617\r\n"), 400, "egress_http"},
      {"both framings",
       Request("POST /a HTTP/1.1", "Content-Length: 3\r\nTransfer-Encoding: chunked\r\n"), 400,
       "egress_http"},
      {"both framings reordered",
       Request("POST /a HTTP/1.1", "transfer-encoding: chunked\r\ncontent-length: 3\r\n"), 400,
       "egress_http"},
      {"gzip then chunked", Request("POST /a HTTP/1.1", "Transfer-Encoding: gzip, chunked\r\n"),
       400, "egress_http"},
      {"unknown coding", Request("POST /a HTTP/1.1", "Transfer-Encoding: xchunked\r\n"), 400,
       "egress_http"},
      {"absolute form", Request("GET http://evil.example/ HTTP/1.1", ""), 400, "egress_http"},
      {"authority form", Request("CONNECT evil.example:443 HTTP/1.1", ""), 400, "egress_http"},
      {"asterisk form", Request("OPTIONS * HTTP/1.1", ""), 400, "egress_http"},
      {"old version", Request("GET / HTTP/1.0", ""), 505, "egress_http"},
      {"no version", "GET /\r\n\r\n", 400, "egress_http"},
      {"two spaces", Request("GET  / HTTP/1.1", ""), 400, "egress_http"},
      {"tab in the line", Request("GET\t/ HTTP/1.1", ""), 400, "egress_http"},
      {"fragment", Request("GET /#x HTTP/1.1", ""), 400, "egress_http"},
      {"leading blank line", "\r\nGET / HTTP/1.1\r\n\r\n", 400, "egress_http"},
      {"upgrade", Request("GET / HTTP/1.1", "Upgrade: websocket\r\n"), 400, "egress_upgrade"},
      {"connection upgrade", Request("GET / HTTP/1.1", "Connection: keep-alive, Upgrade\r\n"), 400,
       "egress_upgrade"},
      {"h2c", Request("GET / HTTP/1.1", "HTTP2-Settings: AAMAAABk\r\n"), 400, "egress_upgrade"},
      {"expectation", Request("POST /a HTTP/1.1", "Expect: a-miracle\r\n"), 417, "egress_http"},
  };
  for (const Row& row : rows) {
    auto parsed = ParseRequestHead(row.head);
    auto* refusal = std::get_if<Refusal>(&parsed);
    ASSERT_NE(refusal, nullptr) << row.name;
    EXPECT_EQ(refusal->status, row.status) << row.name;
    EXPECT_EQ(refusal->code, row.code) << row.name;
    EXPECT_FALSE(refusal->message.empty());
  }
  // The control: the same frame with a harmless header is taken.
  EXPECT_EQ(ParseRequestHead(Request("POST /a HTTP/1.1", "X-A: one two\r\n")).index(), 0U);
}

TEST(RequestHeadTest, HeadersAreBoundedAt100) {
  std::string headers;
  for (int number = 1; number < 100; ++number) headers += "x-" + std::to_string(number) + ": 1\r\n";
  EXPECT_EQ(ParseRequestHead(Request("POST /a HTTP/1.1", headers)).index(), 0U);
  auto parsed = ParseRequestHead(Request("POST /a HTTP/1.1", headers + "x-100: 1\r\n"));
  ASSERT_EQ(parsed.index(), 1U);
  EXPECT_EQ(std::get<Refusal>(parsed).status, 431);
}

RequestHead Chunked() {
  RequestHead head;
  head.is_chunked = true;
  return head;
}

// Feeds `bytes` in pieces of `piece` bytes; returns the refusal's status, 0 for a whole body, -1
// for one that is not whole.
int Feed(BodyReader* reader, std::string_view bytes, std::size_t piece) {
  while (!bytes.empty() && !reader->done()) {
    std::string_view part = bytes.substr(0, piece);
    std::size_t before = part.size();
    if (std::optional<Refusal> refusal = reader->Take(&part)) return refusal->status;
    bytes.remove_prefix(before - part.size());
  }
  return reader->done() ? 0 : -1;
}

TEST(BodyReaderTest, ChunksAreJoinedHoweverTheyArrive) {
  std::string_view bytes = "3\r\nabc\r\n00A\r\n0123456789\r\n0\r\n\r\nGET";
  for (std::size_t piece = 1; piece <= bytes.size(); ++piece) {
    BodyReader reader(Chunked(), 13);
    EXPECT_EQ(Feed(&reader, bytes, piece), 0) << piece;
    EXPECT_EQ(reader.body(), "abc0123456789");
  }
}

TEST(BodyReaderTest, MalformedChunksAreRefused) {
  const char* refused[] = {
      "3;ext=1\r\nabc\r\n0\r\n\r\n",
      "3\nabc\n0\n\n",
      "3\r\nabcd\r\n0\r\n\r\n",
      "+3\r\nabc\r\n0\r\n\r\n",
      "0x3\r\nabc\r\n",
      " 3\r\nabc\r\n",
      "\r\nabc",
      "3\r\nabc\r\n0\r\nX: y\r\n\r\n",
      "000000003\r\nabc\r\n",
      "3\r\r\nabc",
      "-1\r\n",
  };
  for (const char* bytes : refused) {
    for (std::size_t piece : {1U, 64U}) {
      BodyReader reader(Chunked(), 100);
      EXPECT_EQ(Feed(&reader, bytes, piece), 400) << bytes;
    }
  }
}

TEST(BodyReaderTest, TheLimitHoldsAtTheByte) {
  RequestHead sized;
  sized.content_length = 10;
  BodyReader fits(sized, 10);
  EXPECT_EQ(Feed(&fits, "0123456789", 3), 0);
  BodyReader over(sized, 9);
  EXPECT_EQ(Feed(&over, "0", 1), 413);

  BodyReader chunks_fit(Chunked(), 10);
  EXPECT_EQ(Feed(&chunks_fit, "6\r\n012345\r\n4\r\n6789\r\n0\r\n\r\n", 7), 0);
  BodyReader chunks_over(Chunked(), 10);
  EXPECT_EQ(Feed(&chunks_over, "6\r\n012345\r\n5\r\n67890\r\n0\r\n\r\n", 7), 413);
  BodyReader huge(Chunked(), 10);
  EXPECT_EQ(Feed(&huge, "ffffffff\r\n", 64), 413);
}

TEST(BodyReaderTest, AnUnfinishedBodyIsNotDone) {
  RequestHead sized;
  sized.content_length = 10;
  BodyReader reader(sized, 10);
  EXPECT_EQ(Feed(&reader, "012345678", 4), -1);
  BodyReader chunks(Chunked(), 10);
  EXPECT_EQ(Feed(&chunks, "3\r\nabc\r\n0\r\n", 4), -1);
}

}  // namespace
}  // namespace taskcell::gateway
