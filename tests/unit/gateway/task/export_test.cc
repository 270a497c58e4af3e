#include "gateway/task/export.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <csignal>
#include <filesystem>
#include <functional>
#include <thread>

#include "gateway/ledger/digest.h"
#include "launcher/base/text.h"
#include "launcher/sys/poll.h"
#include "launcher/sys/socket.h"
#include "tests/support/temp_directory.h"

namespace taskcell::gateway {
namespace {

using cell::FrameType;
namespace fs = std::filesystem;

const std::string kRun(32, 'a');

// Plays init, as honest or as hostile as a test wants.
class Peer {
 public:
  explicit Peer(UniqueFd fd) : fd_(std::move(fd)) {}

  void Send(FrameType type, std::string_view payload) {
    // ignoring: a gate that was closed for what came before
    (void)writer_.Write(
        type, payload, [&](std::string_view packet) { return sys::SendPacket(fd_.get(), packet); });
  }
  void File(const std::string& path, std::string_view content) {
    Announce(path, content.size());
    for (; !content.empty(); content.remove_prefix(std::min(content.size(), kPart)))
      Send(FrameType::kExportBytes, content.substr(0, kPart));
  }
  void Announce(const std::string& path, uint64_t bytes) {
    Send(FrameType::kExportFile, cell::EncodeExportFile({path, bytes}));
  }
  void Leave() { fd_.Reset(); }
  void End(uint32_t left_out = 0) {
    Send(FrameType::kExportEnd, cell::EncodeExportEnd({true, left_out, ""}));
  }

 private:
  static constexpr std::size_t kPart = 1000;
  UniqueFd fd_;
  cell::FrameWriter writer_;
};

class TakeExportTest : public testing::Test {
 protected:
  void SetUp() override { ASSERT_EQ(::chmod(directory_.path().c_str(), 0700), 0); }

  ExportSummary Take(const std::function<void(Peer&)>& speak) {
    auto pair = sys::MakePacketPair().value();
    gate::GateHost host = gate::GateHost::Open(std::move(pair.first)).value();
    Peer peer(std::move(pair.second));
    std::thread speaker([&] { speak(peer); });
    const Home home = OpenHome(directory_.path()).value();
    const ExportSummary summary = TakeExport(host, home, kRun);
    // So that a speaker whose gate was not closed yet does not wait for room in it.
    (void)host.Done();
    speaker.join();
    return summary;
  }
  // All that is below exports/.
  std::vector<std::string> Left() const {
    std::vector<std::string> names;
    for (const auto& entry : fs::recursive_directory_iterator(directory_.At("exports")))
      names.push_back(fs::relative(entry.path(), directory_.At("exports")));
    std::sort(names.begin(), names.end());
    return names;
  }

