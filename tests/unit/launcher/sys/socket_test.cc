#include "launcher/sys/socket.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <vector>

namespace taskcell::sys {
namespace {

TEST(PacketTest, DescriptorArrivesOnlyWhereWanted) {
  SocketPair pair = MakePacketPair().value();
  UniqueFd null(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  std::array<char, 16> buffer;
  ASSERT_TRUE(SendPacket(pair.first.get(), "a", null.get()).ok());
  ASSERT_TRUE(SendPacket(pair.first.get(), "bc", null.get()).ok());
  Packet first = ReceivePacket(pair.second.get(), buffer, true).value();
  EXPECT_EQ(first.size, 1U);
  ASSERT_TRUE(first.passed.valid());
  EXPECT_EQ(::fcntl(first.passed.get(), F_GETFD), FD_CLOEXEC);
  Packet second = ReceivePacket(pair.second.get(), buffer, false).value();
  EXPECT_EQ(second.size, 2U);
  EXPECT_FALSE(second.passed.valid());
}

TEST(PacketTest, OfTwoDescriptorsOneIsTakenAndNoneLeaks) {
  SocketPair pair = MakePacketPair().value();
  UniqueFd null(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  int two[2] = {null.get(), null.get()};
  alignas(struct cmsghdr) char control[CMSG_SPACE(sizeof two)] = {};
  char byte = 'a';
  struct iovec part = {&byte, 1};
  struct msghdr message = {};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  struct cmsghdr* header = CMSG_FIRSTHDR(&message);
  header->cmsg_level = SOL_SOCKET;
  header->cmsg_type = SCM_RIGHTS;
  header->cmsg_len = CMSG_LEN(sizeof two);
  std::memcpy(CMSG_DATA(header), two, sizeof two);
  ASSERT_EQ(::sendmsg(pair.first.get(), &message, 0), 1);
  std::array<char, 4> buffer;
  int next_free = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
  ::close(next_free);
  {
    Packet packet = ReceivePacket(pair.second.get(), buffer, true).value();
    EXPECT_TRUE(packet.passed.valid());
    EXPECT_TRUE(packet.control_discarded);
  }
  int after = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
  EXPECT_EQ(after, next_free);
  ::close(after);
}

TEST(PacketTest, ManyDescriptorsArriveInTheirOrder) {
  SocketPair pair = MakePacketPair().value();
  std::vector<UniqueFd> files;
  std::vector<int> numbers;
  for (std::size_t i = 0; i < kMostDescriptors; ++i) {
    files.emplace_back(::memfd_create("file", MFD_CLOEXEC));
    numbers.push_back(files.back().get());
    ASSERT_EQ(::ftruncate(numbers.back(), static_cast<off_t>(i)), 0);
  }
  ASSERT_TRUE(SendDescriptors(pair.first.get(), "names", numbers).ok());
  std::array<char, 16> buffer;
  std::vector<UniqueFd> passed;
  EXPECT_EQ(ReceiveDescriptors(pair.second.get(), buffer, passed).value(), 5U);
  ASSERT_EQ(passed.size(), kMostDescriptors);
  for (std::size_t i = 0; i < kMostDescriptors; ++i) {
    struct stat info = {};
    ASSERT_EQ(::fstat(passed[i].get(), &info), 0);
    EXPECT_EQ(info.st_size, static_cast<off_t>(i));
    EXPECT_EQ(::fcntl(passed[i].get(), F_GETFD), FD_CLOEXEC);
  }
  numbers.push_back(0);
  EXPECT_EQ(SendDescriptors(pair.first.get(), "x", numbers).error().err, E2BIG);
  pair.first.Reset();
  EXPECT_EQ(ReceiveDescriptors(pair.second.get(), buffer, passed).value(), 0U);
}

TEST(PacketTest, AsManyDescriptorsAreTakenAsThereArePlacesAndNoneLeaks) {
  SocketPair pair = MakePacketPair().value();
  UniqueFd null(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  std::array<char, 4> buffer;
  int next_free = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
  ::close(next_free);
  for (std::size_t sent : {0U, 1U, 2U, 3U}) {
    const std::vector<int> numbers(sent, null.get());
    ASSERT_TRUE(SendDescriptors(pair.first.get(), "a", numbers).ok());
    std::array<UniqueFd, 2> places;
    Packet packet = ReceivePacketWith(pair.second.get(), buffer, places).value();
    EXPECT_EQ(places[0].valid(), sent > 0);
    EXPECT_EQ(places[1].valid(), sent > 1);
    EXPECT_EQ(packet.control_discarded, sent > 2);
  }
  int after = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
  EXPECT_EQ(after, next_free);
  ::close(after);
}

TEST(PacketTest, APacketThatDoesNotFitIsAViolation) {
  SocketPair pair = MakePacketPair().value();
  std::array<char, 4> buffer;
  ASSERT_TRUE(SendPacket(pair.first.get(), "1234").ok());
  ASSERT_TRUE(SendPacket(pair.first.get(), "12345").ok());
  EXPECT_EQ(ReceivePacket(pair.second.get(), buffer, false).value().size, 4U);
  Result<Packet> over = ReceivePacket(pair.second.get(), buffer, false);
  ASSERT_FALSE(over.ok());
  EXPECT_EQ(over.error().kind, Kind::kViolation);
}

TEST(PacketTest, AClosedPeerIsAnEmptyPacket) {
  SocketPair pair = MakePacketPair().value();
  pair.first.Reset();
  std::array<char, 4> buffer;
  EXPECT_EQ(ReceivePacket(pair.second.get(), buffer, true).value().size, 0U);
  EXPECT_EQ(SendPacket(pair.second.get(), "x").error().err, EPIPE);
}

TEST(UnixAddressTest, APathOf108BytesIsRefusedAnd107IsTaken) {
  EXPECT_EQ(ListenPackets("/" + std::string(107, 'x')).error().err, ENAMETOOLONG);
  std::string fits = "/tmp/" + std::string(102, 'x');
  ASSERT_TRUE(ListenPackets(fits).ok());
  ::unlink(fits.c_str());
}

TEST(LoopbackTest, ThePortOfTheListenerIsTold) {
  LoopbackListener listener = ListenLoopback().value();
  EXPECT_NE(listener.port, 0);
}

TEST(PollTest, TimeOutIsZero) {
  SocketPair pair = MakePacketPair().value();
  EXPECT_EQ(Poll(pair.first.get(), 1 /* POLLIN */, 1).value(), 0);
}

}  // namespace
}  // namespace taskcell::sys
