// A program that is started as taskcell-launch and taskcell-init are, and says how it finds its
// world. What it is asked is its first argument.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

namespace {

bool g_constructed = false;
thread_local int g_of_thread = 42;

struct Global {
  Global() { g_constructed = true; }
  ~Global() { (void)std::puts("destroyed"); }
} g_global;

int g_made = 0;
struct Counted {
  Counted() { ++g_made; }
  ~Counted() { (void)std::puts("undone"); }
};
__attribute__((noinline)) const Counted& UsedFirstHere() {
  static const Counted counted;
  return counted;
}

// Not inlined, so that the buffer has a canary behind it.
__attribute__((noinline)) void WritePast(std::size_t bytes) {
  volatile char buffer[16];
  for (std::size_t at = 0; at < bytes; ++at) *(&buffer[0] + at) = 'x';
}

bool CopiesRight(std::size_t bytes, std::size_t shift) {
  std::vector<unsigned char> from(bytes + shift + 1);
  for (std::size_t at = 0; at < from.size(); ++at)
    from[at] = static_cast<unsigned char>(at * 7 + at / 256);
  std::vector<unsigned char> to(from.size(), 0);
  std::memcpy(to.data(), from.data(), bytes);
  if (std::memcmp(to.data(), from.data(), bytes) != 0 || to[bytes] != 0) return false;
  std::vector<unsigned char> moved = from;
  std::memmove(moved.data() + shift, moved.data(), bytes);  // over each other
  if (std::memcmp(moved.data() + shift, from.data(), bytes) != 0) return false;
  std::memset(to.data(), 0xa5, bytes);
  for (std::size_t at = 0; at < bytes; ++at)
    if (to[at] != 0xa5) return false;
  return true;
}

bool AllCopiesRight() {
  for (std::size_t bytes = 0; bytes < 600; ++bytes)
    if (!CopiesRight(bytes, 3)) return false;
  for (std::size_t bytes = 1024; bytes < (20U << 20U); bytes = bytes * 3 / 2)
    if (!CopiesRight(bytes + 5, 61)) return false;
  return true;
}

// Where the x86-64 compiler looks for the stack protector's canary.
unsigned long long Canary() {
  unsigned long long canary = 0;
#ifdef __x86_64__
  asm volatile("movq %%fs:0x28, %0" : "=r"(canary));
#endif
  return canary;
}

}  // namespace

int main(int argc, char** argv) {
  const char* asked = argc > 1 ? argv[1] : "";
  if (std::strcmp(asked, "canary") == 0) {
    std::printf("%016llx\n", Canary());
  } else if (std::strcmp(asked, "smash") == 0) {
    WritePast(64);
    std::printf("survived\n");
  } else if (std::strcmp(asked, "copies") == 0) {
    std::printf("%s\n", AllCopiesRight() ? "right" : "wrong");
  } else if (std::strcmp(asked, "statics") == 0) {
    std::printf("%d ", g_made);
    bool same = &UsedFirstHere() == &UsedFirstHere();
    std::printf("%d %d\n", g_made, same ? 1 : 0);
  } else if (std::strcmp(asked, "world") == 0) {
    const char* variable = std::getenv("STARTED_PROGRAM");  // NOLINT(concurrency-mt-unsafe)
    std::printf("%d %s %s %d %d\n", argc, argv[argc - 1], variable == nullptr ? "-" : variable,
                g_of_thread, g_constructed ? 1 : 0);
  }
  return 7;
}
