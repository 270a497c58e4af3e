#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>

#include "gateway/script/script.h"
#include "launcher/base/result.h"
#include "launcher/base/unique_fd.h"

namespace taskcell::gateway {

// The scripts of one home that clients of the gateway wait for: each runs at once or is turned
// away, for as long as its client is there. Any thread may ask.
class Scripts {
 public:
  // Runs one script to its end; `cancel_fd` as in Surroundings.
  using Runner = std::function<ScriptAnswer(const ScriptRequest&, int cancel_fd)>;

  // `most` says how many may run at once.
  static Result<std::unique_ptr<Scripts>> Make(Runner runner, std::function<uint64_t()> most);

  // Runs it and waits for its end. It is ended when `client_fd` (-1: nobody) is readable or its
  // other end is gone, and by CancelAll. Error codes: too_many_scripts, gateway_stopping.
  Result<ScriptAnswer> Run(const ScriptRequest& request, int client_fd);

  std::size_t Running();
  // From now on none is taken in.
  void Stop();
  void CancelAll();

 private:
  Scripts(Runner runner, std::function<uint64_t()> most, UniqueFd cancel)
      : runner_(std::move(runner)), most_(std::move(most)), cancel_(std::move(cancel)) {}

  Status Enter();

  Runner runner_;
  std::function<uint64_t()> most_;
  UniqueFd cancel_;  // eventfd
  std::mutex mutex_;
  std::size_t running_ = 0;
  bool accepting_ = true;
};

}  // namespace taskcell::gateway
