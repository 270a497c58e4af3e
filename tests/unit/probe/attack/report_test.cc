#include "probe/attack/report.h"

#include <gtest/gtest.h>

#include <cerrno>

namespace taskcell::attack {
namespace {

const Payload& APayload() {
  static const Payload payload = {"a-payload",    "a topic",       "get out",
                                  Control::kUser, {EPERM, ENOSYS}, nullptr};
  return payload;
}

Row RowOf(Attempted outside, Attempted inside, std::vector<std::string> changes = {}) {
  Row row;
  row.payload = &APayload();
  row.outside = std::move(outside);
  row.inside = std::move(inside);
  row.changes = std::move(changes);
  Judge(row);
  return row;
}

Report ReportOf(std::vector<Row> rows) {
  Report report;
  report.rows = std::move(rows);
  return report;
}

TEST(JudgeTest, WhatWorksOutsideAndFailsInsideAsACellFailsIsContained) {
  EXPECT_EQ(RowOf({}, {EPERM}).verdict, Verdict::kContained);
  EXPECT_EQ(RowOf({}, {ENOSYS}).verdict, Verdict::kContained);
  EXPECT_EQ(RowOf({}, {EPERM}).why, "");
}

TEST(JudgeTest, WhatGetsThroughInsideEscaped) {
  EXPECT_EQ(RowOf({}, {0, "as uid 0"}).verdict, Verdict::kEscaped);
  EXPECT_EQ(RowOf({}, {0, "as uid 0"}).why, "it got through: as uid 0");
}

TEST(JudgeTest, AnEscapeNeedsNoControl) {
  EXPECT_EQ(RowOf({ENOSYS}, {}).verdict, Verdict::kEscaped);
}

TEST(JudgeTest, AChangeOutsideIsAnEscapeWhateverThePayloadSays) {
  Row row = RowOf({}, {EPERM}, {"/etc/passwd changed", "the mount table changed"});
  EXPECT_EQ(row.verdict, Verdict::kEscaped);
  EXPECT_EQ(row.why, "/etc/passwd changed; the mount table changed");
}

TEST(JudgeTest, AFailingControlProvesNothing) {
  Row row = RowOf({ENOSYS, "no such call"}, {EPERM});
  EXPECT_EQ(row.verdict, Verdict::kNotProvable);
  EXPECT_EQ(row.why, "outside it fails too: ENOSYS (no such call)");
}

TEST(CountFreeTest, WhoIsHeldBackWhileAFreeProcessIsTooProvesNothing) {
  Payload payload = APayload();
  payload.contained = {kHeldBack};
  for (uint64_t free_millis : {uint64_t{0}, kFreeCpuMillis - 1, kFreeCpuMillis}) {
    for (Attempted inside : {Attempted{kHeldBack}, Attempted{0}, Attempted{EIO}}) {
      Row row;
      row.payload = &payload;
      row.inside = inside;
      CountFree(row, free_millis);
      Judge(row);
      bool busy = inside.result == kHeldBack && free_millis < kFreeCpuMillis;
      EXPECT_EQ(row.outside.result, busy ? kHeldBack : 0) << free_millis;
      EXPECT_EQ(row.verdict, inside.result == 0             ? Verdict::kEscaped
                             : busy || inside.result == EIO ? Verdict::kNotProvable
                                                            : Verdict::kContained);
    }
  }
  EXPECT_GE(kFreeCpuMillis, 2 * kBesideCpuMillis);
}

TEST(JudgeTest, ToFailInAnyOtherWayProvesNothing) {
  Row row = RowOf({}, {EACCES});
  EXPECT_EQ(row.verdict, Verdict::kNotProvable);
  EXPECT_EQ(row.why, "it failed with EACCES, where a cell answers EPERM or ENOSYS");
}

TEST(OverallTest, OneEscapeDecides) {
  EXPECT_EQ(Overall(ReportOf({RowOf({}, {EPERM}), RowOf({}, {})})), Verdict::kEscaped);
}

TEST(OverallTest, ContainedNeedsAProofAndNothingStrange) {
  EXPECT_EQ(Overall(ReportOf({})), Verdict::kNotProvable);
  EXPECT_EQ(Overall(ReportOf({RowOf({ENOSYS}, {EPERM})})), Verdict::kNotProvable);
  EXPECT_EQ(Overall(ReportOf({RowOf({}, {EPERM})})), Verdict::kContained);
  // What this host cannot show is named in its row and takes nothing from the others.
  EXPECT_EQ(Overall(ReportOf({RowOf({}, {EPERM}), RowOf({ENOSYS}, {EPERM})})), Verdict::kContained);
  EXPECT_EQ(Overall(ReportOf({RowOf({}, {EPERM}), RowOf({}, {EACCES})})), Verdict::kNotProvable);
}

TEST(OverallTest, ARefusalIsNoProof) {
  Report report = ReportOf({RowOf({}, {EPERM})});
  report.refusal = Error(Kind::kSystem, "stopped");
  EXPECT_EQ(Overall(report), Verdict::kNotProvable);
}

}  // namespace
}  // namespace taskcell::attack
