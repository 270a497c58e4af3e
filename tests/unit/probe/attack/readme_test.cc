// What the README shows of an attack is of the payloads that there are.
#include <gtest/gtest.h>

#include <fstream>
#include <string>
#include <vector>

#include "launcher/base/text.h"
#include "probe/attack/payload.h"

namespace taskcell::attack {
namespace {

// From the line of the command to the end of the sample.
std::vector<std::string> Sample() {
  std::vector<std::string> lines;
  std::ifstream file(TASKCELL_README);
  bool within = false;
  for (std::string line; std::getline(file, line);) {
    if (within && line == "```") break;
    if (within) lines.push_back(line);
    if (line == "$ taskcell-probe attack") within = true;
  }
  return lines;
}

TEST(ReadmeTest, ItsNumbersAreOfAllPayloads) {
  const std::vector<std::string> sample = Sample();
  ASSERT_GT(sample.size(), 2U);
  std::vector<std::string_view> words = Words(sample.front());
  ASSERT_GT(words.size(), 6U) << sample.front();
  ASSERT_EQ(words[1], "attacks");
  EXPECT_EQ(ParseUnsigned(words[0]).value_or(0) + ParseUnsigned(words[5]).value_or(0),
            AllPayloads().size())
      << sample.front();
}

TEST(ReadmeTest, EachOfItsRowsIsAPayloadAndAnOutcomeOfIt) {
  std::size_t rows = 0;
  for (const std::string& line : Sample()) {
    const Payload* payload = FindPayload(line.substr(0, line.find(' ')));
    if (payload == nullptr) continue;
    ++rows;
    EXPECT_TRUE(line.ends_with(Text("  ", payload->tries))) << line;
    bool names_outcome = false;
    for (int32_t result : payload->contained)
      names_outcome |= result != 0 && line.find(Text(" ", NameOf(result), " ")) != line.npos;
    EXPECT_TRUE(names_outcome) << line;
  }
  EXPECT_EQ(rows + 4, Sample().size());  // the summary, an empty line, the titles, "..."
}

}  // namespace
}  // namespace taskcell::attack
