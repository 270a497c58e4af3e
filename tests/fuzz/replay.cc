// Runs a fuzz target over a folder of inputs, once each, in builds without libFuzzer; or over
// inputs made at random, other ones each time, after it has said from which number they can be made
// again.
//   <target>_replay FOLDER [STEP]
//   <target>_replay --random COUNT [SEED]
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <vector>

#include "tests/fuzz/fuzz.h"

namespace {

void RunOn(const std::string& input) {
  const auto* bytes = reinterpret_cast<const uint8_t*>(input.data());
  (void)LLVMFuzzerTestOneInput(bytes, input.size());  // ignoring: always 0
}

int RunOnRandom(unsigned long count, unsigned seed) {
  constexpr std::size_t kMaxBytes = 1024;
  std::mt19937 random(seed);
  std::printf("to do the same again: --random %lu %u\n", count, seed);
  for (unsigned long input = 0; input < count; ++input) {
    std::string bytes(random() % kMaxBytes, '\0');
    // Of few values at times: then what is made of them meets itself again.
    const unsigned values = 2U << random() % 8U;
    for (char& byte : bytes) byte = static_cast<char>(random() % values);
    std::printf("input %lu: %zu bytes\n", input, bytes.size());
    (void)std::fflush(stdout);
    RunOn(bytes);
  }
  return count > 0 ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc > 2 && argv[1] == std::string("--random")) {
    const unsigned seed =
        argc > 3 ? static_cast<unsigned>(std::stoul(argv[3])) : std::random_device()();
    return RunOnRandom(std::stoul(argv[2]), seed);
  }
  if (argc != 2 && argc != 3) return 2;
  const std::size_t step = argc == 3 ? std::stoul(argv[2]) : 1;
  std::size_t inputs = 0;
  for (const auto& entry : std::filesystem::directory_iterator(argv[1])) {
    std::ifstream in(entry.path(), std::ios::binary);
    std::string input((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
    std::printf("%s\n", entry.path().c_str());
    (void)std::fflush(stdout);  // so that the name of a crashing input is seen
    RunOn(input);
    // Every beginning of a short input too (or one in STEP): what a broken connection would
    // deliver.
    for (std::size_t size = 0; size < std::min<std::size_t>(input.size(), 512); size += step) {
      RunOn(input.substr(0, size));
    }
    ++inputs;
  }
  std::printf("%zu inputs\n", inputs);
  return inputs > 0 ? 0 : 1;
}
