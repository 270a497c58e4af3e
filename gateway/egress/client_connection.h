#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "gateway/egress/answer_reader.h"
#include "gateway/egress/cell_connection.h"
#include "gateway/egress/cell_session.h"
#include "gateway/egress/echo_scanner.h"
#include "gateway/egress/endpoint.h"
#include "gateway/egress/http_body.h"
#include "gateway/egress/judge.h"
#include "launcher/base/unique_fd.h"

namespace taskcell::gateway {

// One connection a cell opened to its loopback listener: reads a request, judges it, has it sent
// anew, streams the answer back, and begins again. Bytes that come while a request is under way
// wait in the kernel.
class ClientConnection : public CellConnection, private UpstreamSink {
 public:
  ClientConnection(CellSession* session, UniqueFd fd);
  ~ClientConnection() override;

  Status Begin() override;
  void Tick(EventLoop::Clock::time_point now) override;
  void Advance() override;

 private:
  enum class State {
    kIdle,      // no byte of the next request yet
    kHead,      // reading its head
    kBody,      // reading its body
    kRelaying,  // the provider is working on it
    kFlushing,  // the answer is whole, but for what the peer has not read
    kDraining,  // answered; reading on what is not wanted, so that closing does not reset the
                // answer
    kClosed,
  };

  void OnEvents(uint32_t events);
  void ReadSome();
  void BeginRequest();
  void TakeHead();
  void UseHead();
  bool Hold(std::size_t bytes);  // false: refused
  void TakeBody();
  void Judge();
  void Relay();
  void Refuse(const Refusal& refusal, bool closes);
  void Answer(int status, std::string_view headers, std::string_view body, bool closes);

  void OnSend() override;
  Intake OnAnswer(const UpstreamAnswer& answer) override;
  Intake OnBytes(std::string_view bytes) override;
  void OnPause() override;
  void OnEnd(const UpstreamEnd& end) override;
  void BeginStream(const UpstreamAnswer& answer);
  void SendChunk(std::string_view bytes);
  // The answer can't go on: refused if nothing of it has left, else cut.
  void FailAnswer(const Refusal& refusal);

  // Writes what the peer takes; false when it is gone.
  bool Flush();
  void AfterFlush();
  void FinishRequest();
  bool HasWholeAnswer() const;
  void Record();
  void BeginDraining();
  void Close();
  void Enter(State state, int seconds);
  void UpdateEvents();

  CellSession* session_;
  UniqueFd fd_;
  State state_ = State::kIdle;
  EventLoop::Clock::time_point deadline_;

  std::string in_;           // received, not yet used
  std::size_t scanned_ = 0;  // of in_, without finding the head's end
  std::string out_;          // to be sent
  std::size_t sent_ = 0;     // of out_

  RequestHead head_;
  Endpoint endpoint_;
  std::optional<BodyReader> body_;
  std::size_t held_bytes_ = 0;  // of the session's count
  uint64_t held_cost_ = 0;      // of whoever pays
  bool closes_ = false;         // after this answer

  std::unique_ptr<UpstreamTransfer> transfer_;
  std::unique_ptr<EchoScanner> scanner_;
  std::optional<AnswerReader> reader_;
  std::optional<Refusal> failure_;  // decided while the transfer must not be destroyed
  bool is_streaming_ = false;       // the answer's head is out
  bool waits_ = false;              // the transfer waits for the peer
  EgressRequest record_;
  std::optional<std::size_t> place_;  // in the session's record
  bool is_recorded_ = true;
  bool is_refused_ = false;  // by the broker's rules
  bool is_failed_ = false;   // for the provider's sake
};

}  // namespace taskcell::gateway
