#include "gateway/ledger/task_json.h"

namespace taskcell::gateway {

void PutTask(JsonText& json, const TaskRow& task) {
  json.Key("id").String(task.id).Key("agent").String(task.agent).Key("kind").String(task.kind);
  json.Key("state").String(TaskStateName(task.state)).Key("code").String(task.code);
  json.Key("message").String(task.message).Key("accepted_ms").Number(task.accepted_ms);
  json.Key("started_ms").Number(task.started_ms).Key("ended_ms").Number(task.ended_ms);
}

void PutRuns(JsonText& json, const std::vector<RunRow>& runs) {
  json.Key("runs").Open('[');
  for (const RunRow& run : runs) {
    json.Open('{').Key("id").String(run.id).Key("engine").String(run.engine);
    json.Key("account").String(run.account).Key("started_ms").Number(run.started_ms);
    json.Key("deadline_ms").Number(run.deadline_ms).Key("ended_ms").Number(run.ended_ms);
    json.Close('}');
  }
  json.Close(']');
}

}  // namespace taskcell::gateway
