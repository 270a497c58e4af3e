#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "gateway/config/home.h"
#include "gateway/task/answer.h"
#include "gateway/task/task.h"
#include "launcher/base/result.h"
#include "launcher/base/unique_fd.h"

namespace taskcell::gateway {

// The home is served by no gateway, or the one that served it is gone.
inline constexpr std::string_view kGatewayLost = "gateway_lost";

// Asks the gateway of a home over its socket, a connection for each request. What it refuses comes
// back as an Error with its code and words.
class GatewayClient {
 public:
  // nullopt when no gateway serves the home.
  static Result<std::optional<GatewayClient>> Find(const Home& home);
  // The same; error code gateway_lost, with the remedy, when none does.
  static Result<GatewayClient> Need(const Home& home);

  struct Submitted {
    std::string id;                    // of the task that was taken in; empty where none was:
    std::optional<TaskAnswer> answer;  // of a task for which nothing is to run
  };
  // Asks for a task of the home; the request names its home and id in vain.
  Result<Submitted> Submit(const TaskRequest& request);
  // The state the task was in: "accepted" and "running" are ended by this.
  Result<std::string> Cancel(const std::string& id);
  // A line for each step of the task so far.
  Result<std::string> Log(const std::string& id);

  // Follows a task to its end; `on_line` gets each line of its log. Once `cancel_fd` (-1: never) is
  // readable the task is cancelled, and still followed to its end; the second time it is left
  // alone. Error code gateway_lost when the gateway goes away or falls silent first.
  Result<TaskAnswer> Follow(const std::string& id, int cancel_fd,
                            const std::function<void(std::string_view)>& on_line);

 private:
  explicit GatewayClient(UniqueFd home) : home_(std::move(home)) {}
  Result<UniqueFd> Connect() const;
  // Sends a request and returns the body of an answer of success.
  Result<std::string> Call(std::string_view method, const std::string& target,
                           std::string_view body = {});

  UniqueFd home_;
};

}  // namespace taskcell::gateway
