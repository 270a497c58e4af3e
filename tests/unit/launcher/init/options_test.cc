#include "launcher/init/options.h"

#include <gtest/gtest.h>

namespace taskcell::init {
namespace {

Result<Options> Parse(std::vector<std::string_view> arguments) { return ParseOptions(arguments); }

TEST(OptionsTest, EverythingIsRead) {
  Options options = Parse({"--gate-fd=3", "--listen", "--tunnels", "--nofile=256", "--file-size=9",
                           "--seccomp=7", "--terminal", "--limit=memory:5", "--limit=io_weight:6"})
                        .value();
  EXPECT_EQ(options.gate_fd, 3);
  EXPECT_TRUE(options.listen);
  EXPECT_TRUE(options.tunnels);
  EXPECT_FALSE(Parse({"--gate-fd=3", "--listen"})->tunnels);
  EXPECT_EQ(options.nofile, 256U);
  EXPECT_EQ(options.file_bytes, 9U);
  ASSERT_EQ(options.limits.size(), 2U);
  EXPECT_EQ(options.limits[1].name, "io_weight");
  EXPECT_EQ(options.limits[1].fd, 6);
  EXPECT_EQ(options.filter_fd, 7);
  EXPECT_EQ(options.stdio, cell::JobStdio::kTerminal);
  EXPECT_EQ(Parse({"--gate-fd=3"})->stdio, cell::JobStdio::kRelay);
  EXPECT_EQ(Parse({"--gate-path=/run/gate"})->gate_path, "/run/gate");
  EXPECT_EQ(Parse({"--gate-fd=3", "--inherit"})->stdio, cell::JobStdio::kInherit);
}

TEST(OptionsTest, WhatIsNotKnownIsRefused) {
  ASSERT_TRUE(Parse({"--gate-fd=3"}).ok());
  for (std::string_view argument : {"",
                                    "x",
                                    "--listen=1",
                                    "--inherit=1",
                                    "--listen ",
                                    "--tunnels",
                                    "--gate-fd",
                                    "--gate-fd=",
                                    "--gate-fd=2",
                                    "--gate-fd=-1",
                                    "--gate-fd=99999999999",
                                    "--gate-path=gate",
                                    "--nofile=0",
                                    "--nofile=x",
                                    "--file-size=0",
                                    "--file-size=",
                                    "--limit=memory",
                                    "--limit=memory:2",
                                    "--limit=disk:5",
                                    "--limit=memory:5:6",
                                    "--limit="}) {
    EXPECT_FALSE(Parse({"--gate-fd=3", argument}).ok()) << argument;
  }
}

TEST(OptionsTest, ThereIsExactlyOneGate) {
  EXPECT_FALSE(Parse({}).ok());
  EXPECT_FALSE(Parse({"--gate-fd=3", "--gate-path=/run/gate"}).ok());
}

}  // namespace
}  // namespace taskcell::init
