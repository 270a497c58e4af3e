#pragma once

#include <functional>
#include <string>
#include <vector>

#include "gateway/api/http_server.h"
#include "gateway/api/scripts.h"
#include "gateway/api/service.h"
#include "gateway/task/account_list.h"
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
//   POST /v1/scripts             {"language", "code", "stdin", "timeout_seconds", "agent"} -> what
//                                became of the script, once it has ended; it ends with its client
//   GET  /metrics                what it did and does, in Prometheus' text format
class Api {
 public:
  using Accounts = std::function<Result<std::vector<ListedAccount>>()>;
  // `home` is the path scripts are told.
  Api(Service& service, Scripts& scripts, std::string home, Accounts accounts)
      : service_(service),
        scripts_(scripts),
        home_(std::move(home)),
        accounts_(std::move(accounts)) {}

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
  ApiAnswer ListAccounts();
  ApiAnswer Script(const ApiRequest& request);
  ApiAnswer Measure();

  Service& service_;
  Scripts& scripts_;
  std::string home_;
  Accounts accounts_;
};

}  // namespace taskcell::gateway
