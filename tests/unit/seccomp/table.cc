#include "tests/unit/seccomp/table.h"

#include <linux/audit.h>

#include <cerrno>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <sstream>

#include "seccomp/call_numbers.h"

namespace taskcell::seccomp {
namespace {

std::optional<uint64_t> ParseNumber(const std::string& word) {
  if (word.empty() || word[0] < '0' || word[0] > '9') return std::nullopt;
  char* end = nullptr;
  uint64_t number = std::strtoull(word.c_str(), &end, 0);
  if (*end != '\0') return std::nullopt;
  return number;
}

struct Machine {
  std::string_view name;
  Architecture filter;  // the filter such a call meets
  uint32_t audit_arch;
};
constexpr Machine kMachines[] = {
    {"x86_64", Architecture::kX86_64, AUDIT_ARCH_X86_64},
    {"i386", Architecture::kX86_64, AUDIT_ARCH_I386},
    {"aarch64", Architecture::kAarch64, AUDIT_ARCH_AARCH64},
    {"arm", Architecture::kAarch64, AUDIT_ARCH_ARM},
};

std::optional<uint32_t> ParseAnswer(std::istringstream& words) {
  std::string answer;
  std::string name;
  words >> answer;
  if (answer == "allow") return SECCOMP_RET_ALLOW;
  if (answer == "kill") return SECCOMP_RET_KILL_PROCESS;
  words >> name;
  if (answer != "errno") return std::nullopt;
  if (name == "EPERM") return SECCOMP_RET_ERRNO | EPERM;
  if (name == "ENOSYS") return SECCOMP_RET_ERRNO | ENOSYS;
  return std::nullopt;
}

// Fills number and arguments; false when the call does not exist there or a word is malformed.
bool ParseCall(std::istringstream& words, Architecture architecture, seccomp_data& call) {
  std::string word;
  words >> word;
  std::optional<uint64_t> number = ParseNumber(word);
  if (!number) number = CallNumber(architecture, word);
  if (!number) return false;
  call.nr = static_cast<int>(static_cast<uint32_t>(*number));
  for (std::size_t i = 0; words >> word && word != "->"; ++i) {
    std::optional<uint64_t> argument = ParseNumber(word);
    if (!argument || i >= std::size(call.args)) return false;
    call.args[i] = *argument;
  }
  return word == "->";
}

std::optional<Row> ParseRow(const std::string& line, const Machine& machine, std::size_t number) {
  std::istringstream words(line);
  std::string skipped;
  words >> skipped;
  Row row = {};
  row.filter = machine.filter;
  row.call.arch = machine.audit_arch;
  if (!ParseCall(words, machine.filter, row.call)) return std::nullopt;
  std::optional<uint32_t> action = ParseAnswer(words);
  if (!action) return std::nullopt;
  row.action = *action;
  row.text = "line " + std::to_string(number) + " on " + std::string(machine.name) + ": " + line;
  return row;
}

}  // namespace

std::optional<std::vector<Row>> ParseTable(std::string_view text, std::string& error) {
  std::vector<Row> rows;
  std::istringstream lines{std::string(text)};
  std::string line;
  for (std::size_t number = 1; std::getline(lines, line); ++number) {
    if (line.empty() || line[0] == '#') continue;
    std::string arch = line.substr(0, line.find(' '));
    std::size_t before = rows.size();
    for (const Machine& machine : kMachines) {
      bool both = arch == "both" && (machine.name == "x86_64" || machine.name == "aarch64");
      if (!both && arch != machine.name) continue;
      std::optional<Row> row = ParseRow(line, machine, number);
      if (!row) {
        error = "line " + std::to_string(number) + " is malformed: " + line;
        return std::nullopt;
      }
      rows.push_back(*row);
    }
    if (rows.size() == before) {
      error = "line " + std::to_string(number) + " names no architecture: " + line;
      return std::nullopt;
    }
  }
  return rows;
}

std::string ReadData(const std::string& name) {
  std::ifstream in(std::string(TASKCELL_TEST_DATA) + "/seccomp/" + name);
  return std::string(std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>());
}

}  // namespace taskcell::seccomp
