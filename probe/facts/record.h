#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "launcher/sys/file_tree.h"

namespace taskcell::probe {

// What a FileTree is asked of a path.
enum class Question : uint8_t { kRead, kLook, kLink, kList, kCapability };
inline constexpr Question kQuestions[] = {Question::kRead, Question::kLook, Question::kLink,
                                          Question::kList, Question::kCapability};
std::string_view Name(Question question);  // "read", "look", "link", "list", "capability"

// What it answered: a failure is evidence too.
struct Answer {
  sys::FileSeen seen;  // present, absent, or unreadable with its errno; by kRead, kLook
  int err = 0;         // by the others; 0: `text` is the answer
  std::string text;    // by kLink the target, by kList the names, each with a NUL at its end
};

struct RecordKey {
  Question question = Question::kRead;
  std::string path;
  bool operator==(const RecordKey&) const = default;
  bool operator<(const RecordKey& other) const {
    return std::tie(question, path) < std::tie(other.question, other.path);
  }
};

// Everything that was asked of a host's files, and the answers.
using Record = std::map<RecordKey, Answer>;

// A host's files as far as they were recorded. What was not recorded is no guess: it is unreadable
// with ENODATA, and noted.
class RecordedTree : public sys::FileTree {
 public:
  explicit RecordedTree(Record record) : record_(std::move(record)) {}

  sys::FileSeen Read(const std::string& path, std::size_t limit) override;
  sys::FileSeen Look(const std::string& path) override;
  Result<std::string> ReadLink(const std::string& path) override;
  // "security.capability" alone is recorded.
  Result<std::string> ReadAttribute(const std::string& path, const char* name) override;
  Result<std::vector<sys::DirectoryEntry>> List(const std::string& path,
                                                std::size_t limit) override;

  const Record& record() const { return record_; }
  // The paths that were asked for and not recorded, each once.
  const std::vector<std::string>& missed() const { return missed_; }

 protected:
  void Note(const RecordKey& key, Answer answer) { record_.emplace(key, std::move(answer)); }

 private:
  // Called for what is not recorded; may record it.
  virtual void Ask(const RecordKey& /*key*/, std::size_t /*limit*/) {}
  const Answer& AnswerTo(Question question, const std::string& path, std::size_t limit);

  Record record_;
  std::vector<std::string> missed_;
};

// The files of another tree, each asked for once and recorded as Reduce leaves it; answered from
// the record, so that what is concluded here is what will be concluded from the record elsewhere.
// What Reduce does not know is not recorded.
class RecordingTree : public RecordedTree {
 public:
  // `host` must outlive it.
  explicit RecordingTree(sys::FileTree& host) : RecordedTree(Record{}), host_(host) {}

 private:
  void Ask(const RecordKey& key, std::size_t limit) override;

  sys::FileTree& host_;
};

}  // namespace taskcell::probe
