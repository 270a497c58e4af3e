#include "gateway/egress/event_loop.h"

#include <fcntl.h>

#include <algorithm>

#include "launcher/sys/epoll.h"
#include "launcher/sys/file.h"

namespace taskcell::gateway {
namespace {

constexpr auto kTick = std::chrono::seconds(1);
constexpr std::size_t kEventsAtOnce = 64;

uint64_t EventId(int fd, uint32_t generation) {
  return uint64_t{generation} << 32 | static_cast<uint32_t>(fd);
}

}  // namespace

Result<std::unique_ptr<EventLoop>> EventLoop::Make() {
  std::unique_ptr<EventLoop> loop(new EventLoop);
  loop->epoll_ = TRY(sys::MakeEpoll());
  sys::Pipe wake = TRY(sys::MakePipe(O_NONBLOCK));
  loop->wake_read_ = std::move(wake.read_end);
  loop->wake_write_ = std::move(wake.write_end);
  EventLoop* self = loop.get();
  TRY(loop->Watch(loop->wake_read_.get(), EPOLLIN, [self](uint32_t) {
    char bytes[64];
    (void)sys::Read(self->wake_read_.get(), bytes);  // ignoring: its only news is to wake up
  }));
  return loop;
}

Status EventLoop::Watch(int fd, uint32_t events, Handler handler) {
  uint32_t generation = ++last_generation_;
  TRY(sys::EpollAdd(epoll_.get(), fd, events, EventId(fd, generation)));
  entries_[fd] = Entry{generation, events, std::make_shared<Handler>(std::move(handler))};
  return Ok();
}

void EventLoop::Change(int fd, uint32_t events) {
  auto found = entries_.find(fd);
  if (found == entries_.end() || found->second.events == events) return;
  found->second.events = events;
  // ignoring: it fails only for a descriptor that is not watched, which was just ruled out
  (void)sys::EpollChange(epoll_.get(), fd, events, EventId(fd, found->second.generation));
}

void EventLoop::Forget(int fd) {
  if (entries_.erase(fd) == 0) return;
  (void)sys::EpollRemove(epoll_.get(), fd);  // ignoring: closing it has removed it already
}

void EventLoop::SetTimer(std::optional<Clock::time_point> when, std::function<void()> action) {
  timer_ = when;
  timer_action_ = std::move(action);
}

bool EventLoop::Post(std::function<void()> work) {
  {
    std::lock_guard<std::mutex> lock(mutex_);
    if (ended_) return false;
    posted_.push_back(std::move(work));
  }
  Wake();
  return true;
}

void EventLoop::Wake() {
  (void)sys::WriteAll(wake_write_.get(), "w");  // ignoring: a full pipe wakes up as well
}

int EventLoop::TimeoutMs() const {
  Clock::time_point until = next_tick_;
  if (timer_) until = std::min(until, *timer_);
  auto left = std::chrono::ceil<std::chrono::milliseconds>(until - Clock::now()).count();
  return static_cast<int>(std::clamp<int64_t>(left, 0, 1000));
}

void EventLoop::RunPosted() {
  std::vector<std::function<void()>> work;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    work.swap(posted_);
  }
  for (std::function<void()>& item : work) item();
}

Status EventLoop::ServeOnce() {
  struct epoll_event events[kEventsAtOnce];
  std::size_t count = TRY(sys::EpollWait(epoll_.get(), events, TimeoutMs()));
  for (std::size_t index = 0; index < count; ++index) {
    uint64_t id = events[index].data.u64;
    auto found = entries_.find(static_cast<int>(id & 0xffffffffU));
    if (found == entries_.end() || found->second.generation != id >> 32) continue;
    std::shared_ptr<Handler> handler = found->second.handler;  // it may forget itself
    (*handler)(events[index].events);
  }
  if (timer_ && *timer_ <= Clock::now()) {
    timer_.reset();
    std::function<void()> action = timer_action_;
    action();
  }
  if (next_tick_ <= Clock::now()) {
    next_tick_ = Clock::now() + kTick;
    if (tick_) tick_();
  }
  RunPosted();
  return Ok();
}

Status EventLoop::Run() {
  next_tick_ = Clock::now() + kTick;
  Status status = Ok();
  while (!stops_ && status.ok()) status = ServeOnce();
  // Work may post more work; once the queue is seen empty under the lock nothing is taken again.
  while (true) {
    RunPosted();
    std::lock_guard<std::mutex> lock(mutex_);
    if (!posted_.empty()) continue;
    ended_ = true;
    return status;
  }
}

}  // namespace taskcell::gateway
