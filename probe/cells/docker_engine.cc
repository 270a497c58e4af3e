#include "probe/cells/docker_engine.h"

#include <unistd.h>

#include "launcher/base/text.h"
#include "probe/cells/cell_ids.h"
#include "probe/cells/docker_cell.h"
#include "probe/cells/image_volumes.h"
#include "probe/engine/endpoint.h"

namespace taskcell::probe {
namespace {

// Over a read-only root Podman mounts a writable tmpfs on each, unless something else is there.
constexpr const char* kPodmanWritable[] = {"/run", "/tmp", "/var/tmp"};

}  // namespace

std::string DockerEngine::Name() const {
  return Text(info_.podman ? "podman" : "docker", " at ", client_.endpoint().Describe());
}

Status DockerEngine::CheckReachable() {
  TRY(client_.Negotiate());
  info_ = TRY(client_.Info());
  TRY(CheckFlavour());
  // A daemon that is half dead answers the above and fails here. One that refuses the listing is
  // alive all the same.
  auto listed = client_.ListTasks("");
  if (!listed.ok() && listed.error().code != "engine_unsupported") return std::move(listed).error();
  return Ok();
}

Status DockerEngine::CheckFlavour() const {
  if (wanted_ == EngineFlavour::kAny) return Ok();
  if (info_.podman == (wanted_ == EngineFlavour::kPodman)) return Ok();
  const char* found = info_.podman ? "podman" : "docker";
  return Error(Kind::kConfig, Text("what answers at ", client_.endpoint().Describe(), " is ", found,
                                   "; set [taskcell] engine = \"", found,
                                   "\" or \"auto\", or name the socket of "
                                   "the other one in [taskcell] engine_socket"))
      .Coded("docker_unreachable");
}

Result<ImageFacts> DockerEngine::CheckImage(const std::string& image) {
  ImageAnswer answer = TRY(client_.InspectImage(image));
  checked_image_ = image;
  image_ = ImageFacts{answer.id, answer.architecture, answer.user, answer.volumes,
                      answer.environment_names};
  return image_;
}

std::string DockerEngine::Identity() const {
  return Text(client_.endpoint().socket_path, " ", info_.id);
}

Result<CellIds> DockerEngine::ChooseIds(const std::string& run_id) {
  auto subordinate = TRY(native::ReadSubordinateIds(::geteuid()));
  if (info_.rootless) return ChooseRootlessIds(subordinate, ::geteuid(), ::getegid(), run_id);
  return ChooseDaemonIds(subordinate, ::geteuid(), ::getegid(), run_id);
}

Result<std::unique_ptr<RunningCell>> DockerEngine::Make(cell::CellPlan plan,
                                                        const CellPlaces& places) {
  TRY(RefuseRootIds(plan.uid, plan.gid));
  if (checked_image_.empty() || plan.root_source != checked_image_)
    TRY(CheckImage(plan.root_source));
  ImageFacts image = image_;
  if (info_.podman)
    image.volumes.insert(image.volumes.end(), std::begin(kPodmanWritable),
                         std::end(kPodmanWritable));
  for (cell::PlannedTmpfs& cover : TRY(CoverVolumes(image, plan)))
    plan.tmpfs.push_back(std::move(cover));
  DockerCell::Terms terms;
  terms.podman = info_.podman;
  terms.check_reported = info_.rootless && report_ == Report::kChecked;
  terms.cancel_fd = cancel_fd_;
  return DockerCell::Make(EngineClient(client_.endpoint()), image_, std::move(plan), places, terms);
}

}  // namespace taskcell::probe
