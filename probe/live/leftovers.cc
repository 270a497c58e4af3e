#include "probe/live/leftovers.h"

#include "launcher/base/text.h"

namespace taskcell::live {

void RemoveLeftovers(probe::EngineClient& client, int64_t now_unix_s) {
  Result<std::vector<probe::ListedContainer>> containers = client.ListTasks(kProbeHomeLabel);
  if (!containers.ok()) return;  // ignoring: whatever comes next tells what is wrong
  for (const probe::ListedContainer& container : containers.value()) {
    std::optional<uint64_t> deadline = ParseUnsigned(container.deadline_label);
    if (deadline && *deadline < static_cast<uint64_t>(now_unix_s))
      (void)client.Remove(container.id);  // ignoring: it stays for another time
  }
  Result<std::vector<probe::ListedImage>> images = client.ListImages(Text(kProbeImageLabel, "=1"));
  if (!images.ok()) return;  // ignoring: as above
  for (const probe::ListedImage& image : images.value()) {
    if (image.created_unix_s < now_unix_s - kStaleImageSeconds)
      (void)client.RemoveImage(image.id);  // ignoring: as above
  }
}

}  // namespace taskcell::live
