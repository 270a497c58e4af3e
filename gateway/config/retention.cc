#include "gateway/config/retention.h"

#include "gateway/config/table_reader.h"
#include "launcher/base/text.h"

namespace taskcell::gateway {
namespace {

Status ReadNumber(const TableReader& reader, const std::string& key, uint64_t max,
                  std::optional<uint64_t>& out) {
  if (reader.Find(key) == nullptr) return Ok();
  uint64_t number = 0;
  TRY(reader.Positive(key, max, number));
  out = number;
  return Ok();
}

Status ReadBound(const TableReader& reader, std::string_view what, Bound& bound) {
  TRY(ReadNumber(reader, Text(what, "_days"), kMaxRetentionDays, bound.days));
  return ReadNumber(reader, Text(what, "_bytes"), kMaxRetentionBytes, bound.bytes);
}

}  // namespace

Result<Retention> ReadRetention(const ConfigValue& config) {
  Retention retention;
  TableReader reader(TRY(FindTable(config, {"taskcell", "retention"})), "taskcell.retention");
  TRY(reader.CheckKeys({"receipts_days", "receipts_bytes", "exports_days", "exports_bytes",
                        "logs_days", "logs_bytes", "ledger_days", "ledger_bytes"}));
  TRY(ReadBound(reader, "receipts", retention.receipts));
  TRY(ReadBound(reader, "exports", retention.exports));
  TRY(ReadBound(reader, "logs", retention.logs));
  TRY(ReadBound(reader, "ledger", retention.ledger));
  return retention;
}

}  // namespace taskcell::gateway
