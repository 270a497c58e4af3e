#pragma once

#include <sys/types.h>

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "launcher/base/result.h"
#include "probe/engine/answers.h"
#include "probe/engine/api_version.h"
#include "probe/engine/create_request.h"
#include "probe/engine/http.h"

namespace taskcell::probe {

// Asks one engine over the Docker Engine API. Serves one thread. Calls negotiate the version first
// where Negotiate was not called; errors name the endpoint and where it came from.
class EngineClient {
 public:
  explicit EngineClient(Endpoint endpoint) : http_(std::move(endpoint)) {}

  const Endpoint& endpoint() const { return http_.endpoint(); }

  // As HttpClient::CancelOn: any call may then fail with the code stopped.
  void CancelOn(int fd) { http_.CancelOn(fd); }

  // Asks /_ping by a new connection, and /version where that does not settle it. Codes:
  // docker_unreachable (no answer, or none of an engine), engine_unsupported (no version in
  // common).
  Result<ApiVersion> Negotiate();

  // Asks for it anew.
  Result<EngineInfo> Info();

  // What the last Info answered, as long as it holds: every answer since came by the same
  // connection, whose other end cannot have become another engine, the socket's path still leads to
  // the same socket, and kInfoLifetime is not over. Else nothing.
  std::optional<EngineInfo> KnownInfo() const;
  static constexpr std::chrono::seconds kInfoLifetime{60};

  // Code image_missing with the pull command on 404.
  Result<ImageAnswer> InspectImage(const std::string& image);

  // Codes: image_missing (404), container_create_failed (other refusals, with the engine's words),
  // docker_unreachable (also where it does not show in time what has the name: it may be there).
  // Where a kept connection dies under the request, it is sent again, and the name may be taken
  // then by what the first one made: a container of the run's own name and label that waits to be
  // started is the one asked for, any other is a refusal.
  Result<CreateAnswer> Create(const CreateRequest& request);

  // Code container_start_failed.
  Status Start(const std::string& id);

  // kViolation or docker_unreachable as usual; err ENOENT when there is no such container. Waits no
  // longer than `timeout` for the answer.
  Result<ContainerAnswer> Inspect(const std::string& id,
                                  std::chrono::milliseconds timeout = kEngineCallTimeout);

  // What the engine says the container's limits are. Errors as Inspect.
  Result<ReportedLimits> InspectLimits(const std::string& id);

  // Makes an image named `name` ("repository:latest": Podman 4.3 takes no other tag) of a root file
  // system given as a tar archive, with one label, and returns its id. Nothing is pulled. Code
  // container_create_failed.
  Result<std::string> ImportImage(const std::string& archive, const std::string& name,
                                  const std::string& label);

  // Images that carry the label "name=value". Code docker_unreachable.
  Result<std::vector<ListedImage>> ListImages(const std::string& label);

  // Success means that there is no such image (any more). Code cleanup_failed.
  Status RemoveImage(const std::string& name);

  // SIGKILL to PID 1; success also when it does not run (any more).
  Status Kill(const std::string& id);

  // Success means that the container is gone: 204 and 404 say so, after any other answer a
  // follow-up inspect does; a removal that is in progress is waited for, at most kRemoveWait
  // altogether, with one forced retry. Code cleanup_failed otherwise.
  Status Remove(const std::string& id);

  // Containers in any state that carry the task label and, where not empty, this home label. Codes:
  // docker_unreachable (no answer, or a server error), engine_unsupported (another refusal).
  Result<std::vector<ListedContainer>> ListTasks(const std::string& home_label);

  static constexpr std::chrono::milliseconds kRemoveWait{8000};
  // How long a name may be taken by a container that nobody can look at yet.
  static constexpr std::chrono::milliseconds kCreateWait{5000};
  static constexpr std::chrono::milliseconds kImportTimeout{30000};
  // To start a container or to end it: processes, mounts and cgroups, on a busy host.
  static constexpr std::chrono::milliseconds kStartTimeout{30000};

 private:
  Result<HttpAnswer> Call(const char* method, const std::string& target, std::string body = {},
                          std::chrono::milliseconds timeout = kEngineCallTimeout);
  Result<std::optional<CreateAnswer>> FindCreated(const CreateRequest& request);
  Result<std::string> InspectText(const std::string& id, std::chrono::milliseconds timeout);
  Result<HttpAnswer> Ask(const HttpRequest& request);
  Error Refused(const std::string& what, const HttpAnswer& answer, std::string_view code) const;

  // A socket's file, as stat(2) has it: another engine that listens at the same path has another. A
  // number of a file that is gone may be given again, the time of its last change is not.
  struct SocketFile {
    dev_t device = 0;
    ino_t inode = 0;
    time_t changed_s = 0;
    long changed_ns = 0;
    bool operator==(const SocketFile&) const = default;
  };
  struct Known {
    EngineInfo info;
    SocketFile file;
    std::chrono::steady_clock::time_point asked;
  };
  static std::optional<SocketFile> FileOf(const Endpoint& endpoint);

  HttpClient http_;
  int minor_ = -1;                       // -1: not negotiated yet
  std::optional<SocketFile> connected_;  // before the connection was made that is in use
  std::optional<Known> known_;
};

}  // namespace taskcell::probe
