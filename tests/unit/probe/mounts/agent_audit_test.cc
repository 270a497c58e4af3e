// The policy of the agent directory: the contract's list, and what is in SKILLS and wiki.
#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

#include "launcher/base/text.h"
#include "launcher/mounts/snapshot.h"
#include "launcher/sys/file.h"
#include "probe/mounts/print.h"
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

TEST_F(AgentAuditTest, EveryCodeHasItsTextsAndStandsInTheManual) {
  std::ifstream manual(TASKCELL_MANUAL);
  std::string page{std::istreambuf_iterator<char>(manual), {}};
  std::set<std::string_view> names;
  for (std::size_t i = 0; i < kCodes; ++i) {
    const CodeText& text = TextOf(static_cast<Code>(i));
    EXPECT_FALSE(text.title.empty() || text.gain.empty() || text.fix.empty()) << text.name;
    EXPECT_TRUE(names.insert(text.name).second) << text.name;
    EXPECT_NE(page.find(Text(".It Li ", text.name, "\n")), page.npos) << text.name;
  }
}

}  // namespace
}  // namespace taskcell::probe::audit
