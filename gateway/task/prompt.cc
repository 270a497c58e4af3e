#include "gateway/task/prompt.h"

#include <cerrno>

#include "launcher/base/text.h"
#include "launcher/cell/job.h"
#include "launcher/mounts/entry.h"

namespace taskcell::gateway {
namespace {

Result<std::string> ReadPersona(mounts::FileReader& files, int directory_fd,
                                const std::string& name, std::vector<std::string>& warnings) {
  Result<mounts::FileReader::Judged> read = files.ReadPlain(directory_fd, name, kMaxPersonaBytes);
  if (read.ok()) {
    if (read->verdict == mounts::Verdict::kSkip)
      warnings.push_back(Text(name, ": ", read->note, "; it is left out of the prompt"));
    if (mounts::IsPersonaText(read->content)) return std::move(read->content);
    return Error(Kind::kConfig,
                 Text("the agent directory cannot be mounted: ", name, " is not UTF-8 text"))
        .Coded("agent_dir_unmountable");
  }
  if (read.error().err == ETIMEDOUT)
    return std::move(read).error().With(name).Coded("agent_dir_unmountable");
  if (read.error().kind != Kind::kViolation) return std::move(read).error().With(name);
  return Error(Kind::kConfig, Text("the agent directory cannot be mounted: ", name,
                                   " has more than ", kMaxPersonaBytes, " bytes"))
      .Coded("agent_dir_unmountable");
}

constexpr std::string_view kClose = "</system_instructions>";
constexpr std::string_view kEscaped = "&lt;/system_instructions&gt;";
// Both files full of closing tags, and the largest prompt.
static_assert(kMaxPromptBytes + 2 * kMaxPersonaBytes * kEscaped.size() / kClose.size() + 1024 <=
              cell::kMaxInputBytes);

}  // namespace

Status CheckPrompt(std::string_view prompt) {
  auto refuse = [](std::string text) {
    return Error(Kind::kUsage, std::move(text)).Coded(kInvalidPrompt);
  };
  if (prompt.size() > kMaxPromptBytes)
    return refuse(Text("the prompt has ", prompt.size(), " bytes or more; at most ",
                       kMaxPromptBytes, " are taken"));
  if (Trim(prompt).empty())
    return refuse("the prompt is empty; give it as an argument, or '-' and write it to stdin");
  if (!IsUtf8(prompt)) return refuse("the prompt is not UTF-8 text");
  if (prompt.find('\0') != std::string_view::npos) return refuse("the prompt holds a NUL byte");
  return Ok();
}

Result<std::string> ReadSystemPrompt(mounts::FileReader& files, int directory_fd,
                                     std::vector<std::string>& warnings) {
  constexpr std::string_view kRule = "\n\n---\n\n";
  std::string soul = TRY(ReadPersona(files, directory_fd, "SOUL.md", warnings));
  std::string identity = TRY(ReadPersona(files, directory_fd, "IDENTITY.md", warnings));
  std::string text;
  if (!Trim(soul).empty()) text = Text("# Soul\n", soul);
  if (!Trim(identity).empty()) text += Text(text.empty() ? "" : kRule, "# Identity\n", identity);
  return text;
}

std::string WholePrompt(std::string_view system_prompt, std::string_view prompt) {
  if (Trim(system_prompt).empty()) return std::string(prompt);
  std::string out = "<system_instructions>\n";
  while (true) {
    std::size_t at = system_prompt.find(kClose);
    out += system_prompt.substr(0, at);
    if (at == std::string_view::npos) break;
    out += kEscaped;
    system_prompt.remove_prefix(at + kClose.size());
  }
  return Text(out, "\n", kClose, "\n\n", prompt);
}

}  // namespace taskcell::gateway
