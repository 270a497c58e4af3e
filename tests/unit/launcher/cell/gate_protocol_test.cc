#include "launcher/cell/gate_protocol.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "launcher/cell/attestation.h"
#include "launcher/cell/job.h"

namespace taskcell::cell {
namespace {

using ::testing::HasSubstr;

std::string Packet(FrameType type, bool last, uint32_t sequence, std::string_view payload) {
  return EncodeFrame({type, last, sequence, payload});
}

std::vector<std::string> Cut(FrameType type, std::string_view payload) {
  std::vector<std::string> packets;
  FrameWriter writer;
  EXPECT_TRUE(writer
                  .Write(type, payload,
                         [&](std::string_view packet) {
                           packets.emplace_back(packet);
                           return Ok();
                         })
                  .ok());
  return packets;
}

TEST(FrameTest, HeaderAndPayloadComeBack) {
  std::string packet = Packet(FrameType::kStdout, true, 0x01020304, "hello");
  Frame frame = ParseFrame(packet).value();
  EXPECT_EQ(frame.type, FrameType::kStdout);
  EXPECT_TRUE(frame.last);
  EXPECT_EQ(frame.sequence, 0x01020304U);
  EXPECT_EQ(frame.payload, "hello");
  EXPECT_EQ(packet.substr(2, 4), "\x04\x03\x02\x01");
}

TEST(FrameTest, WhatIsNoFrameIsRefused) {
  std::string packet = Packet(FrameType::kDone, true, 0, "");
  ASSERT_TRUE(ParseFrame(packet).ok());
  EXPECT_FALSE(ParseFrame(packet.substr(0, 5)).ok());
  EXPECT_FALSE(ParseFrame("").ok());
  std::string half_last = packet;
  half_last[1] = 2;
  EXPECT_FALSE(ParseFrame(half_last).ok());
  for (int type = 0; type < 256; ++type) {
    std::string changed = packet;
    changed[0] = static_cast<char>(type);
    bool known = (type >= 1 && type <= 11) || (type >= 16 && type <= 20);
    EXPECT_EQ(ParseFrame(changed).ok(), known) << type;
  }
}

TEST(FrameTest, APacketOf64KiBIsTheLongest) {
  std::string packet = Packet(FrameType::kStdout, true, 0, std::string(kMaxFramePayload, 'x'));
  EXPECT_EQ(packet.size(), kMaxFrameBytes);
  EXPECT_TRUE(ParseFrame(packet).ok());
  EXPECT_FALSE(ParseFrame(packet + 'x').ok());
}

TEST(FrameReaderTest, AMessageInPartsIsPutTogether) {
  std::string job(kMaxFramePayload * 2 + 5, 'j');
  std::vector<std::string> packets = Cut(FrameType::kJob, job);
  ASSERT_EQ(packets.size(), 3U);
  FrameReader reader;
  FrameReader::Message message;
  EXPECT_FALSE(reader.Take(packets[0], message).value());
  EXPECT_FALSE(reader.Take(packets[1], message).value());
  EXPECT_TRUE(reader.Take(packets[2], message).value());
  EXPECT_EQ(message.type, FrameType::kJob);
  EXPECT_EQ(message.payload, job);
  EXPECT_TRUE(reader.Take(Packet(FrameType::kDone, true, 3, ""), message).value());
  EXPECT_EQ(message.type, FrameType::kDone);
  EXPECT_EQ(message.payload, "");
}

TEST(FrameReaderTest, AMessageOfExactlyOnePayloadIsOneFrame) {
  EXPECT_EQ(Cut(FrameType::kJob, std::string(kMaxFramePayload, 'j')).size(), 1U);
  EXPECT_EQ(Cut(FrameType::kJob, std::string(kMaxFramePayload + 1, 'j')).size(), 2U);
  EXPECT_EQ(Cut(FrameType::kDone, "").size(), 1U);
}

Result<bool> TakeAll(const std::vector<std::string>& packets) {
  FrameReader reader;
  FrameReader::Message message;
  Result<bool> result = false;
  for (const std::string& packet : packets) {
    result = reader.Take(packet, message);
    if (!result.ok()) {
      // Once refused, always refused: even the frame that would have been next in order.
      EXPECT_FALSE(reader.Take(packets.front(), message).ok());
      return result;
    }
  }
  return result;
}

TEST(FrameReaderTest, GapsAndRepeatsAreRefused) {
  std::string first = Packet(FrameType::kStdout, true, 0, "a");
  EXPECT_TRUE(TakeAll({first, Packet(FrameType::kStdout, true, 1, "b")}).ok());
  EXPECT_FALSE(TakeAll({first, first}).ok());
  EXPECT_FALSE(TakeAll({first, Packet(FrameType::kStdout, true, 2, "b")}).ok());
  EXPECT_FALSE(TakeAll({Packet(FrameType::kStdout, true, 1, "b")}).ok());
}

TEST(FrameReaderTest, MixedPartsAreRefused) {
  std::string full(kMaxFramePayload, 'x');
  std::string part = Packet(FrameType::kJob, false, 0, full);
  EXPECT_TRUE(TakeAll({part, Packet(FrameType::kJob, true, 1, "")}).ok());
  EXPECT_FALSE(TakeAll({part, Packet(FrameType::kCancel, true, 1, "")}).ok());
}

TEST(FrameReaderTest, OnlyAJobAndAnAttestationComeInParts) {
  std::string full(kMaxFramePayload, 'x');
  EXPECT_TRUE(TakeAll({Packet(FrameType::kAttestation, false, 0, full)}).ok());
  EXPECT_FALSE(TakeAll({Packet(FrameType::kStdout, false, 0, full)}).ok());
}

TEST(FrameReaderTest, APartThatIsNotFullIsRefusedUnlessLast) {
  std::string shorter(kMaxFramePayload - 1, 'x');
  EXPECT_TRUE(TakeAll({Packet(FrameType::kJob, true, 0, shorter)}).ok());
  EXPECT_FALSE(TakeAll({Packet(FrameType::kJob, false, 0, shorter)}).ok());
}

TEST(FrameReaderTest, AMessageStaysWithinItsBound) {
  EXPECT_TRUE(
      TakeAll(Cut(FrameType::kAttestation, std::string(kMaxAttestationBytes, 'x'))).value());
  Result<bool> over =
      TakeAll(Cut(FrameType::kAttestation, std::string(kMaxAttestationBytes + 1, 'x')));
  ASSERT_FALSE(over.ok());
  EXPECT_EQ(over.error().kind, Kind::kViolation);
  EXPECT_TRUE(TakeAll(Cut(FrameType::kJob, std::string(kMaxJobBytes, 'x'))).value());
  EXPECT_FALSE(TakeAll(Cut(FrameType::kJob, std::string(kMaxJobBytes + 1, 'x'))).ok());
}

TEST(FrameWriterTest, AHeaderOfItsOwnCountsOn) {
  FrameWriter writer;
  EXPECT_EQ(writer.Header(FrameType::kStdout), EncodeHeader(FrameType::kStdout, true, 0));
  EXPECT_EQ(writer.Header(FrameType::kStderr), EncodeHeader(FrameType::kStderr, true, 1));
}

TEST(PayloadTest, PortsComeBackAndZeroIsNone) {
  ListenerPorts one = ParsePorts(EncodePorts({65535})).value();
  EXPECT_EQ(one.broker, 65535);
  EXPECT_EQ(one.tunnel, 0);
  EXPECT_EQ(ParsePorts(EncodePorts({1, 65535}))->tunnel, 65535);
  EXPECT_FALSE(ParsePorts(EncodePorts({0})).ok());
  EXPECT_FALSE(ParsePorts(EncodePorts({0, 1})).ok());
  EXPECT_FALSE(ParsePorts(EncodePorts({7, 7})).ok());
  EXPECT_FALSE(ParsePorts("\x01\x02\x03").ok());
  EXPECT_FALSE(ParsePorts("\x01\x02\x03\x04\x05").ok());
}

TEST(PayloadTest, RefusalsComeBackAndAreCutToSize) {
  Refusal refusal = ParseRefusal(EncodeRefusal({"exec", 2, "no such program"})).value();
  EXPECT_EQ(refusal.stage, "exec");
  EXPECT_EQ(refusal.err, 2);
  EXPECT_EQ(refusal.text, "no such program");
  Refusal cut = ParseRefusal(EncodeRefusal({"exec", 2, std::string(100000, 'x')})).value();
  EXPECT_EQ(cut.text.size(), 8192U);
  EXPECT_FALSE(ParseRefusal("").ok());
}

TEST(PayloadTest, ExitsComeBackAndMustBeSound) {
  JobExit exit = ParseExit(EncodeExit({ExitReason::kDeadline, 0, 9, 1, 2, 3})).value();
  EXPECT_EQ(exit.reason, ExitReason::kDeadline);
  EXPECT_EQ(exit.signal, 9);
  EXPECT_EQ(exit.user_us, 1U);
  EXPECT_EQ(exit.system_us, 2U);
  EXPECT_EQ(exit.wall_us, 3U);
  EXPECT_TRUE(ParseExit(EncodeExit({ExitReason::kExited, 255, 0, 0, 0, 0})).ok());
  EXPECT_FALSE(ParseExit(EncodeExit({ExitReason::kExited, 256, 0, 0, 0, 0})).ok());
  EXPECT_FALSE(ParseExit(EncodeExit({ExitReason::kExited, -1, 0, 0, 0, 0})).ok());
  EXPECT_FALSE(ParseExit(EncodeExit({ExitReason::kExited, 0, 65, 0, 0, 0})).ok());
  EXPECT_FALSE(ParseExit(EncodeExit({ExitReason::kExited, 1, 9, 0, 0, 0})).ok());
}

}  // namespace
}  // namespace taskcell::cell
