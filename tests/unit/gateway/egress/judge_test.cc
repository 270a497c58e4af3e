#include "gateway/egress/judge.h"

#include <gtest/gtest.h>

#include "launcher/base/text.h"

namespace taskcell::gateway {
namespace {

const std::vector<std::string> kModels = {"test-model", "small-model"};

Judgement Chat(const std::string& members) {
  return JudgeBody(
      WireApi::kOpenAiChat,
      R"({"model":"test-model","messages":[{"role":"user","content":"x"}])" + members + "}",
      kModels);
}
Judgement Messages(const std::string& members) {
  return JudgeBody(
      WireApi::kAnthropicMessages,
      R"({"model":"test-model","messages":[{"role":"user","content":"x"}])" + members + "}",
      kModels);
}
Judgement Responses(const std::string& members) {
  return JudgeBody(WireApi::kOpenAiResponses,
                   R"({"model":"test-model","store":false,"input":"x")" + members + "}", kModels);
}
Judgement MessagesContent(const std::string& block) {
  return JudgeBody(
      WireApi::kAnthropicMessages,
      R"({"model":"test-model","messages":[{"role":"user","content":[)" + block + "]}]}", kModels);
}
Judgement ResponsesInput(const std::string& item) {
  return JudgeBody(WireApi::kOpenAiResponses,
                   R"({"model":"test-model","store":false,"input":[)" + item + "]}", kModels);
}
Judgement ChatContent(const std::string& part) {
  return JudgeBody(
      WireApi::kOpenAiChat,
      R"({"model":"test-model","messages":[{"role":"user","content":[)" + part + "]}]}", kModels);
}

std::string CodeOf(const Judgement& judgement) {
  return judgement.refusal ? std::string(judgement.refusal->code) : "";
}

struct Row {
  Judgement (*judge)(const std::string&);
  const char* text;
  const char* code;  // "": passes
};

void ExpectAll(const std::vector<Row>& rows) {
  for (const Row& row : rows) {
    Judgement judgement = row.judge(row.text);
    EXPECT_EQ(CodeOf(judgement), row.code)
        << row.text << (judgement.refusal ? judgement.refusal->message : "");
  }
}

TEST(JudgeTest, WhatTheProgramsSendPasses) {
  ExpectAll({
      {Chat, "", ""},
      {Chat, R"(,"tools":[{"type":"function","function":{"name":"shell","parameters":{"type":
        "object","properties":{"Type":{"type":"string"},"url":{"type":"string"}}}}}],
        "tool_choice":"auto","max_tokens":4096,"stream":false)",
       ""},
      {Messages, R"(,"system":[{"type":"text","text":"s","cache_control":{"type":"ephemeral"}}],
        "tools":[{"name":"Bash","description":"d","input_schema":{"type":"object"}}],
        "metadata":{"user_id":"{}"},"max_tokens":9,"stream":true,
        "thinking":{"type":"enabled","budget_tokens":5},
        "context_management":{"edits":[{"type":"clear_thinking_20251015","keep":"all"}]},
        "output_config":{"effort":"high"})",
       ""},
      {Messages, R"(,"tools":[{"type":"custom","name":"Read","input_schema":{}}])", ""},
      {Messages, R"(,"tool_choice":{"type":"tool","name":"Bash"})", ""},
      {MessagesContent, R"({"type":"tool_result","tool_use_id":"t","content":[{"type":"text",
        "text":"a"},{"type":"image","source":{"type":"base64","media_type":"image/png",
        "data":"AAAA"}}],"cache_control":{"type":"ephemeral"}})",
       ""},
      {MessagesContent, R"({"type":"tool_use","id":"t","name":"Bash","input":{"Type":"url",
        "mcp_servers":[1],"source":"https://x.example"}})",
       ""},
      {MessagesContent, R"({"type":"document","source":{"type":"text","media_type":"text/plain",
        "data":"d"}})",
       ""},
      {Responses, R"(,"tools":[{"type":"function","name":"exec_command","description":"d",
        "strict":false,"parameters":{}},{"type":"custom","name":"apply_patch","format":{}},
        {"type":"local_shell"}],"tool_choice":"auto","parallel_tool_calls":true,
        "reasoning":{"summary":"auto"},"stream":true,"include":["reasoning.encrypted_content"],
        "prompt_cache_key":"k","client_metadata":{"x-codex-window-id":"w"})",
       ""},
      {Responses, R"(,"tools":[{"type":"namespace","name":"n","description":"d","tools":[
        {"type":"function","name":"f"}]}])",
       ""},
      {ResponsesInput, R"({"type":"additional_tools","id":"at_1","role":"developer","tools":[
        {"type":"namespace","name":"functions","description":"","tools":[
          {"type":"custom","name":"exec","description":"d","format":{"type":"grammar"}},
          {"type":"function","name":"wait","strict":false,"parameters":{}}]},
        {"type":"function","name":"f"}]})",
       ""},
      {ResponsesInput, R"({"type":"message","id":"m","role":"user","content":[{"type":
        "input_text","text":"t"}]},{"role":"user","content":"t"},{"type":"reasoning","summary":
        [{"type":"summary_text","text":"t"}],"encrypted_content":"e"},{"type":"function_call",
        "id":"f","call_id":"c","name":"n","arguments":"{}"},{"type":"function_call_output",
        "call_id":"c","output":"o"})",
       ""},
      {ResponsesInput, R"({"type":"function_call_output","call_id":"c","output":[{"type":
        "input_image","image_url":"data:image/png;base64,AAAA"}]})",
       ""},
      {ChatContent, R"({"type":"image_url","image_url":{"url":"data:image/png;base64,AAAA"}})", ""},
  });
}

