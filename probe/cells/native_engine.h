#pragma once

#include <memory>
#include <string>

#include "probe/cells/cell_engine.h"

namespace taskcell::probe {

// Cells made by taskcell-launch on this host: no daemon, no images.
class NativeEngine : public CellEngine {
 public:
  // As DockerEngine::CancelOn.
  void CancelOn(int fd) { cancel_fd_ = fd; }

  cell::Engine kind() const override { return cell::Engine::kNative; }
  std::string Name() const override { return "native"; }
  Status CheckReachable() override { return Ok(); }
  Result<ImageFacts> CheckImage(const std::string& image) override;
  // The launcher proves or refuses every limit itself, before anything runs.
  // The ids inside; the launcher maps them to a subordinate id of the gateway's user where
  // newuidmap is there, else to the gateway's own.
  Result<CellIds> ChooseIds(const std::string& run_id) override;
  Result<std::unique_ptr<RunningCell>> Make(cell::CellPlan plan, const CellPlaces& places) override;

 private:
  int cancel_fd_ = -1;
};

}  // namespace taskcell::probe
