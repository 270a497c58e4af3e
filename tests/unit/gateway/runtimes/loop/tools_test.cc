#include "gateway/runtimes/loop/tools.h"

#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "launcher/base/json_text.h"
#include "launcher/base/text.h"

namespace taskcell::gateway::loop {
namespace {

class ToolsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = ::testing::TempDir() + "tools.XXXXXX";
    ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
    directory_ = pattern;
  }
  void TearDown() override { std::filesystem::remove_all(directory_); }

  std::string Path(std::string_view name) const { return Text(directory_, "/", name); }
  static ToolResult Run(std::string_view tool, std::string_view key, std::string_view value) {
    JsonText json;
    return RunTool(tool, json.Open('{').Key(key).String(value).Close('}').text());
  }
  static ToolResult Write(std::string_view path, std::string_view content) {
    JsonText json;
    json.Open('{').Key("path").String(path).Key("content").String(content).Close('}');
    return RunTool("write_file", json.text());
  }

  std::string directory_;
};

TEST_F(ToolsTest, WhatIsWrittenIsReadAndListed) {
  EXPECT_FALSE(Write(Path("a/b/c.txt"), "line\n").is_error);
  EXPECT_EQ(Run("read_file", "path", Path("a/b/c.txt")).text, "line\n");
  EXPECT_FALSE(Write(Path("a/b/c.txt"), "x").is_error);  // replaces
  EXPECT_EQ(Run("read_file", "path", Path("a/b/c.txt")).text, "x");
  EXPECT_FALSE(Write(Path("a/z"), "").is_error);
  EXPECT_EQ(Run("list_directory", "path", Path("a")).text, "b/\nz\n");
}

TEST_F(ToolsTest, TheShellRunsAndReportsItsEnd) {
  EXPECT_EQ(Run("shell", "command", "echo hi; echo there >&2").text, "hi\nthere\n");
  ToolResult result = Run("shell", "command", "echo no; exit 3");
  EXPECT_TRUE(result.is_error);
  EXPECT_EQ(result.text, "no\n\n[exit status 3]");
  EXPECT_TRUE(Run("shell", "command", "kill -9 $$").is_error);
}

TEST_F(ToolsTest, OutputIsCutAtTheLimitAndOnePast) {
  std::string whole(kMaxToolOutputBytes, 'x');
  std::ofstream(Path("whole")) << whole;
  std::ofstream(Path("more")) << whole << 'y';
  EXPECT_EQ(Run("read_file", "path", Path("whole")).text, whole);
  EXPECT_EQ(Run("read_file", "path", Path("more")).text, whole + "\n[cut after 65536 bytes]");
  EXPECT_EQ(Run("shell", "command", "cat " + Path("whole")).text, whole);
  EXPECT_EQ(Run("shell", "command", "cat " + Path("more")).text,
            whole + "\n[cut after 65536 bytes]");
  ToolResult endless = Run("read_file", "path", "/dev/zero");
  EXPECT_LE(endless.text.size(), kMaxToolOutputBytes + 64);
}

TEST_F(ToolsTest, AFifoDoesNotHang) {
  ASSERT_EQ(::mkfifo(Path("fifo").c_str(), 0600), 0);
  EXPECT_EQ(Run("read_file", "path", Path("fifo")).text, "");
  EXPECT_TRUE(Write(Path("fifo"), "x").is_error);
}

TEST_F(ToolsTest, FailuresAndBadCallsAreResults) {
  EXPECT_TRUE(Run("read_file", "path", Path("missing")).is_error);
  EXPECT_TRUE(Run("list_directory", "path", Path("missing")).is_error);
  EXPECT_TRUE(Write("/proc/no/such/place", "x").is_error);
  EXPECT_TRUE(Run("read_file", "path", "").is_error);
  EXPECT_TRUE(Run("read_file", "file", "x").is_error);
  EXPECT_TRUE(Run("delete_everything", "path", "/").is_error);
  for (const char* arguments :
       {"{\"path\":", "[]", "\"x\"", "{}", "", "{\"path\":1}", "nonsense"}) {
    EXPECT_TRUE(RunTool("read_file", arguments).is_error) << arguments;
  }
  EXPECT_TRUE(RunTool("shell", R"({"command":"echo a\u0000b"})").is_error);
}

TEST_F(ToolsTest, ACutCallDoesNothing) {
  std::string path = Path("never");
  std::string call = Text(R"({"command":"touch )", path, "\"}");
  for (std::size_t size = 0; size < call.size(); ++size) {
    EXPECT_TRUE(RunTool("shell", call.substr(0, size)).is_error);
  }
  EXPECT_FALSE(std::filesystem::exists(path));
  EXPECT_FALSE(RunTool("shell", call).is_error);  // control: the whole call does it
  EXPECT_TRUE(std::filesystem::exists(path));
}

}  // namespace
}  // namespace taskcell::gateway::loop
