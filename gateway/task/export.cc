#include "gateway/task/export.h"

#include <fcntl.h>

#include <cerrno>
#include <chrono>
#include <optional>
#include <set>
#include <vector>

#include "gateway/ledger/digest.h"
#include "gateway/task/answer.h"
#include "gateway/task/run_directory.h"
#include "launcher/base/json_text.h"
#include "launcher/base/text.h"
#include "launcher/mounts/tree.h"
#include "launcher/sys/file.h"

namespace taskcell::gateway {
namespace {

constexpr char kManifest[] = "manifest.json";
constexpr int kNewFile = O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_NOCTTY;
constexpr int kDirectory = O_RDONLY | O_DIRECTORY | O_NOFOLLOW;

// Writes what comes; the cell behind the gate is hostile.
class ExportWriter : public gate::ExportSink {
 public:
  explicit ExportWriter(UniqueFd files) : files_fd_(std::move(files)) {}

  Status OnFile(const cell::ExportFile& file) override {
    TRY(Finish());
    entry_ = Entry{file.path, file.bytes, ""};
    file_ = TRY(Create(file.path));
    digester_.emplace();
    return Ok();
  }

  Status OnBytes(std::string_view bytes) override {
    digester_->Take(bytes);
    return sys::WriteAll(file_.get(), bytes);
  }

  // After the last file.
  Status Finish() {
    if (!digester_.has_value()) return Ok();
    entry_.digest = Hex(digester_->Finish());
    digester_.reset();
    file_.Reset();
    bytes_ += entry_.bytes;
    entries_.push_back(std::move(entry_));
    return Ok();
  }

  uint64_t files() const { return entries_.size(); }
  uint64_t bytes() const { return bytes_; }

  std::string Manifest(const std::string& run_id) const {
    JsonText json;
    json.Open('{').Key("run_id").String(run_id).Key("bytes").Unsigned(bytes_);
    json.Key("files").Open('[');
    for (const Entry& entry : entries_) {
      json.Open('{').Key("path").String(entry.path).Key("bytes").Unsigned(entry.bytes);
      json.Key("sha256").String(entry.digest).Close('}');
    }
    json.Close(']').Close('}');
    return json.text() + "\n";
  }

 private:
  struct Entry {
    std::string path;
    uint64_t bytes = 0;
    std::string digest;
  };

  // Makes the file and the directories on its way. Where the file system takes two names for one,
  // the second is refused.
  Result<UniqueFd> Create(const std::string& path) {
    for (std::size_t slash = path.find('/'); slash != path.npos; slash = path.find('/', slash + 1))
      TRY(MakeParent(path.substr(0, slash)));
    return sys::OpenAt2(files_fd_.get(), path, kNewFile, sys::kResolveBeneath, 0600);
  }

  Status MakeParent(const std::string& path) {
    if (!parents_.insert(path).second) return Ok();
    return sys::MakeDirectory(files_fd_.get(), path, 0700);
  }

  UniqueFd files_fd_;
  UniqueFd file_;
  Entry entry_;
  std::optional<Digester> digester_;  // of the file at hand
  std::set<std::string> parents_;
  std::vector<Entry> entries_;
  uint64_t bytes_ = 0;
};

Status WriteManifest(int part_fd, const std::string& manifest) {
  UniqueFd file = TRY(sys::OpenAt2(part_fd, kManifest, kNewFile, sys::kResolveBeneath, 0600));
  return sys::WriteAll(file.get(), manifest);
}

// Fills the directory; true when it is to stay.
Result<bool> Fill(gate::GateHost& gate, int part_fd, const std::string& run_id,
                  ExportSummary& summary) {
  TRY(sys::MakeDirectory(part_fd, "files", 0700));
  ExportWriter writer(TRY(sys::OpenAt2(part_fd, "files", kDirectory, sys::kResolveBeneath)));
  const cell::ExportEnd end =
      TRY(gate.Export(writer, std::chrono::steady_clock::now() + kExportWait));
  summary.left_out = end.left_out;
  if (!end.is_complete) return Error(Kind::kViolation, Printable(end.text));
  TRY(writer.Finish());
  summary.files = writer.files();
  summary.bytes = writer.bytes();
  if (summary.files == 0) return false;
  const std::string manifest = writer.Manifest(run_id);
  TRY(WriteManifest(part_fd, manifest));
  summary.manifest_digest = Hex(DigestOf(manifest));
  return true;
}

Status Take(gate::GateHost& gate, const Home& home, const std::string& run_id,
            ExportSummary& summary) {
  UniqueFd exports = TRY(OpenPrivate(home.fd.get(), "exports", false));
  const std::string part = PartName(run_id);
  UniqueFd directory = TRY(OpenPrivate(exports.get(), part, true));
  Result<bool> stays = Fill(gate, directory.get(), run_id, summary);
  if (stays.ok() && stays.value()) {
    // A directory that is there is never replaced: rename(2) takes an empty one only, and no run
    // has another's id.
    Status renamed = sys::Rename(exports.get(), part, run_id);
    if (renamed.ok()) {
      summary.path = Text(home.path, "/exports/", run_id);
      return Ok();
    }
    stays = std::move(renamed).error();
  }
  Status removed = mounts::RemoveTree(exports.get(), part);
  TRY(std::move(stays));
  return removed;
}

}  // namespace

std::string PartName(const std::string& run_id) { return Text(".", run_id, ".part"); }

ExportSummary TakeExport(gate::GateHost& gate, const Home& home, const std::string& run_id) {
  ExportSummary summary;
  Status taken = Take(gate, home, run_id, summary);
  if (taken.ok()) return summary;
  ExportSummary failed;
  failed.left_out = summary.left_out;
  failed.why = OneLine(taken.error().text, kMaxMessageBytes);
  return failed;
}

std::string ExportJson(const ExportSummary& summary) {
  JsonText json;
  json.Open('{').Key("outcome").String(summary.why.empty() ? "complete" : "failed");
  json.Key("why").String(summary.why).Key("files").Unsigned(summary.files);
  json.Key("bytes").Unsigned(summary.bytes).Key("left_out").Unsigned(summary.left_out);
  json.Key("path").String(summary.path).Key("manifest_sha256").String(summary.manifest_digest);
  json.Close('}');
  return json.text();
}

}  // namespace taskcell::gateway