TEST(JudgeTest, ToolsAreNamedWhereverTheyAreOffered) {
  Judgement judgement = ResponsesInput(
      R"({"type":"additional_tools","tools":[{"type":"namespace","name":"functions","tools":[
        {"type":"custom","name":"exec"},{"type":"function","name":"wait"}]},
        {"type":"local_shell"}]})");
  EXPECT_EQ(judgement.tools, (std::vector<std::string>{"exec", "wait", "local_shell"}));
  std::string many = R"({"type":"function","name":"f"})";
  for (std::size_t i = 1; i <= kEgressTools; ++i) many += R"(,{"type":"function","name":"f"})";
  EXPECT_EQ(
      CodeOf(Responses(R"(,"tools":[{"type":"namespace","name":"n","tools":[)" + many + "]}]")),
      "egress_field");
}

TEST(JudgeTest, ServerSideToolsAreRefused) {
  ExpectAll({
      {Messages, R"(,"tools":[{"type":"web_search_20250305","name":"web_search"}])",
       "egress_server_tool"},
      {Messages, R"(,"tools":[{"name":"web_search","type":"web_search_20250305"}])",
       "egress_server_tool"},
      {Messages, R"(,"tools":[{"name":"Bash","input_schema":{}},{"name":"f","type":
        "web_fetch_20250910"}])",
       "egress_server_tool"},
      {Messages, R"(,"tools":[{"t\u0079pe":"code_execution_20250825","name":"c"}])",
       "egress_server_tool"},
      {Messages, R"(,"too\u006cs":[{"type":"we\u0062_search_20250305","name":"w"}])",
       "egress_server_tool"},
      {Messages, R"(,"tools":[{"type":"computer_20250124","name":"computer"}])",
       "egress_server_tool"},
      {Messages, R"(,"tools":[{"type":"bash_20250124","name":"bash"}])", "egress_server_tool"},
      {Messages, R"(,"tools":[{"type":"mcp_toolset","mcp_server_name":"x"}])",
       "egress_server_tool"},
      {Messages, R"(,"tools":[{"type":"Custom","name":"x"}])", "egress_server_tool"},
      {Messages, R"(,"tools":[{"type":null,"name":"x"}])", "egress_server_tool"},
      {Messages, R"(,"tools":[{"type":["custom"],"name":"x"}])", "egress_server_tool"},
      {Messages, R"(,"tools":[{"name":"x","allowed_callers":["code_execution_20250825"]}])",
       "egress_server_tool"},
      {Messages, R"(,"tools":[{"Type":"web_search_20250305","name":"x"}])", "egress_field"},
      {Messages, R"(,"tools":{"type":"web_search_20250305"})", "egress_field"},
      {Messages, R"(,"tools":["web_search"])", "egress_field"},
      {Messages, R"(,"mcp_servers":[{"type":"url","url":"https://x.example"}])",
       "egress_server_tool"},
      {Messages, R"(,"mcp_servers":[])", "egress_server_tool"},
      {Messages, R"(,"container":"c")", "egress_server_tool"},
      {Messages, R"(,"container":{"skills":[{"type":"anthropic"}]})", "egress_server_tool"},
      {Messages, R"(,"tool_choice":{"type":"web_search"})", "egress_server_tool"},
      {MessagesContent, R"({"type":"server_tool_use","id":"s","name":"web_search"})",
       "egress_server_tool"},
      {MessagesContent, R"({"type":"mcp_tool_use"})", "egress_server_tool"},
      {MessagesContent, R"({"type":"container_upload","file_id":"f"})", "egress_server_tool"},
      {Responses, R"(,"tools":[{"type":"web_search"}])", "egress_server_tool"},
      {Responses, R"(,"tools":[{"type":"web_search_preview"}])", "egress_server_tool"},
      {Responses, R"(,"tools":[{"type":"namespace","name":"n","tools":[{"type":"web_search"}]}])",
       "egress_server_tool"},
      {Responses, R"(,"tools":[{"type":"namespace","name":"n","tools":[
        {"type":"namespace","name":"m","tools":[]}]}])",
       "egress_server_tool"},
      {Responses, R"(,"tools":[{"type":"namespace","name":"n","server_url":"https://x.example",
        "tools":[]}])",
       "egress_server_tool"},
      {Responses, R"(,"tools":[{"type":"namespace","name":"n"}])", "egress_field"},
      {ResponsesInput, R"({"type":"additional_tools","tools":[{"type":"web_search"}]})",
       "egress_server_tool"},
      {ResponsesInput, R"({"type":"additional_tools","tools":[{"type":"namespace","name":"n",
        "tools":[{"type":"mcp","server_url":"https://x.example"}]}]})",
       "egress_server_tool"},
      {ResponsesInput, R"({"type":"additional_tools","id":"at_1"})", "egress_stored"},
      {ResponsesInput, R"({"type":"additional_tools","tools":[],"connector_id":"c"})",
       "egress_server_tool"},
      {ResponsesInput, R"({"role":"developer","content":"t","tools":[{"type":"web_search"}]})",
       "egress_server_tool"},
      {Responses, R"(,"tools":[{"type":"file_search","vector_store_ids":["v"]}])",
       "egress_server_tool"},
      {Responses, R"(,"tools":[{"type":"code_interpreter","container":{"type":"auto"}}])",
       "egress_server_tool"},
      {Responses, R"(,"tools":[{"type":"mcp","server_url":"https://x.example"}])",
       "egress_server_tool"},
      {Responses, R"(,"tools":[{"type":"computer_use_preview"}])", "egress_server_tool"},
      {Responses, R"(,"tools":[{"type":"image_generation"}])", "egress_server_tool"},
      {Responses, R"(,"tools":[{"type":"shell","environment":{"type":"container_auto"}}])",
       "egress_server_tool"},
      {Responses, R"(,"tools":[{"name":"no_type"}])", "egress_server_tool"},
      {Responses, R"(,"tools":[{"type":"function","name":"f","server_url":"https://x.example"}])",
       "egress_server_tool"},
      {Responses, R"(,"tool_choice":{"type":"web_search_preview"})", "egress_server_tool"},
      {Responses, R"(,"tool_choice":{"type":"allowed_tools","tools":[{"type":"mcp"}]})",
       "egress_server_tool"},
      {ResponsesInput, R"({"type":"mcp_approval_response","approve":true})", "egress_server_tool"},
      {ResponsesInput, R"({"type":"web_search_call","id":"w"})", "egress_server_tool"},
      {Chat, R"(,"tools":[{"type":"browser_search"}])", "egress_server_tool"},
      {Chat, R"(,"tools":[{"function":{"name":"no_type"}}])", "egress_server_tool"},
      {Chat, R"(,"web_search_options":{})", "egress_server_tool"},
      {Chat, R"(,"search_parameters":{"mode":"on"})", "egress_server_tool"},
      {Chat, R"(,"plugins":[{"id":"web"}])", "egress_server_tool"},
  });
}

