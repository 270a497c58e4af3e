#include "launcher/base/json_text.h"
#include "launcher/base/text.h"
#include "probe/attack/print.h"

namespace taskcell::attack {
namespace {

struct SarifWords {
  const char* kind;
  const char* level;
};

SarifWords WordsOf(Verdict verdict) {
  switch (verdict) {
    case Verdict::kContained:
      return {"pass", "none"};
    case Verdict::kEscaped:
      return {"fail", "error"};
    case Verdict::kNotProvable:
      break;
  }
  return {"open", "none"};
}

std::string MessageOf(const Row& row) {
  std::string text =
      Text("It tried to ", row.payload->tries, ". Outside: ", NameOf(row.outside.result),
           "; in the cell: ", NameOf(row.inside.result));
  if (!row.why.empty()) text += Text(". ", row.why);
  return text + ".";
}

void PutRule(JsonText& json, const Payload& payload) {
  json.Open('{').Key("id").String(payload.name);
  json.Key("shortDescription").Open('{');
  json.Key("text").String(Text("An attack tried to ", payload.tries, ".")).Close('}');
  json.Key("properties").Open('{').Key("topic").String(payload.topic).Close('}').Close('}');
}

void PutResult(JsonText& json, const Row& row, const std::string& engine) {
  SarifWords words = WordsOf(row.verdict);
  json.Open('{').Key("ruleId").String(row.payload->name);
  json.Key("kind").String(words.kind).Key("level").String(words.level);
  json.Key("message").Open('{').Key("text").String(MessageOf(row)).Close('}');
  json.Key("locations").Open('[').Open('{').Key("logicalLocations").Open('[').Open('{');
  json.Key("name").String(engine).Key("kind").String("engine");
  json.Close('}').Close(']').Close('}').Close(']').Close('}');
}

}  // namespace

std::string ReportSarif(const Report& report) {
  JsonText json;
  json.Open('{').Key("$schema").String("https://json.schemastore.org/sarif-2.1.0.json");
  json.Key("version").String("2.1.0").Key("runs").Open('[').Open('{');
  json.Key("tool").Open('{').Key("driver").Open('{').Key("name").String("taskcell-probe attack");
  json.Key("version").String(TASKCELL_VERSION).Key("rules").Open('[');
  for (const Row& row : report.rows) PutRule(json, *row.payload);
  json.Close(']').Close('}').Close('}');
  json.Key("invocations").Open('[').Open('{');
  json.Key("executionSuccessful").Bool(!report.refusal.has_value());
  if (report.refusal) {
    json.Key("toolExecutionNotifications").Open('[').Open('{').Key("level").String("error");
    json.Key("message").Open('{').Key("text").String(report.refusal->text).Close('}');
    json.Close('}').Close(']');
  }
  json.Close('}').Close(']').Key("results").Open('[');
  for (const Row& row : report.rows) PutResult(json, row, report.engine);
  json.Close(']').Close('}').Close(']').Close('}');
  return json.text() + "\n";
}

}  // namespace taskcell::attack
