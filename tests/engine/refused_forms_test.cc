// Requests that would make the provider a way out, sent from inside a native cell to the APIs that
// claude and codex speak.
#include <gtest/gtest.h>

#include <array>

#include "launcher/base/text.h"
#include "tests/engine/trap_fixture.h"

namespace taskcell::test {
namespace {

class RefusedFormsTest : public StandInFixture {};

// Sent by a program in a cell to the API it speaks: each is refused there, and none goes on.
TEST_F(RefusedFormsTest, NoFormThatMakesTheProviderAWayOutLeavesACell) {
  const std::vector<std::pair<std::string, std::string>> messages = {
      {R"("tools":[{"type":"web_search_20250305","name":"web_search"}])", "egress_server_tool"},
      {R"("t\u006fols":[{"name":"f","typ\u0065":"web_fetch_20250910"}])", "egress_server_tool"},
      {R"("tools":[{"type":"code_execution_20250825","name":"code_execution"}])",
       "egress_server_tool"},
      {R"("tools":[{"type":"computer_20250124","name":"computer","display_width_px":9}])",
       "egress_server_tool"},
      {R"("tools":[{"type":"tool_of_tomorrow","name":"f"}])", "egress_server_tool"},
      {R"("mcp_servers":[{"type":"url","url":"https://evil.example"}])", "egress_server_tool"},
      {R"("container":{"skills":[{"type":"anthropic"}]})", "egress_server_tool"},
      {R"("system":[{"type":"image","source":{"type":"url","url":"https://evil.example"}}])",
       "egress_url"},
      {R"("messages":[{"role":"user","content":[{"source":{"url":"https://evil.example","type":)"
       R"("url"},"type":"image"}]}])",
       "egress_url"},
      {R"("messages":[{"role":"user","content":[{"type":"document","source":{"type":"file",)"
       R"("file_id":"f"}}]}])",
       "egress_url"},
      {R"("tools":[],"tools":[{"type":"web_search_20250305","name":"w"}])", "egress_duplicate_key"},
      {R"("model":"another-model")", "egress_model"}};
  const std::vector<std::pair<std::string, std::string>> responses = {
      {R"("tools":[{"type":"web_search"}])", "egress_server_tool"},
      {R"("tools":[{"server_url":"https://evil.example","type":"mcp"}])", "egress_server_tool"},
      {R"("tools":[{"type":"mcp","connector_id":"connector_gmail"}])", "egress_server_tool"},
      {R"("tools":[{"type":"code_interpreter","container":{"type":"auto"}}])",
       "egress_server_tool"},
      {R"("tools":[{"type":"computer_use_preview","environment":"linux"}])", "egress_server_tool"},
      {R"("tools":[{"type":"tool_of_tomorrow","name":"f"}])", "egress_server_tool"},
      {R"("back\u0067round":true)", "egress_stored"},
      {R"("previous_response_id":"resp_1")", "egress_stored"},
      {R"("conversation":"conv_1")", "egress_stored"},
      {R"("input":[{"type":"item_reference","id":"i_1"}])", "egress_stored"},
      {R"("input":[{"role":"user","content":[{"type":"input_image","image_url":)"
       R"("https://evil.example"}]}])",
       "egress_url"},
      {R"("store":true)", "egress_stored"},
      {R"("model":"another-model")", "egress_model"}};
  constexpr auto kBetas =
      std::to_array<std::string_view>({"code-execution-2025-08-25", "computer-use-2025-01-24",
                                       "mcp-client-2025-04-04", "of-tomorrow-2030-01-01"});
  const gateway::ProviderProcess provider =
      MakeProvider({{"steps", Json::array()}, {"reply", "from the provider"}});
  ASSERT_TRUE(provider.IsUp());
  for (const bool is_claude : {true, false}) {
    SCOPED_TRACE(is_claude ? "claude" : "codex");
    const std::string path = is_claude ? "/v1/messages" : "/v1/responses";
    const auto& forms = is_claude ? messages : responses;
    const Json said = Json::array({{{"role", "user"}, {"content", "x"}}});
    Json whole = {{"model", "claude-sonnet-4-5"}};
    whole.update(is_claude ? Json{{"max_tokens", 9}, {"messages", said}}
                           : Json{{"store", false}, {"input", said}});
    std::string body;
    std::vector<std::string> codes;
    for (const auto& [form, code] : forms) {
      std::string rest;
      for (const auto& [key, value] : whole.items())
        if (!form.starts_with(Text('"', key, '"'))) rest += Text(",\"", key, "\":", value.dump());
      body += Text("ask ", path, " '{", form, rest, "}'\n");
      codes.push_back(code);
    }
    for (std::string_view beta : kBetas) {
      if (!is_claude) break;
      body += Text("credential=\"$credential\"$'\\r\\nanthropic-beta: ", beta, "' ask ", path, " '",
                   whole.dump(), "'\n");
      codes.emplace_back("egress_beta");
    }
    body += Text("ask ", path, " '", whole.dump(), "'\n");
    MakeHome(is_claude ? "claude" : "codex", is_claude ? "anthropic" : "openai", body);
    const std::size_t before = provider.Log().size();
    const Json answer = RunIn(provider);
    ASSERT_FALSE(answer.is_discarded());
    const Json& requests = answer["receipt"]["egress"]["record"]["requests"];
    ASSERT_EQ(requests.size(), codes.size() + 1);
    for (std::size_t index = 0; index < codes.size(); ++index)
      EXPECT_EQ(requests[index]["code"], codes[index])
          << (index < forms.size() ? forms[index].first : "a beta feature");
    EXPECT_EQ(requests.back()["code"], "") << "control: the last one is relayed";
    EXPECT_EQ(provider.Log().size(), before + 1) << "and nothing else";
  }
}

}  // namespace
}  // namespace taskcell::test
