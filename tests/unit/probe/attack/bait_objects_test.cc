#include "probe/attack/bait_objects.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/keyctl.h>
#include <mqueue.h>
#include <sys/msg.h>
#include <sys/sem.h>
#include <sys/shm.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <fstream>
#include <functional>

#include "launcher/native/request.h"

namespace taskcell::attack {
namespace {

class BaitObjectsTest : public testing::Test {
 protected:
  void SetUp() override {
    run_id_ = native::MakeRunId().value();
    objects_.emplace(BaitObjects::Make(run_id_, targets_).value());
    before_ = objects_->Look();
  }

  // The names of those that are another way than at first.
  std::vector<std::string> Changed() const {
    std::vector<std::string> changed;
    for (const auto& [what, now] : objects_->Look()) {
      if (before_.at(what) != now) changed.push_back(what);
    }
    return changed;
  }

  key_t key() const { return static_cast<key_t>(targets_.ipc_key); }

  std::string run_id_;
  Targets targets_;
  std::optional<BaitObjects> objects_;
  std::map<std::string, std::string> before_;
};

using Names = std::vector<std::string>;

TEST_F(BaitObjectsTest, WhatIsOnlyFoundAndOpenedIsTheSame) {
  EXPECT_EQ(before_.size(), 6U);
  EXPECT_GE(::shmget(key(), 0, 0), 0);
  EXPECT_GE(::msgget(key(), 0), 0);
  EXPECT_GE(::semget(key(), 0, 0), 0);
  EXPECT_EQ(::close(::mq_open(("/" + targets_.queue).c_str(), O_RDWR)), 0);
  char byte = 0;
  EXPECT_TRUE(std::ifstream(targets_.shared_file).get(byte));
  EXPECT_EQ(Changed(), Names());
}

TEST_F(BaitObjectsTest, MemoryThatIsAttachedIsChanged) {
  void* attached = ::shmat(::shmget(key(), 0, 0), nullptr, 0);
  ASSERT_NE(attached, nullptr);
  EXPECT_EQ(::shmdt(attached), 0);
  EXPECT_EQ(Changed(), Names{"shared memory of System V"});
}

TEST_F(BaitObjectsTest, AMessageIsAChange) {
  struct {
    long type = 1;
    char text[4] = {};
  } message;
  ASSERT_EQ(::msgsnd(::msgget(key(), 0), &message, sizeof message.text, IPC_NOWAIT), 0);
  EXPECT_EQ(Changed(), Names{"a message queue of System V"});
}

TEST_F(BaitObjectsTest, ASemaphoreThatIsRaisedIsChanged) {
  struct sembuf up = {0, 1, IPC_NOWAIT};
  ASSERT_EQ(::semop(::semget(key(), 0, 0), &up, 1), 0);
  EXPECT_EQ(Changed(), Names{"a semaphore of System V"});
}

TEST_F(BaitObjectsTest, AQueueThatIsWrittenToOrRemovedIsChanged) {
  mqd_t queue = ::mq_open(("/" + targets_.queue).c_str(), O_RDWR | O_NONBLOCK);
  ASSERT_GE(queue, 0);
  ASSERT_EQ(::mq_send(queue, "x", 1, 0), 0);
  EXPECT_EQ(::mq_close(queue), 0);
  EXPECT_EQ(Changed(), Names{"a POSIX message queue"});
  before_ = objects_->Look();
  ASSERT_EQ(::mq_unlink(("/" + targets_.queue).c_str()), 0);
  EXPECT_EQ(Changed(), Names{"a POSIX message queue"});
}

TEST_F(BaitObjectsTest, AFileThatIsWrittenToOrRemovedIsChanged) {
  std::ofstream(targets_.shared_file) << "Shared";  // of the same size
  EXPECT_EQ(Changed(), Names{"POSIX shared memory"});
  before_ = objects_->Look();
  ASSERT_EQ(::unlink(targets_.shared_file.c_str()), 0);
  EXPECT_EQ(Changed(), Names{"POSIX shared memory"});
}

TEST_F(BaitObjectsTest, AKeyWithAnotherContentIsChanged) {
  ASSERT_GE(::syscall(SYS_add_key, "user", ("taskcell-attack-" + run_id_).c_str(), "fish", 4,
                      KEY_SPEC_PROCESS_KEYRING),
            0);
  EXPECT_EQ(Changed(), Names{"a key"});
}

// By whoever may change the owner or mode of it, or take it away.
TEST_F(BaitObjectsTest, WhatIsRemovedIsGone) {
  ASSERT_EQ(::shmctl(::shmget(key(), 0, 0), IPC_RMID, nullptr), 0);
  ASSERT_EQ(::msgctl(::msgget(key(), 0), IPC_RMID, nullptr), 0);
  ASSERT_EQ(::semctl(::semget(key(), 0, 0), 0, IPC_RMID), 0);
  EXPECT_EQ(Changed(), (Names{"a message queue of System V", "a semaphore of System V",
                              "shared memory of System V"}));
}

TEST_F(BaitObjectsTest, NothingIsLeft) {
  objects_.reset();
  EXPECT_LT(::shmget(key(), 0, 0), 0);
  EXPECT_LT(::msgget(key(), 0), 0);
  EXPECT_LT(::semget(key(), 0, 0), 0);
  EXPECT_NE(::access(targets_.shared_file.c_str(), F_OK), 0);
}

}  // namespace
}  // namespace taskcell::attack
