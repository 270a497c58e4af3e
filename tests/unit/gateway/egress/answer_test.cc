#include <gtest/gtest.h>

#include "gateway/egress/answer_head.h"
#include "gateway/egress/answer_reader.h"
#include "gateway/egress/echo_scanner.h"

namespace taskcell::gateway {
namespace {

using Names = std::vector<std::string>;

// Reads `text` in pieces of `piece` bytes.
AnswerFacts Read(WireApi api, bool is_stream, std::string_view text, std::size_t piece = 7) {
  AnswerReader reader(api, is_stream);
  for (std::size_t at = 0; at < text.size(); at += piece) reader.Take(text.substr(at, piece));
  reader.Finish();
  return reader.facts();
}

TEST(AnswerReaderTest, MessagesStream) {
  constexpr std::string_view kStream =
      "event: message_start\r\ndata: {\"type\":\"message_start\",\"message\":{\"usage\":{"
      "\"input_tokens\":3,\"cache_read_input_tokens\":100,\"output_tokens\":1}}}\r\n\r\n"
      "event: ping\ndata: {\"type\": \"ping\"}\n\n"
      "data: {\"type\":\"content_block_start\",\"content_block\":{\"type\":\"text\"}}\n\n"
      "data: {\"type\":\"content_block_start\",\"content_block\":{\"type\":\"tool_use\","
      "\"name\":\"Bash\"}}\n\n"
      "data: {\"type\":\"content_block_start\",\"content_block\":{\"type\":\"server_tool_use\","
      "\"name\":\"web_search\"}}\n\n"
      "data: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"tool_use\"},\"usage\":{"
      "\"output_tokens\":42}}\n\n";
  for (std::size_t piece : {1U, 7U, 4096U}) {
    AnswerFacts facts = Read(WireApi::kAnthropicMessages, true, kStream, piece);
    EXPECT_EQ(facts.input_tokens, 103U);
    EXPECT_EQ(facts.cached_tokens, 100U);
    EXPECT_EQ(facts.output_tokens, 42U);
    EXPECT_EQ(facts.finish, "tool_use");
    EXPECT_EQ(facts.tools_called, (Names{"Bash", "server_tool_use"}));
    EXPECT_EQ(facts.unread, 0U);
  }
}

TEST(AnswerReaderTest, MessagesDocumentAndError) {
  AnswerFacts facts = Read(WireApi::kAnthropicMessages, false,
                           R"({"type":"message","content":[{"type":"tool_use","name":"Read"},
      {"type":"text"}],"stop_reason":"max_tokens","usage":{"input_tokens":1,"output_tokens":2}})");
  EXPECT_EQ(facts.tools_called, Names{"Read"});
  EXPECT_EQ(facts.finish, "max_tokens");
  EXPECT_EQ(facts.output_tokens, 2U);
  EXPECT_EQ(Read(WireApi::kAnthropicMessages, false,
                 R"({"type":"error","error":{"type":"rate_limit_error","message":"m"}})")
                .error_type,
            "rate_limit_error");
}

TEST(AnswerReaderTest, ResponsesStream) {
  AnswerFacts facts = Read(
      WireApi::kOpenAiResponses, true,
      "data: {\"type\":\"response.output_item.done\",\"item\":{\"type\":\"reasoning\"}}\n\n"
      "data: {\"type\":\"response.output_item.done\",\"item\":{\"type\":\"function_call\","
      "\"name\":\"exec_command\"}}\n\n"
      "data: {\"type\":\"response.output_item.done\",\"item\":{\"type\":\"web_search_call\"}}\n\n"
      "data: {\"type\":\"response.completed\",\"response\":{\"status\":\"completed\",\"output\":["
      "{\"type\":\"function_call\",\"name\":\"exec_command\"}],\"usage\":{\"input_tokens\":5,"
      "\"output_tokens\":6}}}");
  EXPECT_EQ(facts.tools_called, (Names{"exec_command", "web_search_call"}));
  EXPECT_EQ(facts.finish, "completed");
  EXPECT_EQ(facts.input_tokens, 5U);
  EXPECT_EQ(facts.output_tokens, 6U);

  AnswerFacts failed = Read(WireApi::kOpenAiResponses, true,
                            "data: {\"type\":\"response.failed\",\"response\":{\"status\":"
                            "\"failed\",\"error\":{\"code\":\"insufficient_quota\"}}}\n\n");
  EXPECT_EQ(failed.error_type, "insufficient_quota");
  AnswerFacts cut = Read(WireApi::kOpenAiResponses, true,
                         "data: {\"type\":\"response.incomplete\",\"response\":{\"status\":"
                         "\"incomplete\",\"incomplete_details\":{\"reason\":"
                         "\"max_output_tokens\"}}}\n\n");
  EXPECT_EQ(cut.finish, "max_output_tokens");
}

