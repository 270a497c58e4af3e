#include "gateway/config/toml_document.h"

#include <toml++/toml.h>

#include <cerrno>
#include <sstream>
#include <utility>

#include "launcher/base/text.h"

namespace taskcell::gateway {
namespace {

ConfigValue FromNode(const toml::node& node);
ConfigValue WithoutLine(const toml::node& node);

ConfigValue FromTable(const toml::table& table) {
  ConfigValue value;
  value.type = ConfigValue::Type::kTable;
  value.table.reserve(table.size());
  // toml::table is a sorted map: the order Find relies on.
  for (const auto& [key, child] : table)
    value.table.push_back({std::string(key.str()), FromNode(child)});
  return value;
}

ConfigValue FromArray(const toml::array& array) {
  ConfigValue value;
  value.type = ConfigValue::Type::kArray;
  value.array.reserve(array.size());
  for (const toml::node& child : array) value.array.push_back(FromNode(child));
  return value;
}

template <typename DateTime>
ConfigValue FromDateTime(const DateTime& date_time) {
  std::ostringstream out;
  out << date_time;
  ConfigValue value;
  value.type = ConfigValue::Type::kDateTime;
  value.text = out.str();
  return value;
}

ConfigValue FromNode(const toml::node& node) {
  ConfigValue value = WithoutLine(node);
  value.line = node.source().begin.line;
  return value;
}

ConfigValue WithoutLine(const toml::node& node) {
  ConfigValue value;
  switch (node.type()) {
    case toml::node_type::table:
      return FromTable(*node.as_table());
    case toml::node_type::array:
      return FromArray(*node.as_array());
    case toml::node_type::string:
      value.type = ConfigValue::Type::kString;
      value.text = node.as_string()->get();
      return value;
    case toml::node_type::integer:
      value.type = ConfigValue::Type::kInteger;
      value.integer = node.as_integer()->get();
      return value;
    case toml::node_type::boolean:
      value.type = ConfigValue::Type::kBoolean;
      value.boolean = node.as_boolean()->get();
      return value;
    case toml::node_type::date:
      return FromDateTime(node.as_date()->get());
    case toml::node_type::time:
      return FromDateTime(node.as_time()->get());
    case toml::node_type::date_time:
      return FromDateTime(node.as_date_time()->get());
    case toml::node_type::floating_point:
      value.type = ConfigValue::Type::kFloat;
      value.number = node.as_floating_point()->get();
      return value;
    default:
      value.type = ConfigValue::Type::kFloat;
      return value;
  }
}

// The parser quotes from the file ("saw 'sk-ant-...'"), and the file holds secrets: quotes longer
// than a character or two are dropped.
std::string WithoutQuotes(std::string_view description) {
  constexpr std::size_t kMaxQuoted = 2;
  constexpr std::size_t kMaxDescription = 200;
  std::string out;
  while (!description.empty()) {
    std::size_t open = description.find('\'');
    out += description.substr(0, open);
    if (open == std::string_view::npos) break;
    description.remove_prefix(open + 1);
    // The last quote mark closes: the quoted text may hold one itself.
    std::size_t close = description.rfind('\'');
    if (close == std::string_view::npos) break;
    out += close <= kMaxQuoted ? Text("'", description.substr(0, close), "'") : "'...'";
    description.remove_prefix(close + 1);
  }
  return Printable(std::string_view(out).substr(0, kMaxDescription));
}

// Why a file could not be opened, and what to do.
std::string WithRemedy(const Error& cause) {
  if (cause.err == EACCES)
    return Text(cause.text, "; give it to this user (chown) or let this user read it (chmod u+r)");
  if (cause.err == EAGAIN)
    return "another process holds a lease on it (fcntl(2), F_SETLEASE); see what has it open "
           "(fuser "
           "-v), and end that";
  if (cause.err == ELOOP)
    return "it is a symbolic link, or is reached through one, and links are not followed: put the "
           "file itself there";
  return cause.text;
}

Error NotToml(std::string_view name, std::string_view why) {
  return Error(Kind::kConfig, Text(name, " is not valid TOML: ", why));
}

}  // namespace

Result<ConfigValue> ParseToml(std::string_view text, std::string_view name) {
  if (text.size() > kMaxConfigBytes)
    return NotToml(name, Text("it has more than ", kMaxConfigBytes, " bytes"));
  Status shape = CheckTomlShape(text);
  if (!shape.ok()) return NotToml(name, shape.error().text);
  try {
    return FromTable(toml::parse(text));
  } catch (const toml::parse_error& error) {
    return NotToml(
        name, Text("line ", error.source().begin.line, ", column ", error.source().begin.column,
                   ": ", WithoutQuotes(error.description())));
  } catch (const std::exception&) {
    return NotToml(name, "it could not be parsed");
  }
}

Result<ConfigValue> ReadToml(mounts::FileReader& files, int dir_fd, const std::string& path,
                             std::string_view name) {
  auto unreadable = [&](const Error& cause) {
    return Error(Kind::kConfig, Text(name, " could not be read: ", WithRemedy(cause)), cause.err);
  };
  Result<std::string> text = files.Read(dir_fd, path, kMaxConfigBytes);
  if (text.ok()) return ParseToml(text.value(), name);
  if (text.error().err != EFBIG) return unreadable(text.error());
  return unreadable(
      Error(Kind::kConfig, Text("it has more than ", kMaxConfigBytes, " bytes"), EFBIG));
}

}  // namespace taskcell::gateway
