#include "gateway/egress/json_scan.h"

#include <nlohmann/json.hpp>
#include <string>
#include <unordered_set>
#include <vector>

#include "launcher/base/text.h"

namespace taskcell::gateway {
namespace {

using Json = nlohmann::json;

// Called by the parser for every value; returning false ends the parse.
class Scanner {
 public:
  using number_integer_t = Json::number_integer_t;
  using number_unsigned_t = Json::number_unsigned_t;
  using number_float_t = Json::number_float_t;
  using string_t = Json::string_t;
  using binary_t = Json::binary_t;

  // NOLINTBEGIN(readability-identifier-naming): the names are nlohmann's
  bool null() { return Count(); }
  bool boolean(bool /*value*/) { return Count(); }
  bool number_integer(number_integer_t /*value*/) { return Count(); }
  bool number_unsigned(number_unsigned_t /*value*/) { return Count(); }
  bool number_float(number_float_t /*value*/, const string_t& /*text*/) { return Count(); }
  bool string(string_t& /*value*/) { return Count(); }
  bool binary(binary_t& /*value*/) { return Count(); }
  bool start_object(std::size_t /*size*/) { return Open(); }
  bool start_array(std::size_t /*size*/) { return Open(); }
  bool end_object() { return Close(); }
  bool end_array() { return Close(); }
  bool key(string_t& name) {
    if (keys_.back().insert(name).second) return true;
    return Stop("egress_duplicate_key",
                Text("the key \"", Printable(name.substr(0, 64)), "\" stands twice in one object"));
  }
  bool parse_error(std::size_t /*position*/, const std::string& /*token*/,
                   const nlohmann::detail::exception& /*error*/) {
    return Stop("egress_json", "the body is not JSON in UTF-8");
  }
  // NOLINTEND(readability-identifier-naming)

  std::optional<Refusal> TakeRefusal() { return std::move(refusal_); }

 private:
  bool Stop(std::string_view code, std::string message) {
    if (!refusal_) refusal_ = Refusal{400, code, std::move(message)};
    return false;
  }
  bool Count() {
    if (++nodes_ <= kEgressJsonNodes) return true;
    return Stop("egress_json", Text("the body holds more than ", kEgressJsonNodes, " values"));
  }
  bool Open() {
    if (keys_.size() == kEgressJsonDepth) {
      return Stop("egress_json",
                  Text("the body is nested deeper than ", kEgressJsonDepth, " levels"));
    }
    keys_.emplace_back();
    return Count();
  }
  bool Close() {
    keys_.pop_back();
    return true;
  }

  std::vector<std::unordered_set<std::string>> keys_;  // one set a level that is open
  std::size_t nodes_ = 0;
  std::optional<Refusal> refusal_;
};

}  // namespace

std::optional<Refusal> ScanJson(std::string_view body) {
  std::size_t start = body.find_first_not_of(" \t\r\n");
  if (start == std::string_view::npos || body[start] != '{')
    return Refusal{400, "egress_json", "the body is not a JSON object"};
  // The parser takes NUL for the end of its input; another parser may read on behind it.
  if (body.find('\0') != std::string_view::npos)
    return Refusal{400, "egress_json", "the body holds a NUL byte"};
  Scanner scanner;
  bool is_whole = Json::sax_parse(body.begin(), body.end(), &scanner);
  std::optional<Refusal> refusal = scanner.TakeRefusal();
  if (!is_whole && !refusal) refusal = Refusal{400, "egress_json", "the body is not JSON"};
  return refusal;
}

}  // namespace taskcell::gateway
