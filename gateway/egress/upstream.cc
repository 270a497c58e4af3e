#include "gateway/egress/upstream.h"

#include <curl/curl.h>

#include <algorithm>
#include <cstring>

#include "gateway/config/secret.h"
#include "gateway/egress/address.h"
#include "gateway/egress/curl_multi.h"
#include "launcher/base/text.h"
#include "launcher/sys/socket.h"

namespace taskcell::gateway {
namespace {

constexpr long kReadBytes = 64L << 10;
constexpr long kSendBytes = 512L << 10;  // at once, of a large body
constexpr long kSwitchingProtocols = 101;

struct SlistDeleter {
  void operator()(curl_slist* list) const {
    // The credential stands in one of them.
    for (curl_slist* item = list; item != nullptr; item = item->next)
      ::explicit_bzero(item->data, std::strlen(item->data));
    curl_slist_free_all(list);
  }
};
using HeaderList = std::unique_ptr<curl_slist, SlistDeleter>;

bool Append(HeaderList* list, std::string line) {
  curl_slist* longer = curl_slist_append(list->get(), line.c_str());
  ::explicit_bzero(line.data(), line.size());
  if (longer == nullptr) return false;
  (void)list->release();  // ignoring: `longer` begins with it
  list->reset(longer);
  return true;
}

}  // namespace

const std::string* UpstreamAnswer::Find(std::string_view name) const {
  for (const HeaderField& field : headers) {
    if (field.name == name) return &field.value;
  }
  return nullptr;
}

class CurlTransfer : public UpstreamTransfer, private CurlTask {
 public:
  CurlTransfer(CurlMulti* multi, UpstreamRequest request, UpstreamSink* sink)
      : multi_(multi), request_(std::move(request)), sink_(sink), easy_(curl_easy_init()) {}
  ~CurlTransfer() override;

  Status Begin();
  void Resume() override;

 private:
  void End(CURLcode result) override;
  void Settle() override { sink_->OnPause(); }
  static size_t OnHeader(char* data, size_t size, size_t count, void* self);
  static size_t OnData(char* data, size_t size, size_t count, void* self);
  static curl_socket_t OnOpen(void* self, curlsocktype purpose, struct curl_sockaddr* address);
  static int OnConnected(void* self, char* address, char* local, int port, int local_port);

  bool AddHeaders();
  bool SetOptions();
  bool SetUplink();
  bool HasProxy() const { return !request_.loopback && !request_.uplink.proxy.empty(); }
  template <typename Value>
  bool Set(CURLoption option, Value value) {
    return curl_easy_setopt(easy_.get(), option, value) == CURLE_OK;
  }
  bool TakeHeader(std::string_view line);
  UpstreamEnd Explain(CURLcode result) const;