TEST(AnswerReaderTest, ChatStreamAndDocument) {
  AnswerFacts stream = Read(
      WireApi::kOpenAiChat, true,
      "data: {\"choices\":[{\"delta\":{\"tool_calls\":[{\"index\":0,\"function\":{\"name\":"
      "\"shell\",\"arguments\":\"\"}}]},\"finish_reason\":null}]}\n\n"
      "data: {\"choices\":[{\"delta\":{\"tool_calls\":[{\"index\":0,\"function\":{\"arguments\":"
      "\"{}\"}}]}}]}\n\n"
      "data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"tool_calls\"}],\"usage\":{"
      "\"prompt_tokens\":8,\"completion_tokens\":9}}\n\ndata: [DONE]\n\n");
  EXPECT_EQ(stream.tools_called, Names{"shell"});
  EXPECT_EQ(stream.finish, "tool_calls");
  EXPECT_EQ(stream.input_tokens, 8U);
  EXPECT_EQ(stream.unread, 0U);
  AnswerFacts document = Read(WireApi::kOpenAiChat, false,
                              R"({"choices":[{"message":{"tool_calls":[{"function":{"name":"a"}},
      {"function":{"name":"b"}}]},"finish_reason":"length"}]})");
  EXPECT_EQ(document.tools_called, (Names{"a", "b"}));
  EXPECT_EQ(document.finish, "length");
}

