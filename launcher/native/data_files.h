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
  int fd = -1;  // the descriptor it came from, for messages
  std::string content;
};

// What --file gives: a file of its own for each content, which a cell sees read-only. Each is in a
// tmpfs that is attached in the cell's mount namespace and nowhere else, so that nothing can be
// left of it. Where none can be made (MakePrivateTmpfs) they are in a private scratch directory,
// until RemoveNames or as long as this object.
class DataFiles {
 public:
  // Takes the descriptors over, and reads each to its end, in `timeout_ms` altogether.
  static Result<std::vector<DataFile>> Read(const std::vector<FileOption>& files, int timeout_ms);
  static Result<DataFiles> Make(std::vector<DataFile> files, const std::string& run_id);

  DataFiles(DataFiles&&) noexcept = default;
  DataFiles& operator=(DataFiles&&) = delete;

  // Plans the mounts and hands over what is detached. This object must outlive the cell: it pins
  // the inodes that the attestation looks for. Names must stay until the cell has them mounted.
  Status AddTo(LaunchRequest& request);

  // To be called when the cell was verified, which keeps the files without names.
  void RemoveNames() { directory_.reset(); }

 private:
  struct Copy {
    std::string target;
    std::string source;
    UniqueFd tree;  // detached, with the file in it; or else it is in the directory
    UniqueFd fd;
  };
  DataFiles() = default;
  Status AddDetached(const DataFile& file, UniqueFd tree);
  Status AddNamed(const DataFile& file, const std::string& run_id);

  std::optional<mounts::ScratchDirectory> directory_;  // none: all are detached
  std::vector<Copy> copies_;
};

}  // namespace taskcell::native
