#include "launcher/init/export.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <optional>
#include <string>
#include <vector>

#include "launcher/base/text.h"
#include "launcher/cell/export.h"
#include "launcher/cell/gate_protocol.h"
#include "launcher/sys/file.h"

namespace taskcell::init {
namespace {

using cell::FrameType;

constexpr uint64_t kResolve = sys::kResolveBeneath | RESOLVE_NO_XDEV;

// Its functions return an Error only where the gate is lost; what keeps the export from being
// complete is noted, and nothing more is sent then but the end.
class Exporter {
 public:
  explicit Exporter(Gate& gate) : gate_(gate) {}

  Status Run() {
    Result<UniqueFd> top =
        sys::OpenAt2(AT_FDCWD, cell::kExportDirectory, O_RDONLY | O_DIRECTORY | O_NOFOLLOW,
                     RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS);
    if (top.ok()) {
      TRY(Directory(top->get(), ""));
    } else if (top.error().err != ENOENT) {
      Note(top.error().text);
    }
    return End();
  }

  void Note(std::string why) {
    if (!why_.has_value()) why_ = std::move(why);
  }

  Status End() {
    return gate_.Send(FrameType::kExportEnd,
                      cell::EncodeExportEnd({!why_.has_value(), left_out_, why_.value_or("")}));
  }

 private:
  // No deeper than a path may be.
  Status Directory(int fd, const std::string& prefix) {
    Result<std::vector<sys::DirectoryEntry>> entries =
        sys::ListDirectory(fd, cell::kMaxExportEntries - entries_);
    if (!entries.ok()) {
      Note(entries.error().kind == Kind::kViolation
               ? Text("more than ", cell::kMaxExportEntries, " entries")
               : entries.error().text);
      return Ok();
    }
    entries_ += entries->size();
    std::sort(entries->begin(), entries->end(),
              [](const auto& a, const auto& b) { return a.name < b.name; });
    for (const sys::DirectoryEntry& entry : entries.value()) {
      TRY(Entry(fd, entry.name, prefix + entry.name));
      if (why_.has_value()) return Ok();
    }
    return Ok();
  }

  Status Entry(int dir_fd, const std::string& name, const std::string& path) {
    Status fits = cell::CheckExportPath(path);
    if (!fits.ok()) {
      Note(fits.error().text);
      return Ok();
    }
    Result<struct stat> seen = sys::StatAt(dir_fd, name);
    if (!seen.ok()) {
      Note(seen.error().text);
      return Ok();
    }
    const bool is_directory = S_ISDIR(seen->st_mode);
    const bool is_file = S_ISREG(seen->st_mode) && seen->st_nlink == 1;
    if (!is_directory && !is_file) {
      ++left_out_;
      return Ok();
    }
    Result<UniqueFd> opened = sys::OpenAt2(
        dir_fd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | (is_directory ? O_DIRECTORY : 0),
        kResolve);
    if (!opened.ok()) {
      Note(opened.error().text);
      return Ok();
    }
    if (is_directory) return Directory(opened->get(), path + "/");
    return File(opened->get(), path);
  }

  Status File(int fd, const std::string& path) {
    Result<struct stat> info = sys::Stat(fd);
    const bool is_it = info.ok() && S_ISREG(info->st_mode) && info->st_nlink == 1;
    if (!is_it) {
      Note(Text(path, " was changed meanwhile"));
      return Ok();
    }
    const auto bytes = static_cast<uint64_t>(info->st_size);
    if (++files_ > cell::kMaxExportFiles) {
      Note(Text("more than ", cell::kMaxExportFiles, " files"));
      return Ok();
    }
    if (bytes > cell::kMaxExportBytes - bytes_) {
      Note(Text("more than ", cell::kMaxExportBytes, " bytes"));
      return Ok();
    }
    bytes_ += bytes;
    TRY(gate_.Send(FrameType::kExportFile, cell::EncodeExportFile({path, bytes})));
    return Content(fd, path, bytes);
  }

  Status Content(int fd, const std::string& path, uint64_t left) {
    buffer_.resize(cell::kMaxFramePayload);
    while (left > 0) {
      const std::size_t wanted = std::min<uint64_t>(left, buffer_.size());
      Result<std::size_t> got = sys::Read(fd, {buffer_.data(), wanted});
      if (!got.ok() || got.value() == 0) {
        Note(Text(path, got.ok() ? " is shorter than it was" : " could not be read"));
        return Ok();
      }
      TRY(gate_.Send(FrameType::kExportBytes, {buffer_.data(), got.value()}));
      left -= got.value();
    }
    return Ok();
  }

  Gate& gate_;
  std::string buffer_;
  std::size_t entries_ = 0;
  std::size_t files_ = 0;
  uint64_t bytes_ = 0;
  uint32_t left_out_ = 0;
  std::optional<std::string> why_;
};

}  // namespace

Status SendExport(bool all_gone, Gate& gate) {
  Exporter exporter(gate);
  if (all_gone) return exporter.Run();
  exporter.Note("a process of the job could not be ended");
  return exporter.End();
}

}  // namespace taskcell::init
