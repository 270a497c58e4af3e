#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "probe/cells/cell_engine.h"
#include "probe/engine/client.h"

namespace taskcell::probe {

// Where an engine's cell finds what the host brings in.
inline constexpr char kInitMount[] = "/run/taskcell/init";

// How long the cell's PID 1 may take from the start to the gate.
inline constexpr std::chrono::milliseconds kGateTimeout{10000};

// In the text of image_missing where the engine runs rootless.
inline constexpr char kOtherStore[] = "it runs rootless, and root's store of images is another one";

// Cells made through the socket of a Docker daemon, or of a Podman service, which speaks the same.
class DockerEngine : public CellEngine {
 public:
  // What a rootless engine says of a container before it is started.
  enum class Report : uint8_t {
    kIgnored,  // decides nothing: only what is measured does
    kChecked,  // other limits than asked: it is not started (resource_limits_unenforced)
  };

  // `wanted` narrows down what may answer there.
  explicit DockerEngine(Endpoint endpoint, EngineFlavour wanted = EngineFlavour::kAny,
                        Report report = Report::kIgnored)
      : DockerEngine(std::make_shared<EngineClient>(std::move(endpoint)), wanted, report) {}
  // With a client that may have been in use before: what that knows of the engine is not asked for
  // again. Nobody else uses it as long as this object or a cell it made lives.
  explicit DockerEngine(std::shared_ptr<EngineClient> client,
                        EngineFlavour wanted = EngineFlavour::kAny,
                        Report report = Report::kIgnored)
      : client_(std::move(client)), wanted_(wanted), report_(report) {}

  // Until a cell is there, what its making waits for is given up (code stopped) as soon as `fd` is
  // readable or its other end is gone.
  void CancelOn(int fd) {
    cancel_fd_ = fd;
    client_->CancelOn(fd);
  }

  // The sockets at which root's engine is asked, where it may be, whether it has an image that a
  // rootless one has not.
  void AskRootAt(std::vector<std::string> sockets) { root_sockets_ = std::move(sockets); }

  // Podman only once CheckReachable has heard that it is.
  cell::Engine kind() const override {
    return info_.podman ? cell::Engine::kPodman : cell::Engine::kDocker;
  }
  std::string Name() const override;
  Status CheckReachable() override;
  Status CheckShared(const std::vector<std::string>& paths) override;
  Result<ImageFacts> CheckImage(const std::string& image) override;
  bool NeedsLimitsProbe() const override { return info_.rootless; }
  std::string Identity() const override;
  Result<CellIds> ChooseIds(const std::string& run_id) override;
  Result<std::unique_ptr<RunningCell>> Make(cell::CellPlan plan, const CellPlaces& places) override;

  bool MayHaveMade() const override { return may_have_made_; }

  // The engine's own words about itself, once CheckReachable succeeded.
  const EngineInfo& info() const { return info_; }

 private:
  Status Ask();
  Status CheckFlavour() const;
  Status CheckListing();
  std::string WhatRootHas(const std::string& image) const;

  int cancel_fd_ = -1;
  std::shared_ptr<EngineClient> client_;
  EngineFlavour wanted_;
  Report report_;
  EngineInfo info_;
  std::string checked_image_;
  ImageFacts image_;
  bool may_have_made_ = false;
  std::vector<std::string> root_sockets_ = {kDefaultEngineSocket, "/run/podman/podman.sock"};
};

}  // namespace taskcell::probe
