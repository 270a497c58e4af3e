#pragma once

#include <functional>
#include <string>

#include "gateway/api/http_server.h"
#include "gateway/api/service.h"
#include "launcher/base/result.h"

namespace taskcell::gateway {

// What the gateway answers over its socket (taskcell-gateway(8), API):
//   GET  /v1/status              who waits and runs
//   GET  /v1/tasks[?all=1]       the newest tasks, or every one
//   POST /v1/tasks               {"agent", "kind", "prompt", "role", "require_cell"} -> {"id"}, or
//                                {"answer"} of a task for which nothing is to run
//   GET  /v1/tasks/ID            one task, its cells, and its answer once it has ended
//   GET  /v1/tasks/ID/log        {"log"}: a line a step
//   GET  /v1/tasks/ID/events     server-sent events: state, log, and at last answer
//   POST /v1/tasks/ID/cancel     {"was"}: the state it was in
//   GET  /v1/accounts            all accounts, without their secrets
class Api {
 public:
  // `accounts` gives the body of /v1/accounts.
  Api(Service& service, std::function<Result<std::string>()> accounts)
      : service_(service), accounts_(std::move(accounts)) {}

  // In any thread.
  ApiAnswer Answer(const ApiRequest& request);

 private:
  ApiAnswer Status();
  ApiAnswer List(const ApiRequest& request);
  ApiAnswer Submit(const ApiRequest& request);
  ApiAnswer OfTask(const ApiRequest& request, const std::string& id, std::string_view rest);
  ApiAnswer Show(const std::string& id);
  ApiAnswer Log(const std::string& id);
  ApiAnswer Events(const std::string& id);
  ApiAnswer Cancel(const std::string& id);
  ApiAnswer Accounts();

  Service& service_;
  std::function<Result<std::string>()> accounts_;
};

}  // namespace taskcell::gateway
