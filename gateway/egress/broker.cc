#include "gateway/egress/broker.h"

#include <algorithm>
#include <exception>
#include <future>
#include <thread>

#include "gateway/egress/cell_session.h"
#include "gateway/egress/event_loop.h"
#include "gateway/egress/start_thread.h"
#include "gateway/egress/upstream.h"
#include "launcher/sys/listener.h"
#include "launcher/sys/poll.h"
#include "launcher/sys/signal_mask.h"

namespace taskcell::gateway {

// The broker's thread and what lives in it.
class BrokerLoop {
 public:
  explicit BrokerLoop(std::unique_ptr<EventLoop> loop) : loop_(std::move(loop)) {}
  ~BrokerLoop() { Shutdown(); }

  Status Start();
  void Shutdown();
  Result<std::shared_ptr<CellSession>> Open(uint16_t port, CellWays ways);
  void Close(const std::shared_ptr<CellSession>& session);

 private:
  // Runs `work` in the loop's thread and waits for it; false, and not run, once the loop has ended.
  template <typename Work>
  bool RunInLoop(Work work) {
    auto done = std::make_shared<std::promise<void>>();  // outlives the waiter inside set_value
    std::future<void> waits = done->get_future();
    bool is_taken = loop_->Post([&work, done] {
      work();
      done->set_value();
    });
    if (is_taken) waits.wait();
    return is_taken;
  }

  std::unique_ptr<EventLoop> loop_;
  std::thread thread_;
  std::unique_ptr<UpstreamClient> upstream_;  // the loop's thread only, as what follows
  std::vector<std::shared_ptr<CellSession>> sessions_;
};

Status BrokerLoop::Start() {
  upstream_ = TRY(UpstreamClient::Make(loop_.get()));
  loop_->SetTick([this] {
    for (const auto& session : sessions_) session->Tick();
  });
  // Signals are for the gateway's own threads; a SIGPIPE of a TLS connection for nobody.
  sys::SignalsBlocked blocked = TRY(sys::BlockAllSignals());
  thread_ = TRY(
      StartThread([this] {
        try {
          (void)loop_->Run();  // ignoring: when epoll fails every cell is ended as at any other end
        } catch (const std::exception&) {  // NOLINT(bugprone-empty-catch): memory ran out; the same
        }
        for (const auto& session : sessions_) session->End();
        sessions_.clear();
        upstream_.reset();
      }).With("the provider broker"));
  return Ok();
}

void BrokerLoop::Shutdown() {
  loop_->Stop();
  if (thread_.joinable()) thread_.join();
}

Result<std::shared_ptr<CellSession>> BrokerLoop::Open(uint16_t port, CellWays ways) {
  auto session = std::make_shared<CellSession>(loop_.get(), upstream_.get(), port, std::move(ways));
  Status begun = Error(Kind::kInternal, "the provider broker has ended");
  RunInLoop([&] {
    begun = session->Begin();
    if (begun.ok()) sessions_.push_back(session);
  });
  TRY(std::move(begun));
  return session;
}

void BrokerLoop::Close(const std::shared_ptr<CellSession>& session) {
  RunInLoop([&] {
    session->End();
    std::erase(sessions_, session);
  });
}

BrokerCell::BrokerCell(std::shared_ptr<BrokerLoop> loop, std::shared_ptr<CellSession> session)
    : loop_(std::move(loop)), session_(std::move(session)) {}

BrokerCell::~BrokerCell() { loop_->Close(session_); }

EgressTotals BrokerCell::Totals() const { return session_->Totals(); }

EgressRecord BrokerCell::Record() const { return session_->Record(); }

EgressRecord BrokerCell::Detach() {
  loop_->Close(session_);
  return session_->Record();
}

Result<std::unique_ptr<Broker>> Broker::Start() {
  std::unique_ptr<EventLoop> events = TRY(EventLoop::Make());
  auto loop = std::make_shared<BrokerLoop>(std::move(events));
  TRY(loop->Start());
  return std::unique_ptr<Broker>(new Broker(std::move(loop)));
}

Broker::Broker(std::shared_ptr<BrokerLoop> loop) : loop_(std::move(loop)) {}

Broker::~Broker() { loop_->Shutdown(); }

Result<std::unique_ptr<BrokerCell>> Broker::Attach(UniqueFd listener, Route route) {
  CellWays ways;
  ways.listener = std::move(listener);
  ways.route = std::move(route);
  return Attach(std::move(ways));
}

Result<std::unique_ptr<BrokerCell>> Broker::Attach(CellWays ways) {
  uint16_t port = 0;
  for (const UniqueFd* listener : {&ways.listener, &ways.tunnel_listener}) {
    if (!listener->valid()) continue;
    uint16_t bound = TRY(sys::LoopbackListenerPort(listener->get()).With("the cell's listener"));
    if (listener == &ways.listener) port = bound;
    TRY(sys::SetNonBlocking(listener->get()));
  }
  std::shared_ptr<CellSession> session = TRY(loop_->Open(port, std::move(ways)));
  return std::make_unique<BrokerCell>(loop_, std::move(session));
}

}  // namespace taskcell::gateway
