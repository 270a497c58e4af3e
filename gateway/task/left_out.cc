#include "gateway/task/left_out.h"

#include <algorithm>

#include "gateway/ledger/gateway_log.h"

namespace taskcell::gateway {

void LogLeftOut(const Home& home, const std::vector<std::string>& told, Receipt& receipt) {
  std::vector<std::string> left_out = receipt.snapshot.warnings;
  DropTold(told, left_out);
  for (const std::string& warning : left_out) {
    Status logged =
        AppendLog(home.fd.get(), {"agent_entry_left_out", receipt.agent, {{"message", warning}}});
    if (logged.ok()) continue;
    receipt.warnings.push_back(logged.error().text);
    return;
  }
}

void DropTold(const std::vector<std::string>& told, std::vector<std::string>& warnings) {
  std::erase_if(warnings, [&told](const std::string& warning) {
    return std::find(told.begin(), told.end(), warning) != told.end();
  });
}

}  // namespace taskcell::gateway
