#include "gateway/cli/pull_progress.h"

#include <unistd.h>

#include "gateway/cli/output.h"
#include "launcher/base/text.h"
#include "launcher/sys/file.h"

namespace taskcell::gateway {
namespace {

constexpr std::size_t kMaxLayers = 1024;

bool IsThere(std::string_view status) {
  return status == "Pull complete" || status == "Already exists";
}

// Docker names the tag there where it names a layer elsewhere.
bool IsOfATag(std::string_view status) { return status.starts_with("Pulling from "); }

}  // namespace

void PullProgress::Take(const probe::PullLine& line) {
  if (line.status.empty()) return;
  if (line.layer.empty() || IsOfATag(line.status)) {
    Clear();
    Tell(line.layer.empty() ? line.status : Text(line.layer, ": ", line.status));
    return;
  }
  if (!layers_.contains(line.layer) && layers_.size() == kMaxLayers) return;
  Layer& layer = layers_[line.layer];
  const bool is_new = layer.status != line.status;
  layer.status = line.status;
  if (line.total_bytes > 0 && line.status == "Downloading") {
    layer.bytes = line.bytes;
    layer.total_bytes = line.total_bytes;
  }
  if (at_terminal_) {
    Draw();
  } else if (is_new) {
    Tell(Text(line.layer, ": ", line.status));
  }
}

void PullProgress::Draw() {
  constexpr uint64_t kMib = 1U << 20U;
  std::size_t there = 0;
  uint64_t bytes = 0;
  uint64_t total_bytes = 0;
  for (const auto& [name, layer] : layers_) {
    if (IsThere(layer.status)) ++there;
    bytes += IsThere(layer.status) ? layer.total_bytes : layer.bytes;
    total_bytes += layer.total_bytes;
  }
  // ignoring: it is for whoever looks
  (void)sys::WriteAll(STDERR_FILENO, Text("\r\x1b[K", there, " of ", layers_.size(), " layers, ",
                                          bytes / kMib, " of ", total_bytes / kMib, " MiB"));
  drawn_ = true;
}

void PullProgress::Clear() {
  if (drawn_) (void)sys::WriteAll(STDERR_FILENO, "\r\x1b[K");  // ignoring: the same
  drawn_ = false;
}

}  // namespace taskcell::gateway