TEST(JudgeTest, SourcesThatAreNotInlineAreRefused) {
  ExpectAll({
      {MessagesContent, R"({"type":"image","source":{"type":"url","url":"https://x.example"}})",
       "egress_url"},
      {MessagesContent, R"({"source":{"url":"https://x.example","type":"url"},"type":"image"})",
       "egress_url"},
      {MessagesContent, R"({"type":"document","source":{"type":"file","file_id":"f"}})",
       "egress_url"},
      {MessagesContent, R"({"type":"document","source":{"type":"base64","data":"A","url":
        "https://x.example"}})",
       "egress_field"},
      {MessagesContent, R"({"type":"image"})", "egress_url"},
      {MessagesContent, R"({"type":"tool_result","content":[{"type":"image","source":{"type":"url",
        "url":"https://x.example"}}]})",
       "egress_url"},
      {MessagesContent, R"({"type":"document","source":{"type":"content","content":[{"type":
        "image","source":{"type":"url","url":"https://x.example"}}]}})",
       "egress_url"},
      {MessagesContent, R"({"type":"image","Source":{"type":"url"}})", "egress_field"},
      {ResponsesInput, R"({"role":"user","content":[{"type":"input_image","image_url":
        "https://x.example/a"}]})",
       "egress_url"},
      {ResponsesInput, R"({"role":"user","content":[{"type":"input_image","image_url":
        "HTTPS://x.example/a"}]})",
       "egress_url"},
      {ResponsesInput, R"({"role":"user","content":[{"type":"input_image","image_url":
        {"url":"https://x.example"}}]})",
       "egress_url"},
      {ResponsesInput, R"({"role":"user","content":[{"type":"input_file","file_url":
        "https://x.example/a"}]})",
       "egress_url"},
      {ResponsesInput, R"({"type":"function_call_output","call_id":"c","output":[{"type":
        "input_image","image_url":"https://x.example"}]})",
       "egress_url"},
      {ResponsesInput, R"({"role":"user","content":[{"type":"input_file","filename":"a.pdf",
        "file_data":"https://x.example/a.pdf"}]})",
       "egress_url"},
      {ResponsesInput,
       R"({"role":"user","content":[{"type":"input_file","file_data":{"url":"u"}}]})",
       "egress_url"},
      {ResponsesInput, R"({"role":"user","content":[{"type":"input_file","filename":"a.pdf"}]})",
       "egress_url"},
      {ResponsesInput, R"({"role":"user","content":[{"type":"input_file","filename":"a.pdf",
        "file_data":"data:application/pdf;base64,AAAA"}]})",
       ""},
      {ChatContent, R"({"type":"image_url","image_url":{"url":"https://x.example/a"}})",
       "egress_url"},
      {ChatContent, R"({"type":"image_url","image_url":"https://x.example/a"})", "egress_field"},
      {ChatContent, R"({"type":"text","text":"t","image_url":{"url":"https://x.example/a"}})",
       "egress_url"},
      {ChatContent, R"({"type":"video_url","video_url":{"url":"https://x.example/a"}})",
       "egress_field"},
  });
}

