#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "launcher/base/text.h"
#include "tests/engine/hostile_doctor_test.h"

namespace taskcell::test {
namespace {

using testing::HasSubstr;

TEST_F(HostileDoctorTest, AnOpenNetworkIsToldAsNotTried) {
  const std::string settings = ReadText(Home() + "/config.toml");
  Put("config.toml", Text("[taskcell]\negress = \"open\"", settings.substr(settings.find('\n'))));
  GiveHomeToUser();
  const Outcome run = Client({"doctor", "--hostile", "--attack", "namespaces", "--json"});
  const Json report = Json::parse(run.out, nullptr, false);
  EXPECT_THAT(report["warnings"].dump(), HasSubstr("was not tried")) << run.out << run.err;
}

}  // namespace
}  // namespace taskcell::test
