#include "launcher/mounts/snapshot_record.h"

#include <fcntl.h>

#include "launcher/base/text.h"
#include "launcher/cell/wire.h"
#include "launcher/sys/file.h"

namespace taskcell::mounts {
namespace {

// Another number with every change of the fields below, of kAgentEntries, or of what a snapshot
// keeps: what an earlier version copied is then never used.
constexpr uint32_t kTag = 0x534e4101;
constexpr std::size_t kMaxText = kMaxRecordText;
constexpr std::size_t kMaxItems = 256;

// Runs through the fields as a writer does, for their bounds, which a writer takes for kept.
class LimitCheck {
 public:
  template <typename Integer>
  void Number(const Integer& /*value*/) {}
  template <typename Enum>
  void Choice(const Enum& /*value*/, Enum /*last*/) {}
  void Tag(uint32_t /*tag*/) {}
  void String(const std::string& value, std::size_t limit) { is_kept_ &= value.size() <= limit; }
  template <typename Items, typename Item>
  void List(const Items& items, std::size_t limit, Item item) {
    is_kept_ &= items.size() <= limit;
    for (const auto& each : items) item(*this, each);
  }
  bool is_kept() const { return is_kept_; }

 private:
  bool is_kept_ = true;
};

template <typename Io, typename Value>
void EntryFields(Io& io, Value& entry) {
  io.String(entry.name, kMaxText);
  io.Choice(entry.verdict, Verdict::kAbsent);
  io.Choice(entry.reason, Reason::kRace);
  io.String(entry.note, kMaxText);
}

template <typename Io, typename Value>
void Fields(Io& io, Value& record) {
  io.Tag(kTag);
  io.String(record.boot_id, kMaxText);
  io.Number(record.clock_offset_ms);
  io.Number(record.bounds.bytes);
  io.Number(record.bounds.entries);
  io.Number(record.bounds.depth);
  io.String(record.inventory, kMaxRecordBytes);
  io.List(record.snapshot.entries, kMaxItems,
          [](auto& each, auto& entry) { EntryFields(each, entry); });
  io.List(record.snapshot.warnings, kMaxItems, cell::kStringItem<kMaxText>);
  io.Number(record.snapshot.bytes);
  io.Number(record.snapshot.copied);
}

}  // namespace

Result<std::string> BootId() {
  constexpr std::size_t kMaxIdBytes = 64;
  std::string text = TRY(sys::ReadFile(AT_FDCWD, "/proc/sys/kernel/random/boot_id", kMaxIdBytes));
  return std::string(Trim(text));
}

Result<std::string> EncodeRecord(const SnapshotRecord& record) {
  LimitCheck limits;
  Fields(limits, record);
  if (!limits.is_kept())
    return Error(Kind::kInternal, "snapshot record: a text or a list above its bound");
  cell::WireWriter writer;
  Fields(writer, record);
  return writer.Take();
}

Result<SnapshotRecord> ParseRecord(std::string_view bytes) {
  SnapshotRecord record;
  cell::WireReader reader(bytes);
  Fields(reader, record);
  TRY(reader.Finish("snapshot record"));
  return record;
}

}  // namespace taskcell::mounts
