#include "tests/bench/egress_broker.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <memory>

#include "gateway/egress/broker.h"
#include "gateway/egress/routes.h"
#include "launcher/sys/file.h"
#include "launcher/sys/socket.h"

namespace taskcell::bench {
namespace {

Result<gateway::Route> RouteOf(const EgressWay& way) {
  gateway::RouteRequest request;
  request.api = gateway::WireApi::kOpenAiChat;
  request.provider = "openai";
  request.models = {"test-model"};
  request.secret = "sk-real-0123456789abcdef0123456789abcdef";
  request.override_url = way.provider;
  if (!way.certificates.empty())
    request.uplink.certificates = std::make_shared<const std::string>(way.certificates);
  gateway::Route route = TRY(gateway::RouteFor(std::move(request)));
  // A task's bounds are not what is measured.
  route.limits.bytes_down = ~uint64_t{0} / 2;
  route.limits.bytes_up = ~uint64_t{0} / 2;
  route.limits.requests = ~uint64_t{0} / 2;
  return route;
}

Status Serve(const std::vector<EgressWay>& ways, std::vector<UniqueFd> listeners, int ready,
             int stop) {
  std::unique_ptr<gateway::Broker> broker = TRY(gateway::Broker::Start());
  std::vector<std::unique_ptr<gateway::BrokerCell>> cells;
  for (std::size_t at = 0; at < ways.size(); ++at) {
    gateway::Route route = TRY(RouteOf(ways[at]));
    cells.push_back(TRY(broker->Attach(std::move(listeners[at]), std::move(route))));
  }
  TRY(sys::WriteAll(ready, "r"));
  std::array<char, 1> byte = {};
  (void)TRY(sys::Read(stop, byte));
  return Ok();
}

}  // namespace

EgressBroker::EgressBroker(const std::vector<EgressWay>& ways) {
  std::vector<UniqueFd> listeners;
  for (std::size_t at = 0; at < ways.size(); ++at) {
    Result<sys::LoopbackListener> listener = sys::ListenLoopback();
    if (!listener.ok()) return;
    ports_.push_back(listener->port);
    listeners.push_back(std::move(listener->fd));
  }
  Result<sys::Pipe> stop = sys::MakePipe(0);
  Result<sys::Pipe> ready = sys::MakePipe(0);
  if (!stop.ok() || !ready.ok()) return;
  pid_ = ::fork();
  if (pid_ == 0) {
    stop->write_end.Reset();
    Status served = Serve(ways, std::move(listeners), ready->write_end.get(), stop->read_end.get());
    if (!served.ok()) std::fprintf(stderr, "%s\n", served.error().text.c_str());
    ::_exit(served.ok() ? 0 : 1);
  }
  ready->write_end.Reset();
  stop_ = std::move(stop->write_end);
  std::array<char, 1> byte = {};
  Result<std::size_t> got = sys::Read(ready->read_end.get(), byte);
  is_up_ = got.ok() && got.value() == 1;
}

EgressBroker::~EgressBroker() {
  stop_.Reset();
  if (pid_ > 0) (void)::waitpid(pid_, nullptr, 0);
}

double EgressBroker::CpuSeconds() const {
  clockid_t clock = 0;
  struct timespec used = {};
  if (::clock_getcpuclockid(pid_, &clock) != 0 || ::clock_gettime(clock, &used) != 0) return 0;
  return static_cast<double>(used.tv_sec) + static_cast<double>(used.tv_nsec) / 1e9;
}

}  // namespace taskcell::bench
