#include "probe/attack/company.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <csignal>

namespace taskcell::attack {
namespace {

Payload Named(std::string_view name, std::string_view topic, Way way = Way::kInChild) {
  Payload payload;
  payload.name = name;
  payload.topic = topic;
  payload.contained = {EPERM};
  payload.way = way;
  return payload;
}

TEST(OneCellEachTest, NeighboursOfOneTopicHaveOneCellAndWhatUsesACellUpHasItsOwn) {
  const Payload all[] = {
      Named("a", "x"), Named("b", "x"), Named("c", "x", Way::kAlone), Named("d", "x"),
      Named("e", "y"), Named("f", "y"), Named("g", "y", Way::kFirst), Named("h", "y", Way::kRoot)};
  std::vector<const Payload*> payloads;
  for (const Payload& each : all) payloads.push_back(&each);
  std::string cells;
  for (std::span<const Payload* const> cell : OneCellEach(payloads)) {
    for (const Payload* payload : cell) cells += payload->name;
    cells += ' ';
  }
  EXPECT_EQ(cells, "ab c d ef g h ");
  EXPECT_TRUE(OneCellEach({}).empty());
}

TEST(OneCellEachTest, EveryPayloadIsTriedOnceAndInOrder) {
  std::vector<const Payload*> payloads;
  for (const Payload& each : AllPayloads()) payloads.push_back(&each);
  std::vector<const Payload*> tried;
  for (std::span<const Payload* const> cell : OneCellEach(payloads)) {
    for (const Payload* payload : cell) {
      tried.push_back(payload);
      EXPECT_EQ(payload->topic, cell.front()->topic);
      EXPECT_TRUE(cell.size() == 1 || payload->way == Way::kInChild) << payload->name;
    }
  }
  EXPECT_EQ(tried, payloads);
}

Trial Together(std::vector<Attempted> inside) {
  Trial trial;
  trial.told = inside.size();
  trial.inside = std::move(inside);
  return trial;
}

TEST(TellsOfEachTest, WhereEachFailsAndToldSo) {
  EXPECT_TRUE(TellsOfEach(Together({{EPERM}, {-SIGSYS}, {EACCES}})));
}

TEST(TellsOfEachTest, NotWhereOneMayHaveMetWhatAnotherDid) {
  EXPECT_FALSE(TellsOfEach(Together({{EPERM}, {0}, {EPERM}}))) << "one got through";
  Trial silent = Together({{EPERM}, {-SIGKILL, "ended at the deadline"}});
  silent.told = 1;
  EXPECT_FALSE(TellsOfEach(silent)) << "one got no turn";
  Trial changed = Together({{EPERM}, {EPERM}});
  changed.changes = {"the mount table changed"};
  EXPECT_FALSE(TellsOfEach(changed)) << "one of them changed it";
}

class KeepEscapesTest : public testing::Test {
 protected:
  // Both contained by themselves, but for what is given.
  std::vector<Row> Alone(int32_t first = EPERM, int32_t second = EPERM) {
    std::vector<Row> rows(2);
    for (Row& row : rows) row.payload = &payload_;
    rows[0].inside = {first};
    rows[1].inside = {second};
    for (Row& row : rows) Judge(row);
    return rows;
  }

  const Payload payload_ = Named("a", "x");
};

TEST_F(KeepEscapesTest, WhatGetsThroughInCompanyOnlyIsAnEscapeAllTheSame) {
  std::vector<Row> rows = Alone();
  KeepEscapes(Together({{EPERM}, {0, "after the first"}}), rows);
  EXPECT_EQ(rows[0].verdict, Verdict::kContained);
  EXPECT_EQ(rows[1].verdict, Verdict::kEscaped);
  EXPECT_EQ(rows[1].why, "it got through: after the first");
}

TEST_F(KeepEscapesTest, AChangeThatNobodyMakesAloneIsEverybodys) {
  std::vector<Row> rows = Alone();
  Trial together = Together({{EPERM}, {EPERM}});
  together.changes = {"the host's name changed"};
  KeepEscapes(together, rows);
  for (const Row& row : rows) {
    EXPECT_EQ(row.verdict, Verdict::kEscaped);
    EXPECT_EQ(row.why, "the host's name changed");
  }
}

TEST_F(KeepEscapesTest, AChangeIsOfWhoeverEscapesAlone) {
  std::vector<Row> rows = Alone(EPERM, 0);
  Trial together = Together({{EPERM}, {0}});
  together.changes = {"the host's name changed"};
  KeepEscapes(together, rows);
  EXPECT_EQ(rows[0].verdict, Verdict::kContained);
  EXPECT_EQ(rows[1].verdict, Verdict::kEscaped);
  EXPECT_EQ(rows[1].why, "it got through");
}

}  // namespace
}  // namespace taskcell::attack
