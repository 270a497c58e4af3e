#include "probe/cells/selinux.h"

#include <gtest/gtest.h>

namespace taskcell::probe {
namespace {

constexpr char kRun[] = "/home/u/.taskcell/sandbox/runs/aa";

EngineInfo Labels() {
  EngineInfo info;
  info.security_options = {"name=seccomp,profile=default", "name=selinux"};
  return info;
}

bool IsNamed(const Error& error, const EngineInfo& engine, std::string_view enforce) {
  Error told = NameSelinux(error, engine, enforce, kRun);
  EXPECT_TRUE(told.text.ends_with(error.text)) << told.text;
  EXPECT_EQ(told.code, error.code);
  return told.text.starts_with(kSelinuxLabels);
}

Error Denied() {
  return Error(Kind::kSystem,
               "container start: HTTP 400: exec: \"/run/taskcell/init\": permission denied")
      .Coded("container_start_failed");
}

Error NobodyCame() {
  return Error(Kind::kViolation, "gate: the cell's first process did not connect in time")
      .Coded("cell_mismatch");
}

TEST(SelinuxTest, ADenialOfALabellingEngineIsNamedWithTheLabelAndThePolicy) {
  for (const Error& error : {Denied(), NobodyCame()})
    for (const char* enforce : {"1", ""}) EXPECT_TRUE(IsNamed(error, Labels(), enforce));
  const std::string text = NameSelinux(NobodyCame(), Labels(), "1", kRun).text;
  EXPECT_NE(text.find("/home/u/.taskcell/sandbox container_file_t"), std::string::npos) << text;
  EXPECT_NE(text.find("taskcell-gateway(8), SELINUX"), std::string::npos) << text;
}

TEST(SelinuxTest, AHomeBelowAnotherDirectoryOfThatNameIsNamedWhole) {
  const std::string text =
      NameSelinux(NobodyCame(), Labels(), "1", "/srv/sandbox/runs/u/sandbox/runs/aa").text;
  EXPECT_NE(text.find(" /srv/sandbox/runs/u/sandbox container_file_t"), std::string::npos) << text;
}

TEST(SelinuxTest, NothingElseIsBlamedOnIt) {
  EXPECT_FALSE(IsNamed(NobodyCame(), Labels(), "0")) << "it only logs";
  EXPECT_FALSE(IsNamed(NobodyCame(), EngineInfo(), "1")) << "the engine labels nothing";
  EXPECT_FALSE(
      IsNamed(Error(Kind::kSystem, "no such file").Coded("container_start_failed"), Labels(), "1"));
  EXPECT_FALSE(
      IsNamed(Error(Kind::kSystem, "permission denied").Coded("image_missing"), Labels(), "1"));
}

}  // namespace
}  // namespace taskcell::probe
