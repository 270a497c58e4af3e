#include "gateway/config/sandbox_settings.h"

#include <algorithm>
#include <array>

#include "gateway/config/table_reader.h"
#include "launcher/base/text.h"

namespace taskcell::gateway {
namespace {

constexpr std::string_view kSection = "container.sandbox";
constexpr std::string_view kInvalidConfig = "invalid_config";
// The platform version whose published image is the default. taskcell serves homes of that
// platform; its own version number says nothing about it.
constexpr std::string_view kDefaultImage = "ghcr.io/zhixuli0406/duduclaw:v1.73.4";
constexpr std::string_view kOpenHatch = "run_unsandboxed";

constexpr std::array<std::string_view, 10> kKeys = {"image",
                                                    "executables",
                                                    "memory_bytes",
                                                    "pids",
                                                    "cpu_millis",
                                                    "tmp_bytes",
                                                    "workspace_bytes",
                                                    "max_turns",
                                                    "when_unavailable",
                                                    "script_when_unavailable"};
bool IsSectionKey(std::string_view key) {
  return std::find(kKeys.begin(), kKeys.end(), key) != kKeys.end();
}

struct Family {
  std::string_view name;
  std::string_view alias;  // empty: none
  std::string_view executable;
};
constexpr std::array<Family, 5> kFamilies = {{
    {"claude", "", "/usr/bin/claude"},
    {"codex", "", "/usr/bin/codex"},
    {"antigravity", "agy", "/usr/local/bin/agy"},
    {"grok", "", "/usr/local/bin/grok"},
    {"openai-compat", "openai_compat", "/usr/local/bin/python3"},
}};

const Family* FindFamily(std::string_view key) {
  for (const Family& family : kFamilies)
    if (key == family.name || (!family.alias.empty() && key == family.alias)) return &family;
  return nullptr;
}

bool HasByte(std::string_view text, std::string_view bytes) {
  return text.find_first_of(bytes) != std::string_view::npos;
}

Status ReadImage(const TableReader& reader, SandboxSettings& settings) {
  if (reader.Find("image") == nullptr) return Ok();
  std::string image;
  TRY(reader.String("image", image));
  image = Trim(image);
  const std::string fault = ImageNameFault(image);
  if (!fault.empty()) return reader.Complain("image", fault);
  settings.image = std::move(image);
  return Ok();
}

bool HasDotDot(std::string_view path) {
  std::vector<std::string_view> parts = Split(path, '/');
  return std::find(parts.begin(), parts.end(), "..") != parts.end();
}

Status ReadExecutables(const TableReader& section, SandboxSettings& settings) {
  const ConfigValue* table = section.Find("executables");
  if (table == nullptr) return Ok();
  if (!table->IsTable())
    return section.Complain("executables", Text("must be a table, not ", TypeName(table->type)));
  TableReader reader(table, Text(kSection, ".executables"));
  for (const ConfigEntry& entry : table->table) {
    const std::string& key = entry.key;
    const Family* family = FindFamily(key);
    if (family == nullptr && IsSectionKey(key)) {
      return Error(
          Kind::kConfig,
          Text(kSection, ".executables.", key, " is not a runtime: the line `", key, " = ...`",
               AtLine(entry.value), " belongs to the executables table because of the header [",
               kSection, ".executables] above it; move it up, below [", kSection, "]"));
    }
    if (family == nullptr)
      return Error(Kind::kConfig,
                   Text("[", kSection, ".executables] has an unknown runtime `",
                        Printable(std::string_view(key).substr(0, 80)), "`", AtLine(entry.value),
                        " (known: claude, codex, antigravity, grok, openai-compat)"));
    std::string path;
    TRY(reader.String(key, path));
    constexpr std::string_view kForbidden(",\r\n\0", 4);
    if (!path.starts_with('/') || path.size() > SandboxSettings::kMaxNameBytes ||
        HasByte(path, kForbidden) || HasDotDot(path))
      return reader.Complain(
          key, Text("must be an absolute path of at most ", SandboxSettings::kMaxNameBytes,
                    " bytes inside the image, without comma, line break or `..`"));
    settings.executables.insert_or_assign(std::string(family->name), std::move(path));
  }
  return Ok();
}

Status ReadNumbers(const TableReader& reader, SandboxSettings& settings) {
  TRY(reader.Positive("memory_bytes", SandboxSettings::kMaxMemoryBytes, settings.memory_bytes));
  TRY(reader.Positive("pids", SandboxSettings::kMaxPids, settings.pids));
  TRY(reader.Positive("cpu_millis", SandboxSettings::kMaxCpuMillis, settings.cpu_millis));
  TRY(reader.Positive("tmp_bytes", SandboxSettings::kMaxTmpfsBytes, settings.tmp_bytes));
  TRY(reader.Positive("workspace_bytes", SandboxSettings::kMaxTmpfsBytes,
                      settings.workspace_bytes));
  return reader.Positive("max_turns", SandboxSettings::kMaxTurns, settings.max_turns);
}

// Both tmpfs are charged to the memory limit.
Status CheckSum(const TableReader& reader, const SandboxSettings& settings) {
  constexpr uint64_t kSurelyNotBytes = 1U << 20U;
  const uint64_t sum = settings.tmp_bytes + settings.workspace_bytes;  // each at most 2^34
  if (sum <= settings.memory_bytes) return Ok();
  std::string defaults;
  std::string lines;
  for (std::string_view key : {"tmp_bytes", "workspace_bytes", "memory_bytes"}) {
    if (const ConfigValue* value = reader.Find(key); value != nullptr)
      lines = AtLine(*value);
    else
      defaults += defaults.empty() ? Text(key) : Text(", ", key);
  }
  std::string text = Text("[", kSection, "] tmp_bytes + workspace_bytes (", settings.tmp_bytes,
                          " + ", settings.workspace_bytes, " = ", sum,
                          ") must not exceed memory_bytes (", settings.memory_bytes, ")", lines);
  if (!defaults.empty()) text += Text("; not in the file, so by default: ", defaults);
  if (settings.memory_bytes < kSurelyNotBytes)
    text += Text("; the unit is bytes: ", settings.memory_bytes, " MiB would be ",
                 settings.memory_bytes << 20U);
  return Error(Kind::kConfig, std::move(text));
}

Result<SandboxSettings> Read(const ConfigValue& config) {
  SandboxSettings settings = DefaultSandboxSettings();
  TableReader reader(TRY(FindTable(config, {"container", "sandbox"})), std::string(kSection));
  TRY(reader.CheckKeys({"image", "executables", "memory_bytes", "pids", "cpu_millis", "tmp_bytes",
                        "workspace_bytes", "max_turns", "when_unavailable",
                        "script_when_unavailable"}));
  TRY(ReadImage(reader, settings));
  TRY(ReadExecutables(reader, settings));
  TRY(ReadNumbers(reader, settings));
  TRY(CheckSum(reader, settings));
  return settings;
}

bool ReadHatch(const ConfigValue& section, std::string_view key,
               std::vector<std::string>& warnings) {
  const ConfigValue* value = section.Find(key);
  if (value == nullptr) return false;
  bool is_string = value->type == ConfigValue::Type::kString;
  if (is_string && value->text == kOpenHatch) return true;
  if (!is_string || value->text != "fail")
    warnings.push_back(Text("[", kSection, "] ", key, " has an unknown value", AtLine(*value),
                            ": \"fail\" applies"));
  return false;
}

}  // namespace

std::string ImageNameFault(std::string_view image) {
  constexpr std::string_view kSpaces(" \t\n\r\f\v\0", 7);
  if (image.empty()) return "must not be empty";
  if (image.size() > SandboxSettings::kMaxNameBytes)
    return Text("must be at most ", SandboxSettings::kMaxNameBytes, " bytes");
  if (HasByte(image, kSpaces) || HasByte(image, ",") || image.front() == '-')
    return "must not hold white space or a comma, nor start with '-'";
  return IsUtf8(image) ? "" : "must be UTF-8";
}

SandboxSettings DefaultSandboxSettings() {
  SandboxSettings settings;
  settings.image = kDefaultImage;
  for (const Family& family : kFamilies)
    settings.executables.emplace(family.name, family.executable);
  return settings;
}

Result<SandboxSettings> ReadSandboxSettings(const ConfigValue& config) {
  Result<SandboxSettings> settings = Read(config);
  if (settings.ok()) return settings;
  return std::move(settings).error().Coded(kInvalidConfig);
}

EscapeHatches ReadEscapeHatches(const ConfigValue& config) {
  EscapeHatches hatches;
  Result<const ConfigValue*> section = FindTable(config, {"container", "sandbox"});
  if (!section.ok() || section.value() == nullptr) return hatches;
  hatches.task = ReadHatch(*section.value(), "when_unavailable", hatches.warnings);
  hatches.script = ReadHatch(*section.value(), "script_when_unavailable", hatches.warnings);
  return hatches;
}

std::vector<std::string> FindMisplacedKeys(const ConfigValue& config) {
  constexpr std::size_t kMaxMisplaced = 20;
  std::vector<std::string> found;
  auto look = [&](std::string_view table_name, const ConfigValue& table) {
    for (std::string_view key : kKeys) {
      if (table.Find(key) == nullptr || found.size() == kMaxMisplaced) continue;
      std::string where = table_name.empty() ? "at the top of the file"
                                             : Text("under [", Printable(table_name), "]");
      found.push_back(Text("`", key, "` ", where, AtLine(*table.Find(key)),
                           " has no effect on the sandbox: its place is [", kSection, "]"));
    }
  };
  look("", config);
  for (const ConfigEntry& entry : config.table)
    if (entry.value.IsTable()) look(entry.key, entry.value);
  return found;
}

}  // namespace taskcell::gateway
