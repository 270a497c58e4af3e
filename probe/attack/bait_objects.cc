#include "probe/attack/bait_objects.h"

#include <fcntl.h>
#include <linux/keyctl.h>
#include <mqueue.h>
#include <sys/ipc.h>
#include <sys/msg.h>
#include <sys/sem.h>
#include <sys/shm.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>

#include "launcher/base/text.h"
#include "launcher/sys/file.h"
#include "probe/attack/payloads/call.h"
#include "probe/cells/cell_ids.h"

namespace taskcell::attack {
namespace {

constexpr int kForEverybody = 0666;
constexpr std::size_t kMaxContentBytes = 4096;
constexpr char kGone[] = "gone";

std::string ObjectName(const std::string& run_id) { return "taskcell-attack-" + run_id; }

std::string SharedFileOf(const std::string& run_id) { return "/dev/shm/" + ObjectName(run_id); }

// Private is 0, so never that; a key that is taken is another's, and its payload fails outside.
uint32_t KeyOf(const std::string& run_id) {
  return static_cast<uint32_t>((probe::PickOf(run_id) & 0x3fff'ffffU) | 0x4000'0000U);
}

bool IsOwn(int64_t looked, const struct ipc_perm& permissions) {
  return looked >= 0 && permissions.cuid == ::geteuid();
}

std::string Permissions(const struct ipc_perm& permissions) {
  return Text(permissions.uid, ':', permissions.gid, ' ', permissions.mode, ' ');
}

std::string LookAtMemory(int64_t id) {
  struct shmid_ds seen = {};
  if (Call(SYS_shmctl, id, IPC_STAT, &seen) < 0) return kGone;
  return Permissions(seen.shm_perm) + Text(seen.shm_segsz, ' ', seen.shm_nattch, ' ', seen.shm_lpid,
                                           ' ', seen.shm_atime, ' ', seen.shm_dtime, ' ',
                                           seen.shm_ctime);
}

std::string LookAtMessages(int64_t id) {
  struct msqid_ds seen = {};
  if (Call(SYS_msgctl, id, IPC_STAT, &seen) < 0) return kGone;
  return Permissions(seen.msg_perm) + Text(seen.msg_qnum, ' ', seen.msg_qbytes, ' ', seen.msg_lspid,
                                           ' ', seen.msg_lrpid, ' ', seen.msg_stime, ' ',
                                           seen.msg_rtime, ' ', seen.msg_ctime);
}

std::string LookAtSemaphore(int64_t id) {
  struct semid_ds seen = {};
  if (Call(SYS_semctl, id, 0, IPC_STAT, &seen) < 0) return kGone;
  return Permissions(seen.sem_perm) + Text(seen.sem_otime, ' ', seen.sem_ctime, ' ',
                                           Call(SYS_semctl, id, 0, GETVAL, 0), ' ',
                                           Call(SYS_semctl, id, 0, GETPID, 0));
}

// Without the time it was last read: looking at it would be a change.
std::string LookAtInode(const struct stat& info) {
  return Text(info.st_ino, ' ', info.st_nlink, ' ', info.st_uid, ':', info.st_gid, ' ',
              info.st_mode, ' ', info.st_size, ' ', info.st_mtim.tv_sec, '.', info.st_mtim.tv_nsec,
              ' ', info.st_ctim.tv_sec, '.', info.st_ctim.tv_nsec);
}

std::string LookAtQueue(int fd) {
  struct mq_attr attributes = {};
  Result<struct stat> info = sys::Stat(fd);
  if (!info.ok() || Call(SYS_mq_getsetattr, fd, 0, &attributes) < 0) return kGone;
  return Text(LookAtInode(info.value()), ' ', attributes.mq_curmsgs, ' ', attributes.mq_maxmsg);
}

std::string LookAtFile(const std::string& path) {
  Result<struct stat> info = sys::StatAt(AT_FDCWD, path);
  Result<std::string> content = sys::ReadFile(AT_FDCWD, path, kMaxContentBytes);
  if (!info.ok() || !content.ok()) return kGone;
  return Text(LookAtInode(info.value()), ' ', content.value());
}

std::string LookAtKey(int64_t id) {
  std::string text;
  for (int operation : {KEYCTL_DESCRIBE, KEYCTL_READ}) {
    std::array<char, kMaxContentBytes> buffer;
    int64_t size = Call(SYS_keyctl, operation, id, buffer.data(), buffer.size());
    if (size < 0) return kGone;
    text.append(buffer.data(), std::min(static_cast<std::size_t>(size), buffer.size()));
  }
  return text;
}

}  // namespace

// None of them is needed for a verdict on anything else: where the kernel has no such object its
// payload fails outside as well, and that is what is said.
Result<BaitObjects> BaitObjects::Make(const std::string& run_id, Targets& targets) {
  targets.ipc_key = KeyOf(run_id);
  BaitObjects made;
  made.MakeSystemV(targets);
  made.MakeQueue(run_id, targets);
  TRY(made.MakeFile(run_id, targets));
  made.MakeKey(run_id);
  return made;
}

void BaitObjects::MakeSystemV(Targets& targets) {
  constexpr int kFlags = IPC_CREAT | IPC_EXCL | kForEverybody;
  int64_t memory = Call(SYS_shmget, targets.ipc_key, 4096, kFlags);
  if (memory >= 0) objects_.push_back({Type::kMemory, memory, "", UniqueFd()});
  int64_t queue = Call(SYS_msgget, targets.ipc_key, kFlags);
  if (queue >= 0) objects_.push_back({Type::kMessages, queue, "", UniqueFd()});
  int64_t semaphore = Call(SYS_semget, targets.ipc_key, 1, kFlags);
  if (semaphore >= 0) objects_.push_back({Type::kSemaphore, semaphore, "", UniqueFd()});
}

void BaitObjects::MakeQueue(const std::string& run_id, Targets& targets) {
  targets.queue = ObjectName(run_id);
  struct mq_attr attributes = {};
  attributes.mq_maxmsg = 1;
  attributes.mq_msgsize = 16;
  int64_t posix = Call(SYS_mq_open, targets.queue.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC,
                       kForEverybody, &attributes);
  if (posix < 0) return;
  UniqueFd open(static_cast<int>(posix));
  (void)sys::ChangeMode(open.get(), kForEverybody);  // ignoring: then it fails outside
  objects_.push_back({Type::kQueue, 0, targets.queue, std::move(open)});
}

Status BaitObjects::MakeFile(const std::string& run_id, Targets& targets) {
  targets.shared_file = SharedFileOf(run_id);
  Result<UniqueFd> file = sys::Open(targets.shared_file, O_RDWR | O_CREAT | O_EXCL, 0600);
  if (!file.ok()) return Ok();
  objects_.push_back({Type::kFile, 0, targets.shared_file, UniqueFd()});
  TRY(sys::ChangeMode(file->get(), kForEverybody));
  return sys::WriteAll(file->get(), "shared");
}

// In this process's own keyring, for everything its user's processes may want of it by its number.
void BaitObjects::MakeKey(const std::string& run_id) {
  constexpr uint64_t kOfUser = 0x3f3f'0000;  // the possessor and the user: all
  const std::string description = ObjectName(run_id);
  int64_t key = Call(SYS_add_key, "user", description.c_str(), "bait", 4, KEY_SPEC_PROCESS_KEYRING);
  if (key < 0) return;
  (void)Call(SYS_keyctl, KEYCTL_SETPERM, key, kOfUser);  // ignoring: then only this process may
  objects_.push_back({Type::kKey, key, "", UniqueFd()});
}

std::string_view BaitObjects::NameOf(Type type) {
  switch (type) {
    case Type::kMemory:
      return "shared memory of System V";
    case Type::kMessages:
      return "a message queue of System V";
    case Type::kSemaphore:
      return "a semaphore of System V";
    case Type::kQueue:
      return "a POSIX message queue";
    case Type::kFile:
      return "POSIX shared memory";
    case Type::kKey:
      break;
  }
  return "a key";
}

std::string BaitObjects::LookAt(const Object& object) {
  switch (object.type) {
    case Type::kMemory:
      return LookAtMemory(object.id);
    case Type::kMessages:
      return LookAtMessages(object.id);
    case Type::kSemaphore:
      return LookAtSemaphore(object.id);
    case Type::kQueue:
      return LookAtQueue(object.fd.get());
    case Type::kFile:
      return LookAtFile(object.name);
    case Type::kKey:
      break;
  }
  return LookAtKey(object.id);
}

std::map<std::string, std::string> BaitObjects::Look() const {
  std::map<std::string, std::string> seen;
  for (const Object& object : objects_) seen.emplace(NameOf(object.type), LookAt(object));
  return seen;
}

void BaitObjects::Remove(const Object& object) {
  // ignoring, all of them: what cannot be removed is empty and a few bytes
  switch (object.type) {
    case Type::kMemory:
      (void)Call(SYS_shmctl, object.id, IPC_RMID, 0);
      break;
    case Type::kMessages:
      (void)Call(SYS_msgctl, object.id, IPC_RMID, 0);
      break;
    case Type::kSemaphore:
      (void)Call(SYS_semctl, object.id, 0, IPC_RMID);
      break;
    case Type::kQueue:
      (void)Call(SYS_mq_unlink, object.name.c_str());
      break;
    case Type::kFile:
      (void)sys::RemoveFile(AT_FDCWD, object.name);
      break;
    case Type::kKey:
      (void)Call(SYS_keyctl, KEYCTL_UNLINK, object.id, KEY_SPEC_PROCESS_KEYRING);
      break;
  }
}

void BaitObjects::Forget(const std::string& run_id) {
  // ignoring, all of them: what is not there need not be removed
  (void)Call(SYS_mq_unlink, ObjectName(run_id).c_str());
  (void)sys::RemoveFile(AT_FDCWD, SharedFileOf(run_id));
  const uint32_t key = KeyOf(run_id);
  struct shmid_ds memory = {};
  const int64_t memory_id = Call(SYS_shmget, key, 0, 0);
  if (memory_id >= 0 && IsOwn(Call(SYS_shmctl, memory_id, IPC_STAT, &memory), memory.shm_perm))
    (void)Call(SYS_shmctl, memory_id, IPC_RMID, 0);
  struct msqid_ds queue = {};
  const int64_t queue_id = Call(SYS_msgget, key, 0);
  if (queue_id >= 0 && IsOwn(Call(SYS_msgctl, queue_id, IPC_STAT, &queue), queue.msg_perm))
    (void)Call(SYS_msgctl, queue_id, IPC_RMID, 0);
  struct semid_ds semaphore = {};
  const int64_t semaphore_id = Call(SYS_semget, key, 0, 0);
  if (semaphore_id >= 0 &&
      IsOwn(Call(SYS_semctl, semaphore_id, 0, IPC_STAT, &semaphore), semaphore.sem_perm))
    (void)Call(SYS_semctl, semaphore_id, 0, IPC_RMID);
}

BaitObjects::~BaitObjects() {
  for (const Object& object : objects_) Remove(object);
}

}  // namespace taskcell::attack
