#include "gateway/config/home.h"

#include <fcntl.h>
#include <openssl/sha.h>
#include <unistd.h>

#include <array>
#include <cerrno>

#include "launcher/base/text.h"
#include "launcher/mounts/ancestors.h"
#include "launcher/sys/entry.h"
#include "launcher/sys/file.h"
#include "probe/cells/program.h"

namespace taskcell::gateway {
namespace {

bool DirectoryExists(const std::string& path) { return sys::Open(path, O_PATH | O_DIRECTORY).ok(); }

}  // namespace

Result<std::string> ChooseHome(const std::string& option, const Environment& environment) {
  if (!Trim(option).empty()) return option;
  for (std::string_view name : {"TASKCELL_HOME", "DUDUCLAW_HOME"}) {
    std::string_view value = Lookup(environment, name);
    if (!Trim(value).empty()) return std::string(value);
  }
  std::string_view user_home = Lookup(environment, "HOME");
  if (Trim(user_home).empty())
    return Error(Kind::kConfig,
                 "the gateway home cannot be resolved: HOME is not set; give --home DIR or set "
                 "TASKCELL_HOME");
  std::string own = Text(user_home, "/.taskcell");
  std::string platform = Text(user_home, "/.duduclaw");
  if (!DirectoryExists(own) && DirectoryExists(platform)) return platform;
  return own;
}

Result<Home> OpenHome(const std::string& path, std::shared_ptr<mounts::FileReader> files) {
  Result<mounts::PinnedPath> pinned = mounts::PinTrustedPath(path, mounts::TrustIn(::geteuid()));
  if (!pinned.ok() && pinned.error().kind == Kind::kViolation) {
    return Error(Kind::kConfig, Text("the home directory cannot be used: ", pinned.error().text));
  }
  Result<UniqueFd> opened = pinned.ok()
                                ? sys::OpenNoFollow(pinned->fd.get(), ".", O_RDONLY | O_DIRECTORY)
                                : Result<UniqueFd>(pinned.error());
  if (!opened.ok()) {
    return Error(Kind::kConfig,
                 Text("the home directory '", Printable(path), "' cannot be opened: ",
                      opened.error().err == ENOENT ? "it does not exist"
                                                   : std::string_view(opened.error().text),
                      "; give --home DIR, set TASKCELL_HOME, or create it"),
                 opened.error().err);
  }
  std::string label = HomeLabel(pinned->path);
  const Result<std::string> found = probe::FindProgram("taskcell-launch");
  const std::string launcher = found.ok() ? found.value() : "";
  if (files == nullptr) files = std::make_shared<mounts::FileReader>(launcher);
  return Home{std::move(opened).value(), std::move(pinned->path), std::move(label),
              std::move(files), std::make_shared<mounts::FileReader>(launcher, kHastyLimit)};
}

std::string HomeLabel(const std::string& canonical_path) { return ShortDigest(canonical_path); }

std::string ShortDigest(std::string_view text) {
  constexpr std::size_t kShownBytes = 16;
  constexpr char kHex[] = "0123456789abcdef";
  std::array<unsigned char, SHA256_DIGEST_LENGTH> digest;
  // NOLINTNEXTLINE(cppcoreguidelines-pro-type-reinterpret-cast): OpenSSL takes unsigned bytes
  ::SHA256(reinterpret_cast<const unsigned char*>(text.data()), text.size(), digest.data());
  std::string shown;
  for (std::size_t i = 0; i < kShownBytes; ++i) {
    shown += kHex[digest[i] >> 4U];
    shown += kHex[digest[i] & 15U];
  }
  return shown;
}

}  // namespace taskcell::gateway
