// Plans applied to a directory that stands for "/", by whoever runs the test.
#include "probe/delegate/apply.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <fstream>

#include "launcher/base/text.h"
#include "launcher/sys/file.h"
#include "probe/delegate/record.h"

namespace taskcell::probe::delegate {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr uint32_t kUid = 1500;
const std::string kRecord = Text(kRecordDirectory, "/uid-1500.json");

class ApplyTest : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_NE(::mkdtemp(path_.data()), nullptr);
    for (const char* each : {"/var/lib", "/etc/systemd/system", "/cg"})
      fs::create_directories(path_ + each);
    machine_.root = sys::Open(path_, O_PATH | O_DIRECTORY).value();
    machine_.run = [this](const std::vector<std::string>& argv) -> Status {
      std::string line;
      for (const std::string& each : argv) line += Text(line.empty() ? "" : " ", each);
      ran_.push_back(line);
      if (argv.back() == "fails") return Error(Kind::kSystem, "it failed");
      if (argv[0] == "touch") Put(argv[1], "");
      if (argv[0] == "rm") fs::remove(path_ + argv[1]);
      return Ok();
    };
    plan_.user = {"agent1", kUid, kUid};
  }
  void TearDown() override { fs::remove_all(path_); }

  void Put(const std::string& path, std::string_view text) const {
    std::ofstream(path_ + path, std::ios::binary) << text;
  }
  // Every entry with its kind, mode, owner and bytes.
  std::vector<std::string> Listing() const {
    std::vector<std::string> lines;
    for (const fs::directory_entry& each : fs::recursive_directory_iterator(path_)) {
      struct stat info = {};
      EXPECT_EQ(::lstat(each.path().c_str(), &info), 0);
      std::string line = Text(each.path().string().substr(path_.size()), " ", info.st_mode, " ",
                              info.st_uid, ":", info.st_gid);
      if (each.is_regular_file() && !each.is_symlink()) {
        std::ifstream file(each.path());
        line += Text(" ", std::string(std::istreambuf_iterator<char>(file), {}));
      }
      lines.push_back(line);
    }
    std::sort(lines.begin(), lines.end());
    return lines;
  }
  void Step(std::vector<Change> changes) { plan_.steps.push_back({"a step", "so", changes}); }
  Reverted MustRevert(uint32_t uid = kUid) {
    Result<Reverted> reverted = Revert(uid, machine_);
    EXPECT_TRUE(reverted.ok()) << reverted.error().text;
    return reverted.ok() ? reverted.value() : Reverted{};
  }
  std::string Refusal() {
    Status applied = Apply(plan_, machine_);
    return applied.ok() ? "(not refused)" : applied.error().text;
  }

  std::string path_ = "/tmp/taskcell-apply-test-XXXXXX";
  Machine machine_;
  std::vector<std::string> ran_;
  Plan plan_;
};

const std::string kDropInDirectory = "/etc/systemd/system/user@1500.service.d";
const std::string kDropIn = kDropInDirectory + "/taskcell.conf";

std::vector<Change> DropIn() {
  return {MakeDirectory(kDropInDirectory), RunCommand({}, {"reload", "again"}),
          WriteFile(kDropIn, "[Service]\nDelegate=cpu\n", 0644), RunCommand({"reload"}, {})};
}

