#include "probe/live/print.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "probe/live/quantity.h"

namespace taskcell::live {
namespace {

Row MakeRow(std::string limit, Verdict verdict) {
  Row row;
  row.limit = std::move(limit);
  row.evidence = {uint64_t{64} << 20U, {}, kUnlimited, true, Happened::kPast};
  row.tried = "fill";
  row.happened = "filled";
  row.why = verdict == Verdict::kHeld ? "" : "nothing stopped it";
  row.verdict = verdict;
  return row;
}

Report MakeReport(std::vector<Row> rows) {
  Report report;
  report.engine = "native";
  report.rows = std::move(rows);
  return report;
}

TEST(ReportTextTest, TheFirstLineIsTheVerdict) {
  EXPECT_EQ(ReportText(MakeReport({MakeRow("memory", Verdict::kHeld)}), true),
            "all limits hold (native)\n");
  EXPECT_EQ(ReportText(
                MakeReport({MakeRow("memory", Verdict::kNotHeld), MakeRow("cpu", Verdict::kUnknown),
                            MakeRow("swap", Verdict::kNotHeld)}),
                true),
            "limits that do not hold: memory, swap (native)\n");
  EXPECT_EQ(ReportText(MakeReport({MakeRow("cpu", Verdict::kUnknown)}), true),
            "could not tell whether these limits hold: cpu (native)\n");
  EXPECT_EQ(ReportText(MakeReport({}), true), "could not tell whether limits hold (native)\n");
}

TEST(ReportTextTest, ARefusalIsTheLaunchersOwnWords) {
  Report report = MakeReport({});
  report.refusal = Error(Kind::kUnsupported, "cpu is not delegated; run this\x1b[31m")
                       .Coded("resource_limits_unenforced");
  EXPECT_EQ(ReportText(report, false),
            "limits cannot be enforced here (native)\n\n"
            "cpu is not delegated; run this\\x1b[31m [resource_limits_unenforced]\n");
}

TEST(ReportTextTest, ATableWithTheReasonsBelow) {
  Report report = MakeReport({MakeRow("memory", Verdict::kNotHeld)});
  EXPECT_EQ(ReportText(report, false),
            "limits that do not hold: memory (native)\n\n"
            "LIMIT   ASKED   SEEN       TRIED  HAPPENED  VERDICT\n"
            "memory  64 MiB  unlimited  fill   filled    NOT HELD\n\n"
            "memory: nothing stopped it\n");
  report.rows[0].evidence.reported = uint64_t{64} << 20U;
  report.rows[0].lie = true;
  std::string text = ReportText(report, false);
  EXPECT_NE(text.find("64 MiB (untrue)"), text.npos) << text;
}

TEST(ReportTextTest, AnUntrueWordAloneIsTold) {
  Row row = MakeRow("memory", Verdict::kHeld);
  row.lie = true;
  EXPECT_EQ(ReportText(MakeReport({row}), true),
            "the limits hold, but not what the engine says about them (native)\n");
}

TEST(ReportJsonTest, HasTheMembersOfTheManual) {
  Report report = MakeReport({MakeRow("memory", Verdict::kNotHeld)});
  report.differences = {"uid: planned 1, found 2"};
  report.warnings = {"w"};
  report.wall_ms = 7;
  auto json = nlohmann::json::parse(ReportJson(report));
  EXPECT_EQ(json["engine"], "native");
  EXPECT_EQ(json["overall"], "not_held");
  EXPECT_TRUE(json["refusal"].is_null());
  EXPECT_EQ(json["differences"][0], "uid: planned 1, found 2");
  EXPECT_EQ(json["warnings"][0], "w");
  EXPECT_EQ(json["wall_ms"], 7);
  auto row = json["limits"][0];
  EXPECT_EQ(row["limit"], "memory");
  EXPECT_EQ(row["unit"], "bytes");
  EXPECT_EQ(row["asked"], 64U << 20U);
  EXPECT_TRUE(row["reported"].is_null());
  EXPECT_EQ(row["seen"], "unlimited");
  EXPECT_EQ(row["tried"], "fill");
  EXPECT_EQ(row["happened"], "filled");
  EXPECT_EQ(row["verdict"], "not_held");
  EXPECT_EQ(row["why"], "nothing stopped it");
  EXPECT_EQ(row["lie"], false);
  report.refusal = Error(Kind::kSystem, "t").Coded("c");
  json = nlohmann::json::parse(ReportJson(report));
  EXPECT_EQ(json["refusal"]["code"], "c");
  EXPECT_EQ(json["refusal"]["text"], "t");
}

TEST(QuantityTest, IsWrittenForAPerson) {
  EXPECT_EQ(ShowBytes(0), "0 B");
  EXPECT_EQ(ShowBytes(1023), "1023 B");
  EXPECT_EQ(ShowBytes(1024), "1 KiB");
  EXPECT_EQ(ShowBytes(uint64_t{64} << 20U), "64 MiB");
  EXPECT_EQ(ShowBytes((uint64_t{62} << 20U) + (uint64_t{990} << 10U)), "62.9 MiB");
  EXPECT_EQ(ShowBytes(uint64_t{1} << 50U), "1048576 GiB");
  EXPECT_EQ(ShowCpuMillis(500), "0.5");
  EXPECT_EQ(ShowCpuMillis(2000), "2");
  EXPECT_EQ(ShowCpuMillis(1007), "1.007");
  EXPECT_EQ(ErrnoName(EAGAIN), "EAGAIN");
  EXPECT_EQ(ErrnoName(9999), "errno 9999");
}

}  // namespace
}  // namespace taskcell::live
