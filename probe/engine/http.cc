#include "probe/engine/http.h"

#include <curl/curl.h>
#include <poll.h>

#include <cerrno>
#include <string_view>

#include "launcher/base/defer.h"
#include "launcher/base/text.h"
#include "launcher/sys/failure.h"
#include "launcher/sys/file.h"
#include "launcher/sys/socket.h"
#include "probe/engine/curl_start.h"

namespace taskcell::probe {
namespace {

struct Intake {
  CURL* curl = nullptr;
  const std::function<bool(std::string_view)>* take = nullptr;  // nullptr: the body is kept
  HttpAnswer answer;
  std::size_t header_bytes = 0;
  bool overflow = false;
  bool refused = false;  // by `take`
};

bool IsSuccess(CURL* curl) {
  constexpr long kSuccess = 200;
  long status = 0;
  return curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &status) == CURLE_OK && status == kSuccess;
}

std::size_t TakeBody(char* data, std::size_t size, std::size_t count, void* user) {
  auto* intake = static_cast<Intake*>(user);
  std::size_t bytes = size * count;
  if (intake->take != nullptr && IsSuccess(intake->curl)) {
    intake->refused = !(*intake->take)({data, bytes});
    return intake->refused ? 0 : bytes;
  }
  if (bytes > kMaxEngineAnswerBytes - intake->answer.body.size()) {
    intake->overflow = true;
    return 0;
  }
  intake->answer.body.append(data, bytes);
  return bytes;
}

char Lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

bool TakeNamed(std::string_view line, std::string_view name, std::string* value) {
  if (line.size() <= name.size() || line[name.size()] != ':') return false;
  for (std::size_t i = 0; i < name.size(); ++i)
    if (Lower(line[i]) != name[i]) return false;
  *value = Trim(line.substr(name.size() + 1));
  return true;
}

std::size_t TakeHeader(char* data, std::size_t size, std::size_t count, void* user) {
  auto* intake = static_cast<Intake*>(user);
  std::size_t bytes = size * count;
  intake->header_bytes += bytes;
  if (intake->header_bytes > kMaxEngineHeaderBytes) {
    intake->overflow = true;
    return 0;
  }
  (void)TakeNamed(std::string_view(data, bytes), "api-version", &intake->answer.api_version);
  return bytes;
}

bool IsCancelled(int fd) {
  if (fd < 0) return false;
  Result<short> asked = sys::Poll(fd, POLLIN, 0);
  return !asked.ok() || asked.value() != 0;
}

// curl_easy_perform(3), given up as soon as `cancel_fd` says so.
CURLcode Perform(CURLM* multi, CURL* curl, int cancel_fd) {
  constexpr int kLookMs = 1000;  // libcurl waits no longer than to the next of its own time limits
  if (curl_multi_add_handle(multi, curl) != CURLM_OK) return CURLE_FAILED_INIT;
  Defer take_back([&] { (void)curl_multi_remove_handle(multi, curl); });  // ignoring: it was added
  struct curl_waitfd cancel = {cancel_fd, CURL_WAIT_POLLIN, 0};
  const unsigned waited_for = cancel_fd >= 0 ? 1 : 0;
  int running = 1;
  while (true) {
    if (IsCancelled(cancel_fd)) return CURLE_ABORTED_BY_CALLBACK;
    if (curl_multi_perform(multi, &running) != CURLM_OK) return CURLE_FAILED_INIT;
    if (running == 0) break;
    if (curl_multi_poll(multi, &cancel, waited_for, kLookMs, nullptr) != CURLM_OK)
      return CURLE_FAILED_INIT;
  }
  int more = 0;
  const CURLMsg* done = curl_multi_info_read(multi, &more);
  return done == nullptr ? CURLE_FAILED_INIT : done->data.result;
}

using HeaderList = std::unique_ptr<curl_slist, decltype(&curl_slist_free_all)>;

bool IsSocket(std::string_view path) {
  Result<struct stat> info = sys::StatAt(AT_FDCWD, std::string(path));
  return info.ok() && (S_ISSOCK(info->st_mode) || S_ISLNK(info->st_mode));
}

// Returns what a person can do about a connect that failed with `os_error`.
std::string ConnectRemedy(int os_error, std::string_view socket_path) {
  bool podman = socket_path.find("podman") != std::string_view::npos;
  switch (os_error) {
    case ENOENT:
      if (podman)
        return "there is no socket: start it with `systemctl --user start podman.socket` (as root "
               "without --user)";
      return "there is no socket: start Docker, or name its socket in DOCKER_HOST or in "
             "config.toml "
             "[taskcell] engine_socket";
    case ECONNREFUSED:
      if (!IsSocket(socket_path))
        return "it is no socket: name the engine's in DOCKER_HOST or in config.toml [taskcell] "
               "engine_socket";
      return "the socket is there but nothing listens on it: start Docker";
    case EACCES:
    case EPERM:
      return "this user may not use the socket: let it run `docker version` first (group docker)";
    default:
      return "check that `docker version` works for this user";
  }
}

}  // namespace

