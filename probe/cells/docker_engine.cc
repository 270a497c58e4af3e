#include "probe/cells/docker_engine.h"

#include <unistd.h>

#include <cerrno>

#include "launcher/base/text.h"
#include "launcher/native/free_ids.h"
#include "probe/cells/cell_ids.h"
#include "probe/cells/docker_cell.h"
#include "probe/cells/image_volumes.h"
#include "probe/cells/selinux.h"
#include "probe/cells/shared_host.h"
#include "probe/engine/endpoint.h"

namespace taskcell::probe {
namespace {

// Over a read-only root Podman mounts a writable tmpfs on each, unless something else is there.
constexpr const char* kPodmanWritable[] = {"/run", "/tmp", "/var/tmp"};

}  // namespace

std::string DockerEngine::Name() const {
  return Text(info_.podman ? "podman" : "docker", " at ", client_->endpoint().Describe());
}

Status DockerEngine::CheckReachable() {
  Status asked = Ask();
  if (asked.ok() || asked.error().err != ENOENT || ContainerMarker().empty()) return asked;
  Error error = std::move(asked).error();
  const std::string& socket = client_->endpoint().socket_path;
  error.text +=
      Text("; this program runs in a container (", ContainerMarker(),
           "): map the engine's socket into it at the same path (-v ", socket, ":", socket, ")");
  return error;
}

Status DockerEngine::CheckShared(const std::vector<std::string>& paths) {
  return CheckSharedHost(client_->endpoint(), paths);
}

Status DockerEngine::Ask() {
  if (client_->KnownInfo().has_value()) {
    Status listed = CheckListing();
    // Still the same one: the answer came by the connection that it was known by.
    if (std::optional<EngineInfo> known = client_->KnownInfo(); known.has_value()) {
      info_ = *std::move(known);
      TRY(CheckFlavour());
      return listed;
    }
  }
  TRY(client_->Negotiate());
  info_ = TRY(client_->Info());
  TRY(CheckFlavour());
  return CheckListing();
}

// A daemon that is half dead answers what it is and fails here. One that refuses the listing is
// alive all the same.
Status DockerEngine::CheckListing() {
  auto listed = client_->ListTasks("");
  if (!listed.ok() && listed.error().code != "engine_unsupported") return std::move(listed).error();
  return Ok();
}

Status DockerEngine::CheckFlavour() const {
  // Its runtime cannot give a tmpfs to the cell's user there.
  if (info_.user_namespaces && !info_.rootless && !info_.podman)
    return Error(
               Kind::kUnsupported,
               Text("engine at ", client_->endpoint().Describe(),
                    ": it maps the ids of its containers (userns-remap), so no cell can be made "
                    "as it is planned; run a daemon without userns-remap beside it, or a rootless "
                    "engine, and name its socket in [taskcell] engine_socket"))
        .Coded("docker_unreachable");
  if (wanted_ == EngineFlavour::kAny) return Ok();
  if (info_.podman == (wanted_ == EngineFlavour::kPodman)) return Ok();
  const char* found = info_.podman ? "podman" : "docker";
  return Error(Kind::kConfig, Text("what answers at ", client_->endpoint().Describe(), " is ",
                                   found, "; set [taskcell] engine = \"", found,
                                   "\" or \"auto\", or name the socket of "
                                   "the other one in [taskcell] engine_socket"))
      .Coded("docker_unreachable");
}

Result<ImageFacts> DockerEngine::CheckImage(const std::string& image) {
  Result<ImageAnswer> found = client_->InspectImage(image);
  if (!found.ok() && found.error().code == "image_missing" && info_.rootless) {
    Error error = std::move(found).error();
    error.text += Text("; ", kOtherStore, WhatRootHas(image),
                       ": pull it as this user, by `taskcell "
                       "image pull` or by `docker pull` with this socket in DOCKER_HOST");
    return error;
  }
  ImageAnswer answer = TRY(std::move(found));
  checked_image_ = image;
  image_ = ImageFacts{answer.id,      answer.architecture,      answer.user,
                      answer.volumes, answer.environment_names, answer.digests};
  return image_;
}

// Says nothing where there is no such engine, or it may not be asked.
std::string DockerEngine::WhatRootHas(const std::string& image) const {
  for (const std::string& socket : root_sockets_) {
    if (socket == client_->endpoint().socket_path) continue;
    EngineClient root(Endpoint{socket, "root's engine", {}});
    root.CancelOn(cancel_fd_);
    const Result<ImageAnswer> found = root.InspectImage(image);
    if (found.ok()) return Text(" (the image is there, at ", root.endpoint().Url(), ")");
    if (found.error().code == "image_missing")
      return Text(" (the image is not there either, at ", root.endpoint().Url(), ")");
  }
  return "";
}

std::string DockerEngine::Identity() const {
  return Text(client_->endpoint().socket_path, " ", info_.id);
}

Result<CellIds> DockerEngine::ChooseIds(const std::string& run_id) {
  if (info_.rootless) {
    return ChooseRootlessIds(TRY(native::ReadSubordinateIds(::geteuid())), ::geteuid(), ::getegid(),
                             run_id);
  }
  native::FreeSubordinateIds free = TRY(native::ReadFreeSubordinateIds(::geteuid(), ::getegid()));
  return ChooseDaemonIds(free.ids, ::geteuid(), ::getegid(), run_id);
}

Result<std::unique_ptr<RunningCell>> DockerEngine::Make(cell::CellPlan plan,
                                                        const CellPlaces& places) {
  may_have_made_ = false;
  client_->CancelOn(cancel_fd_);
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
  terms.may_exist = &may_have_made_;
  Result<std::unique_ptr<RunningCell>> made =
      DockerCell::Make(client_, image_, std::move(plan), places, terms);
  if (made.ok()) return made;
  return NameSelinux(std::move(made).error(), info_, SelinuxEnforce(), places.run_directory);
}

}  // namespace taskcell::probe
