// Programs that play every trap they know of, each in a real native cell: what they print, leave
// out or forge gives the same code for every runtime, one line in the log, and nothing is left.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>

#include "launcher/base/text.h"
#include "tests/engine/trap_fixture.h"

namespace taskcell::test {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

// What the stand-in is to do.
struct Trap {
  std::string name;
  std::string body;
  std::string code;
  std::string reply;         // of a success
  std::string part;          // of the message
  std::string differs = {};  // what it tells that the broker did not record: "steps,tools", ...
};

// How one runtime says what a trap needs.
struct Speaker {
  std::string runtime;
  std::string provider;  // of its account
  std::string ask;       // bash: one request that the provider answers; empty: the broker sees none
  std::string text;      // a line of text on the way; @ stands for the text
  std::string result;    // the final line with the reply @
  std::string tool;      // a call of a tool outside the surface
  std::string steps;     // bash: more steps than there may be
  std::string program;   // in the root
  std::vector<Trap> own = {};  // of this program alone
};

constexpr std::string_view kClaudeText =
    R"({"type":"assistant","message":{"id":"m1","role":"assistant","content":[{"type":"text","text":"@"}]}})";
constexpr std::string_view kClaudeResult =
    R"({"type":"result","subtype":"success","is_error":false,"num_turns":1,"result":"@"})";
constexpr std::string_view kClaudeTool =
    R"({"type":"assistant","message":{"id":"m2","role":"assistant","content":[{"type":"tool_use","id":"t1","name":"@","input":{}}]}})";
constexpr std::string_view kClaudeLimit =
    R"(echo '{"type":"result","subtype":"error_max_turns","is_error":true,"num_turns":31}'; exit 1)";

std::string With(std::string text, std::string_view value) {
  text.replace(text.find('@'), 1, value);
  return text;
}

// A line of bash that prints a text as it is.
std::string Say(std::string_view text) {
  return Text("cat <<'END_OF_LINES'\n", text, "\nEND_OF_LINES\n");
}

constexpr std::string_view kGrokAsk =
    R"(ask /v1/chat/completions '{"model":"claude-sonnet-4-5","messages":[{"role":"user","content":"x"}]}')";

// What grok does beside what it shares with claude, whose format it speaks.
std::vector<Trap> GrokTraps() {
  const std::string asked = Text(kGrokAsk, "\n");
  const std::string result = Say(With(std::string(kClaudeResult), "fine"));
  auto ends = [&](std::string_view reason, std::string_view text) {
    return asked +
           Say(Text(R"({"type":"result","subtype":"success","is_error":false,"stop_reason":")",
                    reason, R"(","result":")", text, "\"}"));
  };
  std::vector<Trap> traps = {
      {"cancelled without a word, status 0", ends("cancelled", ""), "no_reply", "", "(exit 0)"},
      {"cancelled in the middle of a reply, status 0", ends("cancelled", "half"), "no_reply", "",
       ""},
      {"a refusal dressed as a success", ends("refusal", "no"), "no_reply", "", ""},
      {"the step limit as a success's reason", ends("max_turn_requests", ""), "step_limit", "", "",
       "steps"},
      {"control: its own end", ends("end_turn", "fine"), "ok", "fine", ""},
      {"servers of tools from settings that lay around",
       Say(R"({"type":"system","subtype":"init","mcp_servers":[{"name":"x"}]})") + result,
       "tool_violation", "", "mcp_servers"},
      {"control: no servers of tools",
       asked + Say(R"({"type":"system","subtype":"init","mcp_servers":[]})") + result, "ok", "fine",
       ""},
      {"a failure as one object", asked + Say(R"({"type":"error","message":"it broke"})"),
       "no_reply", "", "(exit 0)"},
      {"its other format",
       asked + Say(R"({"type":"text","data":"fine"})") +
           Say(R"({"type":"end","stopReason":"end_turn","num_turns":1})"),
       "no_reply", "", "(exit 0)"},
      {"a namesake that knows none of the options",
       "echo \"error: unexpected argument '--prompt-file'\" >&2; exit 2", "invalid_config", "",
       "[container.sandbox.executables] grok"},
  };
  for (const char* tool : {"web_search", "web_fetch", "Agent", "spawn_subagent", "use_tool"})
    traps.push_back({Text("the tool ", tool), Say(With(std::string(kClaudeTool), tool)) + result,
                     "tool_violation", "", tool, "steps,tools"});
  for (const char* tool : {"run_terminal_command", "read_file", "write"})
    traps.push_back({Text("control: the tool ", tool),
                     asked + Say(With(std::string(kClaudeTool), tool)) + result, "ok", "fine", "",
                     "steps,tools"});
  return traps;
}