TEST_F(ApplyTest, WhatWasAppliedIsUndoneInReverse) {
  const std::vector<std::string> before = Listing();
  Step(DropIn());
  Step({RunCommand({"touch", "/cg/linger"}, {"rm", "/cg/linger"}, "/cg/linger")});
  ASSERT_TRUE(Apply(plan_, machine_).ok());
  EXPECT_THAT(ran_, ElementsAre("reload", "touch /cg/linger"));
  EXPECT_TRUE(fs::exists(path_ + kDropIn));
  struct stat info = {};
  ASSERT_EQ(::stat((path_ + kRecord).c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 07777U, 0600U);
  ran_.clear();
  Reverted reverted = MustRevert();
  EXPECT_TRUE(reverted.was_applied);
  EXPECT_THAT(reverted.left, IsEmpty());
  EXPECT_THAT(ran_, ElementsAre("rm /cg/linger", "reload again"));
  EXPECT_EQ(Listing(), before);
  EXPECT_FALSE(MustRevert().was_applied);
  EXPECT_EQ(Listing(), before);
}

TEST_F(ApplyTest, TwiceIsAsOnce) {
  const std::vector<std::string> before = Listing();
  Step(DropIn());
  ASSERT_TRUE(Apply(plan_, machine_).ok());
  const std::vector<std::string> once = Listing();
  ASSERT_TRUE(Apply(plan_, machine_).ok());
  EXPECT_EQ(Listing(), once);
  EXPECT_THAT(MustRevert().left, IsEmpty());
  EXPECT_EQ(Listing(), before);
}

TEST_F(ApplyTest, NothingToDoLeavesNoRecord) {
  const std::vector<std::string> before = Listing();
  ASSERT_TRUE(Apply(plan_, machine_).ok());
  EXPECT_EQ(Listing(), before);
}

TEST_F(ApplyTest, WhatWasThereBeforeIsPutBack) {
  fs::create_directories(path_ + kDropInDirectory);
  Put(kDropIn, "[Service]\nDelegate=pids\n# by hand\n");
  ASSERT_EQ(::chmod((path_ + kDropIn).c_str(), 0600), 0);
  const std::vector<std::string> before = Listing();
  Step(DropIn());
  ASSERT_TRUE(Apply(plan_, machine_).ok());
  EXPECT_NE(Listing(), before);
  EXPECT_THAT(MustRevert().left, IsEmpty());
  EXPECT_EQ(Listing(), before);
}

TEST_F(ApplyTest, AnApplyThatFailsHalfWayCanBeUndoneOrDoneAgain) {
  const std::vector<std::string> before = Listing();
  Step(DropIn());
  Step({RunCommand({"fails"}, {})});
  EXPECT_THAT(Refusal(), HasSubstr("a step: "));
  EXPECT_TRUE(fs::exists(path_ + kDropIn));
  plan_.steps.pop_back();
  ASSERT_TRUE(Apply(plan_, machine_).ok());
  EXPECT_THAT(MustRevert().left, IsEmpty());
  EXPECT_EQ(Listing(), before);
}

TEST_F(ApplyTest, ACommandThatHasNoEffectIsAFailure) {
  Step({RunCommand({"true"}, {}, "/cg/linger")});
  EXPECT_THAT(Refusal(), HasSubstr("/cg/linger is not as it was made just now"));
}

TEST_F(ApplyTest, WhatSomebodyChangedSinceIsLeftAndNamed) {
  Step(DropIn());
  ASSERT_TRUE(Apply(plan_, machine_).ok());
  Put(kDropIn, "[Service]\nDelegate=no\n");
  Reverted reverted = MustRevert();
  EXPECT_THAT(reverted.left, ElementsAre(HasSubstr("taskcell.conf: its text was changed since"),
                                         HasSubstr("it is in use: taskcell.conf")));
  // Once that is out of the way the rest goes too.
  fs::remove(path_ + kDropIn);
  EXPECT_THAT(MustRevert().left, IsEmpty());
  EXPECT_FALSE(fs::exists(path_ + kDropInDirectory));
  EXPECT_FALSE(fs::exists(path_ + std::string(kRecordDirectory)));
}

TEST_F(ApplyTest, ADirectoryInUseIsLeftAndNamed) {
  Step({MakeDirectory("/cg/taskcell"), MakeDirectory("/cg/taskcell/uid-1500", kUid)});
  ASSERT_TRUE(Apply(plan_, machine_).ok());
  fs::create_directory(path_ + "/cg/taskcell/uid-1500/run-1");
  EXPECT_THAT(MustRevert().left, ElementsAre("/cg/taskcell/uid-1500: it is in use: run-1",
                                             "/cg/taskcell: it is in use: uid-1500"));
  fs::remove(path_ + "/cg/taskcell/uid-1500/run-1");
  EXPECT_THAT(MustRevert().left, IsEmpty());
  EXPECT_FALSE(fs::exists(path_ + "/cg/taskcell"));
}

TEST_F(ApplyTest, WhatUsersShareGoesWithTheLastOfThem) {
  const std::vector<std::string> before = Listing();
  auto plan_for = [](uint32_t uid) {
    Plan plan;
    plan.user = {Text("u", uid), uid, uid};
    plan.steps.push_back(
        {"a step",
         "so",
         {MakeDirectory("/cg/taskcell"), MakeDirectory(Text("/cg/taskcell/uid-", uid), uid)}});
    return plan;
  };
  ASSERT_TRUE(Apply(plan_for(1), machine_).ok());
  ASSERT_TRUE(Apply(plan_for(2), machine_).ok());
  EXPECT_THAT(MustRevert(1).left, IsEmpty());
  EXPECT_TRUE(fs::exists(path_ + "/cg/taskcell/uid-2"));
  EXPECT_THAT(MustRevert(2).left, IsEmpty());
  EXPECT_EQ(Listing(), before);
}

TEST_F(ApplyTest, LinksAreNotFollowed) {
  fs::create_directory(path_ + "/elsewhere");
  Put("/elsewhere/secret", "precious");
  const std::string link_directory = path_ + kDropInDirectory;
  fs::create_directory_symlink("../../../elsewhere", link_directory);
  const std::vector<std::string> before = Listing();
  Step(DropIn());
  EXPECT_THAT(Refusal(), HasSubstr("symbolic link"));
  EXPECT_EQ(Listing(), before);
  fs::remove(link_directory);
  fs::create_directory(link_directory);
  fs::create_symlink("/elsewhere/secret", path_ + kDropIn);
  const std::vector<std::string> with_link = Listing();
  EXPECT_THAT(Refusal(), HasSubstr("symbolic link"));
  EXPECT_EQ(Listing(), with_link);
}

TEST_F(ApplyTest, APlaceThatOthersMayWriteIsRefused) {
  fs::create_directory(path_ + "/cg/taskcell");
  ASSERT_EQ(::chmod((path_ + "/cg/taskcell").c_str(), 0777), 0);
  Step({MakeDirectory("/cg/taskcell"), MakeDirectory("/cg/taskcell/uid-1500", kUid)});
  EXPECT_THAT(Refusal(), HasSubstr("may be written by others: remove it first"));
  EXPECT_FALSE(fs::exists(path_ + "/cg/taskcell/uid-1500"));
}

TEST_F(ApplyTest, ADirectoryIsOpenToAllWhateverTheUmask) {
  mode_t old = ::umask(0077);
  Step({MakeDirectory("/cg/taskcell")});
  EXPECT_TRUE(Apply(plan_, machine_).ok());
  ::umask(old);
  struct stat info = {};
  ASSERT_EQ(::stat((path_ + "/cg/taskcell").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 07777U, 0755U);
}

TEST_F(ApplyTest, BytesThatCouldNotBePutBackAreNotReplaced) {
  fs::create_directories(path_ + kDropInDirectory);
  Put(kDropIn, "\xff\xfe");
  Step(DropIn());
  EXPECT_THAT(Refusal(), HasSubstr("could not be put back"));
  EXPECT_FALSE(fs::exists(path_ + std::string(kRecordDirectory)));
}

// Whoever can edit the record could have root remove or write what they please.
TEST_F(ApplyTest, ARecordThatOthersCouldHaveWrittenIsNotBelieved) {
  Step(DropIn());
  ASSERT_TRUE(Apply(plan_, machine_).ok());
  auto refused = [this] {
    Result<Reverted> reverted = Revert(kUid, machine_);
    return reverted.ok() ? "(not refused)" : reverted.error().text;
  };
  ASSERT_EQ(::chmod((path_ + kRecord).c_str(), 0620), 0);
  EXPECT_THAT(refused(), HasSubstr("may be written by others"));
  ASSERT_EQ(::chmod((path_ + kRecord).c_str(), 0600), 0);
  if (::geteuid() == 0) {
    ASSERT_EQ(::chown((path_ + kRecord).c_str(), kUid, kUid), 0);
    EXPECT_THAT(refused(), HasSubstr("belongs to uid 1500"));
    ASSERT_EQ(::chown((path_ + kRecord).c_str(), 0, 0), 0);
  }
  fs::rename(path_ + kRecord, path_ + "/cg/r.json");
  fs::create_symlink("/cg/r.json", path_ + kRecord);
  EXPECT_NE(refused(), "(not refused)");
  fs::remove(path_ + kRecord);
  fs::rename(path_ + "/cg/r.json", path_ + kRecord);
  const std::string directory = path_ + std::string(kRecordDirectory);
  ASSERT_EQ(::chmod(directory.c_str(), 0777), 0);
  EXPECT_THAT(refused(), HasSubstr("may be written by others"));
  ASSERT_EQ(::chmod(directory.c_str(), 0700), 0);
  EXPECT_TRUE(fs::exists(path_ + kDropIn));
  EXPECT_THAT(MustRevert().left, IsEmpty());
}

TEST_F(ApplyTest, OneAtATime) {
  Result<RecordStore> holder = RecordStore::Open(machine_.root.get());
  ASSERT_TRUE(holder.ok());
  Step(DropIn());
  EXPECT_THAT(Refusal(), HasSubstr("another taskcell-probe delegate is at work"));
}

TEST(RecordTest, IsReadAsItWasWritten) {
  Record record{{"a \"b\"\n\xc3\xa4", 7, 8}, DropIn()};
  record.changes[2].before = {true, "old\n\ttext\x01", 0100640, 1, 2};
  Result<Record> read = ParseRecord(ToJson(record));
  ASSERT_TRUE(read.ok()) << read.error().text;
  EXPECT_EQ(ToJson(read.value()), ToJson(record));
  EXPECT_EQ(read->changes[2].before.text, "old\n\ttext\x01");
  EXPECT_EQ(read->user.name, record.user.name);
}

TEST(RecordTest, AnythingElseIsAViolation) {
  const std::string good = ToJson({{"u", 7, 8}, {MakeDirectory("/x")}});
  ASSERT_TRUE(ParseRecord(good).ok());
  auto with = [&](std::string_view from, std::string_view to) {
    std::string text = good;
    text.replace(text.find(from), from.size(), to);
    return ParseRecord(text);
  };
  for (const Result<Record>& each :
       {ParseRecord(""), ParseRecord("{}"), ParseRecord(good + "x"), with("\"directory\"", "\"d\""),
        with("\"/x\"", "\"x\""), with("\"uid\":7", "\"uid\":0"), with("\"before\"", "\"b\""),
        with("\"command\":[]", "\"command\":[1]")}) {
    ASSERT_FALSE(each.ok());
    EXPECT_EQ(each.error().kind, Kind::kViolation) << each.error().text;
  }
}

}  // namespace
}  // namespace taskcell::probe::delegate
