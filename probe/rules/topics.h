#pragma once

#include <span>
#include <string>
#include <string_view>

namespace taskcell::probe {

// What a row is about, the same on every host. taskcell-probe(1), ROWS, has an entry for each.
struct Topic {
  std::string_view id;
  std::string_view title;
  std::string_view why;        // why it matters, one or two sentences
  std::string_view how;        // how it is found out, and what each verdict means
  std::string_view reference;  // where the rule comes from
};

std::span<const Topic> AllTopics();
const Topic* FindTopic(std::string_view id);  // nullptr: no such row

// The long text of --explain.
std::string ExplanationOf(const Topic& topic);

}  // namespace taskcell::probe