std::string AgyStep(std::string_view fields) {
  return Text(R"({"event":"step_update","step_update":{)", fields, "}}");
}

// What antigravity does; its hook refuses tools, and says so in the stream.
std::vector<Trap> AntigravityTraps() {
  const std::string result =
      Say(R"({"event":"result","result":{"status":"SUCCESS","response":"fine"}})");
  const std::string active =
      Say(AgyStep(R"("step_index":1,"state":"ACTIVE","tool_name":"browser")"));
  auto ends = [&](std::string_view state, std::string_view message) {
    return active + Say(AgyStep(Text(R"("step_index":1,"state":")", state,
                                     R"(","tool_info":{"name":"browser","error":{"message":")",
                                     message, "\"}}")));
  };
  return {
      {"a tool that its hook refused",
       ends("ERROR", "tool call denied by pre-tool hook: browser") + result, "ok", "fine", ""},
      {"a tool whose refusal is told by somebody else", ends("ERROR", "it failed") + result,
       "tool_violation", "", "browser"},
      {"a tool that is under way at the end", active + result, "tool_violation", "", "browser"},
      {"a status other than success",
       Say(R"({"event":"result","result":{"status":"CANCELLED","response":"half"}})"), "no_reply",
       "", "(exit 0)"},
  };
}

std::vector<Speaker> Speakers() {
  const std::string claude_tool = With(std::string(kClaudeTool), "WebFetch");
  return {
      {"claude", "anthropic",
       R"(ask /v1/messages '{"model":"claude-sonnet-4-5","max_tokens":16,"messages":[{"role":"user","content":"x"}]}')",
       std::string(kClaudeText), std::string(kClaudeResult), claude_tool, std::string(kClaudeLimit),
       "usr/bin/claude"},
      {"codex", "openai",
       R"(ask /v1/responses '{"model":"claude-sonnet-4-5","input":[{"role":"user","content":"x"}],"stream":true,"store":false}')",
       R"({"type":"item.completed","item":{"id":"m1","type":"agent_message","text":"@"}})",
       R"({"type":"item.completed","item":{"id":"m2","type":"agent_message","text":"@"}})"
       "\n"
       R"({"type":"turn.completed","usage":{"input_tokens":1,"output_tokens":1}})",
       R"({"type":"item.completed","item":{"id":"x","type":"mcp_tool_call"}})",
       R"(for i in {1..9}; do echo '{"type":"item.completed","item":{"id":"i'$i'","type":"command_execution"}}'; done; sleep 20)",
       "usr/bin/codex"},
      {"grok", "xai", std::string(kGrokAsk), std::string(kClaudeText), std::string(kClaudeResult),
       claude_tool, std::string(kClaudeLimit), "usr/local/bin/grok", GrokTraps()},
      {"antigravity", "gemini", "",
       AgyStep(R"("step_index":0,"step_type":"agent_response","text_delta":"@")"),
       R"({"event":"result","result":{"status":"SUCCESS","response":"@"}})",
       AgyStep(R"("step_index":1,"state":"DONE","tool_name":"browser")"),
       R"(for i in {1..9}; do echo '{"event":"step_update","step_update":{"step_index":'$i',"step_type":"agent_response","state":"DONE"}}'; done; sleep 20)",
       "usr/local/bin/agy", AntigravityTraps()},
  };
}

std::vector<Trap> TrapsOf(const Speaker& by) {
  const std::string good = With(by.result, "fine");
  const std::size_t cut = good.find("fine") + 2;
  const std::string text = Say(With(by.text, "so far"));
  // Where the broker saw nothing the stream is all the evidence there is.
  const bool relayed = !by.ask.empty();
  const bool is_codex = by.runtime == "codex";
  // codex has an item of its own for a tool outside, which is no call; it tells its tokens.
  const std::string tool_differs = relayed && !is_codex ? "steps,tools" : "";
  auto differs = [relayed](const char* what) { return relayed ? what : ""; };
  std::vector<Trap> traps = {
      {"a forged result, and the provider was never asked", Say(good), relayed ? "no_reply" : "ok",
       relayed ? "" : "fine", relayed ? "ended without a reply (exit 0)" : "",
       differs(is_codex ? "reply,tokens" : "reply")},
      {"a text, and then nothing", text, "no_reply", "", "(exit 0)"},
      {"nothing at all", "true", "no_reply", "", "(exit 0)"},
      {"a text and an error", text + "exit 7", "no_reply", "", "(exit 7)"},
      {"a death by signal", text + "kill -9 $$", "no_reply", "", "signal 9"},
      {"a tool outside the surface", Say(by.tool) + "sleep 20", "tool_violation", "",
       "outside the allowed file/shell surface", tool_differs},
      {"a tool outside the surface, covered by a result", Say(by.tool) + Say(good),
       "tool_violation", "", "", tool_differs},
      {"lines of no JSON", "for i in 1 2 3 4; do echo junk; done\n" + Say(good), "tool_violation",
       "", "unparsable_stream"},
      {"a line over its bound", "head -c 1048577 /dev/zero; echo; sleep 20", "output_overflow", "",
       "exceeded 1 MiB"},
      {"more output than may be", "while true; do echo '{\"type\":\"x\"}'; done", "output_overflow",
       "", "exceeded 1 MiB"},
      {"a rate limit that no provider spoke of",
       "echo 'rate limit 429: usage limit reached' >&2\n"
       "echo '{\"type\":\"error\",\"message\":\"429 quota\"}'; exit 1",
       relayed ? "no_reply" : "rate_limited", "", relayed ? "(exit 1)" : "", differs("finish")},
      {"a rejection that no provider spoke of",
       "echo 'invalid api key' >&2\necho '{\"type\":\"error\",\"message\":\"unauthorized\"}'; exit "
       "1",
       relayed ? "no_reply" : "auth_failed", "", relayed ? "(exit 1)" : "", differs("finish")},
  };
  const std::string asked = relayed ? by.ask + "\n" : "";
  const std::string too_old = "echo \"error: unknown option '--of-today'\" >&2; exit 1";
  traps.push_back({"an older program", too_old, "invalid_config", "", "older than taskcell needs"});
  if (relayed)
    traps.push_back({"the words of an older program once the provider was asked", asked + too_old,
                     "no_reply", "", "(exit 1)"});
  traps.push_back({"control: more steps than may be, with a text", asked + text + by.steps, "ok",
                   "so far", "", differs("steps")});
  traps.push_back({"control: more steps than may be", asked + by.steps, "step_limit", "",
                   "step limit (4)", differs("steps")});
  if (relayed) {
    traps.push_back({"forged steps, and the provider was never asked", by.steps, "no_reply", "",
                     "ended without a reply", "steps"});
    traps.push_back({"forged steps with a text, and the provider was never asked", text + by.steps,
                     "no_reply", "", "ended without a reply", "reply,steps"});
  }
  traps.push_back({"control: a plain run", asked + Say(good), "ok", "fine", ""});
  // Only antigravity prints newlines as they are.
  const std::string broken = by.runtime == "antigravity" ? "fi\nne" : "fine";
  traps.push_back(
      {"an event in the middle of a line",
       asked + Text("printf '%s' '", good.substr(0, cut), "'\n",
                    "echo '{\"type\":\"system\"}'\nprintf '%s\\n' '", good.substr(cut), "'"),
       "ok", broken, ""});
  traps.push_back(
      {"a raw newline in the reply",
       asked + Text("printf '%s\\n%s\\n' '", good.substr(0, cut), "' '", good.substr(cut), "'"),
       "ok", broken, ""});
  traps.push_back({"bytes that are no UTF-8",
                   asked + Text("printf '%b\\n' '", With(by.result, R"(fi\xff\xfene)"), "'"), "ok",
                   "fi\xEF\xBF\xBD\xEF\xBF\xBDne", ""});
  traps.push_back({"a last line without its newline", asked + Text("printf '%s' '", good, "'"),
                   "ok", "fine", ""});
  traps.push_back({"chatter before and after", asked + "echo hello\n" + Say(good) + "echo bye",
                   "ok", "fine", ""});
  traps.push_back({"a result and an exit status of failure", asked + Say(good) + "exit 1",
                   "no_reply", "", "(exit 1)"});
  traps.insert(traps.end(), by.own.begin(), by.own.end());
  const std::vector<Trap> resources = {
      {"more memory than there is", "x=x; while true; do x+=$x; done", "out_of_memory", "",
       "ran out of memory (128 MiB)"},
      {"more processes than may be",
       "(for i in {1..60}; do sleep 60 & echo $i >/tmp/n; done) 2>/dev/null &\n"
       "n=0; while ((SECONDS < 40 && n < 33)); do read -r n </tmp/n; done 2>/dev/null\n"
       "end=$((SECONDS + 3)); while ((SECONDS < end)); do :; done; exit 1",
       "pids_limit", "", "process limit (40)"}};
  traps.insert(traps.end(), resources.begin(), resources.end());  // last: they take long
  return traps;
}

class TrapsTest : public StandInFixture {
 protected:
  void MakeHome(const Speaker& by, std::string_view body) const {
    StandInFixture::MakeHome(by.runtime, by.provider, body);
  }

  // Checks in what the program's word is not the broker's, by the receipt and the audit log alike.
  void ExpectDiffers(const Json& answer, const std::string& kinds) const {
    std::string found;
    for (const Json& each : answer["receipt"]["evidence_differs"])
      found += Text(found.empty() ? "" : ",", each["what"].get<std::string>());
    EXPECT_EQ(found, kinds) << answer["receipt"]["evidence_differs"];
    const std::string audit = ReadText(At("home/security_audit.jsonl"));
    constexpr std::string_view kEvent = "\"event_type\":\"task_sandbox_evidence_differs\"";
    if (kinds.empty()) {
      EXPECT_EQ(audit.find(kEvent), std::string::npos) << audit;
    } else {
      EXPECT_THAT(audit, HasSubstr(std::string(kEvent)));
      EXPECT_THAT(audit, HasSubstr(Text("\"what\":\"", kinds, "\"}")));
    }
  }
};

class EachRuntimeTrapsTest : public TrapsTest, public testing::WithParamInterface<Speaker> {};

TEST_P(EachRuntimeTrapsTest, EachEndsAsItMust) {
  const gateway::ProviderProcess provider =
      MakeProvider({{"steps", Json::array()}, {"reply", "from the provider"}});
  ASSERT_TRUE(provider.IsUp());
  for (const Trap& trap : TrapsOf(GetParam())) {
    SCOPED_TRACE(trap.name);
    MakeHome(GetParam(), trap.body);
    const Json answer = RunIn(provider);
    Expect(answer, {trap.code, trap.reply, trap.part});
    ExpectDiffers(answer, trap.differs);
  }
}

INSTANTIATE_TEST_SUITE_P(Runtimes, EachRuntimeTrapsTest, testing::ValuesIn(Speakers()),
                         [](const auto& tested) { return tested.param.runtime; });

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
