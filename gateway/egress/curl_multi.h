#pragma once

#include <curl/curl.h>

#include <memory>
#include <vector>

#include "gateway/egress/event_loop.h"
#include "launcher/base/result.h"

namespace taskcell::gateway {

struct CurlEasyDeleter {
  void operator()(CURL* easy) const { curl_easy_cleanup(easy); }
};
using CurlEasy = std::unique_ptr<CURL, CurlEasyDeleter>;

// What a curl handle works for: the handle's CURLOPT_PRIVATE is a pointer to it.
class CurlTask {
 public:
  virtual ~CurlTask() = default;
  // The handle has ended; may destroy this.
  virtual void End(CURLcode result) = 0;
  // All that curl had for it for now has been given; may destroy this. Called after Touch.
  virtual void Settle() {}
};

// A curl multi handle whose descriptors and timer are in the event loop; the loop's thread only.
class CurlMulti {
 public:
  static Result<std::unique_ptr<CurlMulti>> Make(EventLoop* loop);
  ~CurlMulti();  // after every handle in it is removed
  CurlMulti(const CurlMulti&) = delete;
  CurlMulti& operator=(const CurlMulti&) = delete;

  CURLM* get() { return multi_; }
  // Tells ended tasks so, and settles the others that were touched; called wherever curl may have
  // ended one.
  void Reap();
  // `task` is to be settled once curl has come to the end of what it is doing.
  void Touch(CurlTask* task);
  // `task` is no more.
  void Drop(CurlTask* task) { std::erase(touched_, task); }

 private:
  explicit CurlMulti(EventLoop* loop) : loop_(loop), multi_(curl_multi_init()) {}
  bool Prepare();
  static int OnSocket(CURL* easy, curl_socket_t fd, int what, void* self, void* socket);
  static int OnTimer(CURLM* multi, long timeout_ms, void* self);
  void Watch(int fd, int what);
  void Act(int fd, int actions);
  void Settle();

  EventLoop* loop_;
  CURLM* multi_;
  std::vector<int> watched_;
  std::vector<CurlTask*> touched_;
  bool is_settling_ = false;
};

}  // namespace taskcell::gateway
