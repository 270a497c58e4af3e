#include "launcher/sys/output.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include "launcher/sys/file.h"
#include "launcher/sys/process.h"
#include "launcher/sys/self.h"

namespace taskcell::sys {
namespace {

// What PrintMessage writes, in a process of its own.
std::string Printed(std::string_view text) {
  constexpr std::size_t kMost = 4096;
  Result<Pipe> pipe = MakePipe();
  if (!pipe.ok()) return pipe.error().text;
  Result<Cloned> cloned = CloneProcess(0);
  if (!cloned.ok()) return cloned.error().text;
  if (cloned->in_child) {
    if (!PlaceDescriptor(pipe->write_end.get(), STDERR_FILENO).ok()) ExitNow(1);
    PrintMessage("taskcell", text);
    ExitNow(0);
  }
  pipe->write_end.Reset();
  Result<std::string> printed = ReadAll(pipe->read_end.get(), kMost);
  EXPECT_TRUE(cloned->child.Wait().ok());
  return printed.ok() ? printed.value() : printed.error().text;
}

// A message may hold what a cell, an image or a provider said: no command to the terminal and no
// line of its own comes of that.
TEST(PrintMessageTest, WhateverIsToldATerminalCanShow) {
  EXPECT_EQ(Printed("all is well"), "taskcell: all is well\n");
  EXPECT_EQ(Printed("no such\ntaskcell: all is well"),
            "taskcell: no such\\ntaskcell: all is well\n");
  EXPECT_EQ(Printed("\x1b]0;owned\x07 \xc2\x9b 2J \xff\x7f\r"),
            "taskcell: \\x1b]0;owned\\x07 \\xc2\\x9b 2J \\xff\\x7f\\x0d\n");
}

// An indented line cannot be taken for a message of its own.
TEST(PrintMessageTest, AFurtherLineIsIndented) {
  EXPECT_EQ(Printed("these differ:\n  uid\n  g\x1bid\nx"),
            "taskcell: these differ:\n  uid\n  g\\x1bid\\nx\n");
}

TEST(PrintMessageTest, WhatIsQuotedStaysAsItWasQuoted) {
  EXPECT_EQ(Printed("'\\x1b': caf\xc3\xa9"), "taskcell: '\\x1b': caf\xc3\xa9\n");
}

}  // namespace
}  // namespace taskcell::sys
