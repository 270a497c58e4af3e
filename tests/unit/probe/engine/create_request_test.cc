#include "probe/engine/create_request.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <random>
#include <set>

namespace taskcell::probe {
namespace {

using Json = nlohmann::json;

CreateRequest Example() {
  CreateRequest request;
  request.image_id = "sha256:aa";
  request.entrypoint = {"/run/taskcell/init", "--gate-path=/run/taskcell/gate.d/gate"};
  request.image_environment = {"LD_PRELOAD"};
  cell::CellPlan& plan = request.plan;
  plan.run_id = std::string(32, 'a');
  plan.agent = "scout";
  plan.home_label = std::string(32, 'b');
  plan.deadline_unix_ms = 1700000000001;
  plan.uid = 100000;
  plan.gid = 100001;
  plan.root = cell::RootKind::kImage;
  plan.root_source = "reg.example/x:1";
  plan.mounts = {{"/srv/init", "/run/taskcell/init", cell::EntryKind::kFile, 1, 2, false}};
  plan.tmpfs = {{"/tmp", 4096, 01777, true, false},
                {"/workspace", 8192, 0700, true, false},
                {"/data", 4096, 0555, false, true}};
  plan.limits = {64 << 20, 32, 500, 1024};
  plan.network = cell::NetworkMode::kProvider;
  return request;
}

Json Body(const CreateRequest& request) {
  auto call = EncodeCreate(request);
  EXPECT_TRUE(call.ok()) << call.error().text;
  return Json::parse(call.value().body);
}

TEST(CreateRequestTest, TheWholeBodyIsWhatThePlanAsksFor) {
  EXPECT_EQ(Body(Example()), Json::parse(R"({
    "Image":"sha256:aa",
    "Entrypoint":["/run/taskcell/init","--gate-path=/run/taskcell/gate.d/gate"], "Cmd":[],
    "User":"100000:100001", "Hostname":"taskcell", "WorkingDir":"/",
    "Env":["LD_PRELOAD"], "Healthcheck":{"Test":["NONE"]},
    "StopSignal":"SIGKILL", "StopTimeout":1,
    "AttachStdin":false, "AttachStdout":false, "AttachStderr":false, "OpenStdin":false, "Tty":false,
    "Labels":{"com.duduclaw.task-sandbox":"1",
      "com.duduclaw.task-sandbox.run":"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
      "com.duduclaw.task-sandbox.agent":"scout",
      "com.duduclaw.task-sandbox.home":"bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb",
      "com.duduclaw.task-sandbox.deadline":"1700000001"},
    "HostConfig":{
      "AutoRemove":true, "Init":false, "NetworkMode":"none", "ReadonlyRootfs":true,
      "CapDrop":["ALL"], "SecurityOpt":["no-new-privileges:true"],
      "IpcMode":"private", "CgroupnsMode":"private",
      "Memory":67108864, "MemorySwap":67108864, "PidsLimit":32, "NanoCpus":500000000,
      "Ulimits":[{"Name":"core","Soft":1,"Hard":1},{"Name":"nofile","Soft":1024,"Hard":1024}],
      "LogConfig":{"Type":"none"},
      "Tmpfs":{"/tmp":"rw,exec,nosuid,nodev,size=4096,mode=1777,uid=100000,gid=100001",
               "/workspace":"rw,exec,nosuid,nodev,size=8192,mode=0700,uid=100000,gid=100001"},
      "Mounts":[
        {"Type":"bind","Source":"/srv/init","Target":"/run/taskcell/init","ReadOnly":true,
         "BindOptions":{"Propagation":"rprivate","NonRecursive":true}},
        {"Type":"tmpfs","Target":"/data","ReadOnly":true,
         "TmpfsOptions":{"SizeBytes":4096,"Mode":365}}]}})"));
}

TEST(CreateRequestTest, PodmansTmpfsHaveNoOwnerAndNothingOfTheImage) {
  CreateRequest request = Example();
  request.podman = true;
  Json host = Body(request)["HostConfig"];
  EXPECT_EQ(host["Tmpfs"], Json::parse(R"({
    "/tmp":"rw,exec,nosuid,nodev,size=4096,mode=1777,notmpcopyup",
    "/workspace":"rw,exec,nosuid,nodev,size=8192,mode=0777,notmpcopyup",
    "/data":"ro,noexec,nosuid,nodev,size=4096,mode=0555,notmpcopyup"})"));
  EXPECT_EQ(host["Mounts"].size(), 1U);
}

TEST(CreateRequestTest, TheNameIsTheRuns) {
  EXPECT_EQ(EncodeCreate(Example())->name, "dudu-task-" + std::string(32, 'a'));
}

TEST(CreateRequestTest, AnOpenNetworkIsTheBridgeAndChangesNothingElse) {
  CreateRequest request = Example();
  for (cell::NetworkMode closed : {cell::NetworkMode::kNone, cell::NetworkMode::kProvider}) {
    request.plan.network = closed;
    EXPECT_EQ(Body(request)["HostConfig"]["NetworkMode"], "none");
  }
  Json expected = Body(request);
  expected["HostConfig"]["NetworkMode"] = "bridge";
  request.plan.network = cell::NetworkMode::kOpen;
  EXPECT_EQ(Body(request), expected);
}

TEST(CreateRequestTest, WhatCannotBeSaidIsRefused) {
  ASSERT_TRUE(EncodeCreate(Example()).ok());
  auto refused = [](auto change) {
    CreateRequest request = Example();
    change(request);
    return !EncodeCreate(request).ok();
  };
  EXPECT_TRUE(refused([](CreateRequest& r) { r.plan.mounts[0].source = "/srv/\xff"; }));
  EXPECT_TRUE(refused([](CreateRequest& r) { r.plan.mounts[0].writable = true; }));
  EXPECT_TRUE(refused([](CreateRequest& r) { r.plan.root = cell::RootKind::kHost; }));
  EXPECT_TRUE(refused([](CreateRequest& r) { r.plan.uid = 0; }));
  EXPECT_TRUE(refused([](CreateRequest& r) { r.plan.limits.pids = 0; }));
}

// Whatever a plan holds, the request asks for nothing that would open the cell.
TEST(CreateRequestTest, NoRequestEverAsksForMoreThanACell) {
  const std::set<std::string> top = {
      "Image",        "Entrypoint",  "Cmd",        "User",        "Hostname",    "WorkingDir",
      "Env",          "Healthcheck", "StopSignal", "StopTimeout", "AttachStdin", "AttachStdout",
      "AttachStderr", "OpenStdin",   "Tty",        "Labels",      "HostConfig"};
  const std::set<std::string> host = {"AutoRemove", "Init",        "NetworkMode", "ReadonlyRootfs",
                                      "CapDrop",    "SecurityOpt", "IpcMode",     "CgroupnsMode",
                                      "Memory",     "MemorySwap",  "PidsLimit",   "NanoCpus",
                                      "Ulimits",    "LogConfig",   "Tmpfs",       "Mounts"};
  std::mt19937 random(20260101);
  const std::string alphabet = "ab/\",:{}[]\\ =\n\x01%";
  auto word = [&] {
    std::string out = "/w";
    for (auto i = random() % 24; i > 0; --i) out += alphabet[random() % alphabet.size()];
    return out;
  };
  int encoded = 0;
  for (int round = 0; round < 3000; ++round) {
    CreateRequest request = Example();
    cell::CellPlan& plan = request.plan;
    request.image_id = word();
    request.entrypoint.push_back(word() + "\",\"Privileged\":true,\"x\":\"");
    request.image_environment.push_back(word());
    plan.uid = 1 + static_cast<uint32_t>(random() % 4000000000U);
    plan.gid = 1 + static_cast<uint32_t>(random() % 4000000000U);
    plan.limits.memory_bytes = 1 + random();
    plan.limits.pids = 2 + random() % 70000;
    plan.mounts[0].source = word();
    plan.tmpfs[2].target = round % 2 == 0 ? "/data" : word();
    auto call = EncodeCreate(request);
    if (!call.ok()) continue;  // a target that CheckPlan refuses
    ++encoded;
    Json json = Json::parse(call->body);
    for (auto item = json.begin(); item != json.end(); ++item)
      ASSERT_TRUE(top.contains(item.key()));
    const Json& config = json["HostConfig"];
    for (auto item = config.begin(); item != config.end(); ++item)
      ASSERT_TRUE(host.contains(item.key()));
    ASSERT_EQ(config["SecurityOpt"], Json::parse(R"(["no-new-privileges:true"])"));
    ASSERT_EQ(config["CapDrop"], Json::parse(R"(["ALL"])"));
    ASSERT_EQ(config["NetworkMode"], "none");
    ASSERT_EQ(config["IpcMode"], "private");
    ASSERT_EQ(config["ReadonlyRootfs"], true);
    ASSERT_EQ(config["Memory"], config["MemorySwap"]);
    ASSERT_EQ(json["Entrypoint"].size(), 3U);
    for (const Json& mount : config["Mounts"]) {
      ASSERT_EQ(mount["ReadOnly"], true);
      ASSERT_FALSE(mount.contains("VolumeOptions"));
      ASSERT_TRUE(mount["Type"] == "bind" || mount["Type"] == "tmpfs");
    }
  }
  EXPECT_GT(encoded, 1500);
}

}  // namespace
}  // namespace taskcell::probe