  test::TempDirectory directory_{"export"};
};

TEST_F(TakeExportTest, AWholeExportAppearsWithItsManifestAndNothingExecutable) {
  const std::string large(100000, 'x');
  const ExportSummary summary = Take([&](Peer& peer) {
    peer.File("a", "one");
    peer.File("sub/deep/b", large);
    peer.File("empty", "");
    peer.End(2);
  });
  EXPECT_EQ(summary.why, "");
  EXPECT_EQ(summary.files, 3U);
  EXPECT_EQ(summary.bytes, 100003U);
  EXPECT_EQ(summary.left_out, 2U);
  EXPECT_EQ(summary.path, directory_.At("exports/" + kRun));
  const std::string top = "exports/" + kRun;
  EXPECT_EQ(directory_.Get(top + "/files/a"), "one");
  EXPECT_EQ(directory_.Get(top + "/files/sub/deep/b"), large);
  EXPECT_EQ(directory_.Get(top + "/files/empty"), "");
  const std::string manifest = directory_.Get(top + "/manifest.json");
  EXPECT_NE(manifest.find(Text(R"({"path":"sub/deep/b","bytes":100000,"sha256":")",
                               Hex(DigestOf(large)), "\"}")),
            std::string::npos)
      << manifest;
  EXPECT_EQ(summary.manifest_digest, Hex(DigestOf(manifest)));
  for (const auto& entry : fs::recursive_directory_iterator(directory_.At("exports"))) {
    const auto mode = static_cast<unsigned>(entry.status().permissions());
    EXPECT_EQ(mode, entry.is_directory() ? 0700U : 0600U) << entry.path();
  }
  EXPECT_NE(ExportJson(summary).find("\"outcome\":\"complete\""), std::string::npos);
}

TEST_F(TakeExportTest, WithoutFilesThereIsNoDirectory) {
  const ExportSummary summary = Take([](Peer& peer) { peer.End(); });
  EXPECT_EQ(summary.why, "");
  EXPECT_EQ(summary.path, "");
  EXPECT_TRUE(Left().empty());
}

// Each row is one thing that no honest init does, or one that says it could not go on.
TEST_F(TakeExportTest, WhateverTheCellTriesNothingHalfAndNothingElsewhereIsLeft) {
  struct Row {
    const char* what;
    std::function<void(Peer&)> speak;
  };
  auto path = [](std::string name) {
    return [name](Peer& peer) {
      peer.File("first", "x");
      peer.File(name, "x");
      peer.End();
    };
  };
  std::string deep = "d";
  for (std::size_t i = 1; i <= cell::kMaxExportDepth; ++i) deep += "/d";
  const std::vector<Row> rows = {
      {"parent", path("../evil")},
      {"parent inside", path("a/../../evil")},
      {"absolute", path("/tmp/evil")},
      {"dot", path("a/./b")},
      {"empty name", path("a//b")},
      {"nothing", path("")},
      {"slash at the end", path("a/")},
      {"NUL", path(std::string("a\0b", 3))},
      {"newline", path("a\nb")},
      {"escape", path("a\x1b[2Jb")},
      {"not UTF-8", path("a\xff")},
      {"surrogate", path("a\xed\xa0\x80")},
      {"256 bytes", path(std::string(cell::kMaxExportNameBytes + 1, 'n'))},
      {"too deep", path(deep)},
      {"twice", path("first")},
      {"below a file", path("first/second")},
      {"a directory that is a file",
       [](Peer& peer) {
         peer.File("a/b", "x");
         peer.File("a", "x");
         peer.End();
       }},
      {"more bytes than announced",
       [](Peer& peer) {
         peer.Announce("a", 1);
         peer.Send(FrameType::kExportBytes, "xy");
         peer.End();
       }},
      {"bytes of no file",
       [](Peer& peer) {
         peer.Send(FrameType::kExportBytes, "x");
         peer.End();
       }},
      {"empty bytes for ever",
       [](Peer& peer) {
         peer.Announce("a", 1);
         peer.Send(FrameType::kExportBytes, "");
         peer.End();
       }},
      {"fewer bytes, then another file",
       [](Peer& peer) {
         peer.Announce("a", 2);
         peer.Send(FrameType::kExportBytes, "x");
         peer.File("b", "x");
         peer.End();
       }},
      {"fewer bytes, then the end",
       [](Peer& peer) {
         peer.Announce("a", 2);
         peer.Send(FrameType::kExportBytes, "x");
         peer.End();
       }},
      {"a file that is too large",
       [](Peer& peer) { peer.Announce("a", cell::kMaxExportBytes + 1); }},
      {"files that are too large together",
       [](Peer& peer) {
         peer.Announce("a", 0);
         peer.Announce("b", cell::kMaxExportBytes);
         peer.Announce("c", 1);
       }},
      {"too many files",
       [](Peer& peer) {
         for (std::size_t i = 0; i <= cell::kMaxExportFiles; ++i) peer.Announce(Text("f", i), 0);
         peer.End();
       }},
      {"output", [](Peer& peer) { peer.Send(FrameType::kStdout, "x"); }},
      {"a second exit", [](Peer& peer) { peer.Send(FrameType::kExit, cell::EncodeExit({})); }},
      {"gone", [](Peer& peer) { peer.Leave(); }},
      {"could not go on",
       [](Peer& peer) {
         peer.File("a", "x");
         peer.Send(FrameType::kExportEnd, cell::EncodeExportEnd({false, 1, "it \x1b broke"}));
       }},
  };
  for (const Row& row : rows) {
    const ExportSummary summary = Take(row.speak);
    EXPECT_NE(summary.why, "") << row.what;
    EXPECT_EQ(summary.why.find('\x1b'), std::string::npos) << row.what;
    EXPECT_EQ(summary.path, "") << row.what;
    EXPECT_TRUE(Left().empty()) << row.what << ": " << Left().front();
    EXPECT_NE(ExportJson(summary).find("\"outcome\":\"failed\""), std::string::npos);
  }
  EXPECT_FALSE(fs::exists("/tmp/evil"));
  EXPECT_FALSE(fs::exists(directory_.At("evil")));
  EXPECT_EQ(Take([](Peer& peer) {
              peer.File("first", "x");
              peer.End();
            }).why,
            "")
      << "control";
}

// As on a disk that is full in the middle of a file.
TEST_F(TakeExportTest, WhereThereIsNoRoomNothingIsLeft) {
  const int status = test::InChild([&] {
    const struct rlimit limit = {5000, 5000};
    (void)std::signal(SIGXFSZ, SIG_IGN);
    if (::setrlimit(RLIMIT_FSIZE, &limit) != 0) return 2;
    const ExportSummary summary = Take([](Peer& peer) {
      peer.File("small", "x");
      peer.File("large", std::string(20000, 'x'));
      peer.End();
    });
    return summary.why.empty() || !Left().empty() ? 1 : 0;
  });
  EXPECT_EQ(status, 0);
}

TEST_F(TakeExportTest, AnExportThatIsThereIsNeverWrittenOver) {
  directory_.Put(Text("exports/", kRun, "/files/a"), "old");
  ASSERT_EQ(::chmod(directory_.At("exports").c_str(), 0700), 0);
  const ExportSummary summary = Take([](Peer& peer) {
    peer.File("a", "new");
    peer.End();
  });
  EXPECT_NE(summary.why, "");
  EXPECT_EQ(directory_.Get(Text("exports/", kRun, "/files/a")), "old");
  EXPECT_FALSE(fs::exists(directory_.At(Text("exports/", PartName(kRun)))));
}

TEST_F(TakeExportTest, ALinkInPlaceOfTheDirectoryIsRefused) {
  fs::create_directory(directory_.At("elsewhere"));
  fs::create_directory_symlink("elsewhere", directory_.At("exports"));
  EXPECT_NE(Take([](Peer& peer) { peer.End(); }).why, "");
  EXPECT_TRUE(fs::is_empty(directory_.At("elsewhere")));
}

}  // namespace
}  // namespace taskcell::gateway
