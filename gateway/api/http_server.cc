#include "gateway/api/http_server.h"

#include <microhttpd.h>
#include <unistd.h>

#include <exception>

#include "launcher/base/json_text.h"
#include "launcher/base/text.h"
#include "launcher/sys/socket.h"

namespace taskcell::gateway {
namespace {

constexpr std::size_t kStackBytes = 512U << 10U;
constexpr std::size_t kStreamBlockBytes = 16U << 10U;

// One request as it comes in.
struct Exchange {
  ApiRequest request;
  bool too_big = false;
};

// An answer that goes out piece by piece.
struct Stream {
  std::function<std::optional<std::string>()> next;
  std::string rest;
};

int SocketOf(MHD_Connection* connection) {
  const MHD_ConnectionInfo* info =
      ::MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
  return info == nullptr ? -1 : info->connect_fd;
}

bool IsOwnUser(MHD_Connection* connection) {
  Result<struct ucred> peer = sys::PeerCredentials(SocketOf(connection));
  return peer.ok() && peer->uid == ::geteuid();
}

// Whether it came when there were as many as are served.
bool IsOneTooMany(MHD_Connection* connection) {
  const MHD_ConnectionInfo* info =
      ::MHD_get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
  return info != nullptr && info->socket_context != nullptr;
}

bool DeclaresTooMuch(MHD_Connection* connection) {
  const char* length =
      ::MHD_lookup_connection_value(connection, MHD_HEADER_KIND, MHD_HTTP_HEADER_CONTENT_LENGTH);
  if (length == nullptr) return false;
  const std::optional<uint64_t> bytes = ParseUnsigned(length);
  return !bytes.has_value() || *bytes > kMaxApiBodyBytes;
}

MHD_Result Queue(MHD_Connection* connection, unsigned status, MHD_Response* response,
                 const char* type) {
  if (response == nullptr) return MHD_NO;
  const bool typed =
      ::MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE, type) == MHD_YES;
  const MHD_Result queued = typed ? ::MHD_queue_response(connection, status, response) : MHD_NO;
  ::MHD_destroy_response(response);
  return queued;
}

ssize_t ReadStream(void* state, uint64_t /*position*/, char* buffer, std::size_t size) {
  auto* stream = static_cast<Stream*>(state);
  try {
    if (stream->rest.empty()) {
      std::optional<std::string> piece = stream->next();
      if (!piece.has_value()) return MHD_CONTENT_READER_END_OF_STREAM;
      stream->rest = *std::move(piece);
    }
    const std::size_t count = stream->rest.copy(buffer, size);
    stream->rest.erase(0, count);
    return static_cast<ssize_t>(count);
  } catch (const std::exception&) {  // out of memory: the stream ends as one that broke
    return MHD_CONTENT_READER_END_WITH_ERROR;
  }
}

void FreeStream(void* state) { delete static_cast<Stream*>(state); }

MHD_Result Send(MHD_Connection* connection, ApiAnswer answer) {
  if (answer.stream) {
    auto stream = std::make_unique<Stream>();
    stream->next = std::move(answer.stream);
    MHD_Response* response = ::MHD_create_response_from_callback(
        MHD_SIZE_UNKNOWN, kStreamBlockBytes, ReadStream, stream.get(), FreeStream);
    if (response != nullptr) (void)stream.release();  // the response frees it
    return Queue(connection, answer.status, response, "text/event-stream");
  }
  if (!answer.body.ends_with('\n')) answer.body += "\n";
  return Queue(connection, answer.status,
               ::MHD_create_response_from_buffer(answer.body.size(), answer.body.data(),
                                                 MHD_RESPMEM_MUST_COPY),
               answer.type.c_str());
}

MHD_Result TakeQuery(void* state, MHD_ValueKind /*kind*/, const char* key, const char* value) {
  static_cast<ApiRequest*>(state)->query[key] = value == nullptr ? "" : value;
  return MHD_YES;
}

}  // namespace

// What the library calls; nothing may be thrown through it.
struct HttpCallbacks {
  static MHD_Result OnRequest(void* server, MHD_Connection* connection, const char* url,
                              const char* method, const char* /*version*/, const char* data,
                              std::size_t* size, void** state) {
    try {
      return Take(*static_cast<HttpServer*>(server), connection, url, method, data, size, state);
    } catch (const std::exception&) {  // out of memory
      return MHD_NO;
    }
  }

