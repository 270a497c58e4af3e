#include "gateway/runtimes/loop/tool_guard.h"

#include <gtest/gtest.h>

#include "launcher/base/json_value.h"

namespace taskcell::gateway::loop {
namespace {

std::string Decision(std::string_view call) {
  return std::string(ParseJson(GuardAnswer(call)).value().String("decision"));
}

TEST(ToolGuardTest, AllowsFileAndShellToolsAndNothingItCannotRead) {
  for (const char* allowed :
       {R"({"toolCall":{"name":"run_command","args":{"CommandLine":"ls"}},"modelName":"m"})",
        R"({"modelName":"m","toolCall":{"args":{"name":"browser"},"name":"view_file"}})",
        " {\"toolCall\":{\"name\":\"finish\"}}\n"})
    EXPECT_EQ(Decision(allowed), "allow") << allowed;
  for (const char* denied :
       {R"({"toolCall":{"name":"search_web"}})", R"({"toolCall":{"name":["run_command"]}})",
        R"({"toolCall":{"name":"run_command "}})",
        R"({"toolCall":{"args":{"name":"run_command"}}})",
        R"({"toolCall":{"name":"browser","args":"\"toolCall\":{\"name\":\"run_command\"}"}})",
        R"({"toolCall":null})", R"({"name":"run_command"})", R"([{"toolCall":1}])",
        R"({"toolCall":{"name":"run_command"}} x)", R"({"toolCall":{"name":"run_command")",
        "not json", "", "{}"})
    EXPECT_EQ(Decision(denied), "deny") << denied;
}

}  // namespace
}  // namespace taskcell::gateway::loop
