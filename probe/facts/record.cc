#include "probe/facts/record.h"

#include <algorithm>
#include <cerrno>
#include <climits>
#include <optional>

#include "launcher/base/text.h"
#include "launcher/sys/failure.h"
#include "probe/facts/reduce.h"

namespace taskcell::probe {
namespace {

constexpr std::string_view kCapabilityName = "security.capability";

// One leading slash, none at the end, none twice: the same file, one key.
std::string Clean(std::string_view path) {
  std::string clean;
  for (std::string_view part : Split(path, '/')) {
    if (!part.empty()) clean += Text('/', part);
  }
  return clean.empty() ? "/" : clean;
}

Answer Unreadable(int err) {
  Answer answer;
  answer.seen.state = sys::FileSeen::State::kUnreadable;
  answer.seen.err = err;
  answer.err = err;
  return answer;
}

Answer OfText(Result<std::string> text) {
  Answer answer;
  if (text.ok())
    answer.text = std::move(text).value();
  else
    answer.err = text.error().err == 0 ? EIO : text.error().err;
  return answer;
}

Answer OfList(Result<std::vector<sys::DirectoryEntry>> entries) {
  if (!entries.ok()) return Unreadable(entries.error().err == 0 ? EFBIG : entries.error().err);
  Answer answer;
  for (const sys::DirectoryEntry& entry : entries.value()) {
    answer.text += entry.name;
    answer.text += '\0';
  }
  return answer;
}

Answer AskHost(sys::FileTree& host, const RecordKey& key, std::size_t limit) {
  Answer answer;
  switch (key.question) {
    case Question::kRead:
      answer.seen = host.Read(key.path, limit);
      break;
    case Question::kLook:
      answer.seen = host.Look(key.path);
      break;
    case Question::kLink:
      return OfText(host.ReadLink(key.path));
    case Question::kList:
      return OfList(host.List(key.path, limit));
    case Question::kCapability:
      return OfText(host.ReadAttribute(key.path, kCapabilityName.data()));
  }
  return answer;
}

}  // namespace

std::string_view Name(Question question) {
  switch (question) {
    case Question::kRead:
      return "read";
    case Question::kLook:
      return "look";
    case Question::kLink:
      return "link";
    case Question::kList:
      return "list";
    case Question::kCapability:
      return "capability";
  }
  return "";
}

const Answer& RecordedTree::AnswerTo(Question question, const std::string& path,
                                     std::size_t limit) {
  static const Answer kTooLong = Unreadable(ENAMETOOLONG);
  static const Answer kNotHeld = Unreadable(ENODATA);
  RecordKey key{question, Clean(path)};
  if (key.path.size() >= PATH_MAX) return kTooLong;  // as every kernel answers
  auto found = record_.find(key);
  if (found == record_.end()) {
    Ask(key, limit);
    found = record_.find(key);
  }
  if (found != record_.end()) return found->second;
  if (std::find(missed_.begin(), missed_.end(), key.path) == missed_.end())
    missed_.push_back(key.path);
  return kNotHeld;
}

sys::FileSeen RecordedTree::Read(const std::string& path, std::size_t limit) {
  sys::FileSeen seen = AnswerTo(Question::kRead, path, limit).seen;
  if (seen.present() && seen.text.size() > limit) {
    seen.state = sys::FileSeen::State::kUnreadable;
    seen.err = EFBIG;
    seen.text.clear();
  }
  return seen;
}

sys::FileSeen RecordedTree::Look(const std::string& path) {
  return AnswerTo(Question::kLook, path, 0).seen;
}

Result<std::string> RecordedTree::ReadLink(const std::string& path) {
  const Answer& answer = AnswerTo(Question::kLink, path, 0);
  if (answer.err != 0) return sys::FailureOf(answer.err, "readlink");
  return answer.text;
}

Result<std::string> RecordedTree::ReadAttribute(const std::string& path, const char* name) {
  if (name != kCapabilityName) return sys::FailureOf(ENODATA, "fgetxattr");
  const Answer& answer = AnswerTo(Question::kCapability, path, 0);
  if (answer.err != 0) return sys::FailureOf(answer.err, "fgetxattr");
  return answer.text;
}

Result<std::vector<sys::DirectoryEntry>> RecordedTree::List(const std::string& path,
                                                            std::size_t limit) {
  const Answer& answer = AnswerTo(Question::kList, path, limit);
  if (answer.err != 0) return sys::FailureOf(answer.err, "list");
  std::vector<sys::DirectoryEntry> entries;
  std::string_view rest = answer.text;
  for (std::size_t end = rest.find('\0'); end != rest.npos; end = rest.find('\0')) {
    if (entries.size() == limit) return sys::FailureOf(EFBIG, "list");
    entries.push_back({std::string(rest.substr(0, end)), 0});
    rest.remove_prefix(end + 1);
  }
  return entries;
}

void RecordingTree::Ask(const RecordKey& key, std::size_t limit) {
  Answer answer = AskHost(host_, key, limit);
  std::string* text = key.question == Question::kRead ? &answer.seen.text : &answer.text;
  bool holds_text = answer.err == 0 && (key.question != Question::kRead || answer.seen.present());
  if (holds_text && key.question != Question::kLook) {
    std::optional<std::string> reduced = Reduce(key, *text);
    if (!reduced) return;
    *text = *std::move(reduced);
  }
  Note(key, std::move(answer));
}

}  // namespace taskcell::probe