TEST(AnswerReaderTest, GarbageIsCountedAndPrintable) {
  EXPECT_EQ(Read(WireApi::kOpenAiChat, true, "data: {[[\n\ndata: \xff\n\nnothing\n\n").unread, 2U);
  EXPECT_EQ(Read(WireApi::kOpenAiChat, false, "<html>").unread, 1U);
  EXPECT_EQ(Read(WireApi::kOpenAiChat, false, std::string(1'000'000, '[')).unread, 1U);
  AnswerFacts odd = Read(WireApi::kOpenAiChat, false,
                         R"({"choices":[{"finish_reason":"\u001b[31m","message":7}],"usage":[]})");
  EXPECT_EQ(odd.finish, "\\x1b[31m");
}

TEST(AnswerReaderTest, DepthIsBoundedAt64AndValuesAtAHundredThousand) {
  auto unread = [](std::string_view value) {
    return Read(WireApi::kOpenAiChat, false, "{\"x\":" + std::string(value) + "}", 64U << 10)
        .unread;
  };
  EXPECT_EQ(unread(std::string(63, '[') + std::string(63, ']')), 0U);
  EXPECT_EQ(unread(std::string(64, '[') + std::string(64, ']')), 1U);
  EXPECT_EQ(unread("\"" + std::string(100, '[') + "\\\"" + std::string(100, '[') + "\""), 0U);
  auto list = [](std::size_t commas) {
    std::string text = "[0";
    for (std::size_t count = 0; count < commas; ++count) text += ",0";
    return text + "]";
  };
  EXPECT_EQ(unread(list(99'998)), 0U);  // and two brackets
  EXPECT_EQ(unread(list(99'999)), 1U);
}

TEST(AnswerReaderTest, EventsAndDocumentsAreBoundedAt4MiB) {
  auto event = [](std::size_t bytes) {
    std::string text = "data: {\"choices\":[{\"finish_reason\":\"stop\"}],\"x\":\"";
    text += std::string(bytes - text.size() - 2, 'x') + "\"}";
    return text;
  };
  AnswerFacts fits = Read(WireApi::kOpenAiChat, true, event(kEgressEventBytes) + "\n\n", 64U << 10);
  EXPECT_EQ(fits.finish, "stop");
  AnswerFacts over = Read(WireApi::kOpenAiChat, true,
                          event(kEgressEventBytes + 1) + "\n\n" + event(200) + "\n\n", 64U << 10);
  EXPECT_EQ(over.unread, 1U);
  EXPECT_EQ(over.finish, "stop");  // of the event after it
  std::string document = event(kEgressEventBytes + 6).substr(6);
  ASSERT_EQ(document.size(), kEgressEventBytes);
  EXPECT_EQ(Read(WireApi::kOpenAiChat, false, document, 64U << 10).finish, "stop");
  EXPECT_EQ(Read(WireApi::kOpenAiChat, false, document + " ", 64U << 10).unread, 1U);
}

TEST(EchoScannerTest, FindsTheSecretHoweverItIsCut) {
  constexpr std::string_view kText = "abc sk-sk-secret def";
  for (std::size_t piece = 1; piece <= kText.size(); ++piece) {
    EchoScanner scanner("sk-secret");
    std::string out;
    bool passed = true;
    for (std::size_t at = 0; passed && at < kText.size(); at += piece)
      passed = scanner.Pass(kText.substr(at, piece), &out);
    EXPECT_FALSE(passed);
    EXPECT_EQ(out, "abc sk-");
  }
}

TEST(EchoScannerTest, HoldsBackOnlyAPossibleBeginning) {
  EchoScanner scanner("sk-secret");
  std::string out;
  EXPECT_TRUE(scanner.Pass("hello sk-sec", &out));
  EXPECT_EQ(out, "hello ");
  EXPECT_TRUE(scanner.Pass("tion", &out));
  EXPECT_EQ(out, "hello sk-section");
  EXPECT_TRUE(scanner.Pass("s", &out));
  EXPECT_EQ(out, "hello sk-section");
  scanner.Finish(&out);
  EXPECT_EQ(out, "hello sk-sections");
}

TEST(AnswerHeadTest, OnlyListedHeadersReachTheCell) {
  UpstreamAnswer answer;
  answer.status = 200;
  answer.headers = {{"content-type", "application/json"},
                    {"set-cookie", "a=b"},
                    {"location", "https://x.example"},
                    {"anthropic-organization-id", "org"},
                    {"x-ratelimit-remaining", "5"},
                    {"request-id", "r-sk-secret-1"},
                    {"retry-after", "3\x01"},
                    {"content-length", "7"}};
  bool echoes = false;
  EXPECT_EQ(AnswerHeaderLines(answer, "sk-secret", &echoes),
            "content-type: application/json\r\nx-ratelimit-remaining: 5\r\n"
            "request-id: redacted\r\n");
  EXPECT_TRUE(echoes);
  answer.headers = {{"content-type", "text/plain"}, {"set-cookie", "k=sk-secret"}};
  echoes = false;
  EXPECT_EQ(AnswerHeaderLines(answer, "sk-secret", &echoes), "content-type: text/plain\r\n");
  EXPECT_TRUE(echoes);
}

TEST(AnswerHeadTest, RedirectsAndEncodedAnswersAreRefused) {
  UpstreamAnswer answer;
  auto code = [&answer] {
    std::optional<Refusal> refusal = CheckAnswer(answer);
    return refusal ? refusal->code : std::string_view();
  };
  for (int status : {300, 301, 302, 303, 307, 308, 399}) {
    answer.status = status;
    EXPECT_EQ(code(), "egress_redirect");
  }
  for (int status : {200, 400, 500, 529}) {
    answer.status = status;
    EXPECT_EQ(code(), "");
  }
  for (int status : {0, 101, 199, 600, 999}) {
    answer.status = status;
    EXPECT_EQ(code(), "egress_cut");
  }
  answer.status = 200;
  answer.headers = {{"content-encoding", "gzip"}};
  EXPECT_EQ(code(), "egress_encoding");
  answer.headers = {{"content-encoding", "identity"}};
  EXPECT_EQ(code(), "");
}

}  // namespace
}  // namespace taskcell::gateway
