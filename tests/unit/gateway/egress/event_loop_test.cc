#include "gateway/egress/event_loop.h"

#include <gtest/gtest.h>
#include <sys/epoll.h>

#include <thread>

#include "launcher/sys/file.h"

namespace taskcell::gateway {
namespace {

std::unique_ptr<EventLoop> MakeLoop() {
  Result<std::unique_ptr<EventLoop>> loop = EventLoop::Make();
  return loop.ok() ? std::move(loop).value() : nullptr;
}

TEST(EventLoopTest, EventsOfAForgottenDescriptorAreDropped) {
  std::unique_ptr<EventLoop> loop = MakeLoop();
  ASSERT_NE(loop, nullptr);
  Result<sys::Pipe> first = sys::MakePipe();
  Result<sys::Pipe> second = sys::MakePipe();
  ASSERT_TRUE(first.ok() && second.ok());
  int calls = 0;
  // Both are ready at once; whichever comes first forgets both.
  auto handler = [&](uint32_t) {
    ++calls;
    loop->Forget(first->read_end.get());
    loop->Forget(second->read_end.get());
    loop->Stop();
  };
  ASSERT_TRUE(loop->Watch(first->read_end.get(), EPOLLIN, handler).ok());
  ASSERT_TRUE(loop->Watch(second->read_end.get(), EPOLLIN, handler).ok());
  ASSERT_TRUE(sys::WriteAll(first->write_end.get(), "x").ok());
  ASSERT_TRUE(sys::WriteAll(second->write_end.get(), "x").ok());
  EXPECT_TRUE(loop->Run().ok());
  EXPECT_EQ(calls, 1);
}

TEST(EventLoopTest, PostedWorkRunsInOrderAndNothingAfterTheEnd) {
  std::unique_ptr<EventLoop> loop = MakeLoop();
  ASSERT_NE(loop, nullptr);
  std::vector<int> order;
  std::thread poster([&] {
    for (int number = 0; number < 100; ++number)
      loop->Post([&order, number] { order.push_back(number); });
    loop->Post([&] {
      // Work may post work, also at the very end.
      loop->Stop();
      loop->Post([&] { order.push_back(100); });
    });
  });
  EXPECT_TRUE(loop->Run().ok());
  poster.join();
  ASSERT_EQ(order.size(), 101U);
  for (int number = 0; number <= 100; ++number)
    EXPECT_EQ(order[static_cast<size_t>(number)], number);
  EXPECT_FALSE(loop->Post([&] { order.clear(); }));
  EXPECT_EQ(order.size(), 101U);
}

TEST(EventLoopTest, TheTimerRunsOnceAndCanBeReplaced) {
  std::unique_ptr<EventLoop> loop = MakeLoop();
  ASSERT_NE(loop, nullptr);
  int replaced = 0;
  int ran = 0;
  EventLoop::Clock::time_point now = EventLoop::Clock::now();
  loop->SetTimer(now, [&] { ++replaced; });
  loop->SetTimer(now + std::chrono::milliseconds(5), [&] { ++ran; });
  loop->SetTick([&] { loop->Stop(); });
  EXPECT_TRUE(loop->Run().ok());
  EXPECT_EQ(replaced, 0);
  EXPECT_EQ(ran, 1);
  EXPECT_GE(EventLoop::Clock::now() - now, std::chrono::milliseconds(900));
}

}  // namespace
}  // namespace taskcell::gateway
