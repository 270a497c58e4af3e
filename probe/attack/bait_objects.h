#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "launcher/base/result.h"
#include "launcher/base/unique_fd.h"
#include "probe/attack/targets.h"

namespace taskcell::attack {

// The objects of the kernel's that stand outside to be reached: System V memory, messages and a
// semaphore, a POSIX queue and a file of POSIX shared memory, which everybody may use, and a key.
// What a kernel does not have is left out. All go with the object.
class BaitObjects {
 public:
  // `run_id` is what makes names unique. Fills in where they are.
  static Result<BaitObjects> Make(const std::string& run_id, Targets& targets);
  // Removes what those of that run left whose process was killed, where it is this user's.
  static void Forget(const std::string& run_id);
  BaitObjects(BaitObjects&& other) noexcept = default;
  BaitObjects& operator=(BaitObjects&&) = delete;
  ~BaitObjects();

  // How each is now, by what it is called for a person: whatever is done to one, but for finding
  // or opening it, changes its text.
  std::map<std::string, std::string> Look() const;

 private:
  enum class Type : uint8_t { kMemory, kMessages, kSemaphore, kQueue, kFile, kKey };
  struct Object {
    Type type;
    int64_t id = 0;    // of System V, or a key's
    std::string name;  // of a queue or a file
    UniqueFd fd;       // of a queue
  };
  BaitObjects() = default;
  void MakeSystemV(Targets& targets);
  void MakeQueue(const std::string& run_id, Targets& targets);
  Status MakeFile(const std::string& run_id, Targets& targets);
  void MakeKey(const std::string& run_id);
  static std::string_view NameOf(Type type);
  static std::string LookAt(const Object& object);
  static void Remove(const Object& object);

  std::vector<Object> objects_;
};

}  // namespace taskcell::attack
