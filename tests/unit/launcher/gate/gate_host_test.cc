#include "launcher/gate/gate_host.h"

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <functional>
#include <thread>
#include <vector>

#include "launcher/sys/file.h"
#include "launcher/sys/listener.h"
#include "launcher/sys/poll.h"
#include "launcher/sys/socket.h"
#include "launcher/sys/terminal.h"

namespace taskcell::gate {
namespace {

using cell::FrameType;
using std::chrono::milliseconds;

GateHost::Clock::time_point In(int ms) { return GateHost::Clock::now() + milliseconds(ms); }

// Plays the cell's PID 1, as honest or as hostile as a test wants.
class FakeInit {
 public:
  explicit FakeInit(UniqueFd fd) : fd_(std::move(fd)) {}

  Status Say(FrameType type, std::string_view payload, int pass_fd = -1) {
    return writer_.Write(type, payload, [&](std::string_view packet) {
      return sys::SendPacket(fd_.get(), packet, std::exchange(pass_fd, -1));
    });
  }
  Status SayRaw(std::string_view packet, int pass_fd = -1) {
    return sys::SendPacket(fd_.get(), packet, pass_fd);
  }
  Status SayWith(FrameType type, std::string_view payload, std::vector<int> passed) {
    return writer_.Write(type, payload, [&](std::string_view packet) {
      return sys::SendDescriptors(fd_.get(), packet, std::exchange(passed, {}));
    });
  }
  Status Attest(uint16_t port = 0, uint16_t tunnel_port = 0) {
    cell::InsideAttestation inside;
    inside.pid = 1;
    inside.hostname = "taskcell";
    inside.listener_port = port;
    inside.tunnel_port = tunnel_port;
    return Say(FrameType::kAttestation, cell::EncodeAttestation(inside));
  }
  // Waits for one message of the host, at most five seconds; an empty optional when the gate
  // closed.
  std::optional<cell::FrameReader::Message> Hear() {
    std::string buffer(cell::kMaxFrameBytes, '\0');
    cell::FrameReader::Message message;
    while (true) {
      auto ready = sys::Poll(fd_.get(), POLLIN, 5000);
      if (!ready.ok() || ready.value() == 0) return {};
      auto packet = sys::ReceivePacket(fd_.get(), buffer, false);
      if (!packet.ok() || packet->size == 0) return {};
      auto whole = reader_.Take(std::string_view(buffer).substr(0, packet->size), message);
      if (!whole.ok()) return {};
      if (whole.value()) return message;
    }
  }
  void Leave() { fd_.Reset(); }
  int fd() const { return fd_.get(); }

 private:
  UniqueFd fd_;
  cell::FrameReader reader_;
  cell::FrameWriter writer_;
};

class Collector : public OutputSink {
 public:
  bool OnStdout(std::string_view bytes) override {
    out += bytes;
    return out.size() < stop_at;
  }
  bool OnStderr(std::string_view bytes) override {
    err += bytes;
    return true;
  }
  std::string out;
  std::string err;
  std::size_t stop_at = ~std::size_t{0};
};

class GateHostTest : public testing::Test {
 protected:
  void SetUp() override {
    auto pair = sys::MakePacketPair();
    ASSERT_TRUE(pair.ok());
    auto host = GateHost::Open(std::move(pair->first));
    ASSERT_TRUE(host.ok());
    host_.emplace(std::move(host).value());
    init_.emplace(std::move(pair->second));
  }

  void ExpectViolation(const Error& error, const std::string& text, std::string_view code) {
    EXPECT_EQ(error.kind, Kind::kViolation) << error.text;
    EXPECT_EQ(error.code, code);
    EXPECT_NE(error.text.find(text), std::string::npos) << error.text;
    EXPECT_FALSE(init_->Hear().has_value()) << "the gate must be closed after a violation";
  }

