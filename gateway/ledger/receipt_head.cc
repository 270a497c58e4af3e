#include "gateway/ledger/receipt_head.h"

#include <initializer_list>
#include <string_view>
#include <utility>

namespace taskcell::gateway {

void PutHead(JsonText& json, const ReceiptHead& head) {
  for (const auto& [key, value] :
       std::initializer_list<std::pair<std::string_view, std::string_view>>{
           {"run_id", head.run_id},
           {"task_id", head.task_id},
           {"agent", head.agent},
           {"home", head.home},
           {"runtime", head.runtime},
           {"model", head.model},
           {"provider", head.provider},
           {"account", head.account},
           {"engine", head.engine},
           {"uid_separation", head.uid_separation},
           {"started", head.started},
           {"ended", head.ended},
           {"outcome", head.outcome},
           {"code", head.code},
           {"message", head.message}})
    json.Key(key).String(value);
  json.Key("step_limit").Bool(head.step_limit);
}

}  // namespace taskcell::gateway
