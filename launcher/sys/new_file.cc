#include "launcher/sys/new_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>

#include "launcher/base/defer.h"
#include "launcher/base/text.h"
#include "launcher/sys/entry.h"
#include "launcher/sys/failure.h"
#include "launcher/sys/file.h"
#include "launcher/sys/random.h"

namespace taskcell::sys {
namespace {

Result<std::string> HiddenName() {
  std::array<unsigned char, 8> bytes = {};
  TRY(FillRandom(bytes));
  std::string name = ".taskcell-";
  for (unsigned char byte : bytes) name += std::to_string(byte);
  return name;
}

}  // namespace

Status WriteNewFile(const std::string& path, std::string_view data) {
  std::size_t slash = path.rfind('/');
  std::string name = slash == path.npos ? path : path.substr(slash + 1);
  std::string directory = slash == path.npos ? "." : path.substr(0, slash + 1);
  if (name.empty() || name.find('\0') != name.npos)
    return FailureOf(EINVAL, Text("'", Printable(path), "' names no file"));
  UniqueFd below = TRY(Open(directory, O_RDONLY | O_DIRECTORY));
  std::string hidden = TRY(HiddenName());
  // Without openat2(2), so that a host that lacks it can be reported.
  UniqueFd file = TRY(OpenNoFollow(below.get(), hidden, O_WRONLY | O_CREAT | O_EXCL, 0600)
                          .With(Text("write '", Printable(path), "'")));
  // ignoring: it is gone, or nobody can help
  Defer remove([&] { (void)RemoveFile(below.get(), hidden); });
  TRY(WriteAll(file.get(), data));
  if (::fsync(file.get()) < 0) return Failure(Text("fsync '", Printable(path), "'"));
  // Unlike rename(2), refuses where there is a file.
  if (::linkat(below.get(), hidden.c_str(), below.get(), name.c_str(), 0) < 0)
    return Failure(Text("link '", Printable(path), "'"));
  return Ok();
}

}  // namespace taskcell::sys
