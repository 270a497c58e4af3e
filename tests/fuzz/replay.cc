// Runs a fuzz target over a folder of inputs, once each, in builds without libFuzzer.
//   <target>_replay FOLDER
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "tests/fuzz/fuzz.h"

namespace {

void RunOn(const std::string& input) {
  const auto* bytes = reinterpret_cast<const uint8_t*>(input.data());
  (void)LLVMFuzzerTestOneInput(bytes, input.size());  // ignoring: always 0
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  std::size_t inputs = 0;
  for (const auto& entry : std::filesystem::directory_iterator(argv[1])) {
    std::ifstream in(entry.path(), std::ios::binary);
    std::string input((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
    std::printf("%s\n", entry.path().c_str());
    (void)std::fflush(stdout);  // so that the name of a crashing input is seen
    RunOn(input);
    // Every beginning of a short input too: what a broken connection would deliver.
    for (std::size_t size = 0; size < std::min<std::size_t>(input.size(), 512); ++size) {
      RunOn(input.substr(0, size));
    }
    ++inputs;
  }
  std::printf("%zu inputs\n", inputs);
  return inputs > 0 ? 0 : 1;
}
