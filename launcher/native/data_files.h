#pragma once

#include <optional>
#include <string>
#include <vector>

#include "launcher/base/result.h"
#include "launcher/base/unique_fd.h"
#include "launcher/mounts/scratch_directory.h"
#include "launcher/native/options.h"
#include "launcher/native/request.h"

namespace taskcell::native {

inline constexpr std::size_t kMaxDataFileBytes = std::size_t{16} << 20U;

// A file of the cell and what it holds.
struct DataFile {
  std::string target;
  std::string content;
};

// What --file gives: a file of its own for each content, in a private scratch directory, which a
// cell sees read-only. The directory is there until RemoveNames, or as long as this object.
class DataFiles {
 public:
  // Takes the descriptors over, and reads each to its end, in `timeout_ms` altogether.
  static Result<std::vector<DataFile>> Read(const std::vector<FileOption>& files, int timeout_ms);
  // Without files there is no directory either.
  static Result<DataFiles> Make(std::vector<DataFile> files, const std::string& run_id);

  DataFiles(DataFiles&&) noexcept = default;
  DataFiles& operator=(DataFiles&&) = delete;

  // Plans the mounts. The names must stay until the cell has them mounted.
  Status AddTo(LaunchRequest& request) const;

  // To be called when the cell was verified. It keeps the files without them: from here on a killed
  // launcher leaves nothing on disk.
  void RemoveNames() { directory_.reset(); }

 private:
  struct Copy {
    std::string target;
    std::string name;  // in the directory
    UniqueFd fd;
  };
  DataFiles() = default;
  Status Add(const DataFile& file);

  std::optional<mounts::ScratchDirectory> directory_;  // none: no files
  std::vector<Copy> copies_;
};

}  // namespace taskcell::native
