#include "tests/engine/trap_fixture.h"

#include <gmock/gmock.h>

#include <filesystem>

#include "launcher/base/text.h"

namespace taskcell::test {

namespace fs = std::filesystem;
using testing::HasSubstr;

void TrapFixture::ClearRecords() const {
  fs::remove_all(At("home/logs"));
  fs::remove(At("home/taskcell.db"));
  fs::remove(At("home/security_audit.jsonl"));
}

std::vector<std::string> TrapFixture::Failures() const {
  std::vector<std::string> lines;
  const std::string logs = At("home/logs");
  if (!fs::exists(logs)) return lines;
  for (const auto& file : fs::directory_iterator(logs)) {
    const std::string text = ReadText(file.path());
    for (std::string_view line : Split(text, '\n'))
      if (!line.empty()) lines.emplace_back(line);
  }
  return lines;
}

void TrapFixture::Expect(const Json& answer, const TrapEnd& end) const {
  ASSERT_FALSE(answer.is_discarded());
  EXPECT_EQ(answer["code"], end.code) << answer;
  EXPECT_THAT(answer["message"].get<std::string>(), HasSubstr(end.part));
  EXPECT_EQ(answer["reply"].is_null() ? "" : answer["reply"].get<std::string>(), end.reply);
  EXPECT_EQ(answer["ran_on_host"], false);
  EXPECT_EQ(answer["receipt"]["verified"], true) << "the trap was in the cell";
  const std::vector<std::string> failures = Failures();
  ASSERT_EQ(failures.size(), end.code == "ok" ? 0U : 1U);
  if (end.code != "ok") {
    EXPECT_THAT(failures[0], HasSubstr(Text(" agent=a1 code=", end.code, " ")));
  }
  const std::string audit = ReadText(At("home/security_audit.jsonl"));
  EXPECT_EQ(audit.find("task_sandbox_tool_violation") != std::string::npos,
            end.code == "tool_violation")
      << audit;
}

void StandInFixture::SetUp() {
  TrapFixture::SetUp();
  if (IsSkipped() || HasFatalFailure()) return;
  ASSERT_EQ(test::Run({MAKE_SMALL_ROOT, At("root")}).status, 0);
}

void StandInFixture::MakeHome(std::string_view runtime, std::string_view provider,
                              std::string_view body) const {
  Put("config.toml", Text("[taskcell]\nengine = \"native\"\nroot = \"", At("root"),
                          "\"\n[container.sandbox]\nmemory_bytes = 134217728\n"
                          "tmp_bytes = 16777216\nworkspace_bytes = 16777216\npids = 40\n"
                          "max_turns = 4\n[[accounts]]\nid = \"c\"\nprovider = \"",
                          provider, "\"\napi_key = \"secret://env/OPENAI_API_KEY\"\n"));
  Put("agents/a1/agent.toml",
      Text("[agent]\nname = \"a1\"\n[runtime]\nprovider = \"", runtime,
           "\"\n[model]\npreferred = \"claude-sonnet-4-5\"\n[container]\n"
           "sandbox_enabled = true\nnetwork_access = true\ntimeout_ms = 60000\n"));
  Put("agents/a1/SKILLS/trap", body);
  ClearRecords();
}

TaskFixture::Json StandInFixture::RunIn(const gateway::ProviderProcess& provider) const {
  const Outcome done = Taskcell({"run", "a1", "Do it.", "--json"}, provider);
  return Json::parse(done.out, nullptr, false);
}

int StandInFixture::DoctorIn(const gateway::ProviderProcess& provider) const {
  return Taskcell({"doctor"}, provider).status;
}

Outcome StandInFixture::Taskcell(std::vector<std::string> arguments,
                                 const gateway::ProviderProcess& provider) const {
  GiveHomeToUser();
  RunOptions run;
  run.user = user_;
  run.environment = {Text("OPENAI_API_KEY=", kKey), "OPENAI_BASE_URL=" + provider.Url("/v1"),
                     "ANTHROPIC_BASE_URL=" + provider.Url(),
                     "GROK_XAI_API_BASE_URL=" + provider.Url("/v1")};
  run.in_child = [uid = user_->uid] { EnterDelegatedCgroup(uid); };
  arguments.insert(arguments.begin(), Program("taskcell"));
  arguments.insert(arguments.end(), {"--home", path_ + "/home"});
  return test::Run(arguments, run);
}

}  // namespace taskcell::test
