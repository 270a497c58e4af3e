#include "seccomp/profile.h"

#include <linux/seccomp.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <utility>

namespace taskcell::seccomp {
namespace {

using Json = nlohmann::json;

// Thrown and caught inside this file only, with nlohmann's own exceptions.
struct Refused {
  std::string why;
};

[[noreturn]] void Refuse(std::string why) { throw Refused{std::move(why)}; }

struct ActionEntry {
  std::string_view name;
  uint32_t action;
};
constexpr ActionEntry kActions[] = {
    {"SCMP_ACT_KILL_PROCESS", SECCOMP_RET_KILL_PROCESS},
    {"SCMP_ACT_KILL", SECCOMP_RET_KILL_THREAD},
    {"SCMP_ACT_KILL_THREAD", SECCOMP_RET_KILL_THREAD},
    {"SCMP_ACT_TRAP", SECCOMP_RET_TRAP},
    {"SCMP_ACT_ERRNO", SECCOMP_RET_ERRNO},
    {"SCMP_ACT_LOG", SECCOMP_RET_LOG},
    {"SCMP_ACT_ALLOW", SECCOMP_RET_ALLOW},
};

struct ComparisonEntry {
  std::string_view name;
  Comparison comparison;
};
constexpr ComparisonEntry kComparisons[] = {
    {"SCMP_CMP_EQ", Comparison::kEqual},
    {"SCMP_CMP_NE", Comparison::kNotEqual},
    {"SCMP_CMP_LT", Comparison::kLess},
    {"SCMP_CMP_LE", Comparison::kLessOrEqual},
    {"SCMP_CMP_GT", Comparison::kGreater},
    {"SCMP_CMP_GE", Comparison::kGreaterOrEqual},
    {"SCMP_CMP_MASKED_EQ", Comparison::kMaskedEqual},
};

// Every host taskcell runs on has openat2, so kernels up to 5.6 may be asked for.
constexpr std::pair<int, int> kPromisedKernel = {5, 6};

void RequireObject(const Json& value, std::string_view what) {
  if (!value.is_object()) Refuse(std::string(what) + " must be an object");
}

void RequireKnownKeys(const Json& object, std::initializer_list<std::string_view> known,
                      std::string_view where) {
  for (const auto& item : object.items()) {
    if (std::find(known.begin(), known.end(), item.key()) == known.end()) {
      Refuse("unknown key '" + item.key() + "' in " + std::string(where));
    }
  }
}

// The list under `key`, or an empty one where the key is absent or null (Go writes null for nil).
Json ListOf(const Json& object, const char* key, std::string_view where) {
  auto found = object.find(key);
  if (found == object.end() || found->is_null()) return Json::array();
  if (!found->is_array())
    Refuse(std::string(key) + " in " + std::string(where) + " must be a list");
  return *found;
}

uint64_t UnsignedOf(const Json& object, const char* key, std::string_view where) {
  auto found = object.find(key);
  if (found == object.end() || found->is_null()) return 0;
  if (!found->is_number_unsigned()) {
    Refuse(std::string(key) + " in " + std::string(where) + " must be a whole number, 0 or more");
  }
  return found->get<uint64_t>();
}

uint32_t ParseAction(const Json& object, const char* action_key, const char* errno_key,
                     uint64_t default_errno) {
  std::string name = object.value(action_key, "");
  const auto* entry = std::find_if(std::begin(kActions), std::end(kActions),
                                   [&](const ActionEntry& each) { return each.name == name; });
  if (entry == std::end(kActions)) {
    Refuse(std::string(action_key) + " '" + name +
           "' is not supported: use SCMP_ACT_ALLOW, _LOG, _ERRNO, _TRAP, _KILL or _KILL_PROCESS");
  }
  if (entry->action != SECCOMP_RET_ERRNO) return entry->action;
  auto given = object.find(errno_key);
  uint64_t number = given == object.end() || given->is_null()
                        ? default_errno
                        : UnsignedOf(object, errno_key, "the profile");
  // The kernel caps larger numbers at MAX_ERRNO; 0 would let a denied call look successful.
  if (number == 0 || number > 4095) Refuse(std::string(errno_key) + " must be 1 to 4095");
  return SECCOMP_RET_ERRNO | static_cast<uint32_t>(number);
}

Condition ParseCondition(const Json& arg) {
  RequireObject(arg, "an entry of args");
  RequireKnownKeys(arg, {"index", "value", "valueTwo", "op", "comment"}, "args");
  Condition condition;
  uint64_t index = UnsignedOf(arg, "index", "args");
  if (index > kMaxArgument) Refuse("index in args must be 0 to 5");
  condition.argument = static_cast<uint32_t>(index);
  std::string op = arg.value("op", "");
  const auto* entry = std::find_if(std::begin(kComparisons), std::end(kComparisons),
                                   [&](const ComparisonEntry& each) { return each.name == op; });
  if (entry == std::end(kComparisons)) Refuse("op '" + op + "' in args is not known");
  condition.comparison = entry->comparison;
  condition.value = UnsignedOf(arg, "value", "args");
  if (condition.comparison == Comparison::kMaskedEqual) {
    condition.mask = std::exchange(condition.value, UnsignedOf(arg, "valueTwo", "args"));
    if ((condition.value & ~condition.mask) != 0) {
      Refuse("SCMP_CMP_MASKED_EQ can never hold: valueTwo has bits outside the mask in value");
    }
  }
  return condition;
}

std::vector<Condition> ParseConditions(const Json& rule) {
  std::vector<Condition> conditions;
  std::array<bool, kMaxArgument + 1> seen = {};
  for (const Json& arg : ListOf(rule, "args", "a rule")) {
    conditions.push_back(ParseCondition(arg));
    if (std::exchange(seen[conditions.back().argument], true)) {
      Refuse("one rule tests argument " + std::to_string(conditions.back().argument) +
             " twice: engines read that as 'or'; write one rule for each");
    }
  }
  return conditions;
}

bool KernelIsPromised(const Json& filter) {
  std::string text = filter.value("minKernel", "");
  if (text.empty()) return true;
  int major = 0;
  int minor = 0;
  char rest = 0;
  if (std::sscanf(text.c_str(), "%9d.%9d%c", &major, &minor, &rest) != 2) {  // NOLINT(cert-err34-c)
    Refuse("minKernel '" + text + "' must look like 4.8");
  }
  return std::pair(major, minor) <= kPromisedKernel;
}

bool Names(const Json& list, std::string_view name) {
  return std::any_of(list.begin(), list.end(),
                     [&](const Json& each) { return each.get<std::string>() == name; });
}

// True when `rule` speaks about a process without capabilities on this machine.
bool Applies(const Json& rule, std::string_view architecture_name) {
  static const Json kNoFilter = Json::object();
  auto filter_of = [&](const char* key) -> const Json& {
    auto found = rule.find(key);
    if (found == rule.end() || found->is_null()) return kNoFilter;
    RequireObject(*found, key);
    RequireKnownKeys(*found, {"caps", "arches", "minKernel"}, key);
    return *found;
  };
  const Json& includes = filter_of("includes");
  const Json& excludes = filter_of("excludes");
  Json wanted = ListOf(includes, "arches", "includes");
  if (!wanted.empty() && !Names(wanted, architecture_name)) return false;
  if (Names(ListOf(excludes, "arches", "excludes"), architecture_name)) return false;
  if (!ListOf(includes, "caps", "includes").empty()) return false;
  (void)ListOf(excludes, "caps", "excludes");  // a type check: without capabilities none excludes
  if (!KernelIsPromised(includes) || excludes.contains("minKernel")) {
    Refuse(
        "a rule depends on a kernel version newer than 5.6 or on an old kernel; state it plainly");
  }
  return true;
}

Rule ParseRule(const Json& object) {
  Rule rule;
  for (const Json& name : ListOf(object, "names", "a rule")) {
    rule.names.push_back(name.get<std::string>());
  }
  if (object.contains("name")) rule.names.push_back(object["name"].get<std::string>());
  if (rule.names.empty()) Refuse("a rule names no system call");
  rule.action = ParseAction(object, "action", "errnoRet", EPERM);
  rule.conditions = ParseConditions(object);
  return rule;
}

Profile ParseDocument(const Json& document, std::string_view architecture_name) {
  RequireObject(document, "a profile");
  RequireKnownKeys(document,
                   {"defaultAction", "defaultErrnoRet", "defaultErrno", "archMap", "architectures",
                    "syscalls", "comment"},
                   "the profile");
  Profile profile;
  profile.default_action = ParseAction(document, "defaultAction", "defaultErrnoRet", EPERM);
  // Other architectures of the same machine are always killed, so what these list changes nothing.
  (void)ListOf(document, "archMap", "the profile");
  (void)ListOf(document, "architectures", "the profile");
  for (const Json& object : ListOf(document, "syscalls", "the profile")) {
    RequireObject(object, "an entry of syscalls");
    RequireKnownKeys(
        object,
        {"names", "name", "action", "errnoRet", "errno", "args", "comment", "includes", "excludes"},
        "a rule");
    Rule rule = ParseRule(object);
    if (Applies(object, architecture_name)) profile.rules.push_back(std::move(rule));
  }
  return profile;
}

}  // namespace

std::optional<Profile> ParseProfile(std::string_view json, std::string_view architecture_name,
                                    std::string& error) {
  if (json.size() > kMaxProfileBytes) {
    error = "seccomp profile: " + std::to_string(json.size()) + " bytes, more than the " +
            std::to_string(kMaxProfileBytes) + " allowed";
    return std::nullopt;
  }
  try {
    return ParseDocument(Json::parse(json), architecture_name);
  } catch (const Refused& refused) {
    error = "seccomp profile: " + refused.why;
  } catch (const std::exception& failure) {
    error = std::string("seccomp profile: ") + failure.what();
  }
  return std::nullopt;
}

std::string_view ActionName(uint32_t action) {
  for (const ActionEntry& entry : kActions) {
    if (entry.action == (action & SECCOMP_RET_ACTION_FULL)) return entry.name;
  }
  return "unknown action";
}

}  // namespace taskcell::seccomp
