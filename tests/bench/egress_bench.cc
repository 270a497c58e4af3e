// What a task's way to its provider costs: each request once straight to a provider on loopback and
// once through the broker, in turn. Prints a table in the README's form. Usage:
// taskcell-bench-egress DIR [ROUNDS]; DIR gets a certificate. Exits with 1 where an aim is missed.
#include <sys/stat.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string>
#include <thread>
#include <vector>

#include "launcher/base/text.h"
#include "tests/bench/channel.h"
#include "tests/bench/egress_broker.h"
#include "tests/bench/egress_provider.h"
#include "tests/bench/measure.h"
#include "tests/support/tls_certificate.h"

namespace taskcell::bench {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kCells = 50;
constexpr double kMiB = 1024 * 1024;
constexpr double kMostAddedMs = 1;
constexpr double kMostLonger = 1.1;
constexpr double kLeastMiBs = 300;
constexpr double kMostCores = 1;
constexpr std::size_t kBodyBytes = std::size_t{24} << 20;

double Since(Clock::time_point begun) {
  return std::chrono::duration<double, std::milli>(Clock::now() - begun).count();
}

[[noreturn]] void GiveUp(std::string_view why) {
  std::fprintf(stderr, "taskcell-bench-egress: %s\n", std::string(why).c_str());
  std::exit(1);  // NOLINT(concurrency-mt-unsafe): there is nothing to be kept
}

std::string Request(std::string_view path, uint16_t port, std::size_t text_bytes) {
  const std::string body =
      Text(R"({"model":"test-model","stream":true,"messages":[{"role":"user","content":")",
           std::string(text_bytes, 'y'), R"("}]})");
  return Text("POST ", path, " HTTP/1.1\r\nHost: 127.0.0.1:", port,
              "\r\nAuthorization: Bearer sk-placeholder\r\nContent-Type: application/json\r\n",
              "Content-Length: ", body.size(), "\r\n\r\n", body);
}

// In milliseconds from the first byte sent.
struct Took {
  double first = 0;  // byte of the answer's body
  double whole = 0;
};

// One connection that stays open, and one request that is made on it again and again.
class Way {
 public:
  Way(uint16_t port, SSL_CTX* context, std::string_view path, std::size_t text_bytes = 8)
      : channel_(Channel::Connect(port, context)), request_(Request(path, port, text_bytes)) {
    if (!channel_.is_open()) GiveUp(Text("nobody listens on port ", port));
  }

  Took Ask() {
    const Clock::time_point begun = Clock::now();
    if (!channel_.Send(request_)) GiveUp("the connection is gone");
    std::string head;
    std::size_t end = 0;
    while ((end = head.find("\r\n\r\n")) == std::string::npos || head.size() == end + 4)
      head += Next();
    Took took;
    took.first = Since(begun);
    if (!head.starts_with("HTTP/1.1 200 ")) GiveUp(Text("refused: ", head));
    // No event ends as the last chunk does.
    std::string tail = head.substr(head.size() - std::min(head.size(), kLastChunk.size()));
    while (!tail.ends_with(kLastChunk)) {
      std::string_view got = Next();
      tail += got.substr(got.size() - std::min(got.size(), kLastChunk.size()));
    }
    took.whole = Since(begun);
    return took;
  }

 private:
  std::string_view Next() {
    std::string_view got = channel_.Receive(buffer_);
    if (got.empty()) GiveUp("the answer broke off");
    return got;
  }

  Channel channel_;
  std::string request_;
  std::vector<char> buffer_ = std::vector<char>(std::size_t{256} << 10);
};

struct Series {
  std::vector<double> first;
  std::vector<double> whole;

  void Add(const Took& took) {
    first.push_back(took.first);
    whole.push_back(took.whole);
  }
};

struct Pair {
  Series direct;
  Series through;
};

Pair Alternate(Way direct, Way through, int rounds) {
  (void)direct.Ask();  // the connections behind are warm from here on
  (void)through.Ask();
  Pair pair;
  for (int round = 0; round < rounds; ++round) {
    pair.direct.Add(direct.Ask());
    pair.through.Add(through.Ask());
  }
  return pair;
}

double Median(const std::vector<double>& values) { return Percentile(values, 0.5); }

bool g_all_met = true;

const char* Verdict(bool is_met) {
  g_all_met = g_all_met && is_met;
  return is_met ? "met" : "**missed**";
}

void PrintFirst(const char* name, const Pair& pair, bool has_aim) {
  const double added = Median(pair.through.first) - Median(pair.direct.first);
  std::printf("| %s; median, 95 %% | %.3f, %.3f ms | %.3f, %.3f ms | %+.3f ms | %s |\n", name,
              Median(pair.direct.first), Percentile(pair.direct.first, 0.95),
              Median(pair.through.first), Percentile(pair.through.first, 0.95), added,
              has_aim ? Text("+1 ms: ", Verdict(added <= kMostAddedMs)).c_str() : "");
}

