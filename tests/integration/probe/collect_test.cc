// taskcell-probe collect and --from as programs: the verdict of this very host, taken where nothing
// of the host can be seen, and what an archive must never hold.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <nlohmann/json.hpp>

#include "launcher/base/text.h"
#include "launcher/sys/file.h"
#include "probe/tar/tar_writer.h"
#include "tests/support/fixture.h"
#include "tests/support/launch.h"

namespace taskcell::test {
namespace {

using Json = nlohmann::json;
using testing::HasSubstr;
using testing::Not;

// Rows that tell of a moment: between two runs on the same host their figures change.
constexpr std::string_view kOfAMoment[] = {"host.clock", "host.tasks", "host.disk", "host.entropy",
                                           "cgroup.internal-processes"};

Json WithoutMoments(const std::string& text) {
  Json report = Json::parse(text);
  for (Json& finding : report["findings"]) {
    for (std::string_view id : kOfAMoment) {
      if (finding["id"] == id) finding["reason"] = finding["found"] = nullptr;
    }
  }
  return report;
}

// In a mount namespace in which /proc, /sys and /etc are empty.
std::vector<std::string> Elsewhere(const std::string& command) {
  return {"unshare", "-m", "sh", "-c",
          "for d in /proc /sys /etc; do mount -t tmpfs none $d || exit 99; done; " + command};
}

class CollectTest : public LaunchTest {
 protected:
  std::string Archive(const std::string& name = "host.tar") const { return scratch_ + "/" + name; }

  Outcome Probe(std::vector<std::string> arguments, RunOptions options = {}) const {
    arguments.insert(arguments.begin(), Program("taskcell-probe"));
    options.user = user_;
    return test::Run(arguments, options);
  }

  // Root's, so that it can mount.
  Outcome ProbeElsewhere(const std::string& arguments) const {
    return test::Run(Elsewhere(Program("taskcell-probe") + " " + arguments));
  }

