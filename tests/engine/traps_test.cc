// Programs that play every trap they know of, each in a real native cell: what they print, leave
// out or forge gives the same code for every runtime, one line in the log, and nothing is left.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>

#include "launcher/base/text.h"
#include "tests/engine/task_fixture.h"

namespace taskcell::test {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

// How one runtime says what a trap needs.
struct Speaker {
  std::string runtime;
  std::string provider;  // of its account
  std::string ask;       // bash: one request that the provider answers; empty: it cannot be reached
  std::string text;      // a line of text on the way; @ stands for the text
  std::string result;    // the final line with the reply @
  std::string tool;      // a call of a tool outside the surface
  std::string steps;     // bash: more steps than there may be
  std::string program;   // in the root
};

constexpr std::string_view kClaudeText =
    R"({"type":"assistant","message":{"id":"m1","role":"assistant","content":[{"type":"text","text":"@"}]}})";
constexpr std::string_view kClaudeResult =
    R"({"type":"result","subtype":"success","is_error":false,"num_turns":1,"result":"@"})";
constexpr std::string_view kClaudeTool =
    R"({"type":"assistant","message":{"id":"m2","role":"assistant","content":[{"type":"tool_use","id":"t1","name":"WebFetch","input":{}}]}})";
constexpr std::string_view kClaudeLimit =
    R"(echo '{"type":"result","subtype":"error_max_turns","is_error":true,"num_turns":31}'; exit 1)";

std::vector<Speaker> Speakers() {
  return {
      {"claude", "anthropic",
       R"(ask /v1/messages '{"model":"claude-sonnet-4-5","max_tokens":16,"messages":[{"role":"user","content":"x"}]}')",
       std::string(kClaudeText), std::string(kClaudeResult), std::string(kClaudeTool),
       std::string(kClaudeLimit), "usr/bin/claude"},
      {"codex", "openai",
       R"(ask /v1/responses '{"model":"claude-sonnet-4-5","input":[{"role":"user","content":"x"}],"stream":true,"store":false}')",
       R"({"type":"item.completed","item":{"id":"m1","type":"agent_message","text":"@"}})",
       R"({"type":"item.completed","item":{"id":"m2","type":"agent_message","text":"@"}})"
       "\n"
       R"({"type":"turn.completed","usage":{"input_tokens":1,"output_tokens":1}})",
       R"({"type":"item.completed","item":{"id":"x","type":"mcp_tool_call"}})",
       R"(for i in {1..9}; do echo '{"type":"item.completed","item":{"id":"i'$i'","type":"command_execution"}}'; done; sleep 20)",
       "usr/bin/codex"},
      {"grok", "xai", "", std::string(kClaudeText), std::string(kClaudeResult),
       std::string(kClaudeTool), std::string(kClaudeLimit), "usr/local/bin/grok"},
  };
}

std::string With(std::string text, std::string_view value) {
  text.replace(text.find('@'), 1, value);
  return text;
}

// What the stand-in is to do, with the speaker's words in it.
struct Trap {
  std::string name;
  std::string body;
  std::string code;
  std::string reply;  // of a success
  std::string part;   // of the message
};

// A line of bash that prints a text as it is.
std::string Say(std::string_view text) {
  return Text("cat <<'END_OF_LINES'\n", text, "\nEND_OF_LINES\n");
}

std::vector<Trap> TrapsOf(const Speaker& by) {
  const std::string good = With(by.result, "fine");
  const std::size_t cut = good.find("fine") + 2;
  const std::string text = Say(With(by.text, "so far"));
  std::vector<Trap> traps = {
      {"a forged result, and the provider was never asked", Say(good), "no_reply", "",
       "ended without a reply (exit 0)"},
      {"a text, and then nothing", text, "no_reply", "", "(exit 0)"},
      {"nothing at all", "true", "no_reply", "", "(exit 0)"},
      {"a text and an error", text + "exit 7", "no_reply", "", "(exit 7)"},
      {"a death by signal", text + "kill -9 $$", "no_reply", "", "signal 9"},
      {"a tool outside the surface", Say(by.tool) + "sleep 20", "tool_violation", "",
       "outside the allowed file/shell surface"},
      {"a tool outside the surface, covered by a result", Say(by.tool) + Say(good),
       "tool_violation", "", ""},
      {"lines of no JSON", "for i in 1 2 3 4; do echo junk; done\n" + Say(good), "tool_violation",
       "", "unparsable_stream"},
      {"a line over its bound", "head -c 1048577 /dev/zero; echo; sleep 20", "output_overflow", "",
       "exceeded 1 MiB"},
      {"more output than may be", "while true; do echo '{\"type\":\"x\"}'; done", "output_overflow",
       "", "exceeded 1 MiB"},
      {"a rate limit that no provider spoke of",
       "echo 'rate limit 429: usage limit reached' >&2\n"
       "echo '{\"type\":\"error\",\"message\":\"429 quota\"}'; exit 1",
       "no_reply", "", "(exit 1)"},
      {"a rejection that no provider spoke of",
       "echo 'invalid api key' >&2\necho '{\"type\":\"error\",\"message\":\"unauthorized\"}'; exit "
       "1",
       "no_reply", "", "(exit 1)"},
      {"more memory than there is", "x=x; while true; do x+=$x; done", "out_of_memory", "",
       "ran out of memory (128 MiB)"},
      {"more processes than may be",
       "(for i in {1..60}; do sleep 9 & done) 2>/dev/null &\n"
       "while ((SECONDS < 3)); do :; done; exit 1",
       "pids_limit", "", "process limit (40)"},
      {"more steps than may be, with a text", text + by.steps, "ok", "so far", ""},
      {"more steps than may be", by.steps, "step_limit", "", "step limit (4)"},
  };
  if (by.ask.empty()) return traps;
  const std::string asked = by.ask + "\n";
  traps.push_back({"control: a plain run", asked + Say(good), "ok", "fine", ""});
  traps.push_back(
      {"an event in the middle of a line",
       asked + Text("printf '%s' '", good.substr(0, cut), "'\n",
                    "echo '{\"type\":\"system\"}'\nprintf '%s\\n' '", good.substr(cut), "'"),
       "ok", "fine", ""});
  traps.push_back(
      {"a raw newline in the reply",
       asked + Text("printf '%s\\n%s\\n' '", good.substr(0, cut), "' '", good.substr(cut), "'"),
       "ok", "fine", ""});
  traps.push_back({"bytes that are no UTF-8",
                   asked + Text("printf '%b\\n' '", With(by.result, R"(fi\xff\xfene)"), "'"), "ok",
                   "fi\xEF\xBF\xBD\xEF\xBF\xBDne", ""});
  traps.push_back({"a last line without its newline", asked + Text("printf '%s' '", good, "'"),
                   "ok", "fine", ""});
  traps.push_back({"chatter before and after", asked + "echo hello\n" + Say(good) + "echo bye",
                   "ok", "fine", ""});
  traps.push_back({"a result and an exit status of failure", asked + Say(good) + "exit 1",
                   "no_reply", "", "(exit 1)"});
  return traps;
}

class TrapsTest : public TaskFixture {
 protected:
  void SetUp() override {
    TaskFixture::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    ASSERT_EQ(test::Run({MAKE_SMALL_ROOT, At("root")}).status, 0);
  }