  std::optional<GateHost> host_;
  std::optional<FakeInit> init_;
  Collector collector_;
};

TEST_F(GateHostTest, AnAttestationIsTakenWithoutAListener) {
  ASSERT_TRUE(init_->Attest().ok());
  auto arrival = host_->Attest(0, In(2000));
  ASSERT_TRUE(arrival.ok()) << arrival.error().text;
  EXPECT_EQ(arrival->inside.hostname, "taskcell");
  EXPECT_FALSE(arrival->listener.valid());
}

TEST_F(GateHostTest, AListenerComesBeforeTheAttestationAndIsAcceptedOn) {
  auto listener = sys::ListenLoopback().value();
  ASSERT_TRUE(
      init_->Say(FrameType::kListener, cell::EncodePorts({listener.port}), listener.fd.get()).ok());
  ASSERT_TRUE(init_->Attest(listener.port).ok());
  auto arrival = host_->Attest(1, In(2000));
  ASSERT_TRUE(arrival.ok()) << arrival.error().text;
  EXPECT_TRUE(arrival->listener.valid());
}

TEST_F(GateHostTest, ATerminalComesBeforeTheAttestationAndIsOne) {
  const sys::TerminalPair terminal = sys::MakeTerminal("/dev/ptmx").value();
  ASSERT_TRUE(init_->Say(FrameType::kTerminal, {}, terminal.master.get()).ok());
  ASSERT_TRUE(init_->Attest().ok());
  auto arrival = host_->Attest(0, In(2000), true);
  ASSERT_TRUE(arrival.ok()) << arrival.error().text;
  EXPECT_TRUE(sys::IsTerminalMaster(arrival->terminal.get()));
}

TEST_F(GateHostTest, WhatIsNoMasterSideOfATerminalIsRefused) {
  const sys::TerminalPair terminal = sys::MakeTerminal("/dev/ptmx").value();
  ASSERT_TRUE(init_->Say(FrameType::kTerminal, {}, terminal.slave.get()).ok());
  auto arrival = host_->Attest(0, In(2000), true);
  ASSERT_FALSE(arrival.ok());
  ExpectViolation(arrival.error(), "brought no terminal", "cell_mismatch");
}

TEST_F(GateHostTest, ATerminalThatNobodyAskedForIsRefused) {
  const sys::TerminalPair terminal = sys::MakeTerminal("/dev/ptmx").value();
  ASSERT_TRUE(init_->Say(FrameType::kTerminal, {}, terminal.master.get()).ok());
  auto arrival = host_->Attest(0, In(2000));
  ASSERT_FALSE(arrival.ok());
  ExpectViolation(arrival.error(), "a descriptor came that nobody asked for", "cell_mismatch");
}

TEST_F(GateHostTest, TwoListenersComeInOneMessage) {
  auto broker = sys::ListenLoopback().value();
  auto tunnel = sys::ListenLoopback().value();
  ASSERT_TRUE(init_
                  ->SayWith(FrameType::kListener, cell::EncodePorts({broker.port, tunnel.port}),
                            {broker.fd.get(), tunnel.fd.get()})
                  .ok());
  ASSERT_TRUE(init_->Attest(broker.port, tunnel.port).ok());
  auto arrival = host_->Attest(2, In(2000));
  ASSERT_TRUE(arrival.ok()) << arrival.error().text;
  EXPECT_EQ(sys::LoopbackListenerPort(arrival->listener.get()).value(), broker.port);
  EXPECT_EQ(sys::LoopbackListenerPort(arrival->tunnel_listener.get()).value(), tunnel.port);
}

// Each row is the exchange of the test above with one thing wrong.
TEST_F(GateHostTest, AnotherNumberOrOrderOfListenersIsAViolation) {
  auto broker = sys::ListenLoopback().value();
  auto tunnel = sys::ListenLoopback().value();
  auto third = sys::ListenLoopback().value();
  const int first = broker.fd.get();
  const int second = tunnel.fd.get();
  struct Row {
    const char* name;
    std::size_t wanted;
    cell::ListenerPorts ports;
    std::vector<int> passed;
    uint16_t attested;
    const char* text;
  };
  const Row rows[] = {
      {"one descriptor of two",
       2,
       {broker.port, tunnel.port},
       {first},
       tunnel.port,
       "brought no descriptor"},
      {"one port of two", 2, {broker.port}, {first, second}, 0, "another number of ports"},
      {"two ports for one",
       1,
       {broker.port, tunnel.port},
       {first},
       tunnel.port,
       "another number of ports"},
      {"two descriptors for one", 1, {broker.port}, {first, second}, 0, "nobody asked for"},
      {"three descriptors for two",
       2,
       {broker.port, tunnel.port},
       {first, second, third.fd.get()},
       tunnel.port,
       "nobody asked for"},
      {"exchanged",
       2,
       {broker.port, tunnel.port},
       {second, first},
       tunnel.port,
       "is bound to port"},
      {"the same twice",
       2,
       {broker.port, broker.port},
       {first, first},
       broker.port,
       "two listeners on one port"},
      {"another port attested",
       2,
       {broker.port, tunnel.port},
       {first, second},
       third.port,
       "for tunnels"},
  };
  for (const Row& row : rows) {
    SCOPED_TRACE(row.name);
    SetUp();
    ASSERT_TRUE(
        init_->SayWith(FrameType::kListener, cell::EncodePorts(row.ports), row.passed).ok());
    (void)init_->Attest(broker.port, row.attested);  // ignoring: the gate may be closed by now
    auto arrival = host_->Attest(row.wanted, In(2000));
    ASSERT_FALSE(arrival.ok());
    ExpectViolation(arrival.error(), row.text, "cell_mismatch");
  }
}

TEST_F(GateHostTest, AMissingListenerFrameIsAViolation) {
  ASSERT_TRUE(init_->Attest().ok());
  auto arrival = host_->Attest(1, In(2000));
  ASSERT_FALSE(arrival.ok());
  ExpectViolation(arrival.error(), "where the listener was due", "cell_mismatch");
}

TEST_F(GateHostTest, AListenerNobodyAskedForIsAViolation) {
  auto listener = sys::ListenLoopback().value();
  ASSERT_TRUE(init_->Say(FrameType::kListener, cell::EncodePorts({listener.port})).ok());
  auto arrival = host_->Attest(0, In(2000));
  ASSERT_FALSE(arrival.ok());
  ExpectViolation(arrival.error(), "where the attestation was due", "cell_mismatch");
}

TEST_F(GateHostTest, OnlyAListeningLoopbackSocketIsTakenAsListener) {
  struct Row {
    const char* name;
    std::function<UniqueFd(uint16_t*)> make;
    const char* text;
  };
  auto bound = [](int type, in_addr_t address, bool listen, uint16_t* port) {
    UniqueFd fd(::socket(AF_INET, type | SOCK_CLOEXEC, 0));
    struct sockaddr_in in = {};
    in.sin_family = AF_INET;
    in.sin_addr.s_addr = htonl(address);
    socklen_t size = sizeof in;
    void* generic = &in;
    EXPECT_EQ(::bind(fd.get(), static_cast<struct sockaddr*>(generic), size), 0);
    EXPECT_EQ(::getsockname(fd.get(), static_cast<struct sockaddr*>(generic), &size), 0);
    if (listen) {
      EXPECT_EQ(::listen(fd.get(), 1), 0);
    }
    *port = ntohs(in.sin_port);
    return fd;
  };
  const Row rows[] = {
      {"a file",
       [](uint16_t* p) {
         *p = 1;
         return sys::Open("/dev/null", O_RDONLY).value();
       },
       "no listening TCP socket"},
      {"udp", [&](uint16_t* p) { return bound(SOCK_DGRAM, INADDR_LOOPBACK, false, p); },
       "no listening TCP socket"},
      {"not listening", [&](uint16_t* p) { return bound(SOCK_STREAM, INADDR_LOOPBACK, false, p); },
       "no listening TCP socket"},
      {"another loopback address",
       [&](uint16_t* p) { return bound(SOCK_STREAM, INADDR_LOOPBACK + 1, true, p); },
       "does not listen on 127.0.0.1"},
      {"unix",
       [](uint16_t* p) {
         *p = 1;
         return UniqueFd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
       },
       "no listening TCP socket"},
  };
  for (const Row& row : rows) {
    SetUp();
    uint16_t port = 0;
    UniqueFd fd = row.make(&port);
    ASSERT_TRUE(init_->Say(FrameType::kListener, cell::EncodePorts({port}), fd.get()).ok());
    auto arrival = host_->Attest(1, In(2000));
    ASSERT_FALSE(arrival.ok()) << row.name;
    ExpectViolation(arrival.error(), row.text, "cell_mismatch");
  }
}

TEST_F(GateHostTest, AListenerOnAnotherPortThanToldIsAViolation) {
  auto listener = sys::ListenLoopback().value();
  auto other = static_cast<uint16_t>(listener.port ^ 1U);
  ASSERT_TRUE(init_->Say(FrameType::kListener, cell::EncodePorts({other}), listener.fd.get()).ok());
  auto arrival = host_->Attest(1, In(2000));
  ASSERT_FALSE(arrival.ok());
  ExpectViolation(arrival.error(), "is bound to port", "cell_mismatch");
}

TEST_F(GateHostTest, ADescriptorWithTheAttestationIsAViolation) {
  auto null = sys::Open("/dev/null", O_RDONLY).value();
  cell::InsideAttestation inside;
  ASSERT_TRUE(
      init_->Say(FrameType::kAttestation, cell::EncodeAttestation(inside), null.get()).ok());
  auto arrival = host_->Attest(0, In(2000));
  ASSERT_FALSE(arrival.ok());
  ExpectViolation(arrival.error(), "descriptor came", "cell_mismatch");
}

TEST_F(GateHostTest, SilenceEndsAtTheDeadline) {
  auto before = GateHost::Clock::now();
  auto arrival = host_->Attest(0, In(150));
  ASSERT_FALSE(arrival.ok());
  EXPECT_GE(GateHost::Clock::now() - before, milliseconds(150));
  ExpectViolation(arrival.error(), "in time", "cell_mismatch");
}

// Whatever `wait` waits for, up to a minute, ends at once when the caller no longer wants it.
void ExpectLeftAtOnce(FakeInit& init, const std::function<Error()>& wait, UniqueFd& stop) {
  std::thread canceller([&] {
    std::this_thread::sleep_for(milliseconds(50));
    stop.Reset();
  });
  const auto before = GateHost::Clock::now();
  const Error error = wait();
  canceller.join();
  EXPECT_GE(GateHost::Clock::now() - before, milliseconds(40)) << "control: it waited";
  EXPECT_LT(GateHost::Clock::now() - before, std::chrono::seconds(10));
  EXPECT_EQ(error.code, "stopped") << error.text;
  while (init.Hear().has_value()) {
  }  // until the gate is closed: what is left of a job in it may come first
}

TEST_F(GateHostTest, AnAttestationNobodyWantsAnyMoreIsNotWaitedFor) {
  auto pair = sys::MakePacketPair().value();
  auto stop = sys::MakePipe().value();
  auto host = GateHost::Open(std::move(pair.first), stop.read_end.get()).value();
  FakeInit init(std::move(pair.second));
  ExpectLeftAtOnce(
      init, [&] { return host.Attest(false, In(60'000)).error(); }, stop.write_end);
}

TEST_F(GateHostTest, AHandOverNobodyWantsAnyMoreIsNotWaitedFor) {
  auto pair = sys::MakePacketPair().value();
  auto stop = sys::MakePipe().value();
  auto host = GateHost::Open(std::move(pair.first), stop.read_end.get()).value();
  FakeInit init(std::move(pair.second));
  cell::Job job;
  job.argv = {"/bin/true"};
  job.stdio = cell::JobStdio::kRelay;
  job.input = std::string(4U << 20U, 'p');
  ExpectLeftAtOnce(
      init, [&] { return host.HandOver(job, In(60'000)).error(); }, stop.write_end);
}

TEST_F(GateHostTest, APeerThatLeavesBeforeAttestingIsNamed) {
  init_->Leave();
  auto arrival = host_->Attest(0, In(2000));
  ASSERT_FALSE(arrival.ok());
  EXPECT_EQ(arrival.error().code, "cell_mismatch");
  EXPECT_NE(arrival.error().text.find("went away"), std::string::npos);
}

TEST_F(GateHostTest, ARefusalInsteadOfAnAttestationTellsItsStage) {
  ASSERT_TRUE(init_->Say(FrameType::kRefused, cell::EncodeRefusal({"landlock", EPERM, "no"})).ok());
  auto arrival = host_->Attest(0, In(2000));
  ASSERT_FALSE(arrival.ok());
  EXPECT_EQ(arrival.error().err, EPERM);
  EXPECT_NE(arrival.error().text.find("landlock: no"), std::string::npos);
}

TEST_F(GateHostTest, MalformedPacketsAreViolations) {
  const std::string attestation = cell::EncodeAttestation({});
  struct Row {
    std::string packet;
    const char* name;
  };
  const Row rows[] = {
      {"abc", "shorter than a header"},
      {cell::EncodeFrame({FrameType::kAttestation, true, 1, attestation}), "sequence starts at 1"},
      {cell::EncodeFrame({FrameType::kAttestation, true, 0, "junk"}), "no attestation"},
      {cell::EncodeFrame({FrameType::kJob, true, 0, ""}), "the host's own type"},
      {cell::EncodeFrame({FrameType::kStdout, true, 0, "x"}), "output before the job"},
      {std::string(cell::kMaxFrameBytes, '\0'), "type 0"},
  };
  for (const Row& row : rows) {
    SetUp();
    ASSERT_TRUE(init_->SayRaw(row.packet).ok());
    auto arrival = host_->Attest(0, In(2000));
    ASSERT_FALSE(arrival.ok()) << row.name;
    EXPECT_EQ(arrival.error().kind, Kind::kViolation) << row.name << ": " << arrival.error().text;
    EXPECT_EQ(arrival.error().code, "cell_mismatch") << row.name;
  }
}

TEST_F(GateHostTest, AFrameOfTheBoundIsTakenAndOneByteMoreIsAViolation) {
  std::string payload(cell::kMaxFramePayload, 'x');
  std::string fits = cell::EncodeFrame({FrameType::kStdout, true, 1, payload});
  ASSERT_EQ(fits.size(), cell::kMaxFrameBytes);
  ASSERT_TRUE(init_->Say(FrameType::kStarted, "").ok());
  ASSERT_TRUE(init_->SayRaw(fits).ok());
  ASSERT_TRUE(init_->SayRaw(std::string(cell::kMaxFrameBytes + 1, '\0')).ok());
  auto end = host_->Pump(collector_, In(2000));
  EXPECT_EQ(collector_.out.size(), payload.size());
  ASSERT_FALSE(end.ok());
  ExpectViolation(end.error(), "65536", "transport_failed");
}

TEST_F(GateHostTest, AnAttestationLongerThanItsBoundIsAViolation) {
  std::string part(cell::kMaxFramePayload, 'x');
  std::thread hostile([&] {
    for (uint32_t i = 0; i < 20; ++i) {
      if (!init_->SayRaw(cell::EncodeFrame({FrameType::kAttestation, false, i, part})).ok()) return;
    }
  });
  auto arrival = host_->Attest(0, In(5000));
  hostile.join();
  ASSERT_FALSE(arrival.ok());
  EXPECT_EQ(arrival.error().kind, Kind::kViolation);
}

TEST_F(GateHostTest, AJobIsHandedOverRunsAndIsDone) {
  std::thread init([&] {
    auto job = init_->Hear();
    ASSERT_TRUE(job.has_value());
    EXPECT_EQ(job->type, FrameType::kJob);
    auto parsed = cell::ParseJob(job->payload);
    ASSERT_TRUE(parsed.ok());
    EXPECT_EQ(parsed->input.size(), 4U << 20U);
    ASSERT_TRUE(init_->Say(FrameType::kStarted, "").ok());
    ASSERT_TRUE(init_->Say(FrameType::kStdout, "out").ok());
    ASSERT_TRUE(init_->Say(FrameType::kStderr, "err").ok());
    cell::JobExit exit;
    exit.code = 7;
    ASSERT_TRUE(init_->Say(FrameType::kExit, cell::EncodeExit(exit)).ok());
    auto done = init_->Hear();
    ASSERT_TRUE(done.has_value());
    EXPECT_EQ(done->type, FrameType::kDone);
  });
  cell::Job job;
  job.argv = {"/bin/true"};
  job.stdio = cell::JobStdio::kRelay;
  job.input = std::string(4U << 20U, 'p');
  ASSERT_TRUE(host_->HandOver(job, In(5000)).ok());
  auto end = host_->Pump(collector_, In(5000));
  ASSERT_TRUE(end.ok()) << end.error().text;
  EXPECT_EQ(end->outcome, JobOutcome::kExited);
  EXPECT_TRUE(end->started);
  EXPECT_EQ(end->exit.code, 7);
  EXPECT_EQ(collector_.out, "out");
  EXPECT_EQ(collector_.err, "err");
  EXPECT_TRUE(host_->Done().ok());
  init.join();
}

TEST_F(GateHostTest, APeerThatDoesNotReadTheJobIsLeftAtTheDeadline) {
  cell::Job job;
  job.argv = {"/bin/true"};
  job.stdio = cell::JobStdio::kRelay;
  job.input = std::string(4U << 20U, 'p');
  Status sent = host_->HandOver(job, In(200));
  ASSERT_FALSE(sent.ok());
  EXPECT_EQ(sent.error().code, "transport_failed");
  EXPECT_NE(sent.error().text.find("does not read"), std::string::npos);
}

TEST_F(GateHostTest, ARefusedJobTellsWhy) {
  ASSERT_TRUE(
      init_->Say(FrameType::kRefused, cell::EncodeRefusal({"exec", ENOENT, "no program"})).ok());
  auto end = host_->Pump(collector_, In(2000));
  ASSERT_TRUE(end.ok());
  EXPECT_EQ(end->outcome, JobOutcome::kRefused);
  EXPECT_FALSE(end->started);
  EXPECT_EQ(end->refusal.stage, "exec");
}

TEST_F(GateHostTest, ADeathWithoutAnExitFrameIsAClosedGate) {
  ASSERT_TRUE(init_->Say(FrameType::kStarted, "").ok());
  ASSERT_TRUE(init_->Say(FrameType::kStdout, "last words").ok());
  init_->Leave();
  auto end = host_->Pump(collector_, In(2000));
  ASSERT_TRUE(end.ok());
  EXPECT_EQ(end->outcome, JobOutcome::kGateClosed);
  EXPECT_EQ(collector_.out, "last words");
}

TEST_F(GateHostTest, TheDeadlineCancelsAndTheExitStillArrives) {
  ASSERT_TRUE(init_->Say(FrameType::kStarted, "").ok());
  std::thread init([&] {
    auto cancel = init_->Hear();
    ASSERT_TRUE(cancel.has_value());
    EXPECT_EQ(cancel->type, FrameType::kCancel);
    cell::JobExit exit;
    exit.reason = cell::ExitReason::kCancelled;
    exit.signal = SIGKILL;
    ASSERT_TRUE(init_->Say(FrameType::kExit, cell::EncodeExit(exit)).ok());
  });
  auto end = host_->Pump(collector_, In(100));
  init.join();
  ASSERT_TRUE(end.ok());
  EXPECT_EQ(end->outcome, JobOutcome::kExited);
  EXPECT_TRUE(end->deadline_passed);
  EXPECT_FALSE(end->cancelled);
}

TEST_F(GateHostTest, AnInitThatIgnoresTheDeadlineIsOverdueAfterTheGraceEvenWhileItTalks) {
  ASSERT_TRUE(init_->Say(FrameType::kStarted, "").ok());
  std::thread chatter([&] {
    while (init_->Say(FrameType::kStdout, "x").ok()) std::this_thread::sleep_for(milliseconds(5));
  });
  auto before = GateHost::Clock::now();
  auto end = host_->Pump(collector_, In(50));
  auto took = GateHost::Clock::now() - before;
  host_.reset();  // closes the gate, which ends the chatter
  chatter.join();
  ASSERT_TRUE(end.ok());
  EXPECT_EQ(end->outcome, JobOutcome::kOverdue);
  EXPECT_GE(took, GateHost::kExitGrace);
  EXPECT_LT(took, GateHost::kExitGrace + milliseconds(3000));
}

TEST_F(GateHostTest, CancelFromAnotherThreadReachesInit) {
  ASSERT_TRUE(init_->Say(FrameType::kStarted, "").ok());
  std::thread canceller([&] {
    std::this_thread::sleep_for(milliseconds(50));
    host_->Cancel();
  });
  std::thread init([&] {
    auto cancel = init_->Hear();
    ASSERT_TRUE(cancel.has_value());
    EXPECT_EQ(cancel->type, FrameType::kCancel);
    ASSERT_TRUE(init_->Say(FrameType::kExit, cell::EncodeExit({})).ok());
  });
  auto end = host_->Pump(collector_, In(10000));
  canceller.join();
  init.join();
  ASSERT_TRUE(end.ok());
  EXPECT_TRUE(end->cancelled);
  EXPECT_FALSE(end->deadline_passed);
}

TEST_F(GateHostTest, ASinkThatSaysStopCancelsAndHearsNoMore) {
  collector_.stop_at = 3;
  ASSERT_TRUE(init_->Say(FrameType::kStarted, "").ok());
  ASSERT_TRUE(init_->Say(FrameType::kStdout, "abcd").ok());
  ASSERT_TRUE(init_->Say(FrameType::kStdout, "efgh").ok());
  ASSERT_TRUE(init_->Say(FrameType::kExit, cell::EncodeExit({})).ok());
  auto end = host_->Pump(collector_, In(2000));
  ASSERT_TRUE(end.ok());
  EXPECT_TRUE(end->cancelled);
  EXPECT_EQ(collector_.out, "abcd");
  auto cancel = init_->Hear();
  ASSERT_TRUE(cancel.has_value());
  EXPECT_EQ(cancel->type, FrameType::kCancel);
}

TEST_F(GateHostTest, FramesOutOfOrderAreViolations) {
  struct Row {
    std::vector<std::pair<FrameType, std::string>> frames;
    const char* text;
  };
  const std::string exit = cell::EncodeExit({});
  const Row rows[] = {
      {{{FrameType::kStdout, "x"}}, "before the job had started"},
      {{{FrameType::kExit, exit}}, "before it had started"},
      {{{FrameType::kStarted, ""}, {FrameType::kStarted, ""}}, "started twice"},
      {{{FrameType::kStarted, ""}, {FrameType::kRefused, cell::EncodeRefusal({"x", 1, ""})}},
       "after it had started"},
      {{{FrameType::kStarted, ""}, {FrameType::kListener, cell::EncodePorts({1})}},
       "while the job"},
      {{{FrameType::kStarted, ""}, {FrameType::kDone, ""}}, "while the job"},
  };
  for (const Row& row : rows) {
    SetUp();
    for (const auto& [type, payload] : row.frames) ASSERT_TRUE(init_->Say(type, payload).ok());
    auto end = host_->Pump(collector_, In(2000));
    ASSERT_FALSE(end.ok()) << row.text;
    ExpectViolation(end.error(), row.text, "transport_failed");
  }
}

}  // namespace
}  // namespace taskcell::gate
