#include "probe/engine/client.h"

#include <fcntl.h>

#include <cerrno>
#include <thread>

#include "launcher/base/json_text.h"
#include "launcher/base/text.h"
#include "launcher/sys/file.h"

namespace taskcell::probe {
namespace {

constexpr long kOk = 200;
constexpr long kServerError = 500;
constexpr long kCreated = 201;
constexpr long kNoContent = 204;
constexpr long kNotModified = 304;
constexpr long kNotFound = 404;
constexpr long kConflict = 409;
constexpr std::chrono::milliseconds kPause{100};  // between two looks at a container

std::string ContainerPath(const std::string& id, std::string_view action) {
  return Text("/containers/", EscapeUrl(id), action);
}

// What a person can do about an answer that is not in the engine's own words.
std::string_view RemedyFor(long status) {
  constexpr long kUnauthorized = 401;
  constexpr long kForbidden = 403;
  if (status == kUnauthorized || status == kForbidden)
    return "; something before the engine (an authorization plugin, a proxy of its socket) refuses "
           "this: allow it there";
  if (status == kConflict) return "; see what is there: docker ps --all";
  if (status >= kServerError)
    return "; see the engine's log (journalctl -u docker), and restart it where it stays so";
  return "";
}

}  // namespace

Error EngineClient::Refused(const std::string& what, const HttpAnswer& answer,
                            std::string_view code) const {
  return Error(Kind::kSystem,
               Text("engine at ", endpoint().Describe(), ": ", what, ": HTTP ", answer.status, ": ",
                    ErrorMessage(answer.body), RemedyFor(answer.status)))
      .Coded(code);
}

std::optional<EngineClient::SocketFile> EngineClient::FileOf(const Endpoint& endpoint) {
  const Result<UniqueFd> file = sys::Open(endpoint.socket_path, O_PATH);
  if (!file.ok()) return std::nullopt;
  const Result<struct stat> info = sys::Stat(file->get());
  if (!info.ok()) return std::nullopt;
  return SocketFile{info->st_dev, info->st_ino, info->st_ctim.tv_sec, info->st_ctim.tv_nsec};
}

// Forgets what is known of the engine where another one may have answered.
Result<HttpAnswer> EngineClient::Ask(const HttpRequest& request) {
  const std::optional<SocketFile> before = FileOf(endpoint());
  Result<HttpAnswer> answer = http_.Call(request);
  if (answer.ok() && !answer->new_connection) return answer;
  known_.reset();
  connected_ = before;
  return answer;
}

std::optional<EngineInfo> EngineClient::KnownInfo() const {
  if (!known_.has_value()) return std::nullopt;
  if (std::chrono::steady_clock::now() - known_->asked >= kInfoLifetime) return std::nullopt;
  if (FileOf(endpoint()) != known_->file) return std::nullopt;
  return known_->info;
}

Result<ApiVersion> EngineClient::Negotiate() {
  std::string intent = Text("engine at ", endpoint().Describe());
  http_.Disconnect();  // its path may lead elsewhere by now
  HttpAnswer ping = TRY(Ask({"GET", "/_ping", {}}));
  if (ping.status >= 500) return Refused("GET /_ping", ping, "docker_unreachable");
  EngineVersion served;
  auto pinged = ParseApiVersion(ping.api_version);
  bool ping_settles = ping.status == kOk && pinged.ok() && pinged.value().minor <= kNewestApi.minor;
  if (ping_settles) {
    served.maximum = pinged.value();
  } else {
    HttpAnswer answer = TRY(Ask({"GET", "/version", {}}));
    if (answer.status != kOk) return Refused("GET /version", answer, "docker_unreachable");
    served = TRY(ParseVersion(answer.body).With(intent));
  }
  ApiVersion version = TRY(NegotiateApi(served.minimum, served.maximum).With(intent));
  minor_ = version.minor;
  return version;
}

Result<HttpAnswer> EngineClient::Call(const char* method, const std::string& target,
                                      std::string body, std::chrono::milliseconds timeout) {
  if (minor_ < 0) TRY(Negotiate());
  return Ask({method, Text("/v", ApiVersion{minor_}.Name(), target), std::move(body), timeout});
}

Result<EngineInfo> EngineClient::Info() {
  HttpAnswer answer = TRY(Call("GET", "/info"));
  if (answer.status != kOk) return Refused("GET /info", answer, "docker_unreachable");
  EngineInfo info = TRY(ParseInfo(answer.body).With(Text("engine at ", endpoint().Describe())));
  if (connected_.has_value()) known_ = Known{info, *connected_, std::chrono::steady_clock::now()};
  return info;
}

Result<ImageAnswer> EngineClient::InspectImage(const std::string& image) {
  HttpAnswer answer = TRY(Call("GET", Text("/images/", EscapeUrl(image), "/json")));
  if (answer.status == kNotFound) {
    return Error(Kind::kUnsupported,
                 Text("image '", Printable(image), "' is not on this machine (engine at ",
                      endpoint().Describe(), "); run: docker pull ", Printable(image)))
        .Coded("image_missing");
  }
  if (answer.status != kOk) return Refused("image inspect", answer, "docker_unreachable");
  return ParseImage(answer.body).With(Text("engine at ", endpoint().Describe()));
}

// nullopt: the name is another's.
Result<std::optional<CreateAnswer>> EngineClient::FindCreated(const CreateRequest& request) {
  const auto give_up = std::chrono::steady_clock::now() + kCreateWait;
  while (true) {
    Result<ContainerAnswer> found = Inspect(ContainerName(request.plan.run_id));
    if (found.ok()) {
      const bool is_ours = found->run_label == request.plan.run_id && found->status == "created";
      return is_ours ? std::optional<CreateAnswer>({found->id, {}}) : std::nullopt;
    }
    // An engine takes the name first, and shows what it belongs to once that is made.
    if (found.error().err != ENOENT) return std::move(found).error();
    // What has it may be ours still, so this is no refusal.
    if (std::chrono::steady_clock::now() >= give_up)
      return Error(Kind::kSystem, Text("engine at ", endpoint().Describe(), ": the name ",
                                       ContainerName(request.plan.run_id),
                                       " is in use, and the engine did not show by what within ",
                                       kCreateWait.count(), " ms"))
          .Coded("docker_unreachable");
    std::this_thread::sleep_for(kPause);
  }
}

Result<CreateAnswer> EngineClient::Create(const CreateRequest& request) {
  if (minor_ < 0) TRY(Negotiate());
  CreateCall call = TRY(EncodeCreate(request));
  HttpAnswer answer = TRY(
      Call("POST", Text("/containers/create?name=", EscapeUrl(call.name)), std::move(call.body)));
  if (answer.status == kNotFound) return Refused("container create", answer, "image_missing");
  if (answer.status == kConflict) {
    std::optional<CreateAnswer> created = TRY(FindCreated(request));
    if (created.has_value()) return *std::move(created);
  }
  if (answer.status != kCreated)
    return Refused("container create", answer, "container_create_failed");
  auto created = ParseCreate(answer.body).With(Text("engine at ", endpoint().Describe()));
  if (!created.ok()) return std::move(created).error().Coded("container_create_failed");
  return created;
}

Status EngineClient::Start(const std::string& id) {
  HttpAnswer answer = TRY(Call("POST", ContainerPath(id, "/start"), {}, kStartTimeout));
  if (answer.status != kNoContent && answer.status != kNotModified)
    return Refused("container start", answer, "container_start_failed");
  return Ok();
}

Result<std::string> EngineClient::InspectText(const std::string& id,
                                              std::chrono::milliseconds timeout) {
  HttpAnswer answer = TRY(Call("GET", ContainerPath(id, "/json"), {}, timeout));
  if (answer.status == kOk) return std::move(answer.body);
  Error error = Refused("container inspect", answer, "docker_unreachable");
  if (answer.status == kNotFound) error.err = ENOENT;
  return error;
}

Result<ContainerAnswer> EngineClient::Inspect(const std::string& id,
                                              std::chrono::milliseconds timeout) {
  return ParseContainer(TRY(InspectText(id, timeout)))
      .With(Text("engine at ", endpoint().Describe()));
}

Result<ReportedLimits> EngineClient::InspectLimits(const std::string& id) {
  return ParseReportedLimits(TRY(InspectText(id, kEngineCallTimeout)))
      .With(Text("engine at ", endpoint().Describe()));
}

Result<std::string> EngineClient::ImportImage(const std::string& archive, const std::string& name,
                                              const std::string& label) {
  if (minor_ < 0) TRY(Negotiate());
  std::size_t colon = name.rfind(':');
  std::string target = Text("/v", ApiVersion{minor_}.Name(),
                            "/images/create?fromSrc=-&repo=", EscapeUrl(name.substr(0, colon)),
                            "&tag=", EscapeUrl(name.substr(colon + 1)),
                            "&changes=", EscapeUrl(Text("LABEL ", label)));
  HttpAnswer answer = TRY(Ask({"POST", target, archive, kImportTimeout, "application/x-tar"}));
  if (answer.status != kOk) return Refused("image import", answer, "container_create_failed");
  // What failed stands in the last of several values; whether the image is there decides.
  auto made = InspectImage(name);
  if (made.ok()) return made->id;
  Error error = Refused("image import", answer, "container_create_failed");
  error.text += Text("; afterwards: ", made.error().text);
  return error;
}

Result<std::vector<ListedImage>> EngineClient::ListImages(const std::string& label) {
  JsonText filter;
  filter.Open('{').Key("label").Open('[').String(label).Close(']').Close('}');
  HttpAnswer answer = TRY(Call("GET", Text("/images/json?filters=", EscapeUrl(filter.text()))));
  if (answer.status != kOk) return Refused("image list", answer, "docker_unreachable");
  return ParseImageList(answer.body).With(Text("engine at ", endpoint().Describe()));
}

Status EngineClient::RemoveImage(const std::string& name) {
  HttpAnswer answer = TRY(Call("DELETE", Text("/images/", EscapeUrl(name))));
  if (answer.status == kOk || answer.status == kNotFound) return Ok();
  return Refused(Text("image ", name, " could not be removed; remove it with `docker rmi`"), answer,
                 "cleanup_failed");
}

Status EngineClient::Kill(const std::string& id) {
  HttpAnswer answer = TRY(Call("POST", ContainerPath(id, "/kill?signal=SIGKILL")));
  if (answer.status == kNoContent || answer.status == kNotFound || answer.status == kConflict)
    return Ok();
  auto state = Inspect(id);
  if (state.ok() ? !state.value().running : state.error().err == ENOENT) return Ok();
  return Refused("container kill", answer, "cleanup_failed");
}

Status EngineClient::Remove(const std::string& id) {
  auto give_up = std::chrono::steady_clock::now() + kRemoveWait;
  std::string target = ContainerPath(id, "?force=1&v=1");
  int attempts = 0;
  HttpAnswer answer;
  while (true) {
    if (attempts < 2) {
      ++attempts;
      answer = TRY(Call("DELETE", target, {}, kStartTimeout));
      if (answer.status == kNoContent || answer.status == kNotFound) return Ok();
    }
    // What the refusal means is not in its words: the container is there, on its way out, or gone.
    auto state = Inspect(id);
    if (!state.ok() && state.error().err == ENOENT) return Ok();
    bool on_its_way = state.ok() && state.value().status == "removing";
    if (std::chrono::steady_clock::now() >= give_up || (attempts >= 2 && !on_its_way)) break;
    if (on_its_way) attempts = 1;  // the one retry is kept for a container that stays
    std::this_thread::sleep_for(kPause);
  }
  return Refused(Text("container ", id,
                      " could not be removed; look at it with `docker inspect`, "
                      "and remove it with `docker rm --force`"),
                 answer, "cleanup_failed");
}

Result<std::vector<ListedContainer>> EngineClient::ListTasks(const std::string& home_label) {
  JsonText filter;
  filter.Open('{').Key("label").Open('[').String(Text(kLabelTask, "=1"));
  if (!home_label.empty()) filter.String(Text(kLabelHome, "=", home_label));
  filter.Close(']').Close('}');
  HttpAnswer answer =
      TRY(Call("GET", Text("/containers/json?all=1&filters=", EscapeUrl(filter.text()))));
  if (answer.status >= kServerError) return Refused("container list", answer, "docker_unreachable");
  if (answer.status != kOk) return Refused("container list", answer, "engine_unsupported");
  return ParseList(answer.body).With(Text("engine at ", endpoint().Describe()));
}

}  // namespace taskcell::probe