TEST(JudgeTest, StoredObjectsAndBackgroundWorkAreRefused) {
  ExpectAll({
      {Responses, R"(,"previous_response_id":"r")", "egress_stored"},
      {Responses, R"(,"background":true)", "egress_stored"},
      {Responses, R"(,"background":false)", "egress_stored"},
      {Responses, R"(,"conversation":"c")", "egress_stored"},
      {Responses, R"(,"prompt":{"id":"p"})", "egress_stored"},
      {Responses, R"(,"include":["file_search_call.results"])", "egress_field"},
      {ResponsesInput, R"({"type":"item_reference","id":"i"})", "egress_stored"},
      // Where an item holds nothing of its own the provider looks its id up.
      {ResponsesInput, R"({"type":"reasoning","id":"rs_1","summary":[]})", "egress_stored"},
      {ResponsesInput, R"({"type":"reasoning","id":"rs_1","encrypted_content":null})",
       "egress_stored"},
      {ResponsesInput, R"({"type":"reasoning","id":"rs_1","encrypted_content":""})",
       "egress_stored"},
      {ResponsesInput, R"({"type":"reasoning","id":["rs_1"]})", "egress_stored"},
      {ResponsesInput, R"({"type":"message","id":"msg_1","role":"assistant"})", "egress_stored"},
      {ResponsesInput, R"({"id":"msg_1","role":"assistant","content":null})", "egress_stored"},
      {ResponsesInput, R"({"type":"message","id":"msg_1","role":"user","content":[]})",
       "egress_stored"},
      {ResponsesInput, R"({"type":"function_call","id":"fc_1","call_id":"c"})", "egress_stored"},
      {ResponsesInput, R"({"type":"function_call_output","id":"fco_1"})", "egress_stored"},
      {ResponsesInput, R"({"type":"custom_tool_call","id":"c_1","name":"n"})", "egress_stored"},
      {ResponsesInput, R"({"type":"custom_tool_call_output","id":"c_1"})", "egress_stored"},
      {ResponsesInput, R"({"type":"local_shell_call","id":"l_1"})", "egress_stored"},
      {ResponsesInput, R"({"type":"local_shell_call_output","id":"l_1"})", "egress_stored"},
      {ResponsesInput, R"({"type":"reasoning","id":"rs_1","summary":[],"encrypted_content":"e"},
        {"type":"reasoning","id":null,"summary":[]},{"type":"reasoning","summary":[],
        "encrypted_content":null},{"type":"custom_tool_call","id":"c_1","input":""},
        {"type":"function_call_output","id":"o","output":""},
        {"type":"local_shell_call","id":"l_1","action":{"type":"exec"}})",
       ""},
      {ResponsesInput, R"({"role":"user","content":[{"type":"input_file","file_id":"f"}]})",
       "egress_stored"},
      {ResponsesInput, R"({"role":"user","content":[{"type":"input_image","file_id":"f",
        "image_url":"data:x"}]})",
       "egress_stored"},
      {ChatContent, R"({"type":"file","file":{"file_id":"f"}})", "egress_stored"},
      {Chat, R"(,"store":true)", "egress_field"},
      {Chat, R"(,"a_new_field":1)", "egress_field"},
      {Messages, R"(,"a_new_field":1)", "egress_field"},
  });
  // Responses are stored unless told otherwise.
  EXPECT_EQ(CodeOf(JudgeBody(WireApi::kOpenAiResponses, R"({"model":"test-model","input":"x"})",
                             kModels)),
            "egress_stored");
  EXPECT_EQ(CodeOf(JudgeBody(WireApi::kOpenAiResponses,
                             R"({"model":"test-model","input":"x","store":true})", kModels)),
            "egress_stored");
}

