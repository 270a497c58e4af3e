#include "launcher/sys/terminal.h"

#include <gtest/gtest.h>
#include <poll.h>

#include "launcher/sys/file.h"
#include "launcher/sys/socket.h"

namespace taskcell::sys {
namespace {

TEST(TerminalTest, WhatWasTypedAndNotReadIsForgotten) {
  TerminalPair pair = MakeTerminal("/dev/ptmx").value();
  const int fd = pair.slave.get();
  ASSERT_TRUE(SetTerminalModes(fd, RawModes(*TerminalModes(fd))).ok());
  ASSERT_TRUE(WriteAll(pair.master.get(), "for the program").ok());
  ASSERT_NE(Poll(fd, POLLIN, 5000).value(), 0);
  ASSERT_TRUE(DropTyped(fd).ok());
  EXPECT_EQ(Poll(fd, POLLIN, 0).value(), 0);
}

}  // namespace
}  // namespace taskcell::sys
