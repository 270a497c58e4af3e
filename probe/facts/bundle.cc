#include "probe/facts/bundle.h"

#include <sys/stat.h>
#include <sys/sysmacros.h>

#include <cerrno>
#include <climits>
#include <vector>

#include "launcher/base/json_text.h"
#include "launcher/base/json_value.h"
#include "launcher/base/text.h"
#include "probe/facts/trials.h"
#include "probe/tar/tar_reader.h"
#include "probe/tar/tar_writer.h"

namespace taskcell::probe {
namespace {

constexpr std::string_view kAbout = "taskcell/about.json";
constexpr std::string_view kTrials = "taskcell/trials.json";
constexpr uint32_t kOwnMode = S_IFREG | 0600U;

// How a path of one component, "/" alone, is written; no other path has it.
constexpr std::string_view kRootName = "%2F";

bool IsPlain(char c) { return c > ' ' && c < '\x7f' && c != '%'; }

std::string EncodePart(std::string_view part) {
  constexpr std::string_view kDigits = "0123456789ABCDEF";
  bool directory = part == "." || part == "..";
  std::string encoded;
  for (char c : part) {
    if (IsPlain(c) && !directory) {
      encoded += c;
      continue;
    }
    unsigned byte = static_cast<unsigned char>(c);
    encoded += Text('%', kDigits[byte >> 4U], kDigits[byte & 15U]);
  }
  return encoded;
}

std::string EncodePath(std::string_view path) {
  if (path == "/") return Text('/', kRootName);
  std::string encoded;
  for (std::string_view part : Split(path.substr(1), '/')) encoded += Text('/', EncodePart(part));
  return encoded;
}

std::optional<std::string> DecodePath(std::string_view encoded) {
  if (encoded.substr(1) == kRootName) return "/";
  std::string path;
  for (std::size_t at = 0; at < encoded.size(); ++at) {
    if (encoded[at] != '%') {
      path += encoded[at];
      continue;
    }
    std::optional<uint64_t> byte = ParseHex(encoded.substr(at + 1, 2));
    if (!byte) return std::nullopt;
    path += static_cast<char>(*byte);
    at += 2;
  }
  return path;
}

std::optional<int> ErrorNumber(std::string_view name) {
  constexpr int kMost = 200;
  for (int err = 1; err < kMost; ++err) {
    if (!name.empty() && ErrorName(err) == name) return err;
  }
  return std::nullopt;
}

bool IsOfFile(Question question) {
  return question == Question::kRead || question == Question::kLook;
}

std::string AboutJson(const Bundle& bundle) {
  const cgroup::Subject& subject = bundle.request.subject;
  JsonText json;
  auto id = [&json](std::string_view key, std::optional<uint32_t> value) {
    json.Key(key);
    if (value)
      json.Unsigned(*value);
    else
      json.Null();
  };
  json.Open('{').Key("format").Unsigned(kBundleFormat).Key("program").String(bundle.program);
  id("collector", bundle.collector);
  id("uid", subject.uid);
  json.Key("user").String(bundle.request.user);
  json.Key("user_manager").Bool(subject.user_manager).Key("trials").Bool(bundle.live.has_value());
  json.Close('}');
  return json.text() + "\n";
}

std::optional<uint32_t> IdIn(const JsonValue& json, std::string_view key) {
  const JsonValue* found = json.Find(key);
  std::optional<uint64_t> id;
  if (found != nullptr && found->kind == JsonKind::kNumber) id = ParseUnsigned(found->text);
  if (!id || *id > UINT32_MAX) return std::nullopt;
  return static_cast<uint32_t>(*id);
}

// Returns whether there must be trials.
Result<bool> ReadAbout(std::string_view text, Bundle& bundle) {
  JsonValue json = TRY(ParseJson(text).With(kAbout));
  uint64_t format = json.Unsigned("format");
  bundle.program = json.String("program");
  if (format == 0) return Error(Kind::kViolation, Text(kAbout, " names no format"));
  if (format > kBundleFormat)
    return Error(Kind::kUnsupported,
                 Text("it has format ", format, ", made by a newer taskcell-probe (",
                      Printable(bundle.program), "); this one reads format ", kBundleFormat,
                      ": judge it with a version as new as that"));
  bundle.collector = IdIn(json, "collector");
  bundle.request.subject.uid = IdIn(json, "uid");
  bundle.request.subject.user_manager = json.True("user_manager");
  bundle.request.user = json.String("user");
  return json.True("trials");
}

TarEntry EntryOf(const RecordKey& key, const Answer& answer) {
  TarEntry entry;
  entry.path = EntryName(key, FailureIn(key, answer));
  entry.content = key.question == Question::kRead ? answer.seen.text : answer.text;
  entry.mode = kOwnMode;
  if (IsOfFile(key.question)) {
    // 0: not even the owner is known, since every file has a type.
    entry.mode = answer.seen.owner_known ? answer.seen.mode : 0;
    entry.uid = answer.seen.uid;
    entry.gid = answer.seen.gid;
    entry.device_major = major(answer.seen.device);
    entry.device_minor = minor(answer.seen.device);
  }
  return entry;
}

sys::FileSeen SeenOf(const TarEntry& entry, int err) {
  sys::FileSeen seen;
  seen.state = err == 0        ? sys::FileSeen::State::kPresent
               : err == ENOENT ? sys::FileSeen::State::kAbsent
                               : sys::FileSeen::State::kUnreadable;
  seen.err = err == ENOENT ? 0 : err;
  seen.owner_known = entry.mode != 0;
  seen.mode = entry.mode;
  seen.uid = entry.uid;
  seen.gid = entry.gid;
  seen.device = makedev(entry.device_major, entry.device_minor);
  seen.text = entry.content;
  return seen;
}

Status AddAnswer(const TarEntry& entry, Record& record) {
  std::optional<EntryMeaning> meaning = ParseEntryName(entry.path);
  if (!meaning)
    return Error(Kind::kViolation, Text("'", Printable(entry.path),
                                        "' is no entry that taskcell-probe collect makes"));
  Answer answer;
  if (IsOfFile(meaning->key.question)) {
    answer.seen = SeenOf(entry, meaning->err);
  } else {
    answer.err = meaning->err;
    answer.text = entry.content;
  }
  if (!record.emplace(meaning->key, std::move(answer)).second)
    return Error(Kind::kViolation,
                 Text("it holds two answers about '", Printable(meaning->key.path), "'"));
  return Ok();
}

}  // namespace

int FailureIn(const RecordKey& key, const Answer& answer) {
  int err = answer.err;
  if (IsOfFile(key.question)) {
    if (answer.seen.absent()) return ENOENT;
    // What is unreadable is there or not, and must not become absent.
    err = answer.seen.present() ? 0 : answer.seen.err == ENOENT ? EIO : answer.seen.err;
  }
  return err != 0 && ErrorName(err).empty() ? EIO : err;
}

std::string EntryName(const RecordKey& key, int err) {
  return Text(Name(key.question), err == 0 ? "" : ".", ErrorName(err), EncodePath(key.path));
}

std::optional<EntryMeaning> ParseEntryName(std::string_view name) {
  std::size_t slash = name.find('/');
  if (slash == name.npos) return std::nullopt;
  std::string_view what = name.substr(0, slash);
  std::string_view question = what.substr(0, what.find('.'));
  EntryMeaning meaning;
  if (question.size() < what.size()) {
    std::optional<int> err = ErrorNumber(what.substr(question.size() + 1));
    if (!err) return std::nullopt;
    meaning.err = *err;
  }
  std::optional<std::string> path = DecodePath(name.substr(slash));
  if (!path || path->size() >= PATH_MAX) return std::nullopt;
  meaning.key.path = *std::move(path);
  for (Question each : kQuestions) {
    if (Name(each) != question) continue;
    meaning.key.question = each;
    // One name for one answer.
    if (EntryName(meaning.key, meaning.err) == name) return meaning;
  }
  return std::nullopt;
}

Result<std::string> WriteBundle(const Bundle& bundle) {
  TarWriter tar;
  TRY(tar.AddFile(kAbout, kOwnMode, AboutJson(bundle)));
  if (bundle.live) TRY(tar.AddFile(kTrials, kOwnMode, ToJson(*bundle.live) + "\n"));
  for (const auto& [key, answer] : bundle.record) TRY(tar.Add(EntryOf(key, answer)));
  std::string archive = std::move(tar).Finish();
  if (archive.size() > kMaxBundleBytes || bundle.record.size() + 2 > kMaxBundleEntries)
    return Error(Kind::kUnsupported,
                 Text("this host does not fit into an archive: ", bundle.record.size(),
                      " answers of ", archive.size(), " bytes; the most are ",
                      kMaxBundleEntries - 2, " of ", kMaxBundleBytes));
  return archive;
}

Result<Bundle> ReadBundle(std::string_view archive) {
  if (archive.size() > kMaxBundleBytes)
    return Error(Kind::kViolation, Text("it has more than ", kMaxBundleBytes, " bytes"));
  std::vector<TarEntry> entries = TRY(ReadTar(archive, kMaxBundleEntries));
  if (entries.empty() || entries[0].path != kAbout)
    return Error(Kind::kViolation, Text("it does not begin with ", kAbout,
                                        ": it was not made by taskcell-probe collect"));
  Bundle bundle;
  bool trials = TRY(ReadAbout(entries[0].content, bundle));
  for (std::size_t i = 1; i < entries.size(); ++i) {
    if (entries[i].path == kTrials)
      bundle.live = TRY(ParseLiveFacts(entries[i].content).With(kTrials));
    else
      TRY(AddAnswer(entries[i], bundle.record));
  }
  if (trials != bundle.live.has_value())
    return Error(Kind::kViolation, Text(kTrials, trials ? " is missing" : " should not be there",
                                        ": the archive was changed"));
  return bundle;
}

}  // namespace taskcell::probe
