// Every form of a model request that would make the provider a way out, in every guise: keys in
// another order, written with escapes, among harmless neighbours, deeper, with a key twice or in
// other letters.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <nlohmann/json.hpp>

#include "gateway/egress/judge.h"
#include "launcher/base/text.h"

namespace taskcell::gateway {
namespace {

using Ordered = nlohmann::ordered_json;

constexpr WireApi kMessages = WireApi::kAnthropicMessages;
constexpr WireApi kResponses = WireApi::kOpenAiResponses;
constexpr WireApi kChat = WireApi::kOpenAiChat;

struct Form {
  WireApi api;
  std::string body;
  std::string code;  // "": passes
};

// ---- the forms ------------------------------------------------------------------------------

std::string Body(WireApi api, std::string_view members) {
  std::string_view said = R"("messages":[{"role":"user","content":"x"}])";
  if (api == kResponses) said = R"("store":false,"input":"x")";
  return Text(R"({"model":"test-model",)", said, members, "}");
}

// A body whose user sends one block or part of content.
std::string Content(WireApi api, std::string_view block) {
  const std::string turn = Text(R"([{"role":"user","content":[)", block, "]}]");
  if (api == kResponses) return Text(R"({"model":"test-model","store":false,"input":)", turn, "}");
  return Text(R"({"model":"test-model","messages":)", turn, "}");
}

std::string Item(std::string_view item) {
  return Text(R"({"model":"test-model","store":false,"input":[)", item, "]}");
}

// The same block in the result of a tool, and in what a document holds.
std::string InToolResult(std::string_view block) {
  return Text(R"({"type":"tool_result","tool_use_id":"t","content":[)", block, "]}");
}
std::string InDocument(std::string_view block) {
  return Text(R"({"type":"document","source":{"type":"content","content":[)", block, "]}}");
}
std::string InOutput(std::string_view part) {
  return Text(R"({"type":"function_call_output","call_id":"c","output":[)", part, "]}");
}

void AddTools(std::vector<Form>* forms) {
  for (const char* tool :
       {R"({"type":"web_search_20250305","name":"web_search"})",
        R"({"type":"web_fetch_20250910","name":"web_fetch"})",
        R"({"type":"code_execution_20250825","name":"code_execution"})",
        R"({"type":"computer_20250124","name":"computer"})",
        R"({"type":"mcp_toolset","mcp_server_name":"x"})", R"({"type":"a_new_type","name":"x"})",
        R"({"name":"x","input_schema":{},"allowed_callers":["code_execution_20250825"]})"})
    forms->push_back(
        {kMessages, Body(kMessages, Text(R"(,"tools":[)", tool, "]")), "egress_server_tool"});
  for (const char* tool :
       {R"({"type":"web_search"})", R"({"type":"file_search","vector_store_ids":["v"]})",
        R"({"type":"code_interpreter","container":{"type":"auto"}})",
        R"({"type":"mcp","server_label":"x","server_url":"https://x.example"})",
        R"({"type":"mcp","server_label":"x","connector_id":"connector_gmail"})",
        R"({"type":"computer_use_preview"})", R"({"type":"image_generation"})",
        R"({"type":"function","name":"f","server_url":"https://x.example"})"})
    forms->push_back(
        {kResponses, Body(kResponses, Text(R"(,"tools":[)", tool, "]")), "egress_server_tool"});
  forms->push_back(
      {kChat, Body(kChat, R"(,"tools":[{"type":"browser_search"}])"), "egress_server_tool"});
}

void AddFields(std::vector<Form>* forms) {
  const std::vector<Form> fields = {
      {kMessages, R"(,"mcp_servers":[{"type":"url","url":"https://x.example"}])",
       "egress_server_tool"},
      {kMessages, R"(,"container":{"skills":[{"type":"anthropic"}]})", "egress_server_tool"},
      {kMessages, R"(,"tool_choice":{"type":"web_search"})", "egress_server_tool"},
      {kMessages, R"(,"a_new_field":1)", "egress_field"},
      {kResponses, R"(,"background":true)", "egress_stored"},
      {kResponses, R"(,"previous_response_id":"resp_1")", "egress_stored"},
      {kResponses, R"(,"conversation":{"id":"conv_1"})", "egress_stored"},
      {kResponses, R"(,"prompt":{"id":"pmpt_1"})", "egress_stored"},
      {kResponses, R"(,"include":["file_search_call.results"])", "egress_field"},
      {kResponses, R"(,"tool_choice":{"type":"allowed_tools","tools":[{"type":"mcp"}]})",
       "egress_server_tool"},
      {kChat, R"(,"web_search_options":{"search_context_size":"low"})", "egress_server_tool"},
      {kChat, R"(,"search_parameters":{"mode":"on"})", "egress_server_tool"},
      {kChat, R"(,"plugins":[{"id":"web"}])", "egress_server_tool"},
      {kChat, R"(,"models":["other"])", "egress_model"},
      {kChat, R"(,"store":true)", "egress_field"}};
  for (const Form& field : fields)
    forms->push_back({field.api, Body(field.api, field.body), field.code});
  for (const WireApi api : {kMessages, kResponses, kChat}) {
    std::string foreign = Body(api, "");
    foreign.replace(foreign.find("test-model"), 10, "other-model");
    forms->push_back({api, foreign, "egress_model"});
  }
  forms->push_back(
      {kResponses, R"({"model":"test-model","store":true,"input":"x"})", "egress_stored"});
}

void AddSources(std::vector<Form>* forms) {
  for (const char* block :
       {R"({"type":"image","source":{"type":"url","url":"https://x.example"}})",
        R"({"type":"document","source":{"type":"url","url":"https://x.example"}})",
        R"({"type":"document","source":{"type":"file","file_id":"file_1"}})",
        R"({"type":"image","source":{"type":"file","file_id":"file_1"}})"}) {
    const std::string inner = block;
    for (const std::string& form : {inner, InToolResult(inner)})
      forms->push_back({kMessages, Content(kMessages, form), "egress_url"});
  }
  const char* image = R"({"type":"image","source":{"type":"url","url":"https://x.example"}})";
  forms->push_back({kMessages, Content(kMessages, InDocument(image)), "egress_url"});
  forms->push_back({kMessages, Content(kMessages, InToolResult(InDocument(image))), "egress_url"});
  for (const char* block : {R"({"type":"server_tool_use","id":"s","name":"web_search"})",
                            R"({"type":"mcp_tool_use","id":"m","server_name":"x"})",
                            R"({"type":"container_upload","file_id":"file_1"})"})
    forms->push_back({kMessages, Content(kMessages, block), "egress_server_tool"});
  const std::vector<Form> parts = {
      {kResponses, R"({"type":"input_image","image_url":"https://x.example/a"})", "egress_url"},
      {kResponses, R"({"type":"input_file","file_url":"https://x.example/a"})", "egress_url"},
      {kResponses, R"({"type":"input_file","file_id":"file_1"})", "egress_stored"}};
  for (const Form& part : parts) {
    forms->push_back({kResponses, Content(kResponses, part.body), part.code});
    forms->push_back({kResponses, Item(InOutput(part.body)), part.code});
  }
  forms->push_back(
      {kChat, Content(kChat, R"({"type":"image_url","image_url":{"url":"https://x.example/a"}})"),
       "egress_url"});
  forms->push_back(
      {kChat, Content(kChat, R"({"type":"file","file":{"file_id":"file_1"}})"), "egress_stored"});
}

void AddItems(std::vector<Form>* forms) {
  const std::vector<std::pair<const char*, const char*>> items = {
      {R"({"type":"item_reference","id":"i_1"})", "egress_stored"},
      {R"({"type":"reasoning","id":"rs_1","summary":[]})", "egress_stored"},
      {R"({"type":"message","id":"msg_1","role":"assistant"})", "egress_stored"},
      {R"({"type":"function_call","id":"fc_1","call_id":"c"})", "egress_stored"},
      {R"({"type":"web_search_call","id":"ws_1"})", "egress_server_tool"},
      {R"({"type":"mcp_approval_response","approve":true})", "egress_server_tool"}};
  for (const auto& [item, code] : items) forms->push_back({kResponses, Item(item), code});
}

std::vector<Form> RefusedForms() {
  std::vector<Form> forms;
  AddTools(&forms);
  AddFields(&forms);
  AddSources(&forms);
  AddItems(&forms);
  return forms;
}

// What is like them, and passes: each guise must not be what refuses.
std::vector<Form> HarmlessForms() {
  return {
      {kMessages, Body(kMessages, R"(,"max_tokens":9,"tools":[{"name":"Bash","input_schema":{}}])"),
       ""},
      {kMessages,
       Content(kMessages, InToolResult(R"({"type":"image","source":{"type":"base64","media_type":)"
                                       R"("image/png","data":"AAAA"}})")),
       ""},
      {kResponses, Body(kResponses, R"(,"tools":[{"type":"function","name":"f","parameters":{}}])"),
       ""},
      {kResponses,
       Item(InOutput(R"({"type":"input_image","image_url":"data:image/png;base64,A"})")), ""},
      {kChat,
       Content(kChat, R"({"type":"image_url","image_url":{"url":"data:image/png;base64,A"}})"), ""},
  };
}

// ---- the guises -----------------------------------------------------------------------------

std::string Escaped(std::string_view text, bool is_upper) {
  std::string out;
  for (char c : text) {
    std::string_view digits = is_upper ? "0123456789ABCDEF" : "0123456789abcdef";
    const auto byte = static_cast<unsigned char>(c);
    out += Text("\\u00", digits[byte >> 4], digits[byte & 15]);
  }
  return out;
}

// How a value is written out.
struct Style {
  std::function<std::string(std::string_view)> key = [](auto text) { return std::string(text); };
  std::function<std::string(std::string_view)> value = [](auto text) { return std::string(text); };
  std::string_view space;
  // Called for each member: what is written before and after it.
  std::function<std::pair<std::string, std::string>(const std::string& key)> beside;
  std::function<void(Ordered&)> change = [](Ordered&) {};  // the tree, before
};

std::string Write(const Ordered& tree, const Style& style) {
  if (tree.is_string()) return Text('"', style.value(tree.get<std::string>()), '"');
  if (!tree.is_structured()) return tree.dump();
  std::string out(1, tree.is_object() ? '{' : '[');
  for (auto it = tree.begin(); it != tree.end(); ++it) {
    if (it != tree.begin()) out += ',';
    out += style.space;
    if (tree.is_array()) {
      out += Write(*it, style);
      continue;
    }
    const std::string member =
        Text('"', style.key(it.key()), '"', style.space, ':', style.space, Write(*it, style));
    const auto [before, after] =
        style.beside ? style.beside(it.key()) : std::pair<std::string, std::string>();
    out += before + member + after;
  }
  return Text(out, style.space, tree.is_object() ? '}' : ']');
}

void EachObject(Ordered& tree, const std::function<void(Ordered&)>& change) {
  if (!tree.is_structured()) return;
  for (Ordered& child : tree) EachObject(child, change);
  if (tree.is_object()) change(tree);
}

// All objects' members moved on by so many places.
Style Rotated(std::ptrdiff_t places) {
  Style style;
  style.change = [places](Ordered& tree) {
    EachObject(tree, [places](Ordered& object) {
      std::vector<std::pair<std::string, Ordered>> members;
      for (auto& [key, value] : object.items()) members.emplace_back(key, value);
      if (members.empty()) return;
      const auto size = static_cast<std::ptrdiff_t>(members.size());
      std::rotate(members.begin(), members.begin() + places % size, members.end());
      object = Ordered::object();
      for (auto& [key, value] : members) object[key] = value;
    });
  };
  return style;
}

// Harmless neighbours on both sides in every list that has any kind of them.
Style InCompany(WireApi api) {
  Style style;
  style.change = [api](Ordered& tree) {
    EachObject(tree, [api](Ordered& object) {
      const std::vector<std::pair<const char*, Ordered>> neighbours = {
          {"tools",
           api == kMessages    ? Ordered{{"name", "Bash"}, {"input_schema", Ordered::object()}}
           : api == kResponses ? Ordered{{"type", "function"}, {"name", "f"}}
                               : Ordered{{"type", "function"}, {"function", {{"name", "f"}}}}},
          {"content", Ordered{{"type", api == kResponses ? "input_text" : "text"}, {"text", "t"}}},
          {"output", Ordered{{"type", "input_text"}, {"text", "t"}}},
          {"messages", Ordered{{"role", "user"}, {"content", "y"}}},
          {"input", Ordered{{"role", "user"}, {"content", "y"}}}};
      for (const auto& [key, neighbour] : neighbours) {
        if (!object.contains(key) || !object[key].is_array()) continue;
        object[key].insert(object[key].begin(), neighbour);
        object[key].push_back(neighbour);
      }
    });
  };
  return style;
}

// Guises that change nothing of what a request asks for.
std::vector<Style> SameInOtherWords(WireApi api) {
  std::vector<Style> styles = {Style(), InCompany(api)};
  for (std::ptrdiff_t places = 1; places < 5; ++places) styles.push_back(Rotated(places));
  for (const bool is_upper : {false, true}) {
    auto all = [is_upper](std::string_view text) { return Escaped(text, is_upper); };
    auto first = [is_upper](std::string_view text) {
      return Text(Escaped(text.substr(0, 1), is_upper), text.empty() ? text : text.substr(1));
    };
    for (int which = 0; which < 4; ++which) {
      Style style = which < 2 ? Rotated(1) : InCompany(api);
      if (which != 1) style.key = which == 3 ? decltype(style.key)(first) : all;
      if (which != 0) style.value = which == 3 ? decltype(style.value)(first) : all;
      styles.push_back(style);
    }
  }
  Style spaced;
  spaced.space = " \t\r\n";
  styles.push_back(spaced);
  return styles;
}

std::string Dressed(const Form& form, const Style& style) {
  Ordered tree = Ordered::parse(form.body);
  style.change(tree);
  return Write(tree, style);
}

std::string CodeOf(WireApi api, const std::string& body) {
  const Judgement judgement = JudgeBody(api, body, {"test-model"});
  return judgement.refusal ? std::string(judgement.refusal->code) : "";
}

std::size_t MembersOf(const std::string& body) {
  std::size_t members = 0;
  Ordered tree = Ordered::parse(body);
  EachObject(tree, [&members](Ordered& object) { members += object.size(); });
  return members;
}

// `change` on the so manieth member alone.
Style AtMember(std::size_t member,
               const std::function<std::pair<std::string, std::string>(std::string_view)>& change) {
  Style style;
  style.beside = [member, change, seen = std::size_t{0}](const std::string& key) mutable {
    return seen++ == member ? change(key) : std::pair<std::string, std::string>();
  };
  return style;
}

TEST(JudgeFormsTest, EveryFormIsRefusedForItsReasonInEveryGuise) {
  for (const Form& form : RefusedForms()) {
    for (const Style& style : SameInOtherWords(form.api)) {
      const std::string body = Dressed(form, style);
      EXPECT_EQ(CodeOf(form.api, body), form.code) << body;
    }
  }
}

TEST(JudgeFormsTest, NoGuiseRefusesWhatIsHarmless) {
  for (const Form& form : HarmlessForms()) {
    for (const Style& style : SameInOtherWords(form.api)) {
      const std::string body = Dressed(form, style);
      EXPECT_EQ(CodeOf(form.api, body), "") << body;
    }
  }
}

TEST(JudgeFormsTest, ASecondMemberOfAnyNameIsRefusedWhateverItHolds) {
  std::vector<Form> forms = RefusedForms();
  for (Form& harmless : HarmlessForms()) forms.push_back(std::move(harmless));
  for (const Form& form : forms) {
    for (std::size_t member = 0; member < MembersOf(form.body); ++member) {
      for (const bool is_escaped : {false, true}) {
        auto twin = [is_escaped](std::string_view key) {
          return Text('"', is_escaped ? Escaped(key, false) : std::string(key), "\":null");
        };
        for (const Style& style : {AtMember(member,
                                            [&](std::string_view key) {
                                              return std::pair(twin(key) + ",", std::string());
                                            }),
                                   AtMember(member, [&](std::string_view key) {
                                     return std::pair(std::string(), "," + twin(key));
                                   })}) {
          const std::string body = Dressed(form, style);
          EXPECT_EQ(CodeOf(form.api, body), "egress_duplicate_key") << body;
        }
      }
    }
  }
}

// Parsers that ignore case, or what surrounds a name, would take it for the member it is like.
TEST(JudgeFormsTest, AMemberWhoseNameIsAlmostAnotherIsRefused) {
  for (const Form& form : RefusedForms()) {
    const std::size_t members = MembersOf(form.body);
    for (std::size_t member = 0; member < members; ++member) {
      for (int way = 0; way < 3; ++way) {
        Style style;
        style.key = [member, way, seen = std::size_t{0}](std::string_view key) mutable {
          std::string name(key);
          if (seen++ != member) return name;
          if (way == 0) name[0] = static_cast<char>(name[0] - 'a' + 'A');
          if (way == 1) name += ' ';
          if (way == 2) name.insert(0, "\\u200b");
          return name;
        };
        const std::string body = Dressed(form, style);
        EXPECT_NE(CodeOf(form.api, body), "") << body;
      }
    }
  }
}

}  // namespace
}  // namespace taskcell::gateway