  std::string Bytes(const std::string& path) const {
    return sys::ReadFile(AT_FDCWD, path, 64U << 20U).value();
  }
};

TEST_F(CollectTest, TheVerdictElsewhereIsThisHosts) {
  Outcome collected = Probe({"collect", "-o", Archive()});
  ASSERT_EQ(collected.status, 0) << collected.err;
  EXPECT_THAT(collected.out, HasSubstr("/proc/self/cgroup\n"));
  EXPECT_THAT(collected.out, HasSubstr("written to " + Archive()));
  Outcome here = Probe({"--json"});
  Outcome there = ProbeElsewhere("--json --from " + Archive());
  EXPECT_EQ(there.err, "");
  EXPECT_EQ(there.status, here.status);
  EXPECT_EQ(WithoutMoments(there.out), WithoutMoments(here.out));
  // Nothing of the host is seen there.
  Outcome blind = ProbeElsewhere("--quiet");
  EXPECT_EQ(blind.status, 3);
  EXPECT_THAT(blind.out, HasSubstr("could not tell"));
}

TEST_F(CollectTest, TheTreeElsewhereIsThisHosts) {
  ASSERT_EQ(Probe({"collect", "-o", Archive(), "--pid", "1"}).status, 0);
  for (const std::string& about :
       {std::string(), "--user " + user_->name, std::string("--pid 1")}) {
    std::vector<std::string> live = {"cgroup", "--json"};
    for (std::string_view word : Words(about)) live.emplace_back(word);
    Outcome here = Probe(live);
    Outcome there = ProbeElsewhere("cgroup --json " + about + " --from " + Archive());
    EXPECT_EQ(there.status, here.status) << about << there.err;
    EXPECT_EQ(Json::parse(there.out)["limits"], Json::parse(here.out)["limits"]) << about;
  }
}

TEST_F(CollectTest, AFileOfItsOwnWholeAndPrivate) {
  ASSERT_EQ(Probe({"collect", "--output", Archive()}).status, 0);
  auto info = sys::StatAt(AT_FDCWD, Archive()).value();
  EXPECT_EQ(info.st_mode, S_IFREG | 0600U);
  EXPECT_EQ(info.st_uid, user_->uid);
  std::string before = Bytes(Archive());
  Outcome again = Probe({"collect", "-o", Archive()});
  EXPECT_EQ(again.status, 2);
  EXPECT_EQ(again.out, "");
  EXPECT_THAT(again.err, HasSubstr("exists already"));
  EXPECT_EQ(Bytes(Archive()), before);
  EXPECT_EQ(Probe({"collect"}).status, 2);
  Outcome nowhere = Probe({"collect", "-o", "/proc/host.tar"});
  EXPECT_EQ(nowhere.status, 3);
  EXPECT_THAT(nowhere.err, HasSubstr("/proc"));
}

TEST_F(CollectTest, WhatItDoesNotHoldIsRefused) {
  ASSERT_EQ(Probe({"collect", "-o", Archive()}).status, 0);
  for (const char* arguments :
       {"--user root", "--uid 64000", "cgroup --pid 1", "cgroup --path /no/such --uid 64000"}) {
    std::vector<std::string> argv = {};
    for (std::string_view word : Words(arguments)) argv.emplace_back(word);
    argv.insert(argv.end(), {"--from", Archive()});
    Outcome outcome = Probe(argv);
    EXPECT_EQ(outcome.status, 2) << arguments;
    EXPECT_EQ(outcome.out, "") << arguments;
    EXPECT_THAT(outcome.err, HasSubstr("does not hold what is asked about")) << arguments;
  }
  EXPECT_THAT(Probe({"--from", Archive(), "--user", "nobody-of-that-name"}).err,
              HasSubstr("there is no user"));
  EXPECT_EQ(Probe({"--from", Archive(), "--root", "/"}).status, 2);
}

TEST_F(CollectTest, DamagedAndForeignFilesAreNamed) {
  ASSERT_EQ(Probe({"collect", "-o", Archive()}).status, 0);
  std::string good = Bytes(Archive());
  auto with_about = [](std::string_view about) {
    probe::TarWriter tar;
    EXPECT_TRUE(tar.AddFile("taskcell/about.json", 0600, about).ok());
    return std::move(tar).Finish();
  };
  const std::pair<std::string, const char*> kFiles[] = {
      {"no archive at all, but long enough to be one: " + std::string(1024, 'x'), "no archive"},
      {"", "cut short"},
      {good.substr(0, good.size() / 2), "cut short"},
      {good + std::string((32U << 20U) + 1, '\0'), "more than 33554432 bytes"},
      {with_about(R"({"format":2,"program":"7.0"})"), "newer taskcell-probe (7.0)"},
      {with_about(R"({"format":1,"trials":true})"), "trials.json is missing"},
  };
  int number = 0;
  for (const auto& [bytes, expected] : kFiles) {
    std::string path = MakeFile(Text("bad-", number++), bytes);
    for (const std::vector<std::string>& command :
         {std::vector<std::string>{"--from", path}, {"cgroup", "--from", path}}) {
      Outcome outcome = Probe(command);
      EXPECT_EQ(outcome.status, 3) << expected;
      EXPECT_EQ(outcome.out, "") << expected;
      EXPECT_THAT(outcome.err, HasSubstr(expected));
      EXPECT_THAT(outcome.err, HasSubstr("--from: ")) << outcome.err;
    }
  }
  EXPECT_THAT(Probe({"--from", Archive("none")}).err, HasSubstr("No such file"));
}

// A secret in every place that is near to what is recorded, real files and the environment.
TEST_F(CollectTest, NoSecretOfTheHostIsInIt) {
  constexpr std::string_view kScript = R"sh(
set -e
over() { cat >over.$1; mount --bind over.$1 $2; }
mount -t tmpfs CANARY-mount /mnt
sed 's/^\([^:]*\):[^:]*:\([^:]*:[^:]*\):.*/\1:CANARY:\2:CANARY:\/CANARY:\/CANARY/' /etc/passwd | over passwd /etc/passwd
sed 's/^\([^:]*\):[^:]*/\1:CANARY/' /etc/group | over group /etc/group
{ echo '# CANARY'; cat /etc/subuid; echo 'other:CANARY:1'; } | over subuid /etc/subuid
{ cat /etc/login.defs; echo 'ENV_PATH CANARY'; } | over defs /etc/login.defs
{ cat /etc/os-release; echo 'BUILD_ID=CANARY'; } | over release /etc/os-release
echo "root=/dev/x password=CANARY $(cat /proc/cmdline)" | over cmdline /proc/cmdline
echo '|/bin/x CANARY' | over core /proc/sys/kernel/core_pattern
mount -t tmpfs none /run
unit=/run/systemd/system/user@0.service.d/x.conf
mkdir -p ${unit%/*} home/.docker
printf '[Service]\nEnvironment=KEY=CANARY\nExecStartPre=/bin/x CANARY\nDelegate=cpu\n' >$unit
printf '{"auths":{"reg":{"auth":"CANARY"}},"currentContext":"none-of-it"}' >home/.docker/config.json
export HOME=$PWD/home KEY=CANARY DOCKER_HOST=tcp://user:CANARY@host XDG_RUNTIME_DIR=CANARY
for f in /etc/passwd /etc/group /etc/subuid /etc/login.defs /etc/os-release /proc/cmdline \
  /proc/self/mountinfo /proc/sys/kernel/core_pattern $unit; do
  grep -q CANARY $f || exit 98
done
"$PROBE" collect -o host.tar >contents
exec "$PROBE" --from host.tar --json
)sh";
  RunOptions options;
  options.directory = scratch_;
  options.environment = {"PROBE=" + Program("taskcell-probe")};
  Outcome outcome = test::Run({"unshare", "-m", "bash", "-c", std::string(kScript)}, options);
  ASSERT_THAT(outcome.status, testing::AnyOf(0, 1)) << outcome.status << outcome.err;
  EXPECT_THAT(Bytes(Archive()), Not(HasSubstr("CANARY")));
  EXPECT_THAT(outcome.out, Not(HasSubstr("CANARY")));
  // What stood beside them was recorded.
  EXPECT_THAT(Bytes(Archive()), HasSubstr("[Service]\nDelegate=cpu\n"));
  EXPECT_THAT(outcome.out, HasSubstr("no engine can be chosen: DOCKER_HOST"));
}

}  // namespace
}  // namespace taskcell::test
