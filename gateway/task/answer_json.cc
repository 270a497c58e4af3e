#include "gateway/task/answer_json.h"

#include <nlohmann/json.hpp>

#include "launcher/base/json_text.h"
#include "launcher/base/text.h"

namespace taskcell::gateway {

std::string AnswerJson(const TaskAnswer& answer) {
  JsonText json;
  json.Open('{').Key("outcome").String(OutcomeWord(answer.code));
  json.Key("code").String(answer.code).Key("message").String(answer.message);
  json.Key("reply");
  if (answer.reply.has_value()) {
    json.String(*answer.reply);
  } else {
    json.Null();
  }
  json.Key("step_limit").Bool(answer.step_limit);
  json.Key("delegation_reply").String(DelegationReply(answer));
  json.Key("ran_on_host").Bool(answer.ran_on_host);
  json.Key("for_host").Bool(answer.for_host);
  json.Key("by_gateway").Bool(answer.by_gateway);
  json.Key("detail").String(answer.detail);
  json.Key("warnings").Open('[');
  for (const std::string& warning : answer.warnings) json.String(warning);
  json.Close(']')
      .Key("task_id")
      .String(answer.task_id)
      .Key("receipt_path")
      .String(answer.receipt_path)
      .Key("export_path")
      .String(answer.export_path)
      .Key("receipt");
  if (answer.receipt_json.empty()) {
    json.Null();
  } else {
    json.Raw(answer.receipt_json);
  }
  json.Close('}');
  return json.text();
}

Result<TaskAnswer> ParseAnswer(std::string_view json) {
  try {
    const nlohmann::json object = nlohmann::json::parse(json);
    TaskAnswer answer;
    answer.code = object.at("code");
    answer.message = object.at("message");
    answer.detail = object.at("detail");
    if (!object.at("reply").is_null()) answer.reply = object.at("reply").get<std::string>();
    answer.step_limit = object.at("step_limit");
    answer.task_id = object.at("task_id");
    answer.ran_on_host = object.at("ran_on_host");
    answer.for_host = object.at("for_host");
    answer.by_gateway = object.at("by_gateway");
    answer.receipt_path = object.at("receipt_path");
    answer.export_path = object.value("export_path", "");  // answers of older versions have none
    if (!object.at("receipt").is_null()) answer.receipt_json = object.at("receipt").dump();
    answer.warnings = object.at("warnings").get<std::vector<std::string>>();
    return answer;
  } catch (const nlohmann::json::exception& error) {
    return Error(Kind::kViolation, Text("not an answer: ", error.what()));
  }
}

}  // namespace taskcell::gateway
