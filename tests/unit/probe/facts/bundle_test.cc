#include "probe/facts/bundle.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cerrno>

#include "launcher/base/text.h"
#include "probe/tar/tar_writer.h"
#include "tests/support/memory_host.h"

namespace taskcell::probe {
namespace {

using testing::HasSubstr;

std::string Refusal(std::string_view archive) {
  auto bundle = ReadBundle(archive);
  return bundle.ok() ? "read" : bundle.error().text;
}

// An archive of the entries given, in their order.
std::string Archive(const std::vector<std::pair<std::string, std::string>>& entries) {
  TarWriter tar;
  for (const auto& [path, text] : entries) EXPECT_TRUE(tar.AddFile(path, 0100600, text).ok());
  return std::move(tar).Finish();
}

const std::string kAbout = "taskcell/about.json";
const std::string kGoodAbout = R"({"format":1,"program":"1.0","trials":false})";

TEST(EntryNameTest, GoesThereAndBack) {
  const std::pair<RecordKey, int> kKeys[] = {
      {{Question::kRead, "/proc/self/cgroup"}, 0},
      {{Question::kRead, "/etc/subuid"}, EACCES},
      {{Question::kLook, "/"}, 0},
      {{Question::kLook, "/%2F"}, ENOENT},
      {{Question::kList, "/a/../.."}, 0},
      {{Question::kList, "/./...//x"}, 0},
      {{Question::kLink, std::string("/\0\n\x1b[m\xff %", 10)}, 0},
      {{Question::kCapability, "/\xe2\x82\xac/" + std::string(3000, '\x80')}, ENODATA},
  };
  for (const auto& [key, err] : kKeys) {
    std::string name = EntryName(key, err);
    EXPECT_TRUE(IsArchivePath(name) || key.path.find("//") != key.path.npos) << name;
    for (char c : name) EXPECT_TRUE(c > ' ' && c < '\x7f');
    auto meaning = ParseEntryName(name);
    ASSERT_TRUE(meaning.has_value()) << name;
    EXPECT_EQ(meaning->key, key);
    EXPECT_EQ(meaning->err, err);
  }
  EXPECT_EQ(EntryName({Question::kRead, "/etc/a b"}, EACCES), "read.EACCES/etc/a%20b");
  EXPECT_EQ(EntryName({Question::kLook, "/.."}, 0), "look/%2E%2E");
}

TEST(EntryNameTest, OtherSpellingsAreNone) {
  for (const char* name :
       {"", "read", "write/x", "read./x", "read.ENOTHING/x", "read.2/x", "read/%2f", "read/%61",
        "read/a%", "read/a%4", "read/a%ZZ", "read/a b", "read/a%2Fb", "read/%2Fb", "Read/x"})
    EXPECT_FALSE(ParseEntryName(name).has_value()) << name;
  EXPECT_TRUE(ParseEntryName("look/" + std::string(4094, 'a')).has_value());
  EXPECT_FALSE(ParseEntryName("look/" + std::string(4095, 'a')).has_value());
}

Bundle BundleOf(sys::FileTree& host, const std::vector<std::string>& paths) {
  RecordingTree tree(host);
  for (const std::string& path : paths) {
    (void)tree.Read(path, 1U << 20U);
    (void)tree.Look(path);
  }
  Bundle bundle;
  bundle.record = tree.record();
  return bundle;
}

TEST(BundleTest, EverythingSurvivesTheTrip) {
  test::MemoryHost host;
  host.Put("/sys/fs/cgroup/memory.max", "max\n", 4'000'000'000, 0644);
  host.Put("/sys/fs/cgroup/pids.max", "");
  host.Forbid("/sys/fs/cgroup/pids.max", EACCES);
  host.Socket("/run/docker.sock", 0, 0660);
  host.Directory("/run/user/1500", 1500, 0700);
  Bundle bundle = BundleOf(host, {"/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/pids.max",
                                  "/run/docker.sock", "/run/user/1500", "/etc/subuid"});
  bundle.program = "0.1.0";
  bundle.collector = 1500;
  bundle.request.user = "agent1";
  bundle.request.subject.uid = 1500;
  bundle.request.subject.user_manager = true;
  bundle.live = LiveFacts{};
  bundle.live->engine_socket = "/run/docker.sock";
  Bundle read = ReadBundle(WriteBundle(bundle).value()).value();
  EXPECT_EQ(read.program, "0.1.0");
  EXPECT_EQ(read.collector, 1500U);
  EXPECT_EQ(read.request.user, "agent1");
  EXPECT_EQ(read.request.subject.uid, 1500U);
  EXPECT_TRUE(read.request.subject.user_manager);
  EXPECT_EQ(ToJson(*read.live), ToJson(*bundle.live));
  ASSERT_EQ(read.record.size(), bundle.record.size());
  for (const auto& [key, answer] : bundle.record) {
    const sys::FileSeen& got = read.record.at(key).seen;
    const sys::FileSeen& want = answer.seen;
    EXPECT_EQ(std::tuple(got.state, got.err, got.owner_known, got.uid, got.gid, got.mode, got.text),
              std::tuple(want.state, want.err, want.owner_known, want.uid, want.gid, want.mode,
                         want.text))
        << key.path;
  }
  EXPECT_EQ(WriteBundle(read).value(), WriteBundle(bundle).value());
}

// What a cgroup may be called, and what a forged /proc/self/cgroup may hold.
TEST(BundleTest, HostileNamesSurviveTheTrip) {
  const std::vector<std::string> kNames = {"/sys/fs/cgroup/../../etc/passwd",
                                           "/..",
                                           "/.",
                                           "/",
                                           "/a\nb\x1b]0;x\x07",
                                           "/\xff\xfe",
                                           "/%2E%2E",
                                           "/read.ENOENT/x",
                                           "/taskcell/about.json",
                                           "/" + std::string(4000, '\x01'),
                                           "/-rf *",
                                           std::string("/nul\0byte", 9)};
  test::MemoryHost host;
  for (const std::string& name : kNames) host.Directory(name, 7);
  Bundle bundle = BundleOf(host, kNames);
  RecordedTree read(ReadBundle(WriteBundle(bundle).value()).value().record);
  for (const std::string& name : kNames) {
    EXPECT_EQ(read.Look(name).uid, 7U) << Printable(name.substr(0, 60));
    EXPECT_EQ(read.Read(name, 1).err, EISDIR);
  }
  EXPECT_TRUE(read.missed().empty());
}

TEST(BundleTest, BoundOfEntriesIsExact) {
  Bundle bundle;
  for (std::size_t i = 0; i + 2 < kMaxBundleEntries; ++i)
    bundle.record[{Question::kLook, Text("/", i)}] = {};
  bundle.live = LiveFacts{};
  EXPECT_EQ(Refusal(WriteBundle(bundle).value()), "read");
  bundle.record[{Question::kLook, "/more"}] = {};
  EXPECT_FALSE(WriteBundle(bundle).ok());
}

TEST(BundleTest, BoundOfBytesIsExact) {
  constexpr std::size_t kBlock = 512;
  Bundle bundle;
  std::size_t without = WriteBundle(bundle).value().size();
  Answer& answer = bundle.record[{Question::kLink, "/x"}];
  answer.text.assign(kMaxBundleBytes - without - kBlock, 'x');
  std::string archive = WriteBundle(bundle).value();
  EXPECT_EQ(archive.size(), kMaxBundleBytes);
  EXPECT_EQ(Refusal(archive), "read");
  EXPECT_THAT(Refusal(archive + std::string(1, '\0')), HasSubstr("has more than 33554432 bytes"));
  answer.text += 'x';
  EXPECT_FALSE(WriteBundle(bundle).ok());
}

TEST(BundleTest, WhatIsNoBundleIsRefusedWithItsReason) {
  EXPECT_EQ(Refusal(Archive({{kAbout, kGoodAbout}})), "read");
  EXPECT_THAT(Refusal(""), HasSubstr("cut short"));
  EXPECT_THAT(Refusal(std::string(4096, 'x')), HasSubstr("no archive"));
  EXPECT_THAT(Refusal(Archive({})), HasSubstr("not made by taskcell-probe collect"));
  EXPECT_THAT(Refusal(Archive({{"look/x", ""}, {kAbout, kGoodAbout}})),
              HasSubstr("not made by taskcell-probe collect"));
  EXPECT_THAT(Refusal(Archive({{kAbout, "{"}})), HasSubstr(kAbout));
  EXPECT_THAT(Refusal(Archive({{kAbout, "{}"}})), HasSubstr("names no format"));
  EXPECT_THAT(Refusal(Archive({{kAbout, kGoodAbout}, {"etc/passwd", ""}})),
              HasSubstr("'etc/passwd' is no entry"));
  EXPECT_THAT(Refusal(Archive({{kAbout, kGoodAbout}, {"read/x", ""}, {"read.EACCES/x", ""}})),
              HasSubstr("two answers about '/x'"));
}

TEST(BundleTest, NewerFormatIsNamedWithItsProgram) {
  auto bundle = ReadBundle(Archive({{kAbout, R"({"format":2,"program":"9\u001b"})"}}));
  ASSERT_FALSE(bundle.ok());
  EXPECT_EQ(bundle.error().kind, Kind::kUnsupported);
  EXPECT_THAT(bundle.error().text, HasSubstr("format 2"));
  EXPECT_THAT(bundle.error().text, HasSubstr("(9\\x1b)"));
}

TEST(BundleTest, TrialsAreThereExactlyWhereTheyMustBe) {
  const std::string kTrials = "taskcell/trials.json";
  const std::string kWith = R"({"format":1,"trials":true})";
  EXPECT_EQ(Refusal(Archive({{kAbout, kWith}, {kTrials, "{}"}})), "read");
  EXPECT_THAT(Refusal(Archive({{kAbout, kWith}})), HasSubstr("trials.json is missing"));
  EXPECT_THAT(Refusal(Archive({{kAbout, kGoodAbout}, {kTrials, "{}"}})),
              HasSubstr("should not be there"));
  EXPECT_THAT(Refusal(Archive({{kAbout, kWith}, {kTrials, "[]"}})), HasSubstr(kTrials));
}

}  // namespace
}  // namespace taskcell::probe
