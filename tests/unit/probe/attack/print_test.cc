#include "probe/attack/print.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <nlohmann/json.hpp>

namespace taskcell::attack {
namespace {

using Json = nlohmann::json;

const Payload kPayload = {"a-payload",         "a topic", "get \"out\"",
                          Control::kNamespace, {EPERM},   nullptr};

Row RowOf(int32_t outside, int32_t inside) {
  Row row;
  row.payload = &kPayload;
  row.outside.result = outside;
  row.inside = {inside, "a detail"};
  Judge(row);
  return row;
}

Report AReport() {
  Report report;
  report.engine = "native";
  report.rows = {RowOf(0, EPERM), RowOf(0, 0), RowOf(ENOSYS, EPERM)};
  report.differences = {"uid: planned 1, found 2"};
  report.warnings = {"a warning\n"};
  report.wall_ms = 12;
  return report;
}

TEST(AttackPrintTest, TheVerdictComesFirst) {
  Report report = AReport();
  EXPECT_EQ(ReportText(report, true),
            "1 attack escaped, 1 contained, 1 not provable here (native)\n");
  report.rows.resize(1);
  EXPECT_EQ(ReportText(report, true), "1 attack contained, none escaped (native)\n");
  report.rows.clear();
  EXPECT_EQ(ReportText(report, true), "there was no cell to attack (native)\n");
}

TEST(AttackPrintTest, TheTableHasTheEvidenceAndWhatIsAmiss) {
  std::string text = ReportText(AReport(), false);
  for (const char* part :
       {"a-payload  got through  EPERM        contained          get \"out\"\n",
        "a-payload  got through  got through  ESCAPED            get \"out\"\n",
        "a-payload  ENOSYS       EPERM        not provable here  get \"out\"\n",
        "a-payload: it got through: a detail\n", "a-payload: outside it fails too: ENOSYS\n",
        "the cell is not as planned: uid: planned 1, found 2\n", "warning: a warning\\n\n"}) {
    EXPECT_NE(text.find(part), std::string::npos) << part << "in\n" << text;
  }
}

TEST(AttackPrintTest, JsonHasEveryField) {
  Report report = AReport();
  report.refusal = Error(Kind::kSystem, "no more").Coded("stopped");
  Json json = Json::parse(ReportJson(report));
  EXPECT_EQ(json["engine"], "native");
  EXPECT_EQ(json["overall"], "escaped");
  EXPECT_EQ(json["refusal"], (Json{{"code", "stopped"}, {"text", "no more"}}));
  EXPECT_EQ(json["differences"].size(), 1U);
  EXPECT_EQ(json["warnings"].size(), 1U);
  EXPECT_EQ(json["wall_ms"], 12);
  EXPECT_EQ(json["attacks"][1],
            (Json{{"attack", "a-payload"},
                  {"topic", "a topic"},
                  {"tried", "get \"out\""},
                  {"control", "namespace"},
                  {"outside", {{"result", 0}, {"name", "got through"}, {"detail", ""}}},
                  {"inside", {{"result", 0}, {"name", "got through"}, {"detail", "a detail"}}},
                  {"changes", Json::array()},
                  {"verdict", "escaped"},
                  {"why", "it got through: a detail"}}));
}

// The words of the standard: results that pass or say nothing have no level.
TEST(AttackPrintTest, SarifHasARuleAndAResultForEach) {
  Json log = Json::parse(ReportSarif(AReport()));
  EXPECT_EQ(log["version"], "2.1.0");
  ASSERT_EQ(log["runs"].size(), 1U);
  const Json& run = log["runs"][0];
  EXPECT_EQ(run["tool"]["driver"]["rules"].size(), 3U);
  EXPECT_EQ(run["tool"]["driver"]["rules"][0]["id"], "a-payload");
  EXPECT_TRUE(run["invocations"][0]["executionSuccessful"]);
  ASSERT_EQ(run["results"].size(), 3U);
  EXPECT_EQ(run["results"][0]["kind"], "pass");
  EXPECT_EQ(run["results"][0]["level"], "none");
  EXPECT_EQ(run["results"][1]["kind"], "fail");
  EXPECT_EQ(run["results"][1]["level"], "error");
  EXPECT_EQ(run["results"][2]["kind"], "open");
  EXPECT_EQ(run["results"][2]["level"], "none");
  EXPECT_EQ(run["results"][1]["message"]["text"],
            "It tried to get \"out\". Outside: got through; in the cell: got through. it got "
            "through: a detail.");
  Report refused;
  refused.refusal = Error(Kind::kSystem, "why not");
  Json empty = Json::parse(ReportSarif(refused));
  EXPECT_FALSE(empty["runs"][0]["invocations"][0]["executionSuccessful"]);
  EXPECT_EQ(empty["runs"][0]["invocations"][0]["toolExecutionNotifications"][0]["message"]["text"],
            "why not");
}

TEST(AttackPrintTest, TheListHasEveryPayload) {
  std::string list = PayloadList();
  for (const Payload& payload : AllPayloads())
    EXPECT_NE(list.find(std::string(payload.name) + " "), std::string::npos) << payload.name;
}

}  // namespace
}  // namespace taskcell::attack
