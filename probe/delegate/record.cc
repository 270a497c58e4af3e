#include "probe/delegate/record.h"

#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "launcher/base/json_text.h"
#include "launcher/base/json_value.h"
#include "launcher/base/text.h"
#include "launcher/sys/file.h"
#include "launcher/sys/sync.h"

namespace taskcell::probe::delegate {
namespace {

constexpr std::size_t kMaxRecords = 10'000;
constexpr std::size_t kMaxChanges = 1000;
constexpr std::string_view kParent = "var/lib";
constexpr std::string_view kName = "taskcell-delegate";
constexpr std::string_view kPrefix = "uid-";
constexpr std::string_view kSuffix = ".json";
constexpr std::string_view kNewSuffix = ".new";
constexpr ChangeKind kKinds[] = {ChangeKind::kDirectory, ChangeKind::kOwner,
                                 ChangeKind::kControllers, ChangeKind::kFile, ChangeKind::kCommand};

std::string FileName(uint32_t uid) { return Text(kPrefix, uid, kSuffix); }

// The uid in the name of a record's file.
std::optional<uint32_t> UidOf(std::string_view name) {
  if (!name.starts_with(kPrefix) || !name.ends_with(kSuffix)) return {};
  name.remove_prefix(kPrefix.size());
  name.remove_suffix(kSuffix.size());
  std::optional<uint64_t> uid = ParseUnsigned(name);
  if (!uid || *uid > UINT32_MAX) return {};
  return static_cast<uint32_t>(*uid);
}

void AddWords(JsonText& json, std::string_view key, const std::vector<std::string>& words) {
  json.Key(key).Open('[');
  for (const std::string& word : words) json.String(word);
  json.Close(']');
}

void AddChange(JsonText& json, const Change& change) {
  json.Open('{').Key("kind").String(Name(change.kind)).Key("path").String(change.path);
  json.Key("text").String(change.text).Key("mode").Unsigned(change.mode);
  json.Key("uid").Unsigned(change.uid).Key("gid").Unsigned(change.gid);
  AddWords(json, "command", change.command);
  AddWords(json, "undo", change.undo);
  const Before& before = change.before;
  json.Key("before").Open('{').Key("present").Bool(before.present);
  json.Key("text").String(before.text).Key("mode").Unsigned(before.mode);
  json.Key("uid").Unsigned(before.uid).Key("gid").Unsigned(before.gid).Close('}').Close('}');
}

Error Malformed(std::string_view what) {
  return Error(Kind::kViolation, Text("not a record of taskcell-probe delegate: ", what));
}

Result<std::vector<std::string>> ParseWords(const JsonValue& value, std::string_view key) {
  const JsonValue* list = value.Find(key);
  if (list == nullptr || !list->is_array()) return Malformed(key);
  std::vector<std::string> words;
  for (const JsonValue& each : list->items) {
    if (!each.is_string()) return Malformed(key);
    words.push_back(each.text);
  }
  return words;
}

uint32_t Number(const JsonValue& value, std::string_view key) {
  return static_cast<uint32_t>(std::min<uint64_t>(value.Unsigned(key), UINT32_MAX));
}

Result<Change> ParseChange(const JsonValue& value) {
  const auto* kind = std::find_if(std::begin(kKinds), std::end(kKinds), [&](ChangeKind each) {
    return Name(each) == value.String("kind");
  });
  if (kind == std::end(kKinds)) return Malformed("kind");
  Change change;
  change.kind = *kind;
  change.path = value.String("path");
  bool is_absolute = change.path.starts_with('/');
  if (!is_absolute && (change.kind != ChangeKind::kCommand || !change.path.empty()))
    return Malformed("path");
  change.text = value.String("text");
  change.mode = Number(value, "mode");
  change.uid = Number(value, "uid");
  change.gid = Number(value, "gid");
  change.command = TRY(ParseWords(value, "command"));
  change.undo = TRY(ParseWords(value, "undo"));
  const JsonValue* before = value.Find("before");
  if (before == nullptr || !before->is_object()) return Malformed("before");
  change.before = {before->True("present"), std::string(before->String("text")),
                   Number(*before, "mode"), Number(*before, "uid"), Number(*before, "gid")};
  return change;
}

// Only root may have written what root will undo.
Status CheckOwned(const struct stat& info, std::string_view path) {
  bool own = info.st_uid == ::geteuid() && (info.st_mode & (S_IWGRP | S_IWOTH)) == 0;
  if (own) return Ok();
  return Error(Kind::kDenied,
               Text(path, " belongs to uid ", info.st_uid,
                    " or may be written by others, so what it "
                    "says is not believed: look into it, undo by hand what it names, and "
                    "remove it"));
}

}  // namespace

std::string ToJson(const Record& record) {
  JsonText json;
  json.Open('{').Key("user").String(record.user.name).Key("uid").Unsigned(record.user.uid);
  json.Key("gid").Unsigned(record.user.gid).Key("changes").Open('[');
  for (const Change& each : record.changes) AddChange(json, each);
  json.Close(']').Close('}');
  return json.text() + "\n";
}

Result<Record> ParseRecord(std::string_view json) {
  JsonValue value = TRY(ParseJson(json).With("a record of taskcell-probe delegate"));
  const JsonValue* changes = value.Find("changes");
  if (changes == nullptr || !changes->is_array() || changes->items.size() > kMaxChanges)
    return Malformed("changes");
  Record record;
  record.user = {std::string(value.String("user")), Number(value, "uid"), Number(value, "gid")};
  if (record.user.uid == 0) return Malformed("uid");
  for (const JsonValue& each : changes->items) record.changes.push_back(TRY(ParseChange(each)));
  return record;
}

Result<RecordStore> RecordStore::Open(int root_fd) {
  UniqueFd above =
      TRY(sys::OpenAt2(root_fd, std::string(kParent), O_RDONLY | O_DIRECTORY, sys::kResolveBeneath)
              .With("open /var/lib"));
  std::string name(kName);
  Status made = sys::MakeDirectory(above.get(), name, 0700);
  if (!made.ok() && made.error().err != EEXIST) return std::move(made).error();
  UniqueFd directory =
      TRY(sys::OpenAt2(above.get(), name, O_RDONLY | O_DIRECTORY, sys::kResolveBeneath));
  Status locked = sys::Lock(directory.get(), LOCK_EX | LOCK_NB);
  struct stat info = TRY(sys::Stat(directory.get()));
  TRY(CheckOwned(info, kRecordDirectory));
  if (!locked.ok() || info.st_nlink == 0)  // or it was taken away just now
    return Error(Kind::kSystem, Text("another taskcell-probe delegate is at work (it holds ",
                                     kRecordDirectory, "): wait for it, then try again"));
  return RecordStore(std::move(above), std::move(directory));
}

Result<std::optional<Record>> RecordStore::Read(uint32_t uid) const {
  std::string name = FileName(uid);
  std::string path = Text(kRecordDirectory, "/", name);
  Result<UniqueFd> file =
      sys::OpenAt2(directory_.get(), name, O_RDONLY | O_NONBLOCK, sys::kResolveBeneath);
  if (!file.ok() && file.error().err == ENOENT) return std::optional<Record>();
  if (!file.ok()) return std::move(file).error();
  struct stat info = TRY(sys::Stat(file->get()));
  TRY(CheckOwned(info, path));
  if (!S_ISREG(info.st_mode)) return Error(Kind::kViolation, path + " is no plain file");
  std::string text = TRY(sys::ReadAll(file->get(), kMaxRecordFileBytes));
  Record record = TRY(ParseRecord(text).With(path));
  if (record.user.uid != uid) return Error(Kind::kViolation, path + " is another user's record");
  return std::optional<Record>(std::move(record));
}

Result<std::vector<Record>> RecordStore::Others(uint32_t uid) const {
  std::vector<Record> others;
  for (const sys::DirectoryEntry& entry : TRY(sys::ListDirectory(directory_.get(), kMaxRecords))) {
    std::optional<uint32_t> other = UidOf(entry.name);
    if (!other || *other == uid) continue;
    std::optional<Record> record = TRY(Read(*other));
    if (record) others.push_back(*std::move(record));
  }
  return others;
}

Status RecordStore::Write(const Record& record) const {
  std::string name = FileName(record.user.uid);
  std::string fresh = Text(name, kNewSuffix);
  (void)sys::RemoveFile(directory_.get(), fresh);  // ignoring: only a killed process left one
  UniqueFd file = TRY(sys::OpenAt2(directory_.get(), fresh, O_WRONLY | O_CREAT | O_EXCL,
                                   sys::kResolveBeneath, 0600));
  TRY(sys::WriteAll(file.get(), ToJson(record)));
  TRY(sys::Synchronize(file.get()));
  TRY(sys::Rename(directory_.get(), fresh, name));
  return sys::Synchronize(directory_.get());
}

Status RecordStore::Remove(uint32_t uid) const {
  Status removed = sys::RemoveFile(directory_.get(), FileName(uid));
  if (!removed.ok() && removed.error().err != ENOENT) return removed;
  return Ok();
}

RecordStore::~RecordStore() {
  if (!directory_.valid()) return;  // moved from
  Result<std::vector<sys::DirectoryEntry>> entries =
      sys::ListDirectory(directory_.get(), kMaxRecords);
  if (!entries.ok()) return;
  for (const sys::DirectoryEntry& entry : entries.value()) {
    if (std::string_view(entry.name).ends_with(kNewSuffix))
      (void)sys::RemoveFile(directory_.get(), entry.name);  // ignoring: then the directory stays
  }
  // ignoring: other users' records may be in it
  (void)sys::RemoveDirectory(above_.get(), std::string(kName));
}

}  // namespace taskcell::probe::delegate
