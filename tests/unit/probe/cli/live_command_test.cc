#include "probe/cli/live_command.h"

#include <gtest/gtest.h>

namespace taskcell::probe {
namespace {

void ExpectRefused(const LiveOptions& options, std::string_view option) {
  Result<live::Asked> asked = ParseAsked(options);
  ASSERT_FALSE(asked.ok());
  EXPECT_EQ(asked.error().kind, Kind::kUsage);
  EXPECT_TRUE(asked.error().text.starts_with(option)) << asked.error().text;
}

TEST(AskedTest, BoundsHoldAtTheLimitAndOnePastIt) {
  EXPECT_TRUE(ParseAsked({.memory = "32M"}).ok());
  EXPECT_TRUE(ParseAsked({.memory = "512M"}).ok());
  ExpectRefused({.memory = "33554431"}, "--memory");
  ExpectRefused({.memory = "536870913"}, "--memory");
  EXPECT_TRUE(ParseAsked({.pids = "8"}).ok());
  EXPECT_TRUE(ParseAsked({.pids = "256"}).ok());
  ExpectRefused({.pids = "7"}, "--pids");
  ExpectRefused({.pids = "257"}, "--pids");
  EXPECT_TRUE(ParseAsked({.cpus = "0.05"}).ok());
  EXPECT_TRUE(ParseAsked({.cpus = "16"}).ok());
  ExpectRefused({.cpus = "0.049"}, "--cpus");
  ExpectRefused({.cpus = "16.001"}, "--cpus");
}

TEST(AskedTest, LimitsThatStandInEachOthersWayAreRefused) {
  ExpectRefused({.pids = "8", .cpus = "5"}, "--pids");
  EXPECT_TRUE(ParseAsked({.pids = "9", .cpus = "5"}).ok());
  ExpectRefused({.memory = "32M", .pids = "129"}, "--memory");
  EXPECT_TRUE(ParseAsked({.memory = "32M", .pids = "128"}).ok());
}

TEST(AskedTest, WhatIsNoQuantityIsNamed) {
  ExpectRefused({.memory = "much"}, "--memory");
  ExpectRefused({.pids = "-1"}, "--pids");
  ExpectRefused({.cpus = "half"}, "--cpus");
}

EndpointSettings Settings() {
  EndpointSettings settings;
  settings.docker_host = "unix:///d.sock";
  settings.container_host = "unix:///c.sock";
  settings.podman_socket = "/run/user/7/podman/podman.sock";
  return settings;
}

TEST(ProbeEndpointTest, EachWordLeadsToItsSocket) {
  auto at = [](const std::string& engine, EndpointSettings settings) {
    settings.docker_socket = "/nonexistent/docker.sock";
    Result<Endpoint> endpoint = ChooseProbeEndpoint(engine, settings);
    return endpoint.ok() ? endpoint->Describe() : endpoint.error().text;
  };
  EndpointSettings nothing_set;
  nothing_set.podman_socket = Settings().podman_socket;
  EXPECT_EQ(at("auto", Settings()),
            "unix:///c.sock (from CONTAINER_HOST; DOCKER_HOST is set too and not used)");
  EXPECT_EQ(at("docker", Settings()), "unix:///d.sock (from DOCKER_HOST)");
  EXPECT_EQ(at("podman", Settings()), "unix:///c.sock (from CONTAINER_HOST)");
  EXPECT_EQ(at("podman", nothing_set),
            "unix:///run/user/7/podman/podman.sock (from Podman's usual socket)");
  EXPECT_EQ(at("docker", nothing_set), "unix:///nonexistent/docker.sock (from the default)");
  EXPECT_EQ(at("unix:///x.sock", Settings()), "unix:///x.sock (from the command line)");
}

TEST(ProbeEndpointTest, AnythingElseIsUsage) {
  for (const char* word : {"", "dockr", "tcp://h:1", "/var/run/docker.sock"}) {
    Result<Endpoint> endpoint = ChooseProbeEndpoint(word, {});
    ASSERT_FALSE(endpoint.ok()) << word;
    EXPECT_EQ(endpoint.error().kind, Kind::kUsage);
  }
}

}  // namespace
}  // namespace taskcell::probe
