#include "gateway/script/language.h"

#include <array>

#include "launcher/base/text.h"

namespace taskcell::gateway {
namespace {

struct Facts {
  std::string_view name;
  std::string_view interpreter;
  std::string_view file;
};

constexpr std::array<Facts, 3> kFacts = {{{"python", "python3", "script.py"},
                                          {"bash", "bash", "script.sh"},
                                          {"javascript", "node", "script.js"}}};

const Facts& FactsOf(ScriptLanguage language) { return kFacts[static_cast<std::size_t>(language)]; }

}  // namespace

Result<ScriptLanguage> ParseLanguage(std::string_view name) {
  for (std::size_t index = 0; index < kFacts.size(); ++index)
    if (kFacts[index].name == name) return static_cast<ScriptLanguage>(index);
  return Error(Kind::kUsage, Text("Unsupported language: '", Printable(name.substr(0, 64)),
                                  "'. Supported: python, bash, javascript"))
      .Coded("unsupported_language");
}

std::string_view LanguageName(ScriptLanguage language) { return FactsOf(language).name; }
std::string_view Interpreter(ScriptLanguage language) { return FactsOf(language).interpreter; }
std::string_view ScriptFile(ScriptLanguage language) { return FactsOf(language).file; }

}  // namespace taskcell::gateway
