#include "launcher/base/json_text.h"
#include "launcher/base/text.h"
#include "probe/print/print.h"

namespace taskcell::probe {
namespace {

void AddAssessment(JsonText& json, const Assessment& assessment) {
  json.Open('{').Key("state").String(assessment.state).Key("reason").String(assessment.reason);
  json.Key("who").String(Name(assessment.who)).Key("fix").String(assessment.fix).Close('}');
}

void AddFinding(JsonText& json, const Finding& finding) {
  json.Open('{').Key("id").String(finding.id).Key("verdict").String(Name(finding.verdict));
  json.Key("reason").String(finding.reason).Key("who").String(Name(finding.who));
  json.Key("fix").String(finding.fix).Key("found").Open('[');
  for (const Evidence& each : finding.found)
    json.Open('{').Key("file").String(each.file).Key("value").String(each.value).Close('}');
  json.Close(']').Close('}');
}

std::string_view OverallName(cgroup::LimitState overall) {
  switch (overall) {
    case cgroup::LimitState::kYes:
      return "enforceable";
    case cgroup::LimitState::kNo:
      return "not_enforceable";
    case cgroup::LimitState::kUnknown:
      return "unknown";
  }
  return "";
}

}  // namespace

void AddDiagnosis(JsonText& json, const cgroup::Diagnosis& limit) {
  json.Open('{').Key("state").String(Name(limit.state)).Key("reason").String(limit.reason);
  json.Key("who").String(Name(limit.who)).Key("fix").String(limit.fix).Key("outer_limit");
  if (limit.outer_limit)
    json.Unsigned(*limit.outer_limit);
  else
    json.Null();
  json.Key("outer_file").String(limit.outer_file).Key("level").String(limit.level);
  json.Key("file").String(limit.file).Key("place").String(limit.place).Close('}');
}

std::string JsonOf(const Report& report) {
  JsonText json;
  json.Open('{')
      .Key("verdict")
      .String(Name(report.verdict))
      .Key("headline")
      .String(report.Headline());
  json.Key("hierarchy").String(Name(report.mode));
  json.Key("overall").String(OverallName(report.overall)).Key("limits").Open('{');
  for (std::size_t i = 0; i < cgroup::kControllerCount; ++i) {
    json.Key(Name(cgroup::kControllers[i]));
    AddDiagnosis(json, report.limits[i]);
  }
  json.Close('}').Key("userns");
  AddAssessment(json, report.userns);
  json.Key("subids");
  AddAssessment(json, report.subids);
  json.Key("findings").Open('[');
  for (const Finding& finding : report.findings) AddFinding(json, finding);
  json.Close(']').Close('}');
  return json.text() + "\n";
}

}  // namespace taskcell::probe
