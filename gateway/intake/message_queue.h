#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "gateway/config/home.h"
#include "gateway/intake/bus_message.h"
#include "gateway/ledger/database.h"
#include "launcher/base/result.h"

namespace taskcell::gateway {

inline constexpr char kQueueFile[] = "message_queue.db";

// A row that waits.
struct QueuedMessage {
  BusMessage message;   // its payload is not read where it is too large
  std::string trouble;  // why no task is made of it; empty: one is
};

// <home>/message_queue.db of the platform. One thread; opened for one look at it.
class MessageQueue {
 public:
  // nullopt where there is none. kConfig, naming what is missing, when it is a database of another
  // shape.
  static Result<std::optional<MessageQueue>> Open(const Home& home);

  // The oldest rows that wait, but those that `workflow` sent. A row that cannot even
  // have an id is failed at once.
  Result<std::vector<QueuedMessage>> Pending(int64_t limit);
  // How many rows of `workflow` wait, for whoever runs the platform's plans: what such a row asks
  // for is not laid down.
  Result<int64_t> Workflows();
  // The row no longer waits. It becomes `processing`, which the platform never puts back.
  Status Take(std::string_view id);
  // Its reply, or why there is none. A row that has its end keeps it.
  Status Complete(std::string_view id, std::string_view reply);
  Status Fail(std::string_view id, std::string_view error);
  // Whether somebody waits for its reply on a channel.
  Result<bool> HasCallback(std::string_view id);

 private:
  explicit MessageQueue(Database database) : database_(std::move(database)) {}
  Status CheckShape();
  Result<std::set<std::string, std::less<>>> ColumnsOf(std::string_view table);
  Status FailUnreadable();
  Status End(std::string_view state, std::string_view column, std::string_view text,
             std::string_view id);

  Database database_;
  bool has_lane_ = false;
  bool has_session_ = false;
  bool has_callbacks_ = false;
};

}  // namespace taskcell::gateway
