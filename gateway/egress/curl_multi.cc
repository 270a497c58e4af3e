#include "gateway/egress/curl_multi.h"

#include <sys/epoll.h>

#include <algorithm>
#include <optional>

#include "probe/engine/curl_start.h"

namespace taskcell::gateway {
namespace {

constexpr long kPooledConnections = 64;

}  // namespace

Result<std::unique_ptr<CurlMulti>> CurlMulti::Make(EventLoop* loop) {
  std::unique_ptr<CurlMulti> multi(probe::StartCurl() ? new CurlMulti(loop) : nullptr);
  if (multi == nullptr || !multi->Prepare())
    return Error(Kind::kInternal, "libcurl could not be initialized");
  return multi;
}

CurlMulti::~CurlMulti() {
  curl_multi_cleanup(multi_);
  for (int fd : watched_) loop_->Forget(fd);
}

bool CurlMulti::Prepare() {
  if (multi_ == nullptr) return false;
  return curl_multi_setopt(multi_, CURLMOPT_SOCKETFUNCTION, &OnSocket) == CURLM_OK &&
         curl_multi_setopt(multi_, CURLMOPT_SOCKETDATA, this) == CURLM_OK &&
         curl_multi_setopt(multi_, CURLMOPT_TIMERFUNCTION, &OnTimer) == CURLM_OK &&
         curl_multi_setopt(multi_, CURLMOPT_TIMERDATA, this) == CURLM_OK &&
         curl_multi_setopt(multi_, CURLMOPT_MAXCONNECTS, kPooledConnections) == CURLM_OK;
}

int CurlMulti::OnSocket(CURL* /*easy*/, curl_socket_t fd, int what, void* self, void* /*socket*/) {
  static_cast<CurlMulti*>(self)->Watch(fd, what);
  return 0;
}

void CurlMulti::Watch(int fd, int what) {
  auto found = std::find(watched_.begin(), watched_.end(), fd);
  if (what == CURL_POLL_REMOVE) {
    loop_->Forget(fd);
    if (found != watched_.end()) watched_.erase(found);
    return;
  }
  uint32_t events = 0;
  if ((what & CURL_POLL_IN) != 0) events |= EPOLLIN;
  if ((what & CURL_POLL_OUT) != 0) events |= EPOLLOUT;
  if (found != watched_.end()) {
    loop_->Change(fd, events);
    return;
  }
  Status status = loop_->Watch(fd, events, [this, fd](uint32_t ready) {
    int actions = 0;
    if ((ready & EPOLLIN) != 0) actions |= CURL_CSELECT_IN;
    if ((ready & EPOLLOUT) != 0) actions |= CURL_CSELECT_OUT;
    if ((ready & (EPOLLERR | EPOLLHUP)) != 0) actions |= CURL_CSELECT_ERR;
    Act(fd, actions);
  });
  if (status.ok()) watched_.push_back(fd);  // else the task ends by its idle time
}

int CurlMulti::OnTimer(CURLM* /*multi*/, long timeout_ms, void* self) {
  auto* multi = static_cast<CurlMulti*>(self);
  std::optional<EventLoop::Clock::time_point> when;
  if (timeout_ms >= 0) when = EventLoop::Clock::now() + std::chrono::milliseconds(timeout_ms);
  multi->loop_->SetTimer(when, [multi] { multi->Act(CURL_SOCKET_TIMEOUT, 0); });
  return 0;
}

void CurlMulti::Act(int fd, int actions) {
  int running = 0;
  (void)curl_multi_socket_action(multi_, fd, actions, &running);  // ignoring: Reap hears of each
  Reap();
}

void CurlMulti::Reap() {
  int left = 0;
  while (CURLMsg* message = curl_multi_info_read(multi_, &left)) {
    if (message->msg != CURLMSG_DONE) continue;
    CURLcode result = message->data.result;
    char* task = nullptr;
    (void)curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, &task);
    static_cast<CurlTask*>(static_cast<void*>(task))->End(result);
  }
  Settle();
}

void CurlMulti::Touch(CurlTask* task) {
  if (std::find(touched_.begin(), touched_.end(), task) == touched_.end()) touched_.push_back(task);
}

void CurlMulti::Settle() {
  if (is_settling_) return;  // one that settles may make curl go on, and touch some anew
  is_settling_ = true;
  while (!touched_.empty()) {
    CurlTask* task = touched_.back();
    touched_.pop_back();
    task->Settle();
  }
  is_settling_ = false;
}

}  // namespace taskcell::gateway
