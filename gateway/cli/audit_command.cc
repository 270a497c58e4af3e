#include "gateway/cli/audit_command.h"

#include "gateway/cli/home_option.h"
#include "gateway/cli/output.h"
#include "gateway/ledger/receipt_audit.h"
#include "gateway/ledger/receipt_chain.h"
#include "launcher/base/json_text.h"
#include "launcher/base/text.h"

namespace taskcell::gateway {
namespace {

std::string ReportJson(const ChainReport& report) {
  JsonText json;
  json.Open('{').Key("valid").Bool(report.fault_count == 0);
  json.Key("receipts").Number(report.receipts).Key("removed").Number(report.removed);
  json.Key("last").Number(report.last).Key("last_digest").String(report.last_digest);
  json.Key("fault_count").Number(report.fault_count).Key("faults").Open('[');
  for (const ChainFault& fault : report.faults)
    json.Open('{').Key("line").Number(fault.line).Key("text").String(fault.text).Close('}');
  json.Close(']').Key("notes").Open('[');
  for (const std::string& note : report.notes) json.String(note);
  json.Close(']').Close('}');
  return json.text() + "\n";
}

std::string ReportText(const ChainReport& report) {
  std::string text;
  for (const ChainFault& fault : report.faults)
    text += Text(kReceiptsFile, ": line ", fault.line, " ", Printable(fault.text), "\n");
  const auto told = static_cast<int64_t>(report.faults.size());
  if (report.fault_count > told) text += Text("and ", report.fault_count - told, " more\n");
  for (const std::string& note : report.notes) text += Text("note: ", Printable(note), "\n");
  if (report.removed > 0)
    text += Text("receipts 1 to ", report.removed, " were removed for their age\n");
  text += Text(report.receipts, report.receipts == 1 ? " receipt is" : " receipts are",
               " what was written");
  if (report.last > 0) text += Text("; the last is ", report.last, ", ", report.last_digest);
  return Text(text, "\n", report.fault_count == 0 ? "valid" : "NOT valid", "\n");
}

}  // namespace

int AuditVerifyCommand(const std::string& home_option, bool json) {
  constexpr int kInvalid = 1;
  constexpr int kUsage = 2;
  Result<Home> home = OpenChosenHome(home_option, ProcessEnvironment());
  Result<ChainReport> report =
      home.ok() ? VerifyReceipts(home->fd.get(), home->path) : Result<ChainReport>(home.error());
  if (!report.ok()) {
    Tell(Printable(report.error().text));
    return kUsage;
  }
  if (!PrintOutput(json ? ReportJson(report.value()) : ReportText(report.value()))) return kUsage;
  return report->fault_count == 0 ? 0 : kInvalid;
}

}  // namespace taskcell::gateway
