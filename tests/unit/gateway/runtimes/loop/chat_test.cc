#include "gateway/runtimes/loop/chat.h"

#include <gtest/gtest.h>

#include "launcher/base/json_value.h"
#include "launcher/base/text.h"

namespace taskcell::gateway::loop {
namespace {

ChatAnswer Answer(std::string_view message, std::string_view finish = "\"stop\"") {
  std::string body =
      Text(R"({"choices":[{"message":)", message, R"(,"finish_reason":)", finish, "}]}");
  Result<ChatAnswer> answer = ParseChatAnswer(body);
  EXPECT_TRUE(answer.ok()) << body;
  return std::move(answer).value();
}

TEST(ChatTest, TextCallsAndUsageAreRead) {
  ChatAnswer answer =
      ParseChatAnswer(
          R"({"choices":[{"message":{"content":"hi","tool_calls":[{"id":"a","type":"function","function":{"name":"shell","arguments":"{\"command\":\"ls\"}"}}]},"finish_reason":"tool_calls"}],"usage":{"prompt_tokens":3,"completion_tokens":2}})")
          .value();
  EXPECT_EQ(answer.text, "hi");
  ASSERT_EQ(answer.calls.size(), 1U);
  EXPECT_EQ(answer.calls[0].id, "a");
  EXPECT_EQ(answer.calls[0].name, "shell");
  EXPECT_EQ(answer.calls[0].arguments, R"({"command":"ls"})");
  EXPECT_EQ(answer.finish, Finish::kToolCalls);
  EXPECT_EQ(answer.input_tokens, 3U);
  EXPECT_EQ(answer.output_tokens, 2U);
}

TEST(ChatTest, SpellingsOfOtherServersAreUnderstood) {
  for (const char* finish : {"\"\"", "null", "\"stop\"", "\"end_turn\"", "7"}) {
    EXPECT_EQ(Answer(R"({"content":"x"})", finish).finish, Finish::kStop) << finish;
  }
  EXPECT_EQ(Answer(R"({"content":"x"})", "\"max_tokens\"").finish, Finish::kLength);
  EXPECT_EQ(Answer(R"({"content":[{"type":"text","text":"a"},{"text":"b"}]})").text, "ab");
  EXPECT_EQ(Answer(R"({"content":null,"refusal":"no"})").text, "no");
  ChatAnswer answer = Answer(
      R"({"tool_calls":[{"function":{"name":"read_file","arguments":{"path":"a\"b"}}},{"function":{"name":"shell","arguments":""}},{}]})");
  EXPECT_EQ(answer.calls[0].arguments, R"({"path":"a\"b"})");
  EXPECT_EQ(answer.calls[0].id, "call_0");
  EXPECT_EQ(answer.calls[1].arguments, "");
  EXPECT_EQ(answer.calls[2].name, "");
}

TEST(ChatTest, WhatIsNoAnswerIsAnErrorWithTheProvidersWords) {
  for (const char* body : {"", "[]", "{}", R"({"choices":[]})", R"({"choices":[{}]})", "<html>",
                           R"({"choices":[{"message":"x"}]})"}) {
    EXPECT_FALSE(ParseChatAnswer(body).ok()) << body;
  }
  Result<ChatAnswer> answer = ParseChatAnswer(R"({"error":{"code":"c","message":"overloaded"}})");
  ASSERT_FALSE(answer.ok());
  EXPECT_NE(answer.error().text.find("overloaded"), std::string::npos);
}

TEST(ChatTest, HttpErrorsAreDescribedInBoundsAndWithoutControlBytes) {
  EXPECT_EQ(DescribeHttpError(429, R"({"error":{"code":"insufficient_quota","message":"pay"}})"),
            "the provider answered HTTP 429: insufficient_quota pay");
  EXPECT_EQ(DescribeHttpError(400, R"({"error":"plain"})"),
            "the provider answered HTTP 400: plain");
  EXPECT_EQ(DescribeHttpError(502, "bad\x1b[0m"), "the provider answered HTTP 502: bad\\x1b[0m");
  EXPECT_LT(DescribeHttpError(500, std::string(100'000, 'x')).size(), 400U);
}

TEST(ChatTest, TheRequestIsOneJsonObjectWithTheWholeConversation) {
  Conversation conversation("m\"1", "say \"hi\"\n");
  ChatAnswer answer;
  answer.calls = {{"c1", "shell", R"({"command":"ls"})"}, {"c2", "shell", "{\"broken"}};
  conversation.AddAnswer(answer);
  conversation.AddToolResult("c1", "a\xff");
  conversation.AddUser("go on");
  JsonValue request = ParseJson(conversation.Request()).value();
  EXPECT_EQ(request.String("model"), "m\"1");
  EXPECT_EQ(request.Unsigned("max_tokens"), 4096U);
  EXPECT_EQ(request.String("tool_choice"), "auto");
  EXPECT_FALSE(request.True("stream"));
  ASSERT_EQ(request.Find("tools")->items.size(), 4U);
  const std::vector<JsonValue>& messages = request.Find("messages")->items;
  ASSERT_EQ(messages.size(), 4U);
  EXPECT_EQ(messages[0].String("content"), "say \"hi\"\n");
  EXPECT_EQ(messages[1].Find("content")->kind, JsonKind::kNull);
  const std::vector<JsonValue>& calls = messages[1].Find("tool_calls")->items;
  EXPECT_EQ(calls[0].Find("function")->String("arguments"), R"({"command":"ls"})");
  EXPECT_EQ(calls[1].Find("function")->String("arguments"), "{}");  // servers refuse broken ones
  EXPECT_EQ(messages[2].String("tool_call_id"), "c1");
  EXPECT_EQ(messages[2].String("content"), "a\uFFFD");
}

}  // namespace
}  // namespace taskcell::gateway::loop
