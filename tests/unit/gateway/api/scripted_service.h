#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "gateway/api/service.h"
#include "gateway/config/home.h"
#include "launcher/sys/file.h"
#include "launcher/sys/poll.h"
#include "launcher/sys/socket.h"
#include "tests/support/temp_directory.h"

namespace taskcell::gateway {

// A service whose tasks do as they are told: each runs until Release, or until it is cancelled.
// Mail for the agent "sandboxed" is skipped.
class ScriptedService : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_EQ(::chmod(directory_.path().c_str(), 0700), 0);
    home_ = std::make_unique<Home>(OpenHome(directory_.path()).value());
    Open();
  }
  void TearDown() override {
    ReleaseAll();
    service_.reset();
  }

  void Open() {
    service_ = Service::Make(
                   *home_,
                   [this](const TaskRequest& request, int cancel_fd,
                          const std::function<void(std::string_view)>& report) {
                     return Work(request, cancel_fd, report);
                   },
                   [](const TaskRequest& request) -> std::optional<TaskAnswer> {
                     if (request.kind != TaskKind::kMail || request.agent != "sandboxed")
                       return std::nullopt;
                     TaskAnswer answer;
                     answer.code = "skipped";
                     return answer;
                   })
                   .value();
  }

  TaskAnswer Work(const TaskRequest& request, int cancel_fd,
                  const std::function<void(std::string_view)>& report) {
    report("begun");
    {
      std::lock_guard lock(mutex_);
      started_.push_back(request.prompt);
      requests_.push_back(request);
      most_ = std::max(most_, ++running_);
    }
    TaskAnswer answer;
    while (true) {
      if (sys::Poll(cancel_fd, POLLIN, 0).value() != 0) {
        answer.code = "stopped";
        answer.message = "the sandbox run was stopped";
        break;
      }
      std::unique_lock lock(mutex_);
      if (released_ || done_.contains(request.prompt)) break;
      changed_.wait_for(lock, std::chrono::milliseconds(5));
    }
    std::lock_guard lock(mutex_);
    --running_;
    if (answer.ok()) answer.reply = "reply to " + request.prompt;
    return answer;
  }

  void Release(const std::string& prompt) {
    std::lock_guard lock(mutex_);
    done_[prompt] = true;
    changed_.notify_all();
  }
  void ReleaseAll() {
    std::lock_guard lock(mutex_);
    released_ = true;
    changed_.notify_all();
  }
  std::vector<std::string> Started() {
    std::lock_guard lock(mutex_);
    return started_;
  }
  int Most() {
    std::lock_guard lock(mutex_);
    return most_;
  }

  std::string Submit(const std::string& agent, const std::string& prompt) {
    Result<std::string> id = service_->Submit({agent, TaskKind::kBus, prompt});
    EXPECT_TRUE(id.ok()) << id.error().text;
    return id.ok() ? id.value() : "";
  }
  TaskState StateOf(const std::string& id) { return service_->Find(id).value()->row.state; }

  // Dispatches until `is_so`; false after ten seconds without.
  bool DispatchUntil(uint64_t at_once, const std::function<bool()>& is_so) {
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(10);
    while (std::chrono::steady_clock::now() < deadline) {
      EXPECT_TRUE(service_->Dispatch(at_once).ok());
      if (is_so()) return true;
      (void)sys::Poll(service_->wake_fd(), POLLIN, 5);
    }
    return false;
  }

  test::TempDirectory directory_{"service"};
  std::unique_ptr<Home> home_;
  std::unique_ptr<Service> service_;

  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::string> started_;
  std::vector<TaskRequest> requests_;
  std::map<std::string, bool> done_;
  bool released_ = false;
  int running_ = 0;
  int most_ = 0;
};

}  // namespace taskcell::gateway
