#include "gateway/egress/dial.h"

#include "gateway/egress/address.h"
#include "launcher/base/text.h"
#include "launcher/sys/socket.h"

namespace taskcell::gateway {
namespace {

// libcurl resolves in a thread of its own and connects; the socket is then taken from it.
class CurlDial : public Dial, private CurlTask {
 public:
  CurlDial(CurlMulti* multi, const AllowedHost& host, std::string proxy,
           std::function<void(DialEnd)> done)
      : multi_(multi),
        url_(Text("http://", host.Spelling(), "/")),
        proxy_(std::move(proxy)),
        done_(std::move(done)),
        easy_(curl_easy_init()) {}
  ~CurlDial() override {
    if (is_added_) (void)curl_multi_remove_handle(multi_->get(), easy_.get());
  }

  Status Begin(int seconds);

 private:
  void End(CURLcode result) override;
  DialEnd Explain(CURLcode result) const;
  static curl_socket_t OnOpen(void* self, curlsocktype purpose, struct curl_sockaddr* address);
  static int OnClose(void* self, curl_socket_t fd);

  template <typename Value>
  bool Set(CURLoption option, Value value) {
    return curl_easy_setopt(easy_.get(), option, value) == CURLE_OK;
  }

  CurlMulti* multi_;
  std::string url_;
  std::string proxy_;  // empty: none
  std::function<void(DialEnd)> done_;
  curl_socket_t taken_ = CURL_SOCKET_BAD;
  bool is_added_ = false;
  bool is_address_refused_ = false;
  CurlEasy easy_;  // last: it closes its socket through OnClose
};

Status CurlDial::Begin(int seconds) {
  bool is_set = easy_ != nullptr && Set(CURLOPT_URL, url_.c_str()) &&
                Set(CURLOPT_PROTOCOLS_STR, "http") && Set(CURLOPT_PROXY, proxy_.c_str()) &&
                Set(CURLOPT_NOPROXY, "") && Set(CURLOPT_HTTPPROXYTUNNEL, 1L) &&
                Set(CURLOPT_NETRC, CURL_NETRC_IGNORED) && Set(CURLOPT_NOSIGNAL, 1L) &&
                Set(CURLOPT_CONNECT_ONLY, 1L) && Set(CURLOPT_FRESH_CONNECT, 1L) &&
                // Each connection asks anew, so that what is answered is what is checked.
                Set(CURLOPT_DNS_CACHE_TIMEOUT, 0L) &&
                // A resolver that does not come back is left to itself: the loop does not wait.
                Set(CURLOPT_QUICK_EXIT, 1L) &&
                Set(CURLOPT_CONNECTTIMEOUT, static_cast<long>(seconds)) &&
                Set(CURLOPT_OPENSOCKETFUNCTION, &OnOpen) && Set(CURLOPT_OPENSOCKETDATA, this) &&
                Set(CURLOPT_CLOSESOCKETFUNCTION, &OnClose) && Set(CURLOPT_CLOSESOCKETDATA, this) &&
                Set(CURLOPT_PRIVATE, static_cast<CurlTask*>(this));
  if (!is_set || curl_multi_add_handle(multi_->get(), easy_.get()) != CURLM_OK)
    return Error(Kind::kInternal, "libcurl did not take the connection");
  is_added_ = true;
  return Ok();
}

void CurlDial::End(CURLcode result) {
  DialEnd end = Explain(result);
  curl_socket_t fd = CURL_SOCKET_BAD;
  if (end.code.empty() && curl_easy_getinfo(easy_.get(), CURLINFO_ACTIVESOCKET, &fd) == CURLE_OK) {
    taken_ = fd;
  }
  (void)curl_multi_remove_handle(multi_->get(), easy_.get());
  is_added_ = false;
  if (taken_ != CURL_SOCKET_BAD) {
    end.fd.Reset(taken_);
  } else if (end.code.empty()) {
    end.code = "egress_unreachable";
    end.message = "the connection was gone at once";
  }
  auto done = std::move(done_);
  done(std::move(end));  // may have destroyed this
}

DialEnd CurlDial::Explain(CURLcode result) const {
  if (is_address_refused_)
    return {{}, "egress_address", "its name leads to an address that is not public"};
  if (result == CURLE_OK) return {};
  if (result == CURLE_OPERATION_TIMEDOUT)
    return {{}, "egress_timeout", "it could not be connected to in time"};
  return {{},
          "egress_unreachable",
          Text("it can't be reached", proxy_.empty() ? "" : " through [taskcell] upstream_proxy ",
               proxy_, ": ", curl_easy_strerror(result))};
}

curl_socket_t CurlDial::OnOpen(void* self, curlsocktype /*purpose*/,
                               struct curl_sockaddr* address) {
  auto* dial = static_cast<CurlDial*>(self);
  bool is_good =
      !dial->proxy_.empty() || Classify(&address->addr, address->addrlen) == AddressKind::kPublic;
  dial->is_address_refused_ = dial->is_address_refused_ || !is_good;
  if (dial->is_address_refused_) return CURL_SOCKET_BAD;
  Result<UniqueFd> fd = sys::MakeSocket(address->family, address->socktype, address->protocol);
  return fd.ok() ? fd->Release() : CURL_SOCKET_BAD;
}

int CurlDial::OnClose(void* self, curl_socket_t fd) {
  if (static_cast<CurlDial*>(self)->taken_ != fd) UniqueFd(fd).Reset();
  return 0;
}

}  // namespace

Result<std::unique_ptr<Dial>> StartDial(CurlMulti* multi, const AllowedHost& host,
                                        const Uplink& uplink, int seconds,
                                        std::function<void(DialEnd)> done) {
  auto dial = std::make_unique<CurlDial>(multi, host, uplink.proxy, std::move(done));
  TRY(dial->Begin(seconds));
  return std::unique_ptr<Dial>(std::move(dial));
}

}  // namespace taskcell::gateway
