#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "gateway/egress/cell_connection.h"
#include "gateway/egress/cell_session.h"
#include "gateway/egress/dial.h"
#include "gateway/egress/refusal.h"
#include "launcher/base/unique_fd.h"

namespace taskcell::gateway {

// One connection to the listener for tunnels: takes CONNECT to a host of the list, looks at the TLS
// ClientHello that follows, notes the decision, dials the host from here, and passes bytes both
// ways until both sides have ended theirs. Not a byte leaves before all of that has passed. What
// the cell sends after its ClientHello waits for the server's answer: where that asks for another
// ClientHello, that one has to pass, too.
class TunnelConnection : public CellConnection {
 public:
  TunnelConnection(CellSession* session, UniqueFd fd);
  ~TunnelConnection() override;

  Status Begin() override;
  void Tick(EventLoop::Clock::time_point now) override;

 private:
  enum class State {
    kHead,      // reading the CONNECT request
    kHello,     // answered; reading the ClientHello
    kDialing,   // it has passed
    kRelaying,  // connected; see Retry
    kDraining,  // refused; reading on what is not wanted, so that closing does not reset the answer
    kClosed,
  };
  // Whether the ClientHello that has passed is the one that counts.
  enum class Retry {
    kOpen,     // the server has not answered
    kAsked,    // it wants another one, which has not come
    kDecided,  // it is, or the other one has passed
  };
  // One way of a relay: what was read on one side and not yet written to the other.
  struct Way {
    std::string bytes;
    std::size_t sent = 0;    // of `bytes`
    bool is_ended = false;   // the reading side is at its end
    bool is_closed = false;  // and the writing side was told so
    uint64_t total = 0;

    // Something is to be written: bytes, or that there are no more.
    bool is_due() const { return !bytes.empty() || (is_ended && !is_closed); }
  };

  void OnClient(uint32_t events);
  void OnUpstream(uint32_t events);
  void ReadClient();
  void TakeHead();
  void TakeHello();
  void OnDialed(DialEnd end);
  void Relay();
  // What the far side has answered so far; true when it is in order to go on.
  void SeeServer();
  // Reads on for the second ClientHello; false when the connection was ended.
  bool TakeSecondHello();
  // Moves what can be moved at once; false when a side is gone or too much was moved.
  bool Move(int from, int to, Way* way, bool is_up);
  bool Fill(int from, Way* way, bool is_up);

  // Says why in plain HTTP, before the tunnel is open; as a TLS alert, afterwards.
  void Refuse(const Refusal& refusal);
  void Cut(std::string_view code);
  void SendAlert();
  void Note(std::string_view code);
  void BeginDraining();
  void Close(std::string_view code);
  void Enter(State state, int seconds);
  void UpdateEvents();

  CellSession* session_;
  UniqueFd client_;
  UniqueFd upstream_;
  State state_ = State::kHead;
  EventLoop::Clock::time_point deadline_;
  bool is_client_watched_ = false;
  bool is_upstream_watched_ = false;

  std::string in_;  // received from the cell, not yet used
  AllowedHost target_;
  Retry retry_ = Retry::kOpen;
  std::string answer_;  // the beginning of what the server said, until that is decided
  std::unique_ptr<Dial> dial_;
  Way up_;
  Way down_;
  std::size_t noted_ = kNotNoted;  // its place in the record
  int64_t started_ms_ = 0;

  static constexpr std::size_t kNotNoted = ~std::size_t{0};
};

}  // namespace taskcell::gateway
