// The policy of the agent directory: the contract's list, and what is in SKILLS and wiki.
#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

#include "launcher/base/text.h"
#include "launcher/mounts/snapshot.h"
#include "launcher/sys/file.h"
#include "probe/mounts/print.h"
#include "tests/support/fixture.h"
#include "tests/unit/probe/mounts/tree_fixture.h"

namespace taskcell::probe::audit {
namespace {

namespace fs = std::filesystem;

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Pair;
using testing::UnorderedElementsAre;

class AgentAuditTest : public test::TreeTest {
 protected:
  // The entries listed as safe.
  std::set<std::string> Listed() const {
    std::set<std::string> listed;
    AuditRequest request = Request(Policy::kAgent);
    request.safe = [&listed](std::string_view path) { listed.insert(std::string(path)); };
    EXPECT_TRUE(probe::audit::Audit(request).ok());
    return listed;
  }
  Report AuditAgent() const { return Audit(Policy::kAgent); }
  // Whether a task's snapshot has it.
  bool IsInSnapshot(std::string_view name,
                    mounts::Subtree subtree = mounts::Subtree::kPrune) const {
    fs::create_directory(At("copy"));
    UniqueFd from = sys::Open(At("tree"), O_RDONLY | O_DIRECTORY).value();
    UniqueFd to = sys::Open(At("copy"), O_RDONLY | O_DIRECTORY).value();
    EXPECT_TRUE(mounts::SnapshotAgentDirectory(from.get(), to.get(), subtree).ok());
    const bool has = fs::symlink_status(At(Text("copy/", name))).type() != fs::file_type::not_found;
    EXPECT_EQ(
        test::Run({"/bin/sh", "-c", "chmod -R u+w \"$0\" && rm -r \"$0\"", At("copy")}).status, 0);
    return has;
  }
  static EntryReport Entry(const Report& report, std::string_view name) {
    for (const EntryReport& entry : report.entries)
      if (entry.name == name) return entry;
    ADD_FAILURE() << "no entry " << name;
    return {};
  }
};

TEST_F(AgentAuditTest, TheListHasOneObjectForEachOfTheEightEntries) {
  Put("tree/SOUL.md", "soul");
  Link("SOUL.md", "tree/IDENTITY.md");
  HardLink("outside/key", "tree/CLAUDE.md");
  fs::create_directories(At("tree/AGENTS.md"));
  ASSERT_EQ(::mkfifo(At("tree/GEMINI.md").c_str(), 0600), 0);
  Put("tree/wiki/page", "x");
  Put("tree/.mcp.json", "key");
  nlohmann::json list = nlohmann::json::parse(JsonOf({AuditAgent()}));
  ASSERT_EQ(list.size(), 8U);
  std::map<std::string, std::string> seen;
  for (const auto& entry : list)
    seen[entry["entry"]] =
        Text(entry["verdict"].get<std::string>(), "/", entry["reason"].get<std::string>());
  EXPECT_THAT(seen, UnorderedElementsAre(
                        Pair("SOUL.md", "safe/"), Pair("IDENTITY.md", "skip/symlink"),
                        Pair("CLAUDE.md", "skip/hardlink"), Pair("AGENTS.md", "skip/wrong_kind"),
                        Pair("GEMINI.md", "skip/special"), Pair("CONTRACT.toml", "absent/"),
                        Pair("SKILLS", "absent/"), Pair("wiki", "safe/")));
}

TEST_F(AgentAuditTest, AnEntryThatWouldNotBeShownIsAFindingOfIt) {
  Link("/etc/hostname", "tree/SOUL.md");
  EXPECT_THAT(FoundIn(Entry(AuditAgent(), "SOUL.md").notes),
              ElementsAre(Pair("SOUL.md", ElementsAre("entry_skipped"))));
}

TEST_F(AgentAuditTest, OnlyEntriesWithNotesAtMostAreListedAsSafe) {
  Put("tree/SOUL.md", "x");
  Put("tree/IDENTITY.md", "x");
  ASSERT_EQ(::chmod(At("tree/IDENTITY.md").c_str(), 0666), 0);
  Put("tree/SKILLS/page", "x");
  Link("page", "tree/SKILLS/same");
  Put("tree/wiki/page", "x");
  Link("/etc/shadow", "tree/wiki/out");
  EXPECT_EQ(Listed(), (std::set<std::string>{"SOUL.md", "SKILLS"}));
  // More findings than are kept: those of an entry may be among the rest.
  for (std::size_t i = 0; i < kMaxFindings; ++i) Link("/etc/shadow", Text("tree/wiki/", i));
  EXPECT_EQ(Listed(), std::set<std::string>());
  fs::remove_all(At("tree/wiki"));
  EXPECT_EQ(Listed(), (std::set<std::string>{"SOUL.md", "SKILLS"}));
  for (const std::string& open : {At("tree"), path()}) {
    ASSERT_EQ(::chmod(open.c_str(), 0777), 0);
    EXPECT_EQ(Listed(), std::set<std::string>()) << open;
    ASSERT_EQ(::chmod(open.c_str(), 0755), 0);
  }
}

TEST_F(AgentAuditTest, WhatASnapshotLeavesOutTakesNoneOfItsRoom) {
  Put("tree/wiki/page", "page");
  HardLink("tree/wiki/page", "tree/SKILLS/page");
  std::ofstream(At("outside/key")) << std::string(100, 'x');
  HardLink("outside/key", "tree/wiki/key");
  AuditRequest request = Request(Policy::kAgent);
  request.snapshot_bounds.bytes = 8;
  Report report = probe::audit::Audit(request).value();
  EXPECT_EQ(Entry(report, "wiki").verdict, mounts::Verdict::kSafe);
  EXPECT_EQ(Entry(report, "SKILLS").verdict, mounts::Verdict::kSafe);
  request.snapshot_bounds.bytes = 7;
  report = probe::audit::Audit(request).value();
  EXPECT_EQ(Entry(report, "wiki").verdict, mounts::Verdict::kSkip) << "a closed set is copied";
  request.snapshot_bounds.bytes = 8;
  request.snapshot_bounds.entries = 2;
  report = probe::audit::Audit(request).value();
  EXPECT_EQ(Entry(report, "SKILLS").verdict, mounts::Verdict::kSafe);
  EXPECT_EQ(Entry(report, "wiki").verdict, mounts::Verdict::kSkip) << "with SKILLS, too many";
}

TEST_F(AgentAuditTest, TheBoundOfWhatIsReadForThePromptIsExact) {
  for (const char* name : {"SOUL.md", "IDENTITY.md", "CLAUDE.md"}) {
    for (std::size_t more : {0U, 1U}) {
      Put(Text("tree/", name), std::string(mounts::kMaxPersonaBytes + more, 'x'));
      EntryReport entry = Entry(AuditAgent(), name);
      const bool refused = more > 0 && name != std::string("CLAUDE.md");
      EXPECT_EQ(entry.verdict, refused ? mounts::Verdict::kSkip : mounts::Verdict::kSafe) << name;
      EXPECT_EQ(FoundIn(entry.notes)[name].contains("over_limit"), refused) << name;
    }
  }
}

TEST_F(AgentAuditTest, WhatIsInSkillsAndWikiIsNotedThere) {
  Put("tree/SOUL.md", "soul");
  Put("tree/agent.toml", "secret");
  Put("tree/wiki/page", "x");
  Link("../SOUL.md", "tree/wiki/soul");
  Link("page", "tree/wiki/same");
  Link("../agent.toml", "tree/wiki/config");
  Link("../../outside/key", "tree/SKILLS/out");
  HardLink("tree/wiki/page", "tree/SKILLS/page");
  HardLink("outside/key", "tree/SKILLS/key");
  Report report = AuditAgent();
  EXPECT_TRUE(report.findings.empty());
  EXPECT_THAT(FoundIn(Entry(report, "wiki").notes),
              UnorderedElementsAre(Pair("wiki/soul", ElementsAre("symlink_inside")),
                                   Pair("wiki/same", ElementsAre("symlink_inside")),
                                   Pair("wiki/config", ElementsAre("symlink_escapes")),
                                   Pair("wiki/page", ElementsAre("hard_link_closed"))));
  EXPECT_THAT(FoundIn(Entry(report, "SKILLS").notes),
              UnorderedElementsAre(Pair("SKILLS/out", ElementsAre("symlink_escapes")),
                                   Pair("SKILLS/page", ElementsAre("hard_link_closed")),
                                   Pair("SKILLS/key", ElementsAre("hard_link_leaves"))));
  EXPECT_EQ(report.standing, Standing::kUnsafe);
}

// Where a link leads says nothing of whether a cell is shown all that it leads through.
TEST_F(AgentAuditTest, ALinkIsJudgedByAllThatItLeadsThrough) {
  Put("tree/SOUL.md", "soul");
  Put("tree/hidden/page", "x");
  Put("tree/wiki/page", "x");
  ASSERT_EQ(::mkfifo(At("tree/wiki/pipe").c_str(), 0600), 0);
  HardLink("outside/key", "tree/wiki/key");
  Link("../hidden", "tree/wiki/door");
  Link("../hidden/../SOUL.md", "tree/wiki/by-hidden");
  Link("door/../wiki/page", "tree/wiki/by-door");
  Link("pipe", "tree/wiki/to-pipe");
  Link("key", "tree/wiki/to-key");
  Link("../SKILLS/new/../../wiki/./page", "tree/wiki/by-skills");
  Link("loop", "tree/wiki/loop");
  Link("..", "tree/SKILLS/top");
  fs::create_directories(At("tree/SKILLS/new"));
  Report report = AuditAgent();
  Found found = FoundIn(Entry(report, "wiki").notes);
  EXPECT_THAT(found["wiki/door"], ElementsAre("symlink_escapes"));
  EXPECT_THAT(found["wiki/by-hidden"], ElementsAre("symlink_escapes"));
  EXPECT_THAT(found["wiki/by-door"], ElementsAre("symlink_escapes"));
  EXPECT_THAT(found["wiki/to-pipe"], ElementsAre("symlink_dangling"));
  EXPECT_THAT(found["wiki/to-key"], ElementsAre("symlink_dangling"));
  EXPECT_THAT(found["wiki/by-skills"], ElementsAre("symlink_inside"));
  EXPECT_THAT(found["wiki/loop"], ElementsAre("symlink_unresolved"));
  EXPECT_THAT(FoundIn(Entry(report, "SKILLS").notes)["SKILLS/top"], ElementsAre("symlink_inside"));
  for (const char* name : {"door", "by-hidden", "by-door", "to-pipe", "to-key", "loop"})
    EXPECT_FALSE(IsInSnapshot(Text("wiki/", name))) << name;
  EXPECT_TRUE(IsInSnapshot("wiki/by-skills"));
  EXPECT_TRUE(IsInSnapshot("SKILLS/top"));
}

TEST_F(AgentAuditTest, ALinkIntoWhatIsLeftOutWholeLeadsToNothing) {
  Put("tree/wiki/page", "x");
  Put("tree/wiki/large", std::string(100, 'x'));
  Link("../wiki/page", "tree/SKILLS/page");
  AuditRequest request = Request(Policy::kAgent);
  EXPECT_THAT(FoundIn(Entry(probe::audit::Audit(request).value(), "SKILLS").notes)["SKILLS/page"],
              ElementsAre("symlink_inside"));
  request.snapshot_bounds.bytes = 50;
  EXPECT_THAT(FoundIn(Entry(probe::audit::Audit(request).value(), "SKILLS").notes)["SKILLS/page"],
              ElementsAre("symlink_escapes"));
}

TEST_F(AgentAuditTest, WhatTheCallerMayNotReadIsNotJudged) {
  TASKCELL_REQUIRE(::geteuid() == 0, "needs root, to become somebody who may not read");
  constexpr uid_t kNobody = 65534;
  Put("tree/SOUL.md", "soul");
  Put("tree/wiki/page", "x");
  Put("tree/wiki/closed", "x");
  Link("closed", "tree/wiki/to-closed");
  ASSERT_EQ(::mkfifo(At("tree/wiki/pipe").c_str(), 0600), 0);
  fs::create_directories(At("tree/SKILLS/closed"));
  for (const char* name : {"tree/SOUL.md", "tree/wiki/closed", "tree/SKILLS/closed"})
    ASSERT_EQ(::chmod(At(name).c_str(), 0), 0);
  ASSERT_EQ(test::Run({"chown", "-R", "65534:65534", path()}).status, 0);
  EXPECT_EQ(test::InChild([this] {
              if (::setegid(kNobody) != 0 || ::seteuid(kNobody) != 0) return 90;
              Report report = AuditAgent();
              if (Entry(report, "SOUL.md").reason != "unreadable") return 1;
              Found wiki = FoundIn(Entry(report, "wiki").notes);
              if (wiki["wiki/closed"] != std::set<std::string>{"unreadable"}) return 2;
              if (wiki["wiki/to-closed"] != std::set<std::string>{"symlink_dangling"}) return 3;
              if (wiki["wiki/pipe"] != std::set<std::string>{"fifo"}) return 4;
              if (wiki.contains("wiki/page")) return 5;
              Found skills = FoundIn(Entry(report, "SKILLS").notes);
              return skills["SKILLS/closed"] == std::set<std::string>{"unreadable"} ? 0 : 6;
            }),
            0);
}

// A chain: wiki goes for a pipe in it, and SKILLS for a link into wiki.
TEST_F(AgentAuditTest, WithSkipADirectoryWithSomethingUnsafeInItIsLeftOutWhole) {
  Put("tree/wiki/page", "x");
  ASSERT_EQ(::mkfifo(At("tree/wiki/pipe").c_str(), 0600), 0);
  Link("../wiki/page", "tree/SKILLS/page");
  AuditRequest request = Request(Policy::kAgent);
  request.subtree = mounts::Subtree::kSkip;
  Report report = probe::audit::Audit(request).value();
  for (const char* name : {"SKILLS", "wiki"}) {
    EXPECT_EQ(Entry(report, name).verdict, mounts::Verdict::kSkip) << name;
    EXPECT_FALSE(IsInSnapshot(name, mounts::Subtree::kSkip)) << name;
  }
  EXPECT_EQ(Entry(report, "wiki").note, "'wiki/pipe' in it is unsafe");
  EXPECT_EQ(Entry(report, "SKILLS").note, "'SKILLS/page' in it is unsafe");
  EXPECT_THAT(FoundIn(Entry(report, "SKILLS").notes)["SKILLS/page"],
              ElementsAre("symlink_escapes"));
  fs::remove(At("tree/wiki/pipe"));
  report = probe::audit::Audit(request).value();
  EXPECT_EQ(Entry(report, "SKILLS").verdict, mounts::Verdict::kSafe);
  EXPECT_EQ(report.standing, Standing::kSafe);
}

TEST_F(AgentAuditTest, InstructionsThatAreNoTextAreRefusedAsByTheGateway) {
  for (const std::string& bad : {std::string("caf\xe9"), std::string("a\0b", 3)}) {
    for (const char* name : {"SOUL.md", "IDENTITY.md", "CLAUDE.md"}) {
      Put(Text("tree/", name), bad);
      EntryReport entry = Entry(AuditAgent(), name);
      const bool of_the_prompt = name != std::string("CLAUDE.md");
      EXPECT_EQ(entry.verdict == mounts::Verdict::kSkip, of_the_prompt) << name;
      EXPECT_EQ(FoundIn(entry.notes)[name].contains("not_text"), of_the_prompt) << name;
    }
  }
}

// The bounds are a snapshot's own: what is said here is what becomes of it there.
TEST_F(AgentAuditTest, WhatASnapshotCannotHoldIsLeftOutByTheBoundItPassed) {
  Put("tree/SOUL.md", "soul");
  Put("tree/SKILLS/a/b/page", "page");
  Put("tree/wiki/page", "page");
  Put("tree/wiki/other", "other");
  struct Case {
    mounts::SnapshotBounds bounds;
    std::string skipped;
    std::string part;
  };
  // 17 bytes in 8 entries, 3 levels of directories.
  for (const Case& each : {Case{{17, 8, 3}, "", ""}, Case{{16, 8, 3}, "wiki", "more than 16 bytes"},
                           Case{{17, 7, 3}, "wiki", "more than 7 entries"},
                           Case{{17, 8, 2}, "SKILLS", "deeper than 2 levels"},
                           Case{{3, 8, 3}, "SOUL.md", "the agent directory cannot be mounted"}}) {
    probe::audit::AuditRequest request = Request(Policy::kAgent);
    request.snapshot_bounds = each.bounds;
    Report report = probe::audit::Audit(request).value();
    std::string skipped;
    for (const EntryReport& entry : report.entries) {
      if (entry.verdict != mounts::Verdict::kSkip || entry.name != each.skipped) continue;
      skipped = entry.name;
      EXPECT_THAT(entry.note, HasSubstr(each.part));
      EXPECT_THAT(FoundIn(entry.notes)[entry.name], testing::Contains("over_limit"));
    }
    EXPECT_EQ(skipped, each.skipped) << each.part;
    EXPECT_EQ(report.standing, each.skipped.empty() ? Standing::kSafe : Standing::kUnsafe);
    fs::create_directory(At("copy"));
    UniqueFd from = sys::Open(At("tree"), O_RDONLY | O_DIRECTORY).value();
    UniqueFd to = sys::Open(At("copy"), O_RDONLY | O_DIRECTORY).value();
    Result<mounts::Snapshot> snapshot =
        mounts::SnapshotAgentDirectory(from.get(), to.get(), mounts::Subtree::kPrune, each.bounds);
    EXPECT_EQ(snapshot.ok(), each.skipped != "SOUL.md");
    for (std::size_t i = 0; snapshot.ok() && i < snapshot->entries.size(); ++i)
      EXPECT_EQ(snapshot->entries[i].verdict, report.entries[i].verdict)
          << snapshot->entries[i].name << each.part;
    EXPECT_EQ(
        test::Run({"/bin/sh", "-c", "chmod -R u+w \"$0\" && rm -r \"$0\"", At("copy")}).status, 0);
  }
}

TEST_F(AgentAuditTest, LinksThatStayInsideAreNotesAndNoFindings) {
  Put("tree/wiki/page", "x");
  Link("page", "tree/wiki/same");
  HardLink("tree/wiki/page", "tree/SKILLS/page");
  EXPECT_EQ(AuditAgent().standing, Standing::kSafe);
}

TEST_F(AgentAuditTest, AnAuditBelowAForeignWritableDirectorySaysSo) {
  Put("tree/SOUL.md", "soul");
  ASSERT_EQ(::chmod(path().c_str(), 0777), 0);
  Report report = AuditAgent();
  ASSERT_EQ(report.findings.size(), 1U);
  EXPECT_EQ(report.findings[0].code, Code::kAncestorWritable);
  EXPECT_EQ(report.findings[0].path, path());
  EXPECT_THAT(TableOf(report, {}), HasSubstr("chmod go-w"));
}

TEST_F(AgentAuditTest, NoPrintedFormLetsControlBytesThrough) {
  Put("tree/wiki/page", "x");
  Link("/etc/passwd", "tree/wiki/ln\nk\x1b[31m\xff");
  Report report = AuditAgent();
  std::string table = TableOf(report, {});
  EXPECT_EQ(table.find('\x1b'), table.npos);
  EXPECT_THAT(table, HasSubstr("wiki/ln\\nk\\x1b[31m\\xff"));
  nlohmann::json list = nlohmann::json::parse(JsonOf({report}));
  EXPECT_EQ(list[7]["notes"][0]["path"], "wiki/ln\\nk\\x1b[31m\\xff");
  nlohmann::json sarif = nlohmann::json::parse(SarifOf({report}));
  EXPECT_THAT(
      sarif["runs"][0]["results"][0]["locations"][0]["physicalLocation"]["artifactLocation"]["uri"]
          .get<std::string>(),
      HasSubstr("/wiki/ln%0Ak%1B%5B31m%FF"));
}

TEST_F(AgentAuditTest, EveryPrintedFormSaysHowManyFindingsItLeavesOut) {
  fs::create_directories(At("tree/wiki"));
  for (std::size_t i = 0; i <= kMaxFindings; ++i)
    ASSERT_EQ(::mkfifo(Text(At("tree/wiki/"), i).c_str(), 0600), 0);
  Report report = AuditAgent();
  ASSERT_EQ(report.left_out, 1U);
  nlohmann::json own = nlohmann::json::parse(JsonOf({report})).back();
  EXPECT_EQ(own["entry"], ".");
  EXPECT_EQ(own["left_out"], 1);
  nlohmann::json invocation = nlohmann::json::parse(SarifOf({report}))["runs"][0]["invocations"][0];
  EXPECT_THAT(invocation["toolExecutionNotifications"][0]["message"]["text"].get<std::string>(),
              HasSubstr(": 1 more findings are not listed"));
  constexpr std::size_t kTableLines = 200;
  EXPECT_THAT(TableOf(report, {}),
              HasSubstr(Text("... and ", kMaxFindings + 1 - kTableLines, " more")));
  fs::remove(At("tree/wiki/0"));
  report = AuditAgent();
  EXPECT_EQ(nlohmann::json::parse(JsonOf({report})).back()["entry"], "wiki");
  invocation = nlohmann::json::parse(SarifOf({report}))["runs"][0]["invocations"][0];
  EXPECT_FALSE(invocation.contains("toolExecutionNotifications"));
}

TEST_F(AgentAuditTest, TheSarifLogIsWholeAndItsResultsNameTheirRules) {
  Link("/etc/passwd", "tree/link");
  nlohmann::json sarif = nlohmann::json::parse(SarifOf({Audit()}));
  EXPECT_EQ(sarif["version"], "2.1.0");
  const auto& run = sarif["runs"][0];
  EXPECT_EQ(run["tool"]["driver"]["rules"].size(), kCodes);
  ASSERT_EQ(run["results"].size(), 1U);
  std::size_t index = run["results"][0]["ruleIndex"];
  EXPECT_EQ(run["tool"]["driver"]["rules"][index]["id"], run["results"][0]["ruleId"]);
  EXPECT_EQ(run["results"][0]["level"], "error");
}

}  // namespace
}  // namespace taskcell::probe::audit