TEST(JudgeTest, OnlyTheAgentsModelsPass) {
  auto judge = [](const char* body) { return JudgeBody(WireApi::kOpenAiChat, body, kModels); };
  EXPECT_EQ(CodeOf(judge(R"({"model":"small-model"})")), "");
  EXPECT_EQ(judge(R"({"model":"small-model"})").model, "small-model");
  for (const char* body :
       {R"({"model":"other-model"})", R"({"model":"test-model:online"})",
        R"({"model":"Test-Model"})", R"({"model":"test-model "})", R"({"model":""})", R"({})",
        R"({"model":["test-model"]})", R"({"model":null})", R"({"model":"test\u002dmodel2"})"})
    EXPECT_EQ(CodeOf(judge(body)), "egress_model") << body;
  EXPECT_EQ(CodeOf(judge(R"({"model":"test-model","models":["other"]})")), "egress_model");
  EXPECT_EQ(CodeOf(judge(R"({"Model":"other","model":"test-model"})")), "egress_field");
  EXPECT_EQ(CodeOf(JudgeBody(WireApi::kOpenAiChat, R"({"model":"test-model"})", {})),
            "egress_model");
}

TEST(JudgeTest, DuplicateKeysAreRefusedWhereverTheyStand) {
  ExpectAll({
      {Chat, R"(,"model":"test-model")", "egress_duplicate_key"},
      {Chat, R"(,"mod\u0065l":"other")", "egress_duplicate_key"},
      {Chat, R"(,"tools":[],"tools":[{"type":"browser_search"}])", "egress_duplicate_key"},
      {Messages, R"(,"tools":[{"name":"x","type":"custom","type":"web_search_20250305"}])",
       "egress_duplicate_key"},
      {Messages, R"(,"tools":[{"name":"x","input_schema":{"a":{"b":1,"b":2}}}])",
       "egress_duplicate_key"},
      {Chat, R"(,"user":{"a":1,"b":{"a":1}})", ""},
  });
}

