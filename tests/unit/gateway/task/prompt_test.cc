#include "gateway/task/prompt.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "launcher/cell/job.h"
#include "launcher/sys/file.h"

namespace taskcell::gateway {
namespace {

TEST(CheckPromptTest, SizeIsAcceptedAtTheBoundAndRefusedOnePast) {
  EXPECT_TRUE(CheckPrompt(std::string(kMaxPromptBytes, 'a')).ok());
  Status refused = CheckPrompt(std::string(kMaxPromptBytes + 1, 'a'));
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, "invalid_prompt");
  EXPECT_NE(refused.error().text.find("4194304"), std::string::npos);
}

TEST(CheckPromptTest, BlankBrokenAndNulAreRefusedEachWithItsReason) {
  EXPECT_NE(CheckPrompt("").error().text.find("empty"), std::string::npos);
  EXPECT_NE(CheckPrompt(" \n\t").error().text.find("empty"), std::string::npos);
  EXPECT_NE(CheckPrompt("a\xff\xfe").error().text.find("UTF-8"), std::string::npos);
  EXPECT_NE(CheckPrompt(std::string("a\0b", 3)).error().text.find("NUL"), std::string::npos);
  EXPECT_TRUE(CheckPrompt("zusammenfassen: 韓國 😀").ok());
}

TEST(WholePromptTest, SystemPromptIsWrappedAndItsClosingTagEscaped) {
  EXPECT_EQ(WholePrompt("", "do it"), "do it");
  EXPECT_EQ(WholePrompt(" \n", "do it"), "do it");
  EXPECT_EQ(WholePrompt("# Soul\nkind", "do it"),
            "<system_instructions>\n# Soul\nkind\n</system_instructions>\n\ndo it");
  EXPECT_EQ(WholePrompt("a</system_instructions>b</system_instructions>", "p"),
            "<system_instructions>\na&lt;/system_instructions&gt;b&lt;/system_instructions&gt;\n"
            "</system_instructions>\n\np");
}

class SystemPromptTest : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_NE(::mkdtemp(path_.data()), nullptr);
    directory_ = sys::Open(path_, O_RDONLY | O_DIRECTORY).value();
  }
  void TearDown() override { std::filesystem::remove_all(path_); }
  void Put(const std::string& name, const std::string& content) const {
    std::ofstream(path_ + "/" + name, std::ios::binary) << content;
  }
  Result<std::string> Read() const {
    std::vector<std::string> warnings;
    mounts::FileReader files;
    return ReadSystemPrompt(files, directory_.get(), warnings);
  }

  std::string path_ = "/tmp/taskcell-prompt-test-XXXXXX";
  UniqueFd directory_;
};

TEST_F(SystemPromptTest, PartsAreJoinedAndBlankOnesLeftOut) {
  EXPECT_EQ(Read().value(), "");
  Put("IDENTITY.md", "I am A1");
  EXPECT_EQ(Read().value(), "# Identity\nI am A1");
  Put("SOUL.md", "kind");
  EXPECT_EQ(Read().value(), "# Soul\nkind\n\n---\n\n# Identity\nI am A1");
  Put("IDENTITY.md", " \n");
  EXPECT_EQ(Read().value(), "# Soul\nkind");
}

TEST_F(SystemPromptTest, TooLargeOrBrokenPartsRefuseTheTask) {
  Put("SOUL.md", std::string(kMaxPersonaBytes, 's'));
  EXPECT_TRUE(Read().ok());
  Put("SOUL.md", std::string(kMaxPersonaBytes + 1, 's'));
  EXPECT_EQ(Read().error().code, "agent_dir_unmountable");
  Put("SOUL.md", "\xff");
  EXPECT_EQ(Read().error().code, "agent_dir_unmountable");
}

TEST(WholePromptTest, TheLargestPromptWithTheLargestInstructionsIsAJobsInput) {
  const std::string tag = "</system_instructions>";
  std::string persona;
  while (persona.size() + tag.size() <= kMaxPersonaBytes) persona += tag;
  cell::Job job;
  job.argv = {"program"};
  job.stdio = cell::JobStdio::kRelay;
  job.input = WholePrompt("# Soul\n" + persona + "\n\n---\n\n# Identity\n" + persona,
                          std::string(kMaxPromptBytes, 'p'));
  Result<cell::Job> parsed = cell::ParseJob(cell::EncodeJob(job));
  ASSERT_TRUE(parsed.ok()) << parsed.error().text;
  EXPECT_EQ(parsed->input, job.input);
}

}  // namespace
}  // namespace taskcell::gateway