std::string EscapeUrl(std::string_view text) {
  constexpr std::string_view kPlain =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~/:@";
  constexpr char kHex[] = "0123456789ABCDEF";
  std::string out;
  for (char c : text) {
    if (kPlain.find(c) != std::string_view::npos) {
      out += c;
      continue;
    }
    auto byte = static_cast<unsigned char>(c);
    out += '%';
    out += kHex[byte >> 4U];
    out += kHex[byte & 15U];
  }
  return out;
}

struct HttpClient::Handle {
  Handle() : curl(curl_easy_init()), multi(curl_multi_init()) {}
  ~Handle() {
    if (curl != nullptr) curl_easy_cleanup(curl);
    if (multi != nullptr) (void)curl_multi_cleanup(multi);  // ignoring: nothing is left in it
  }
  Handle(const Handle&) = delete;
  Handle& operator=(const Handle&) = delete;
  CURL* curl;
  CURLM* multi;  // holds the live connection
};

HttpClient::HttpClient(Endpoint endpoint) : endpoint_(std::move(endpoint)) {
  (void)StartCurl();  // ignoring: a failure shows as a handle that can't be made
  handle_ = std::make_unique<Handle>();
}
HttpClient::~HttpClient() = default;
HttpClient::HttpClient(HttpClient&&) noexcept = default;
HttpClient& HttpClient::operator=(HttpClient&&) noexcept = default;

void HttpClient::Disconnect() { handle_ = std::make_unique<Handle>(); }

