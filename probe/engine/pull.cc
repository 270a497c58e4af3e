#include "probe/engine/pull.h"

#include <optional>

#include "launcher/base/text.h"
#include "probe/engine/client.h"
#include "probe/engine/http.h"

namespace taskcell::probe {
namespace {

constexpr std::string_view kPullFailed = "pull_failed";

struct Remedy {
  std::string_view sign;  // in lower case
  std::string_view what;
};

constexpr std::string_view kNotForYou =
    "the image is not there, or the registry wants a login, which is not sent from here: "
    "check the name, or docker login and docker pull against this engine";

// The first whose sign is found holds.
constexpr Remedy kRemedies[] = {
    {"toomanyrequests", "the registry wants you to wait, or to sign in: docker login, docker pull"},
    {"no matching manifest",
     "the registry has no image of that name for this machine's architecture: choose another tag"},
    {"unauthorized",
     "the registry wants a login, which is not sent from here: docker login, then "
     "docker pull against this engine"},
    {"denied: permission denied", kNotForYou},
    {"permission denied",
     "the engine may not use a file of its own, by its rights or a policy such as SELinux: see the "
     "engine's log (journalctl -u docker)"},
    {"denied", kNotForYou},
    {"manifest unknown", "the registry has no such tag: check the image's name and tag"},
    {"not found", "the registry has no such image: check its name and tag"},
    {"invalid reference", "write the image as [REGISTRY/]NAME[:TAG] or with @sha256:DIGEST"},
    {"no space left", "make room where the engine keeps its images (docker system df)"},
    {"server gave http response to https client",
     "the registry speaks plain HTTP: serve it by HTTPS, or list it in the engine's "
     "insecure-registries"},
    {"x509", "the engine does not trust the registry's certificate: install its CA for the engine"},
    {"no such host",
     "the registry's name is not known to the engine's host: check the name and DNS"},
    {"connection refused",
     "nothing answers at the registry's address: check its name and port, and "
     "that it runs"},
    {"no route to host", "the engine cannot reach the registry: check its network and proxy"},
    {"network is unreachable", "the engine cannot reach the registry: check its network and proxy"},
    {"timeout", "the engine cannot reach the registry in time: check its network and proxy"},
    {"eof", "the registry broke off: try again, and see the registry's log"},
};

Error Failed(const Endpoint& endpoint, const std::string& image, std::string_view why) {
  return Error(Kind::kSystem, Text("engine at ", endpoint.Describe(), ": '", Printable(image),
                                   "' was not pulled: ", why, "; ", PullRemedy(why)))
      .Coded(kPullFailed);
}

// Cuts what comes into lines and reads each.
class Progress {
 public:
  explicit Progress(const std::function<void(const PullLine&)>& on_line) : on_line_(on_line) {}

  // False: no more is wanted.
  bool Take(std::string_view bytes) {
    total_ += bytes.size();
    if (total_ > kMaxPullBytes) return Refuse("its progress has no end");
    for (char c : bytes) {
      if (c != '\n') {
        line_ += c;
        if (line_.size() > kMaxPullLineBytes) return Refuse("a line of its progress is too long");
      } else if (!TakeLine()) {
        return false;
      }
    }
    return true;
  }

  // What came last may lack its newline.
  bool End() { return TakeLine(); }

  const std::optional<Error>& fault() const { return fault_; }
  const std::string& error() const { return error_; }  // the engine's own

 private:
  bool Refuse(std::string text) {
    fault_ = Error(Kind::kViolation, std::move(text));
    return false;
  }

  bool TakeLine() {
    const std::string line(Trim(line_));
    line_.clear();
    if (line.empty()) return true;
    Result<PullLine> read = ParsePullLine(line);
    if (!read.ok()) {
      fault_ = std::move(read).error();
      return false;
    }
    if (error_.empty()) error_ = read->error;
    if (on_line_) on_line_(read.value());
    return true;
  }

  const std::function<void(const PullLine&)>& on_line_;
  std::string line_;
  std::size_t total_ = 0;
  std::string error_;
  std::optional<Error> fault_;
};

}  // namespace

Result<std::string> NameToPull(const std::string& image) {
  constexpr std::size_t kIdDigits = 64;
  const bool is_hex = image.find_first_not_of("0123456789abcdef") == std::string::npos;
  if (image.starts_with("sha256:") || (image.size() == kIdDigits && is_hex))
    return Error(Kind::kConfig, Text("'", Printable(image),
                                     "' is an image's id, by which no registry is asked: name it "
                                     "as [REGISTRY/]NAME[:TAG]"))
        .Coded(kPullFailed);
  if (image.find('@') != std::string::npos) return image;
  const std::size_t slash = image.rfind('/');
  const std::size_t name = slash == std::string::npos ? 0 : slash + 1;
  return image.find(':', name) == std::string::npos ? image + ":latest" : image;
}

std::string_view PullRemedy(std::string_view why) {
  const std::string lower = Lower(why);
  for (const Remedy& remedy : kRemedies)
    if (lower.find(remedy.sign) != std::string::npos) return remedy.what;
  return "see the engine's log (journalctl -u docker)";
}

Result<ImageAnswer> PullImage(const Endpoint& endpoint, const std::string& image, int cancel_fd,
                              const std::function<void(const PullLine&)>& on_line) {
  constexpr long kSuccess = 200;
  const std::string name = TRY(NameToPull(image));
  EngineClient client(endpoint);
  client.CancelOn(cancel_fd);
  const ApiVersion version = TRY(client.Negotiate());
  HttpClient http(endpoint);
  http.CancelOn(cancel_fd);
  Progress progress(on_line);
  HttpRequest request;
  request.method = "POST";
  request.target = Text("/v", version.Name(), "/images/create?fromImage=", EscapeUrl(name));
  request.timeout = kPullLimit;
  request.quiet = kPullQuiet;
  request.take = [&progress](std::string_view bytes) { return progress.Take(bytes); };
  Result<HttpAnswer> answer = http.Call(request);
  if (progress.fault().has_value())
    return Error(*progress.fault())
        .With(Text("engine at ", endpoint.Describe()))
        .Coded("docker_unreachable");
  if (!progress.error().empty()) return Failed(endpoint, image, progress.error());
  if (!answer.ok()) return std::move(answer).error();
  if (answer->status != kSuccess) return Failed(endpoint, image, ErrorMessage(answer->body));
  if (!progress.End())
    return Error(*progress.fault())
        .With(Text("engine at ", endpoint.Describe()))
        .Coded("docker_unreachable");
  if (!progress.error().empty()) return Failed(endpoint, image, progress.error());
  // The end of the answer is no proof: whether the image is there decides.
  Result<ImageAnswer> there = client.InspectImage(name);
  if (there.ok() || there.error().code != "image_missing") return there;
  return Failed(endpoint, image, "the engine's answer ended, and the image is not there");
}

}  // namespace taskcell::probe
