// What init sends of what a job left behind.
#include "launcher/cell/export.h"

#include <gtest/gtest.h>

#include <map>
#include <string>

#include "launcher/base/text.h"
#include "launcher/cell/gate_protocol.h"
#include "tests/integration/launcher/init/init_cell.h"

namespace taskcell::test {
namespace {

using cell::FrameType;

struct Exported {
  std::map<std::string, std::string> files;
  std::optional<cell::ExportEnd> end;
};

// Runs `script` and takes what it left.
Exported ExportOf(const std::string& script) {
  InitCell cell;
  (void)cell.Attestation();
  EXPECT_TRUE(cell.Start(Shell(script)));
  InitCell::Output output = cell.Finish();
  EXPECT_TRUE(output.exit.has_value());
  EXPECT_EQ(output.err, "");
  cell.Send(FrameType::kExport);
  Exported exported;
  std::string path;
  while (std::optional<cell::FrameReader::Message> message = cell.Next()) {
    if (message->type == FrameType::kExportFile) {
      path = cell::ParseExportFile(message->payload).value().path;
      exported.files[path];
    } else if (message->type == FrameType::kExportBytes) {
      exported.files[path] += message->payload;
    } else {
      EXPECT_EQ(message->type, FrameType::kExportEnd);
      exported.end = cell::ParseExportEnd(message->payload).value();
      break;
    }
  }
  cell.Send(FrameType::kDone);
  EXPECT_EQ(cell.Wait(), 0);
  return exported;
}

TEST(ExportTest, RegularFilesOfOneNameAreSentAndNothingElse) {
  const Exported exported = ExportOf(
      "mkdir -p out/sub && cd out && printf one >one && printf two >sub/two && : >empty && "
      "head -c 200000 /dev/zero >large && ln -s one link && ln -s / root && printf x >hard && "
      "ln hard hard2 && mkfifo fifo && chmod 0711 one && ln -s /etc sub/etc");
  ASSERT_TRUE(exported.end.has_value());
  EXPECT_TRUE(exported.end->is_complete) << exported.end->text;
  EXPECT_EQ(exported.end->left_out, 6U) << "three links, two names of one file, a FIFO";
  EXPECT_EQ(exported.files.size(), 4U);
  EXPECT_EQ(exported.files.at("one"), "one");
  EXPECT_EQ(exported.files.at("sub/two"), "two");
  EXPECT_EQ(exported.files.at("empty"), "");
  EXPECT_EQ(exported.files.at("large"), std::string(200000, '\0'));
}

TEST(ExportTest, WithoutTheDirectoryNothingIsSentAndThatIsAll) {
  for (const char* script : {"true", "mkdir out"}) {
    const Exported exported = ExportOf(script);
    ASSERT_TRUE(exported.end.has_value());
    EXPECT_TRUE(exported.end->is_complete);
    EXPECT_TRUE(exported.files.empty());
  }
}

TEST(ExportTest, ALinkInPlaceOfTheDirectoryIsNotFollowed) {
  const Exported exported = ExportOf("ln -s /etc out");
  ASSERT_TRUE(exported.end.has_value());
  EXPECT_FALSE(exported.end->is_complete);
  EXPECT_TRUE(exported.files.empty());
}

TEST(ExportTest, WhatIsAboveABoundOrCannotBeReadIsNoWholeExport) {
  for (const auto& [script, why] : std::initializer_list<std::pair<std::string, const char*>>{
           {Text("mkdir out; cd out; i=0; while [ $i -le ", cell::kMaxExportFiles,
                 " ]; do : >f$i; i=$((i+1)); done"),
            "more than 1000 files"},
           {Text("mkdir out; truncate -s ", cell::kMaxExportBytes + 1, " out/f"), "bytes"},
           {"mkdir -p out/1/2/3/4/5/6/7/8; : >out/1/2/3/4/5/6/7/8/f", "levels"},
           {"mkdir out; : >\"out/$(printf 'a\\nb')\"", "control byte"},
           {"mkdir out; : >\"out/$(printf 'a\\377b')\"", "UTF-8"},
           {"mkdir out; : >out/f; chmod 0 out/f", "denied"}}) {
    const Exported exported = ExportOf(script);
    ASSERT_TRUE(exported.end.has_value()) << script;
    EXPECT_FALSE(exported.end->is_complete) << script;
    EXPECT_NE(exported.end->text.find(why), std::string::npos) << exported.end->text;
  }
}

TEST(ExportTest, AtTheBoundsAllIsSent) {
  const Exported exported = ExportOf(
      Text("mkdir -p out/1/2/3/4/5/6/7; : >out/1/2/3/4/5/6/7/f; cd out; i=1; while [ $i -lt ",
           cell::kMaxExportFiles, " ]; do : >f$i; i=$((i+1)); done"));
  ASSERT_TRUE(exported.end.has_value());
  EXPECT_TRUE(exported.end->is_complete) << exported.end->text;
  EXPECT_EQ(exported.files.size(), cell::kMaxExportFiles);
}

// No process of the job is left that could change what is read.
TEST(ExportTest, ItIsAskedForOnceAndNotBeforeTheJobHasEnded) {
  {
    InitCell cell;
    (void)cell.Attestation();
    ASSERT_TRUE(cell.Start(Shell("sleep 1000")));
    cell.Send(FrameType::kExport);
    EXPECT_EQ(cell.Wait(), 125) << "against the protocol";
  }
  InitCell cell;
  (void)cell.Attestation();
  ASSERT_TRUE(cell.Start(Shell("mkdir out; setsid sh -c 'while :; do date >out/f; done' & true")));
  ASSERT_TRUE(cell.Finish().exit.has_value());
  cell.Send(FrameType::kExport);
  std::optional<cell::FrameReader::Message> message;
  do message = cell.Next();
  while (message.has_value() && message->type != FrameType::kExportEnd);
  ASSERT_TRUE(message.has_value());
  EXPECT_TRUE(cell::ParseExportEnd(message->payload)->is_complete);
  cell.Send(FrameType::kExport);
  EXPECT_EQ(cell.Wait(), 125) << "twice";
}

}  // namespace
}  // namespace taskcell::test