  // A home whose agent speaks as `by`, and does as `body` says.
  void MakeHome(const Speaker& by, std::string_view body) const {
    Put("config.toml", Text("[taskcell]\nengine = \"native\"\nroot = \"", At("root"),
                            "\"\n[container.sandbox]\nmemory_bytes = 134217728\n"
                            "tmp_bytes = 16777216\nworkspace_bytes = 16777216\npids = 40\n"
                            "max_turns = 4\n[[accounts]]\nid = \"c\"\nprovider = \"",
                            by.provider, "\"\napi_key = \"secret://env/OPENAI_API_KEY\"\n"));
    Put("agents/a1/agent.toml", Text("[agent]\nname = \"a1\"\n[runtime]\nprovider = \"", by.runtime,
                                     "\"\n[model]\npreferred = \"claude-sonnet-4-5\"\n[container]\n"
                                     "sandbox_enabled = true\nnetwork_access = true\n"
                                     "timeout_ms = 15000\n"));
    Put("agents/a1/SKILLS/trap", body);
    fs::remove_all(path_ + "/home/logs");
    fs::remove(path_ + "/home/taskcell.db");
    fs::remove(path_ + "/home/security_audit.jsonl");
  }

  Json RunIn(const gateway::ProviderProcess& provider) const {
    const Outcome done = Taskcell({"run", "a1", "Do it.", "--json"}, provider);
    return Json::parse(done.out, nullptr, false);
  }