Result<HttpAnswer> HttpClient::Call(const HttpRequest& request) {
  CURL* curl = handle_->curl;
  if (curl == nullptr || handle_->multi == nullptr)
    return Error(Kind::kInternal, "libcurl gave no handle");
  curl_easy_reset(curl);
  Intake intake;
  intake.curl = curl;
  if (request.take) intake.take = &request.take;
  std::string url = "http://engine" + request.target;
  HeaderList headers(nullptr, &curl_slist_free_all);
  headers.reset(curl_slist_append(nullptr, "Expect:"));
  curl_slist_append(headers.get(), Text("Content-Type: ", request.content_type).c_str());

  curl_easy_setopt(curl, CURLOPT_URL, url.c_str());
  curl_easy_setopt(curl, CURLOPT_UNIX_SOCKET_PATH, endpoint_.socket_path.c_str());
  curl_easy_setopt(curl, CURLOPT_PROTOCOLS_STR, "http");
  curl_easy_setopt(curl, CURLOPT_PROXY, "");
  curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
  curl_easy_setopt(curl, CURLOPT_FOLLOWLOCATION, 0L);
  curl_easy_setopt(curl, CURLOPT_HTTP09_ALLOWED, 0L);
  curl_easy_setopt(curl, CURLOPT_HTTP_VERSION, static_cast<long>(CURL_HTTP_VERSION_1_1));
  long connect_ms = kEngineConnectTimeout.count();  // libcurl takes variadic longs
  long total_ms = request.timeout.count();
  curl_easy_setopt(curl, CURLOPT_CONNECTTIMEOUT_MS, connect_ms);
  curl_easy_setopt(curl, CURLOPT_TIMEOUT_MS, total_ms);
  if (request.quiet.count() > 0) {
    long quiet_s = request.quiet.count();
    curl_easy_setopt(curl, CURLOPT_LOW_SPEED_LIMIT, 1L);
    curl_easy_setopt(curl, CURLOPT_LOW_SPEED_TIME, quiet_s);
  }
  curl_easy_setopt(curl, CURLOPT_HTTPHEADER, headers.get());
  curl_easy_setopt(curl, CURLOPT_CUSTOMREQUEST, request.method);
  if (std::string_view(request.method) == "POST") {
    curl_easy_setopt(curl, CURLOPT_POSTFIELDS, request.body.data());
    curl_easy_setopt(curl, CURLOPT_POSTFIELDSIZE_LARGE,
                     static_cast<curl_off_t>(request.body.size()));
  }
  curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, &TakeBody);
  curl_easy_setopt(curl, CURLOPT_WRITEDATA, &intake);
  curl_easy_setopt(curl, CURLOPT_HEADERFUNCTION, &TakeHeader);
  curl_easy_setopt(curl, CURLOPT_HEADERDATA, &intake);

  CURLcode code = Perform(handle_->multi, curl, cancel_fd_);
  if (code != CURLE_OK) {
    if (intake.overflow) {
      return Error(Kind::kViolation, Text("engine at ", endpoint_.Describe(), ": the answer to ",
                                          request.method, ' ', request.target, " is longer than ",
                                          kMaxEngineAnswerBytes, " bytes, or its headers than ",
                                          kMaxEngineHeaderBytes, "; this is no Docker engine"))
          .Coded("docker_unreachable");
    }
    if (intake.refused)
      return Error(Kind::kViolation, Text("engine at ", endpoint_.Describe(), ": ", request.method,
                                          ' ', request.target, ": the answer makes no sense"))
          .Coded("docker_unreachable");
    long os_error = 0;
    curl_easy_getinfo(curl, CURLINFO_OS_ERRNO, &os_error);
    return Unreachable(code, static_cast<int>(os_error), request);
  }
  curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &intake.answer.status);
  long connects = 0;
  curl_easy_getinfo(curl, CURLINFO_NUM_CONNECTS, &connects);
  intake.answer.new_connection = connects > 0;
  return std::move(intake.answer);
}

Error HttpClient::Unreachable(int curl_code, int os_error, const HttpRequest& request) const {
  auto code = static_cast<CURLcode>(curl_code);
  std::string where = Text("engine at ", endpoint_.Describe(), ": ");
  if (code == CURLE_COULDNT_CONNECT) {
    int reason = os_error == 0 ? ECONNREFUSED : os_error;
    Error error = sys::FailureOf(reason, where + "connect").Coded("docker_unreachable");
    error.text += "; " + ConnectRemedy(reason, endpoint_.socket_path);
    return error;
  }
  std::string what = Text(request.method, ' ', request.target, ": ");
  if (code == CURLE_ABORTED_BY_CALLBACK)
    return Error(Kind::kSystem, where + what + "given up, as asked", ECANCELED).Coded("stopped");
  if (code == CURLE_OPERATION_TIMEDOUT) {
    what += request.quiet.count() > 0
                ? Text("nothing came for ", request.quiet.count(), " s, or no end within ",
                       request.timeout.count() / 1000, " s")
                : Text("no whole answer within ", request.timeout.count(), " ms");
    what += "; the engine hangs: restart it, and see its log";
  } else if (code == CURLE_PARTIAL_FILE || code == CURLE_GOT_NOTHING || code == CURLE_RECV_ERROR) {
    what += Text("the answer was cut off (", curl_easy_strerror(code),
                 "); the engine died or was restarted: see its log");
  } else {
    what +=
        Text("the answer is not HTTP (", curl_easy_strerror(code), "); this is no Docker engine");
  }
  return Error(Kind::kSystem, where + what, os_error).Coded("docker_unreachable");
}

}  // namespace taskcell::probe
