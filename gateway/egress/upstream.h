#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "gateway/config/uplink.h"
#include "gateway/egress/event_loop.h"
#include "gateway/egress/http_request.h"
#include "gateway/egress/route.h"

namespace taskcell::gateway {

// One POST to a provider, built anew: nothing of it is bytes that came from a cell but the body.
struct UpstreamRequest {
  std::string url;
  std::vector<HeaderField> headers;
  const Credential* credential = nullptr;  // read by Start only; nullptr: none
  std::string body;
  bool body_is_secret = false;  // it is wiped with the transfer
  bool loopback = false;        // the address has to be loopback; else it has to be public
  Uplink uplink;                // its proxy is not asked for loopback, and may itself be anywhere
  int connect_seconds = kEgressConnectSeconds;
  int idle_seconds = kEgressUpstreamIdleSeconds;
};

struct UpstreamAnswer {
  int status = 0;
  std::vector<HeaderField> headers;  // names in lower case; of repeated ones each

  const std::string* Find(std::string_view name) const;
};

// How a transfer ended. `code` is empty when the answer arrived whole.
struct UpstreamEnd {
  std::string_view code;  // "egress_unreachable", "egress_timeout", "egress_address", ...
  std::string message;    // for a person; holds no secret
};

enum class Intake { kTaken, kWait, kAbort };

// Hears of one transfer, in the loop's thread. None of the calls may destroy the transfer but
// OnPause and OnEnd, after which nothing more is heard.
class UpstreamSink {
 public:
  virtual ~UpstreamSink() = default;
  // The connection stands, and the request begins to leave; again where it is sent again.
  virtual void OnSend() {}
  virtual Intake OnAnswer(const UpstreamAnswer& answer) = 0;
  // Only after OnAnswer. kWait: nothing was taken; the same bytes come again after Resume.
  virtual Intake OnBytes(std::string_view bytes) = 0;
  // All that has arrived so far has been given by the calls before. This one may destroy the
  // transfer, too.
  virtual void OnPause() {}
  virtual void OnEnd(const UpstreamEnd& end) = 0;
};

class UpstreamTransfer;
class CurlMulti;

// Sends requests to providers: libcurl, driven by the event loop. Certificates are verified against
// the system's or the uplink's; http is spoken to loopback only; proxies and .netrc of the
// environment are ignored; redirects are not followed; every address is classified when it is
// dialled, so a name that changes its mind is refused too, and nothing is sent where one of those
// that were tried is bad. (An uplink's proxy resolves names itself and gets to see nothing but the
// provider's name and what TLS shows.)
class UpstreamClient {
 public:
  static Result<std::unique_ptr<UpstreamClient>> Make(EventLoop* loop);
  ~UpstreamClient();  // after every transfer

  // Begins a transfer; `sink` must outlive it. Destroying it ends it without OnEnd.
  Result<std::unique_ptr<UpstreamTransfer>> Start(UpstreamRequest request, UpstreamSink* sink);

  CurlMulti* multi() { return multi_.get(); }

 private:
  explicit UpstreamClient(std::unique_ptr<CurlMulti> multi);
  std::unique_ptr<CurlMulti> multi_;
};

class UpstreamTransfer {
 public:
  virtual ~UpstreamTransfer() = default;
  // Goes on after kWait; may call the sink before it returns.
  virtual void Resume() = 0;
};

}  // namespace taskcell::gateway