TEST(JudgeTest, BodiesThatAreNotOneJsonObjectAreRefused) {
  for (std::string body :
       {std::string(), std::string("  "), std::string("[]"), std::string("null"),
        std::string("\"x\""), std::string("{"), std::string(R"({"model":"test-model"}x)"),
        std::string(R"({"model":"test-model"}{"model":"other"})"),
        std::string("\xef\xbb\xbf{\"model\":\"test-model\"}"),
        std::string("{\"model\":\"test-model\",\"user\":\"\xff\"}"),
        std::string("{\"model\":\"test-model\",\"user\":\"\xc0\xaf\"}"),
        std::string("{\"model\":\"test-model\"}\0", 23),
        std::string("{\"model\":\"test-model\"}\0{}", 25), std::string("{model:\"test-model\"}"),
        std::string("{\"model\":\"test-model\",}"), std::string("{\"model\":/**/\"test-model\"}"),
        std::string("{\"model\":\"test-model\",\"user\":\"\\ud800\"}"),
        std::string("{\"model\":NaN}")}) {
    EXPECT_EQ(CodeOf(JudgeBody(WireApi::kOpenAiChat, body, kModels)), "egress_json") << body;
  }
}

TEST(JudgeTest, DepthIsBoundedAt64) {
  auto nested = [](std::size_t levels) {
    std::string value = std::string(levels, '[') + std::string(levels, ']');
    return Text(R"({"model":"test-model","user":)", value, "}");
  };
  EXPECT_EQ(CodeOf(JudgeBody(WireApi::kOpenAiChat, nested(63), kModels)), "");
  EXPECT_EQ(CodeOf(JudgeBody(WireApi::kOpenAiChat, nested(64), kModels)), "egress_json");
  EXPECT_EQ(CodeOf(JudgeBody(WireApi::kOpenAiChat, nested(1'000'000), kModels)), "egress_json");
}

TEST(JudgeTest, ValuesAreBoundedAtAMillion) {
  // The object, the model and the list are three values.
  auto list = [](std::size_t values) {
    std::string body = R"({"model":"test-model","user":[0)";
    for (std::size_t count = 1; count < values; ++count) body += ",0";
    return body + "]}";
  };
  EXPECT_EQ(CodeOf(JudgeBody(WireApi::kOpenAiChat, list(kEgressJsonNodes - 3), kModels)), "");
  EXPECT_EQ(CodeOf(JudgeBody(WireApi::kOpenAiChat, list(kEgressJsonNodes - 2), kModels)),
            "egress_json");
}

TEST(JudgeTest, ToolsAreBoundedAt256) {
  auto tools = [](std::size_t count) {
    std::string list;
    for (std::size_t index = 0; index < count; ++index)
      list += Text(index == 0 ? "" : ",", R"({"name":"tool_)", index, R"("})");
    return R"(,"tools":[)" + list + "]";
  };
  Judgement fits = Messages(tools(256));
  EXPECT_EQ(CodeOf(fits), "");
  ASSERT_EQ(fits.tools.size(), 256U);
  EXPECT_EQ(fits.tools[255], "tool_255");
  EXPECT_EQ(CodeOf(Messages(tools(257))), "egress_field");
}

TEST(RefusalBodyTest, TakesTheShapeOfTheApisOwnErrors) {
  Refusal refusal{403, "egress_server_tool", "no \"web\""};
  constexpr std::string_view kMessages =
      R"x({"type":"error","error":{"type":"permission_error","message":)x"
      R"x("no \"web\" (egress_server_tool)","code":"egress_server_tool"}})x";
  constexpr std::string_view kOpenAi =
      R"x({"error":{"message":"no \"web\" (egress_server_tool)","type":)x"
      R"x("permission_error","param":null,"code":"egress_server_tool"}})x";
  EXPECT_EQ(RefusalBody(WireApi::kAnthropicMessages, refusal), kMessages);
  EXPECT_EQ(RefusalBody(WireApi::kOpenAiChat, refusal), kOpenAi);
}

}  // namespace
}  // namespace taskcell::gateway
