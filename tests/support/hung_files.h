#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>

namespace taskcell::test {

// A file system whose server does not answer: whoever waits for it does so until this object goes.
// For a process that may mount where it is.
class HungFiles {
 public:
  enum class Answers : uint8_t {
    // Its root can be opened and asked for its attributes. Who lists it, or looks for a name in it,
    // cannot be killed: the server has taken the request.
    kRoot,
    kNothing,  // nor that; who waits can be killed
  };
  explicit HungFiles(const std::string& path, Answers answers = Answers::kRoot);
  // An empty directory, as long as it is asked at most `requests` times; after that who waits can
  // be killed.
  HungFiles(const std::string& path, int requests);
  ~HungFiles();
  HungFiles(const HungFiles&) = delete;
  HungFiles& operator=(const HungFiles&) = delete;

  bool mounted() const { return server_ > 0; }

 private:
  template <typename Server>
  void Mount(const std::string& path, const Server& server);

  pid_t server_ = -1;
};

// Whether there can be one: for a test's TASKCELL_REQUIRE, with kNeedsFuse as the reason.
bool HasFuse();
inline constexpr char kNeedsFuse[] = "needs root, to mount, and /dev/fuse";

// Gives this process a mount namespace in which what it mounts shows nowhere else.
bool EnterOwnMounts();

// Answers the first request of the kernel, without which no other comes. False: it was another.
bool AnswerFuseInit(int fuse_fd);

}  // namespace taskcell::test