void PrintWhole(const char* name, const Pair& pair, bool has_aim) {
  const double ratio = Median(pair.through.whole) / Median(pair.direct.whole);
  std::printf("| %s; median, 95 %% | %.1f, %.1f ms | %.1f, %.1f ms | %+.1f %% | %s |\n", name,
              Median(pair.direct.whole), Percentile(pair.direct.whole, 0.95),
              Median(pair.through.whole), Percentile(pair.through.whole, 0.95), (ratio - 1) * 100,
              has_aim ? Text("+10 %: ", Verdict(ratio <= kMostLonger)).c_str() : "");
}

// Of an answer or a body of `bytes`; its slowest twentieth is the 95 %.
void PrintRate(const char* name, const Pair& pair, std::size_t bytes, bool has_aim) {
  const auto rate = [bytes](double ms) { return static_cast<double>(bytes) / kMiB / ms * 1e3; };
  const double through = rate(Median(pair.through.whole));
  std::printf("| %s; median, 95 %% | %.0f, %.0f MiB/s | %.0f, %.0f MiB/s | | %s |\n", name,
              rate(Median(pair.direct.whole)), rate(Percentile(pair.direct.whole, 0.95)), through,
              rate(Percentile(pair.through.whole, 0.95)),
              has_aim ? Text("300 MiB/s: ", Verdict(through >= kLeastMiBs)).c_str() : "");
}

// Every cell reads a stream at once: what of a processor the broker needs for them.
void PrintLive(const EgressBroker& broker, std::size_t first_way) {
  std::vector<std::thread> readers;
  const double cpu = broker.CpuSeconds();
  const Clock::time_point begun = Clock::now();
  for (std::size_t cell = 0; cell < kCells; ++cell) {
    readers.emplace_back([&broker, way = first_way + cell] {
      (void)Way(broker.port(way), nullptr, "/v1/chat/completions").Ask();
    });
  }
  for (std::thread& reader : readers) reader.join();
  const double cores = (broker.CpuSeconds() - cpu) / Since(begun) * 1e3;
  std::printf("| one broker, %d cells with %d events a second each | | %.3f of a core | | %s |\n",
              kCells, kLiveEvents, cores, Text("1 core: ", Verdict(cores <= kMostCores)).c_str());
}

std::string ReadText(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

// The rows of one provider: `ways` are the numbers of the broker's cells in the order of `kRows`.
struct Bench {
  const EgressBroker& broker;
  uint16_t provider;
  SSL_CTX* context;
  std::size_t first_way;

  Pair Run(std::string_view path, std::size_t number, int rounds,
           std::size_t text_bytes = 8) const {
    return Alternate(
        Way(provider, context, Text(path, "/v1/chat/completions"), text_bytes),
        Way(broker.port(first_way + number), nullptr, "/v1/chat/completions", text_bytes), rounds);
  }
  void Print(int rounds) const {
    const bool has_aim = context == nullptr;
    const int few = std::max(3, rounds / 50);
    PrintFirst(has_aim ? "first byte, warm" : "the same with TLS", Run(kFirst, 0, rounds), has_aim);
    PrintWhole("1,000 events, one a millisecond", Run(kPaced, 2, few), has_aim);
    PrintWhole("1,000 events at once", Run(kBurst, 1, std::max(3, rounds / 5)), false);
    PrintRate("an answer of 256 MiB", Run(kLarge, 3, few), kLargeBytes, has_aim);
    PrintRate("a request of 24 MiB, judged", Run(kFirst, 0, few, kBodyBytes), kBodyBytes, has_aim);
  }
};

constexpr std::string_view kRows[] = {kFirst, kBurst, kPaced, kLarge};

int Main(const std::string& directory, int rounds) {
  const std::string certificate = test::MakeCertificate(directory, "localhost");
  EgressProvider plain;
  EgressProvider secure(certificate);
  if (plain.port() == 0 || secure.port() == 0) GiveUp("no provider could be started");
  std::vector<EgressWay> ways;
  for (std::string_view row : kRows)
    ways.push_back({Text("http://127.0.0.1:", plain.port(), row, "/v1"), ""});
  for (std::string_view row : kRows)
    ways.push_back({Text("https://localhost:", secure.port(), row, "/v1"), ReadText(certificate)});
  for (int cell = 0; cell < kCells; ++cell)
    ways.push_back({Text("http://127.0.0.1:", plain.port(), kLive, "/v1"), ""});
  EgressBroker broker(ways);
  if (!broker.is_up()) GiveUp("the broker could not be started");
  SslContext context = ClientContext();

  std::printf("\negress on %u processors, %d rounds\n\n", std::thread::hardware_concurrency(),
              rounds);
  std::printf(
      "| the way to a provider | direct | through the broker | | aim |\n|---|---|---|---|---|\n");
  Bench{broker, plain.port(), nullptr, 0}.Print(rounds);
  PrintLive(broker, 2 * std::size(kRows));
  Bench{broker, secure.port(), context.get(), std::size(kRows)}.Print(rounds);
  return g_all_met ? 0 : 1;
}

}  // namespace
}  // namespace taskcell::bench

int main(int argc, char** argv) {
  if (argc < 2) return 2;
  constexpr int kRounds = 1000;
  return taskcell::bench::Main(argv[1], argc > 2 ? std::atoi(argv[2]) : kRounds);
}
