#include "probe/tar/tar_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "launcher/base/text.h"
#include "probe/tar/tar_format.h"
#include "probe/tar/tar_writer.h"
#include "tests/support/fixture.h"

namespace taskcell::probe {
namespace {

using testing::HasSubstr;

constexpr std::size_t kMany = 100;
constexpr std::size_t kBlock = tar::kBlockBytes;

TarEntry Entry(std::string path, std::string_view content = "") {
  TarEntry entry;
  entry.path = std::move(path);
  entry.mode = 0100640;
  entry.content = content;
  return entry;
}

std::string ArchiveOf(const std::vector<TarEntry>& entries) {
  TarWriter writer;
  for (const TarEntry& entry : entries) EXPECT_TRUE(writer.Add(entry).ok()) << entry.path;
  return std::move(writer).Finish();
}

std::string Refusal(std::string_view archive, std::size_t max_entries = kMany) {
  auto entries = ReadTar(archive, max_entries);
  return entries.ok() ? "read" : entries.error().text;
}

// `archive` with one field of its first header replaced, and the checksum right again.
std::string With(std::string archive, tar::Field field, std::string_view bytes) {
  tar::Block block;
  archive.replace(field.offset, bytes.size(), bytes);
  std::copy_n(archive.begin(), block.size(), block.begin());
  uint64_t sum = tar::ChecksumOf(block);
  for (std::size_t at = 6; at-- > 0; sum >>= 3U)
    archive[tar::kChecksum.offset + at] = static_cast<char>('0' + (sum & 7U));
  return archive;
}

TEST(TarReaderTest, GivesBackWhatWasWritten) {
  std::string block(kBlock, 'x');
  TarEntry owned = Entry("read/etc/x y\n%", "text");
  owned.uid = 1500;
  owned.gid = 07777777;
  owned.device_major = 8;
  owned.device_minor = (1U << 20U) - 1;
  TarEntry high = Entry("high", block);
  high.uid = 010000000;
  high.gid = UINT32_MAX;
  std::vector<TarEntry> in = {owned, Entry("empty"), high, Entry(std::string(100, 'a')),
                              Entry("p/" + std::string(99, 'b'), "1")};
  std::string archive = ArchiveOf(in);
  auto out = ReadTar(archive, in.size());
  ASSERT_TRUE(out.ok()) << out.error().text;
  ASSERT_EQ(out->size(), in.size());
  for (std::size_t i = 0; i < in.size(); ++i) {
    const TarEntry& entry = out.value()[i];
    EXPECT_EQ(entry.path, in[i].path);
    EXPECT_EQ(entry.content, in[i].content);
    EXPECT_EQ(std::tuple(entry.mode, entry.uid, entry.gid, entry.device_major, entry.device_minor),
              std::tuple(in[i].mode, in[i].uid, in[i].gid, in[i].device_major, in[i].device_minor));
  }
}

TEST(TarReaderTest, OtherProgramsReadTheLongOnesToo) {
  TarEntry entry = Entry("d/" + std::string(300, 'n'), "text\n");
  entry.uid = 4'000'000'000;
  std::string path = testing::TempDir() + "tar_reader_test.tar";
  std::ofstream(path, std::ios::binary) << ArchiveOf({entry});
  test::Outcome listed = test::Run({"tar", "--numeric-owner", "-tvf", path});
  EXPECT_EQ(listed.err, "");
  EXPECT_THAT(listed.out, HasSubstr("4000000000/0"));
  EXPECT_THAT(listed.out, HasSubstr(entry.path + "\n"));
  EXPECT_EQ(test::Run({"tar", "-xOf", path, entry.path}).out, "text\n");
  std::filesystem::remove(path);
}

TEST(TarReaderTest, BoundsAreExact) {
  std::string longest = "a/" + std::string(kMaxTarPathBytes - 2, 'n');
  std::string archive = ArchiveOf({Entry(longest, "x"), Entry("second")});
  EXPECT_EQ(ReadTar(archive, 2).value()[0].path, longest);
  EXPECT_THAT(Refusal(archive, 1), HasSubstr("more than 1 entries"));
  TarWriter writer;
  EXPECT_FALSE(writer.Add(Entry(longest + "n")).ok());
  // As a writer without that bound would write it.
  std::string record = Text(kMaxTarPathBytes + 13, " path=", longest, "n\n");
  ASSERT_EQ(record.size(), kMaxTarPathBytes + 13);
  std::string over = With(ArchiveOf({Entry("x", record)}), tar::kType, "x");
  over.resize(over.size() - 2 * kBlock);
  EXPECT_THAT(Refusal(over + ArchiveOf({Entry("y")})), HasSubstr("too long"));
}

TEST(TarReaderTest, CutShortAnywhereIsRefused) {
  std::string archive = ArchiveOf({Entry("a", "text"), Entry(std::string(200, 'b'), "more")});
  EXPECT_EQ(Refusal(archive), "read");
  for (std::size_t size = 0; size < archive.size(); ++size)
    EXPECT_NE(Refusal(std::string_view(archive).substr(0, size)), "read") << size;
  EXPECT_THAT(Refusal(archive.substr(0, kBlock)), HasSubstr("cut short"));
}

TEST(TarReaderTest, WhatIsNoArchiveOfOursIsNamed) {
  std::string archive = ArchiveOf({Entry("a", "text")});
  EXPECT_THAT(Refusal(std::string(2 * kBlock, 'x')), HasSubstr("no archive"));
  EXPECT_THAT(Refusal(archive + "x"), HasSubstr("something follows"));
  EXPECT_EQ(Refusal(archive + std::string(10 * kBlock, '\0')), "read");
  std::string damaged = archive;
  damaged[tar::kMode.offset + 5] = '7';
  EXPECT_THAT(Refusal(damaged), HasSubstr("checksum"));
  for (std::string_view path : {"/etc/passwd", "..", "a/../b", "a//b", "./a", "a/", ""}) {
    std::string name(path);
    name.resize(tar::kNameBytes, '\0');
    EXPECT_THAT(Refusal(With(archive, tar::kName, name)), HasSubstr("leads upwards")) << path;
  }
  EXPECT_THAT(Refusal(With(archive, tar::kPrefix, "b")), HasSubstr("leads upwards"));
  for (char type : std::string_view("1234567LKgS\0", 12))
    EXPECT_THAT(Refusal(With(archive, tar::kType, {&type, 1})), HasSubstr("no regular file"))
        << type;
  EXPECT_THAT(Refusal(With(archive, tar::kSize, "77777777777")), HasSubstr("cut short"));
  EXPECT_THAT(Refusal(With(archive, tar::kSize, "-0000000001")), HasSubstr("no number"));
  EXPECT_THAT(Refusal(With(archive, tar::kUid, "\x80")), HasSubstr("no numbers"));
  EXPECT_THAT(Refusal(ArchiveOf({Entry("a"), Entry("b"), Entry("a")})),
              HasSubstr("'a' comes twice"));
}

TEST(TarReaderTest, ExtendedHeadersHoldOnlyWhatTheWriterPuts) {
  auto after = [](std::string_view records) {
    std::string archive = With(ArchiveOf({Entry("x", records)}), tar::kType, "x");
    archive.resize(archive.size() - 2 * kBlock);
    return archive + ArchiveOf({Entry("y")});
  };
  EXPECT_EQ(ReadTar(after("11 path=ab\n"), 1).value()[0].path, "ab");
  EXPECT_THAT(Refusal(after("12 path=/ab\n")), HasSubstr("absolute"));
  EXPECT_THAT(Refusal(after("11 path=ab\n11 path=ab\n")), HasSubstr("comes twice"));
  EXPECT_THAT(Refusal(after("18 linkpath=/etc/x\n")), HasSubstr("malformed"));
  EXPECT_THAT(Refusal(after("19 linkpath=/etc/x\n")), HasSubstr("'linkpath'"));
  EXPECT_THAT(Refusal(after("18 uid=4294967296\n")), HasSubstr("'uid'"));
  for (std::string_view records : {"0 a=b\n", "7 a=b\n", "999 a=b\n", "6 a=bc", "a=b\n", "5 ab\n"})
    EXPECT_THAT(Refusal(after(records)), HasSubstr("malformed")) << records;
  std::string alone = With(ArchiveOf({Entry("x", "8 uid=5\n")}), tar::kType, "x");
  EXPECT_THAT(Refusal(alone), HasSubstr("not followed"));
  alone.resize(alone.size() - 2 * kBlock);
  EXPECT_THAT(Refusal(alone + alone), HasSubstr("not followed"));
}

}  // namespace
}  // namespace taskcell::probe
