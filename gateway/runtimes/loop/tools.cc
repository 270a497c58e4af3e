#include "gateway/runtimes/loop/tools.h"

#include <dirent.h>
#include <fcntl.h>

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "launcher/base/text.h"
#include "launcher/sys/file.h"
#include "launcher/sys/group.h"

namespace taskcell::gateway::loop {

const std::string_view kToolDefinitions =
    R"([{"type":"function","function":{"name":"read_file","description":"Reads a text file.",)"
    R"("parameters":{"type":"object","properties":{"path":{"type":"string"}},"required":["path"]}}},)"
    R"({"type":"function","function":{"name":"write_file","description":"Writes a text file, )"
    R"(replacing what is there; missing directories are made.","parameters":{"type":"object",)"
    R"("properties":{"path":{"type":"string"},"content":{"type":"string"}},)"
    R"("required":["path","content"]}}},)"
    R"({"type":"function","function":{"name":"list_directory","description":"Lists a directory; )"
    R"(directories end with a slash.","parameters":{"type":"object","properties":{"path":)"
    R"({"type":"string"}},"required":["path"]}}},)"
    R"({"type":"function","function":{"name":"shell","description":"Runs a command with /bin/sh; )"
    R"(it is killed after 30 seconds.","parameters":{"type":"object","properties":{"command":)"
    R"({"type":"string"}},"required":["command"]}}}])";

namespace {

constexpr std::string_view kCut = "\n[cut after 65536 bytes]";

ToolResult Failed(std::string text) { return {std::move(text), true}; }

std::string Bounded(std::string text, bool truncated) {
  if (text.size() > kMaxToolOutputBytes) {
    truncated = true;
    text.resize(kMaxToolOutputBytes);
  }
  return truncated ? Text(text, kCut) : text;
}

Result<std::string> ReadBounded(const std::string& path) {
  UniqueFd fd = TRY(sys::Open(path, O_RDONLY | O_NONBLOCK));
  std::string text;
  std::array<char, 16384> buffer;
  while (text.size() <= kMaxToolOutputBytes) {
    std::size_t size = TRY(sys::Read(fd.get(), buffer));
    if (size == 0) break;
    text.append(buffer.data(), size);
  }
  return text;
}

ToolResult ReadFileTool(const std::string& path) {
  Result<std::string> text = ReadBounded(path);
  if (!text.ok()) return Failed(text.error().text);
  return {Bounded(std::move(text).value(), false), false};
}

Status MakeParents(const std::string& path) {
  for (std::size_t at = path.find('/', 1); at != std::string::npos; at = path.find('/', at + 1)) {
    std::string parent = path.substr(0, at);
    if (sys::StatAt(AT_FDCWD, parent).ok()) continue;
    TRY(sys::MakeDirectory(AT_FDCWD, parent, 0755));
  }
  return Ok();
}

Status WriteWhole(const std::string& path, std::string_view content) {
  TRY(MakeParents(path));
  UniqueFd fd = TRY(sys::Open(path, O_WRONLY | O_CREAT | O_TRUNC | O_NONBLOCK, 0644));
  return sys::WriteAll(fd.get(), content);
}

ToolResult WriteFileTool(const std::string& path, std::string_view content) {
  Status written = WriteWhole(path, content);
  if (!written.ok()) return Failed(written.error().text);
  return {Text("wrote ", content.size(), " bytes"), false};
}

Result<std::string> List(const std::string& path) {
  UniqueFd fd = TRY(sys::Open(path, O_RDONLY | O_DIRECTORY));
  std::vector<sys::DirectoryEntry> entries = TRY(sys::ListDirectory(fd.get(), kMaxListedEntries));
  std::sort(entries.begin(), entries.end(),
            [](const auto& left, const auto& right) { return left.name < right.name; });
  std::string text;
  for (const sys::DirectoryEntry& entry : entries) {
    text += Text(entry.name, entry.type == DT_DIR ? "/\n" : "\n");
  }
  return text;
}

ToolResult ListTool(const std::string& path) {
  Result<std::string> text = List(path);
  if (!text.ok()) return Failed(text.error().text);
  return {Bounded(std::move(text).value(), false), false};
}

ToolResult ShellTool(const std::string& command) {
  Result<sys::GroupResult> run =
      sys::RunGroup({"/bin/sh", "-c", command}, kShellTimeoutMs, kMaxToolOutputBytes);
  if (!run.ok()) return Failed(run.error().text);
  std::string text = Bounded(std::move(run->output), run->truncated);
  if (run->timed_out) return Failed(Text(text, "\n[killed after 30 seconds]"));
  if (run->exit.signal != 0)
    return Failed(Text(text, "\n[ended by signal ", run->exit.signal, "]"));
  if (run->exit.status != 0) return Failed(Text(text, "\n[exit status ", run->exit.status, "]"));
  return {std::move(text), false};
}

// The string member `name`, or nothing but an explanation in `problem`.
std::string Argument(const JsonValue& arguments, std::string_view name, std::string& problem) {
  const JsonValue* value = arguments.Find(name);
  if (value == nullptr || !value->is_string()) {
    problem = Text("the arguments need a string `", name, "`");
    return "";
  }
  if (value->text.find('\0') != std::string::npos && name != "content") {
    problem = Text("`", name, "` has a NUL byte");
  }
  return value->text;
}

}  // namespace

ToolResult RunTool(std::string_view name, std::string_view arguments) {
  Result<JsonValue> parsed = ParseJson(Trim(arguments).empty() ? "{}" : arguments);
  if (!parsed.ok() || !parsed->is_object()) {
    return Failed("the arguments are not a JSON object; nothing was done");
  }
  std::string problem;
  if (name == "shell") {
    std::string command = Argument(parsed.value(), "command", problem);
    return problem.empty() ? ShellTool(command) : Failed(std::move(problem));
  }
  if (name != "read_file" && name != "write_file" && name != "list_directory") {
    return Failed(Text("there is no tool `", Printable(name.substr(0, 64)),
                       "`; there are read_file, write_file, list_directory and shell"));
  }
  std::string path = Argument(parsed.value(), "path", problem);
  std::string content;
  if (name == "write_file") content = Argument(parsed.value(), "content", problem);
  if (!problem.empty()) return Failed(std::move(problem));
  if (path.empty()) return Failed("`path` is empty");
  if (name == "read_file") return ReadFileTool(path);
  return name == "write_file" ? WriteFileTool(path, content) : ListTool(path);
}

}  // namespace taskcell::gateway::loop