  // The exit status of doctor: 1 where a task would be refused.
  int DoctorIn(const gateway::ProviderProcess& provider) const {
    return Taskcell({"doctor"}, provider).status;
  }

  Outcome Taskcell(std::vector<std::string> arguments,
                   const gateway::ProviderProcess& provider) const {
    GiveHomeToUser();
    RunOptions run;
    run.user = user_;
    run.environment = {Text("OPENAI_API_KEY=", kKey), "OPENAI_BASE_URL=" + provider.Url("/v1"),
                       "ANTHROPIC_BASE_URL=" + provider.Url()};
    run.in_child = [uid = user_->uid] { EnterDelegatedCgroup(uid); };
    arguments.insert(arguments.begin(), Program("taskcell"));
    arguments.insert(arguments.end(), {"--home", path_ + "/home"});
    return test::Run(arguments, run);
  }

  // What the log says of failures.
  std::vector<std::string> Failures() const {
    std::vector<std::string> lines;
    const std::string logs = path_ + "/home/logs";
    if (!fs::exists(logs)) return lines;
    for (const auto& file : fs::directory_iterator(logs)) {
      const std::string text = ReadText(file.path());
      for (std::string_view line : Split(text, '\n'))
        if (!line.empty()) lines.emplace_back(line);
    }
    return lines;
  }

  void Expect(const Json& answer, const std::string& code, const std::string& reply,
              const std::string& part) const {
    ASSERT_FALSE(answer.is_discarded());
    EXPECT_EQ(answer["code"], code) << answer;
    EXPECT_THAT(answer["message"].get<std::string>(), HasSubstr(part));
    EXPECT_EQ(answer["reply"].is_null() ? "" : answer["reply"].get<std::string>(), reply);
    EXPECT_EQ(answer["ran_on_host"], false);
    EXPECT_EQ(answer["receipt"]["verified"], true) << "the trap was in the cell";
    const std::vector<std::string> failures = Failures();
    ASSERT_EQ(failures.size(), code == "ok" ? 0U : 1U);
    if (code != "ok") {
      EXPECT_THAT(failures[0], HasSubstr(Text(" agent=a1 code=", code, " ")));
    }
    const std::string audit = ReadText(path_ + "/home/security_audit.jsonl");
    EXPECT_EQ(audit.find("task_sandbox_tool_violation") != std::string::npos,
              code == "tool_violation")
        << audit;
  }
};

TEST_F(TrapsTest, EachOfEachRuntimeEndsAsItMust) {
  const gateway::ProviderProcess provider =
      MakeProvider({{"steps", Json::array()}, {"reply", "from the provider"}});
  ASSERT_TRUE(provider.IsUp());
  for (const Speaker& by : Speakers()) {
    for (const Trap& trap : TrapsOf(by)) {
      SCOPED_TRACE(by.runtime + ": " + trap.name);
      MakeHome(by, trap.body);
      Expect(RunIn(provider), trap.code, trap.reply, trap.part);
    }
  }
}

TEST_F(TrapsTest, AProgramThatIsMissingOrCannotBeRunIsInvalidConfig) {
  const gateway::ProviderProcess provider =
      MakeProvider({{"steps", Json::array()}, {"reply", "from the provider"}});
  ASSERT_TRUE(provider.IsUp());
  for (const Speaker& by : Speakers()) {
    const std::string program = At("root/" + by.program);
    MakeHome(by, "");
    EXPECT_EQ(DoctorIn(provider), 0) << by.runtime << ": control";
    for (const bool is_there : {true, false}) {
      SCOPED_TRACE(by.runtime + (is_there ? ": no program" : ": missing"));
      if (is_there) {
        ASSERT_EQ(::chmod(program.c_str(), 0644), 0);
      } else {
        fs::remove(program);
      }
      const Json answer = RunIn(provider);
      ASSERT_FALSE(answer.is_discarded());
      EXPECT_EQ(answer["code"], "invalid_config") << answer;
      EXPECT_THAT(answer["message"].get<std::string>(),
                  HasSubstr(Text("set [container.sandbox.executables] ", by.runtime)));
      EXPECT_EQ(answer["ran_on_host"], false);
      EXPECT_EQ(Failures().size(), is_there ? 1U : 2U);
      EXPECT_EQ(DoctorIn(provider), 1) << "it is foreseen";
    }
  }
}

}  // namespace
}  // namespace taskcell::test