  CurlMulti* multi_;
  UpstreamRequest request_;
  UpstreamSink* sink_;
  CurlEasy easy_;
  HeaderList headers_;
  UpstreamAnswer answer_;
  std::size_t head_bytes_ = 0;
  bool is_answered_ = false;
  bool is_added_ = false;
  bool is_head_too_large_ = false;
  bool is_address_refused_ = false;
};

CurlTransfer::~CurlTransfer() {
  multi_->Drop(this);
  if (is_added_) (void)curl_multi_remove_handle(multi_->get(), easy_.get());
  if (request_.body_is_secret) Wipe(request_.body);
}

bool CurlTransfer::AddHeaders() {
  bool done = true;
  for (const HeaderField& field : request_.headers)
    done = done && Append(&headers_, Text(field.name, ": ", field.value));
  if (const Credential* credential = request_.credential; credential != nullptr) {
    done = done && Append(&headers_,
                          Text(credential->header, ": ", credential->prefix, credential->secret));
    if (!credential->account.empty())
      done = done && Append(&headers_, Text("chatgpt-account-id: ", credential->account));
  }
  request_.credential = nullptr;
  // Without it curl waits a second for "100 Continue" before it sends a large body.
  return done && Append(&headers_, "Expect:");
}

bool CurlTransfer::SetOptions() {
  return Set(CURLOPT_URL, request_.url.c_str()) && Set(CURLOPT_PROTOCOLS_STR, "http,https") &&
         SetUplink() && Set(CURLOPT_NETRC, CURL_NETRC_IGNORED) && Set(CURLOPT_FOLLOWLOCATION, 0L) &&
         Set(CURLOPT_NOSIGNAL, 1L) && Set(CURLOPT_PATH_AS_IS, 1L) &&
         // A resolver that does not come back is left to itself: the loop does not wait for it.
         Set(CURLOPT_QUICK_EXIT, 1L) && Set(CURLOPT_HTTP_VERSION, CURL_HTTP_VERSION_1_1) &&
         Set(CURLOPT_HTTPHEADER, headers_.get()) && Set(CURLOPT_POST, 1L) &&
         Set(CURLOPT_POSTFIELDSIZE_LARGE, static_cast<curl_off_t>(request_.body.size())) &&
         Set(CURLOPT_POSTFIELDS, request_.body.data()) && Set(CURLOPT_BUFFERSIZE, kReadBytes) &&
         (request_.body.size() < static_cast<std::size_t>(kSendBytes) ||
          Set(CURLOPT_UPLOAD_BUFFERSIZE, kSendBytes)) &&
         Set(CURLOPT_CONNECTTIMEOUT, static_cast<long>(request_.connect_seconds)) &&
         Set(CURLOPT_LOW_SPEED_LIMIT, 1L) &&
         Set(CURLOPT_LOW_SPEED_TIME, static_cast<long>(request_.idle_seconds)) &&
         Set(CURLOPT_HEADERFUNCTION, &OnHeader) && Set(CURLOPT_HEADERDATA, this) &&
         Set(CURLOPT_WRITEFUNCTION, &OnData) && Set(CURLOPT_WRITEDATA, this) &&
         Set(CURLOPT_OPENSOCKETFUNCTION, &OnOpen) && Set(CURLOPT_OPENSOCKETDATA, this) &&
         Set(CURLOPT_PREREQFUNCTION, &OnConnected) && Set(CURLOPT_PREREQDATA, this) &&
         Set(CURLOPT_PRIVATE, static_cast<CurlTask*>(this));
}

// A proxy only ever carries a tunnel; nothing of the request, nor its credential, goes to it.
bool CurlTransfer::SetUplink() {
  bool done = Set(CURLOPT_PROXY, HasProxy() ? request_.uplink.proxy.c_str() : "") &&
              Set(CURLOPT_NOPROXY, "") && Set(CURLOPT_HTTPPROXYTUNNEL, 1L) &&
              Set(CURLOPT_SUPPRESS_CONNECT_HEADERS, 1L) &&
              Set(CURLOPT_HEADEROPT, static_cast<long>(CURLHEADER_SEPARATE));
  const std::string* pem = request_.uplink.certificates.get();
  if (pem == nullptr) return done;
  struct curl_blob blob = {const_cast<char*>(pem->data()), pem->size(), CURL_BLOB_NOCOPY};
  const char* none = nullptr;
  return done && Set(CURLOPT_CAPATH, none) && Set(CURLOPT_CAINFO_BLOB, &blob) &&
         Set(CURLOPT_PROXY_CAPATH, none) && Set(CURLOPT_PROXY_CAINFO_BLOB, &blob);
}

Status CurlTransfer::Begin() {
  if (easy_ == nullptr || !AddHeaders() || !SetOptions() ||
      curl_multi_add_handle(multi_->get(), easy_.get()) != CURLM_OK)
    return Error(Kind::kInternal, "libcurl did not take the request");
  is_added_ = true;
  return Ok();
}

void CurlTransfer::Resume() {
  CurlMulti* multi = multi_;
  // It delivers what was kept back, and where the sink refuses that it returns the error only here.
  CURLcode result = curl_easy_pause(easy_.get(), CURLPAUSE_CONT);
  if (result != CURLE_OK) return End(result);
  multi->Reap();  // may have destroyed this
}

void CurlTransfer::End(CURLcode result) {
  (void)curl_multi_remove_handle(multi_->get(), easy_.get());
  is_added_ = false;
  multi_->Drop(this);
  sink_->OnEnd(Explain(result));  // may have destroyed this
}

UpstreamEnd CurlTransfer::Explain(CURLcode result) const {
  if (is_address_refused_) {
    return {"egress_address",
            "the provider's name leads to an address that is not public; nothing was sent"};
  }
  if (is_head_too_large_) {
    return {"egress_upstream_head",
            Text("the provider's headers are larger than ", kEgressUpstreamHeadBytes, " bytes")};
  }
  if (result == CURLE_OK && is_answered_) return {"", ""};
  if (result == CURLE_OPERATION_TIMEDOUT)
    return {"egress_timeout", "the provider did not answer in time"};
  std::string why = curl_easy_strerror(result);
  std::string_view trusted =
      request_.uplink.certificates ? " (only [taskcell] ca_file is trusted)" : "";
  if (is_answered_) return {"egress_cut", Text("the provider's answer broke off: ", why)};
  if (result == CURLE_PEER_FAILED_VERIFICATION || result == CURLE_SSL_CONNECT_ERROR)
    return {"egress_tls", Text("no verified connection to the provider: ", why, trusted)};
  if (HasProxy()) {
    return {"egress_unreachable",
            Text("the provider can't be reached through [taskcell] upstream_proxy ",
                 request_.uplink.proxy, ": ", why)};
  }
  return {"egress_unreachable", Text("the provider can't be reached: ", why)};
}

curl_socket_t CurlTransfer::OnOpen(void* self, curlsocktype /*purpose*/,
                                   struct curl_sockaddr* address) {
  auto* transfer = static_cast<CurlTransfer*>(self);
  AddressKind kind = Classify(&address->addr, address->addrlen);
  AddressKind wanted = transfer->request_.loopback ? AddressKind::kLoopback : AddressKind::kPublic;
  // Nothing is sent where one of the addresses that were tried is bad, whichever comes first.
  if (kind != wanted && !transfer->HasProxy()) transfer->is_address_refused_ = true;
  if (transfer->is_address_refused_) return CURL_SOCKET_BAD;
  Result<UniqueFd> fd = sys::MakeSocket(address->family, address->socktype, address->protocol);
  return fd.ok() ? fd->Release() : CURL_SOCKET_BAD;
}

// Addresses are tried beside each other: one may be connected when the next turns out to be bad.
int CurlTransfer::OnConnected(void* self, char* /*address*/, char* /*local*/, int /*port*/,
                              int /*local_port*/) {
  auto* transfer = static_cast<CurlTransfer*>(self);
  if (transfer->is_address_refused_) return CURL_PREREQFUNC_ABORT;
  transfer->sink_->OnSend();
  return CURL_PREREQFUNC_OK;
}

size_t CurlTransfer::OnHeader(char* data, size_t size, size_t count, void* self) {
  bool goes_on = static_cast<CurlTransfer*>(self)->TakeHeader(std::string_view(data, size * count));
  return goes_on ? size * count : 0;
}

bool CurlTransfer::TakeHeader(std::string_view line) {
  head_bytes_ += line.size();
  if (head_bytes_ > kEgressUpstreamHeadBytes) {
    is_head_too_large_ = true;
    return false;
  }
  if (is_answered_) return true;  // a trailer: nothing of it is passed on
  std::string_view text = Trim(line);
  if (text.starts_with("HTTP/")) {
    answer_ = UpstreamAnswer();
    return true;
  }
  if (!text.empty()) {
    std::size_t colon = std::min(text.find(':'), text.size());
    std::string_view value = colon < text.size() ? Trim(text.substr(colon + 1)) : "";
    answer_.headers.push_back({Lower(text.substr(0, colon)), std::string(value)});
    return true;
  }
  long status = 0;
  (void)curl_easy_getinfo(easy_.get(), CURLINFO_RESPONSE_CODE, &status);
  // An interim answer, which the real one follows; but none follows a switch of protocols (RFC 9110
  // section 15.2.2), after which libcurl gives whatever comes as the body.
  if (status < 200 && status != kSwitchingProtocols) return true;
  answer_.status = static_cast<int>(status);
  is_answered_ = true;
  multi_->Touch(this);
  return sink_->OnAnswer(answer_) == Intake::kTaken;
}

size_t CurlTransfer::OnData(char* data, size_t size, size_t count, void* self) {
  std::size_t bytes = size * count;
  auto* transfer = static_cast<CurlTransfer*>(self);
  transfer->multi_->Touch(transfer);
  const Intake taken = transfer->is_answered_
                           ? transfer->sink_->OnBytes(std::string_view(data, bytes))
                           : Intake::kAbort;
  switch (taken) {
    case Intake::kTaken:
      return bytes;
    case Intake::kWait:
      return CURL_WRITEFUNC_PAUSE;
    case Intake::kAbort:
      break;
  }
  return bytes == 0 ? 1 : 0;  // another number than given ends the transfer
}

Result<std::unique_ptr<UpstreamClient>> UpstreamClient::Make(EventLoop* loop) {
  std::unique_ptr<CurlMulti> multi = TRY(CurlMulti::Make(loop));
  return std::unique_ptr<UpstreamClient>(new UpstreamClient(std::move(multi)));
}

UpstreamClient::UpstreamClient(std::unique_ptr<CurlMulti> multi) : multi_(std::move(multi)) {}
UpstreamClient::~UpstreamClient() = default;

Result<std::unique_ptr<UpstreamTransfer>> UpstreamClient::Start(UpstreamRequest request,
                                                                UpstreamSink* sink) {
  auto transfer = std::make_unique<CurlTransfer>(multi_.get(), std::move(request), sink);
  TRY(transfer->Begin());
  return std::unique_ptr<UpstreamTransfer>(std::move(transfer));
}

}  // namespace taskcell::gateway
