#include "probe/live/probe_image.h"

#include <fcntl.h>

#include "launcher/base/text.h"
#include "launcher/sys/file.h"
#include "probe/live/leftovers.h"
#include "probe/live/trial.h"
#include "probe/tar/tar_writer.h"

namespace taskcell::live {
namespace {

constexpr std::size_t kMaxBreakerBytes = 16U << 20U;
constexpr uint32_t kProgramMode = 0755;
constexpr std::string_view kTemporary = "1";
constexpr std::string_view kKept = "kept";

std::string Label(std::string_view value) { return Text(kProbeImageLabel, "=", value); }

}  // namespace

Result<std::string> ProbeArchive(std::string_view breaker) {
  probe::TarWriter tar;
  for (const char* directory :
       {"dev", "etc", "proc", "run", "run/taskcell", "sys", "tmp", "workspace"}) {
    TRY(tar.AddDirectory(directory, kProgramMode));
  }
  TRY(tar.AddFile(std::string_view(kBreakerInside).substr(1), kProgramMode, breaker));
  return std::move(tar).Finish();
}

Result<ProbeImage> ProbeImage::Make(const probe::Endpoint& endpoint, const std::string& breaker,
                                    const std::string& run_id, bool keep) {
  std::string program = TRY(sys::ReadFile(AT_FDCWD, breaker, kMaxBreakerBytes));
  std::string archive = TRY(ProbeArchive(program));
  ProbeImage image(endpoint);
  std::string name = Text("taskcell-probe-", run_id, ":latest");
  if (!keep) image.name_ = name;  // from here on also where the answer gets lost
  image.id_ = TRY(image.client_.ImportImage(archive, name, Label(keep ? kKept : kTemporary)));
  return image;
}

ProbeImage::~ProbeImage() {
  (void)Remove();  // ignoring: a later probe removes it
}

Status ProbeImage::Remove() {
  if (name_.empty()) return Ok();
  TRY(client_.RemoveImage(name_));
  name_.clear();
  return Ok();
}

}  // namespace taskcell::live
