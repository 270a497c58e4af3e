#include "gateway/script/mcp.h"

#include <gtest/gtest.h>

#include "launcher/base/text.h"

namespace taskcell::gateway {
namespace {

McpStep Read(std::string_view line) {
  ScriptRequest base;
  base.home = "/home/x";
  base.agent = "worker";
  return ReadMcpLine(line, base);
}

std::string CallLine(std::string_view arguments) {
  return Text(R"({"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":)",
              R"("execute_program","arguments":)", arguments, "}}");
}

TEST(McpTest, TheHandshakeTakesTheClientsVersionOrOffersTheNewest) {
  const char* ask =
      R"({"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":")";
  EXPECT_NE(Read(Text(ask, R"(2024-11-05"}})")).reply.find(R"("protocolVersion":"2024-11-05")"),
            std::string::npos);
  const std::string newest = Read(Text(ask, R"(1999-01-01"}})")).reply;
  EXPECT_NE(newest.find(R"("protocolVersion":"2025-11-25")"), std::string::npos) << newest;
  EXPECT_NE(newest.find(R"("capabilities":{"tools":{}})"), std::string::npos) << newest;
  EXPECT_TRUE(Read(R"({"jsonrpc":"2.0","method":"notifications/initialized"})").reply.empty());
  EXPECT_EQ(Read(R"({"jsonrpc":"2.0","id":"p","method":"ping"})").reply,
            R"({"jsonrpc":"2.0","id":"p","result":{}})");
}

TEST(McpTest, TheOneToolHasTheReferencesSchema) {
  EXPECT_EQ(
      Read(R"({"jsonrpc":"2.0","id":1,"method":"tools/list"})").reply,
      R"j({"jsonrpc":"2.0","id":1,"result":{"tools":[{"name":"execute_program","description":)j"
      R"j("Execute a program in a locked-down cell without a network. Only final stdout enters )j"
      R"j(context.","inputSchema":{"type":"object","properties":{"code":{"type":"string",)j"
      R"j("description":"Source code to execute"},"language":{"type":"string","description":)j"
      R"j("Language: 'python', 'bash', or 'javascript'"},"timeout_seconds":{"type":"integer",)j"
      R"j("description":"Execution timeout in seconds (default: 30, max: 300)"}},)j"
      R"j("required":["code","language"]}}]}})j");
}

TEST(McpTest, ACallBecomesAScriptOfTheServersHomeAndAgent) {
  const McpStep step = Read(CallLine(R"j({"code":"print(1)","language":"python"})j"));
  ASSERT_TRUE(step.script.has_value()) << step.reply;
  EXPECT_EQ(step.id, "7");
  EXPECT_EQ(step.script->code, "print(1)");
  EXPECT_EQ(step.script->language, ScriptLanguage::kPython);
  EXPECT_EQ(step.script->timeout_ms, 30000U);
  EXPECT_EQ(step.script->home, "/home/x");
  EXPECT_EQ(step.script->agent, "worker");
}

TEST(McpTest, TheTimeLimitIsClampedToTheMostAndTakenAsNumberOrText) {
  auto timeout = [](std::string_view value) {
    const McpStep step =
        Read(CallLine(Text(R"({"code":"","language":"bash","timeout_seconds":)", value, "}")));
    return step.script.has_value() ? step.script->timeout_ms : 0;
  };
  EXPECT_EQ(timeout("1"), 1000U);
  EXPECT_EQ(timeout("300"), 300000U);
  EXPECT_EQ(timeout("301"), 300000U);
  EXPECT_EQ(timeout("\"12\""), 12000U);
  EXPECT_EQ(timeout("null"), 30000U);
  for (const char* wrong : {"0", "-1", "1.5", "\"x\"", "true", "[]"}) EXPECT_EQ(timeout(wrong), 0U);
}

TEST(McpTest, WhatACallLacksIsToldTheModel) {
  EXPECT_EQ(Read(CallLine(R"({"language":"bash"})")).reply,
            R"({"jsonrpc":"2.0","id":7,"result":{"content":[{"type":"text","text":)"
            R"("Missing required parameter: code"}],"isError":true}})");
  EXPECT_NE(Read(CallLine(R"({"code":"x"})")).reply.find("Missing required parameter: language"),
            std::string::npos);
  EXPECT_NE(Read(CallLine(R"({"code":"x","language":"perl"})"))
                .reply.find("Unsupported language: 'perl'. Supported: python, bash, javascript"),
            std::string::npos);
}

TEST(McpTest, WhatMakesNoSenseIsAnsweredAsTheProtocolHasIt) {
  const std::vector<std::pair<std::string, std::string>> rows = {
      {"{", "-32700"},
      {"\xFF", "-32700"},
      {"[]", "-32600"},
      {"3", "-32600"},
      {R"({"id":{},"method":"ping"})", "-32600"},
      {R"({"id":1,"method":"ping","params":[]})", "-32600"},
      {R"({"id":1,"method":7})", "-32600"},
      {R"({"id":1,"method":"resources/list"})", "-32601"},
      {R"({"id":1,"method":"tools/call","params":{"name":"rm"}})", "-32602"},
      {R"({"id":1,"method":"tools/call","params":{"name":"execute_program","arguments":[]}})",
       "-32602"},
      {std::string(100000, '['), "-32700"},
  };
  for (const auto& [line, code] : rows) {
    const McpStep step = Read(line);
    EXPECT_NE(step.reply.find(Text("\"error\":{\"code\":", code)), std::string::npos)
        << line.substr(0, 80) << ": " << step.reply;
    EXPECT_FALSE(step.script.has_value());
  }
  for (const char* silent : {"", "  ", R"({"method":"no_such_notification"})",
                             R"({"id":1,"result":{}})", R"({"method":"notifications/cancelled"})"})
    EXPECT_TRUE(Read(silent).reply.empty()) << silent;
}

TEST(McpTest, ALineThatIsTooLongIsRefusedUnread) {
  const std::string line(kMaxMcpLineBytes + 1, ' ');
  EXPECT_TRUE(Read(line).reply.empty()) << "white space alone is no message";
  const std::string message = Text("1", std::string(kMaxMcpLineBytes, ' '));
  EXPECT_NE(Read(message).reply.find("the message is too long"), std::string::npos);
}

TEST(McpTest, ACancellationNamesItsCall) {
  const McpStep step =
      Read(R"({"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"a\"b"}})");
  EXPECT_TRUE(step.cancels);
  EXPECT_EQ(step.id, R"("a\"b")");
}

TEST(McpTest, AnExitOfZeroIsTheOutputAloneAndAnyOtherAnError) {
  ScriptAnswer answer;
  answer.out = "42\n";
  answer.err = "noise";
  EXPECT_EQ(McpResult("1", answer),
            R"({"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"42\u000a"}],)"
            R"("isError":false}})");
  answer.exit_code = 3;
  EXPECT_EQ(McpResult("1", answer),
            R"({"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":)"
            R"("Program exited with code 3\u000a--- stdout ---\u000a42\u000a\u000a--- stderr )"
            R"(---\u000anoise"}],"isError":true}})");
  answer.code = "image_missing";
  answer.message = "Script sandbox unavailable (image_missing): ...";
  EXPECT_EQ(McpResult("1", answer),
            R"({"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":)"
            R"("Script sandbox unavailable (image_missing): ..."}],"isError":true}})");
}

}  // namespace
}  // namespace taskcell::gateway