  // `mark` is the connection's own for as long as it lasts.
  static void OnConnection(void* server, MHD_Connection* /*connection*/, void** mark,
                           MHD_ConnectionNotificationCode code) {
    std::atomic<unsigned>& connections = static_cast<HttpServer*>(server)->connections_;
    if (code == MHD_CONNECTION_NOTIFY_CLOSED) {
      --connections;
    } else if (++connections > kMaxApiConnections) {
      *mark = server;
    }
  }

  static void OnDone(void* /*server*/, MHD_Connection* /*connection*/, void** state,
                     MHD_RequestTerminationCode /*code*/) {
    delete static_cast<Exchange*>(*state);
    *state = nullptr;
  }

 private:
  static MHD_Result Take(HttpServer& server, MHD_Connection* connection, const char* url,
                         const char* method, const char* data, std::size_t* size, void** state) {
    auto* exchange = static_cast<Exchange*>(*state);
    if (exchange == nullptr) {
      *state = new Exchange{{method, url, {}, {}, SocketOf(connection)}, false};
      if (!IsOwnUser(connection))
        return Send(connection, Refusal(MHD_HTTP_FORBIDDEN, "forbidden",
                                        "only the gateway's own user may ask it"));
      if (IsOneTooMany(connection))
        return Send(connection, Refusal(MHD_HTTP_SERVICE_UNAVAILABLE, "too_many_clients",
                                        Text(kMaxApiConnections,
                                             " clients are connected already; try again "
                                             "when one of them has gone")));
      if (DeclaresTooMuch(connection)) return SendTooBig(connection);
      return MHD_YES;
    }
    if (*size > 0) {
      exchange->too_big =
          exchange->too_big || exchange->request.body.size() + *size > kMaxApiBodyBytes;
      if (!exchange->too_big) exchange->request.body.append(data, *size);
      *size = 0;
      return MHD_YES;
    }
    if (exchange->too_big) return SendTooBig(connection);
    // Its return value counts what was visited.
    (void)::MHD_get_connection_values(connection, MHD_GET_ARGUMENT_KIND, TakeQuery,
                                      &exchange->request);
    // While the answer is made the client has nothing to say; from then on its time runs again.
    SetIdleTime(connection, 0);
    ApiAnswer answer = server.handle_(exchange->request);
    SetIdleTime(connection, server.idle_seconds_);
    return Send(connection, std::move(answer));
  }

  // ignoring: it fails for no connection of this daemon's, and then the time before holds
  static void SetIdleTime(MHD_Connection* connection, unsigned seconds) {
    (void)::MHD_set_connection_option(connection, MHD_CONNECTION_OPTION_TIMEOUT, seconds);
  }

  static MHD_Result SendTooBig(MHD_Connection* connection) {
    return Send(connection,
                Refusal(MHD_HTTP_CONTENT_TOO_LARGE, "too_large",
                        Text("the body of a request has at most ", kMaxApiBodyBytes, " bytes")));
  }
};

ApiAnswer Refusal(unsigned status, std::string_view code, std::string_view message) {
  JsonText json;
  json.Open('{').Key("code").String(code).Key("message").String(message).Close('}');
  return {status, json.text(), {}};
}

Result<std::unique_ptr<HttpServer>> HttpServer::Start(UniqueFd listener, Handler handle,
                                                      unsigned idle_seconds) {
  std::unique_ptr<HttpServer> server(new HttpServer(std::move(handle), idle_seconds));
  server->daemon_ = ::MHD_start_daemon(
      MHD_USE_THREAD_PER_CONNECTION | MHD_USE_INTERNAL_POLLING_THREAD | MHD_USE_POLL | MHD_USE_ITC,
      0, nullptr, nullptr, &HttpCallbacks::OnRequest, server.get(), MHD_OPTION_LISTEN_SOCKET,
      listener.get(), MHD_OPTION_NOTIFY_COMPLETED, &HttpCallbacks::OnDone, server.get(),
      MHD_OPTION_NOTIFY_CONNECTION, &HttpCallbacks::OnConnection, server.get(),
      MHD_OPTION_CONNECTION_LIMIT, kMaxApiConnections + kSpareApiConnections,
      MHD_OPTION_CONNECTION_TIMEOUT, idle_seconds, MHD_OPTION_CONNECTION_MEMORY_LIMIT,
      kMaxApiHeaderBytes, MHD_OPTION_THREAD_STACK_SIZE, kStackBytes, MHD_OPTION_END);
  if (server->daemon_ == nullptr)
    return Error(Kind::kSystem,
                 "the API's server cannot start: no further thread or descriptor is to be had");
  (void)listener.Release();  // the daemon closes it
  return server;
}

HttpServer::~HttpServer() {
  if (daemon_ != nullptr) ::MHD_stop_daemon(daemon_);
}

}  // namespace taskcell::gateway
