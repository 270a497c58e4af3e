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

// What --file gives: the content of each descriptor, read to its end and kept in a file of its own
// in a private scratch directory, which a cell sees read-only. It lives as long as this object
// does.
class DataFiles {
 public:
  // Reads them all. Takes the descriptors over. Without files there is no directory either.
  static Result<DataFiles> Make(const std::vector<FileOption>& files, const std::string& run_id);

  DataFiles(DataFiles&&) noexcept = default;
  DataFiles& operator=(DataFiles&&) = delete;

  // Plans the mounts. This object must outlive the cell.
  Status AddTo(LaunchRequest& request) const;

 private:
  struct Copy {
    std::string target;
    std::string name;  // in the directory
    UniqueFd fd;
  };
  DataFiles() = default;
  Status Add(const FileOption& file);

  std::optional<mounts::ScratchDirectory> directory_;  // none: no files
  std::vector<Copy> copies_;
};

}  // namespace taskcell::native
