#include "probe/facts/unit_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/memory_host.h"

namespace taskcell::probe {
namespace {

using testing::ElementsAre;

TEST(ParseUnitFileTest, SectionsCommentsAndContinuedLines) {
  auto settings = ParseUnitFile(
      "# c\n; c\n[Unit]\nA = 1\n\n[Service]\nExecStart=/bin/x \\\n# between\n  "
      "--y\nDelegate=\nnonsense\n=x\nB=a=b\r\n");
  ASSERT_EQ(settings.size(), 4U);
  EXPECT_EQ(settings[0].section, "Unit");
  EXPECT_EQ(settings[0].key, "A");
  EXPECT_EQ(settings[0].value, "1");
  EXPECT_EQ(settings[1].value, "/bin/x  --y");
  EXPECT_EQ(settings[2].value, "");
  EXPECT_EQ(settings[3].value, "a=b");
}

Delegation Of(std::string_view text) {
  Unit unit;
  unit.settings = ParseUnitFile(text);
  return DelegationOf(unit);
}

TEST(DelegationTest, ListsAddUpAndEmptyResets) {
  Delegation two = Of("[Service]\nDelegate=pids memory\nDelegate=cpu\n");
  EXPECT_THAT(two.controllers, ElementsAre("pids", "memory", "cpu"));
  EXPECT_TRUE(two.Holds("cpu"));
  EXPECT_FALSE(two.Holds("io"));
  EXPECT_TRUE(Of("[Service]\nDelegate=yes\n").Holds("io"));
  EXPECT_FALSE(Of("[Service]\nDelegate=cpu\nDelegate=no\n").Holds("cpu"));
  Delegation reset = Of("[Service]\nDelegate=cpu\nDelegate=\n");
  EXPECT_TRUE(reset.on);
  EXPECT_FALSE(reset.Holds("cpu"));
  EXPECT_FALSE(Of("[Unit]\nDelegate=yes\n").on);
}

TEST(ReadUnitTest, RankOfFragmentsAndDropIns) {
  test::MemoryHost host;
  host.Put("/usr/lib/systemd/system/user@.service", "[Service]\nDelegate=pids memory\nA=vendor\n");
  host.Put("/usr/lib/systemd/system/user@.service.d/10-a.conf", "[Service]\nA=low\n");
  host.Put("/etc/systemd/system/user@.service.d/10-a.conf", "[Service]\nA=high\n");
  host.Put("/etc/systemd/system/user@1500.service.d/20-b.conf", "[Service]\nB=own\n");
  host.Put("/etc/systemd/system/user@.service.d/ignored.txt", "[Service]\nA=ignored\n");
  Unit unit = ReadUnit(host, "user@1500.service");
  EXPECT_THAT(unit.files, ElementsAre("/usr/lib/systemd/system/user@.service",
                                      "/etc/systemd/system/user@.service.d/10-a.conf",
                                      "/etc/systemd/system/user@1500.service.d/20-b.conf"));
  EXPECT_EQ(unit.Last("Service", "A"), "high");
  EXPECT_EQ(unit.Last("Service", "B"), "own");
  EXPECT_FALSE(ReadUnit(host, "other.service").exists());

  EXPECT_EQ(DelegationOf(unit).off_in, "");
  const std::string off = "/etc/systemd/system/user@1500.service.d/30-c.conf";
  host.Put(off, "[Service]\nDelegate=no\n");
  EXPECT_EQ(DelegationOf(ReadUnit(host, "user@1500.service")).off_in, off);
  host.Put("/run/systemd/system/user@1500.service.d/40-d.conf", "[Service]\nDelegate=cpu\n");
  EXPECT_EQ(DelegationOf(ReadUnit(host, "user@1500.service")).off_in, "");
}

}  // namespace
}  // namespace taskcell::probe
