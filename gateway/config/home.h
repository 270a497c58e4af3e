#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <string_view>

#include "gateway/config/environment.h"
#include "launcher/base/result.h"
#include "launcher/base/unique_fd.h"
#include "launcher/mounts/file_reader.h"

namespace taskcell::gateway {

// The API's socket in a home that a gateway serves.
inline constexpr char kGatewaySocket[] = "taskcell.sock";

// How long one look into another agent's directory may take.
inline constexpr std::chrono::milliseconds kHastyLimit{250};

// The directory everything about one installation lies in, opened once. Everything below it is
// reached through `fd`, without symbolic links.
struct Home {
  UniqueFd fd;
  std::string path;  // canonical: no symbolic link in it
  std::string
      label;  // first 32 hex digits of the SHA-256 of `path`; tells homes apart on one engine
  // Reads its configuration and that of its agents, in a time limit where OpenHome made it.
  std::shared_ptr<mounts::FileReader> files = std::make_shared<mounts::FileReader>();
  // The same with kHastyLimit: for what one task can do without.
  std::shared_ptr<mounts::FileReader> hasty_files = std::make_shared<mounts::FileReader>();
};

// Picks the home directory: `option` (--home), TASKCELL_HOME, DUDUCLAW_HOME, else below HOME the
// first of .taskcell and .duduclaw that exists, else .taskcell. A blank value counts as unset. The
// result need not exist. kConfig when none of these is set.
Result<std::string> ChooseHome(const std::string& option, const Environment& environment);

// Opens a home that must exist, component by component (mounts::PinTrustedPath): links of root in
// directories of root are followed, and nobody but root and this user may be able to exchange any
// part of the way. kConfig, naming the path and what to do, when it does not exist or another link
// or a directory that others may write is on the way. Its files are read by taskcell-launch, where
// that lies beside this program, or by `files`.
Result<Home> OpenHome(const std::string& path, std::shared_ptr<mounts::FileReader> files = {});

// The label of a home with this canonical path.
std::string HomeLabel(const std::string& canonical_path);

// The first 32 hex digits of the SHA-256 of `text`.
std::string ShortDigest(std::string_view text);

}  // namespace taskcell::gateway
