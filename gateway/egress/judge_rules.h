#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "gateway/egress/refusal.h"

// The pieces the judges of the three APIs are built from. Each rule returns nothing where all is
// well.
namespace taskcell::gateway {

using Json = nlohmann::json;
using Verdict = std::optional<Refusal>;
using Names = std::span<const std::string_view>;

// Evaluates a rule and returns its refusal, if any, from the enclosing function.
#define REFUSE_IF(rule)                             \
  do {                                              \
    if (Verdict verdict_ = (rule)) return verdict_; \
  } while (false)

Refusal Denied(std::string_view code, std::string_view message);

// `value` is an object whose keys are all of the canonical form.
Verdict CheckObject(const Json& value, std::string_view where);
// CheckObject, and every key is one of `allowed`.
Verdict CheckKeys(const Json& value, Names allowed, std::string_view where);
// The member `key` is absent or null.
Verdict CheckAbsent(const Json& object, const char* key, std::string_view code,
                    std::string_view where);
// The member `key` is a string beginning with "data:", or absent.
Verdict CheckInline(const Json& object, const char* key, std::string_view where);

// The string member `key`, or "" where it is absent or something else.
std::string_view StringAt(const Json& object, const char* key);
bool Contains(Names names, std::string_view name);
// `text` for a message or record: printable, at most `limit` bytes.
std::string Shown(std::string_view text, std::size_t limit = 64);

// The tools member: absent, or an array of tools, each passing `rule`, whose names, or those of the
// tools it holds, are appended to `tools`, at most kEgressTools in all.
Verdict CheckTools(const Json& body, Verdict (*rule)(const Json& tool),
                   std::vector<std::string>* tools);
// `value` is an array whose elements all pass `rule`.
Verdict CheckEach(const Json& value, std::string_view where, Verdict (*rule)(const Json& element));
// `value` is a string, null, or an array whose elements all pass `rule`.
Verdict CheckContent(const Json& value, std::string_view where,
                     Verdict (*rule)(const Json& element));

// One API's rules over a whole body; the tools' names are appended to `tools`.
Verdict JudgeMessages(const Json& body, std::vector<std::string>* tools);
Verdict JudgeResponses(const Json& body, std::vector<std::string>* tools);
Verdict JudgeChat(const Json& body, std::vector<std::string>* tools);

}  // namespace taskcell::gateway
