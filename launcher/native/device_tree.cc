#include "launcher/native/device_tree.h"

#include <fcntl.h>
#include <sys/mount.h>
#include <sys/sysmacros.h>

#include "launcher/base/text.h"
#include "launcher/sys/file.h"
#include "launcher/sys/mount.h"

namespace taskcell::native {
namespace {

struct Device {
  const char* name;
  unsigned major;
  unsigned minor;
};
// Numbers from the kernel's Documentation/admin-guide/devices.txt.
constexpr Device kDevices[] = {{"null", 1, 3},   {"zero", 1, 5},    {"full", 1, 7},
                               {"random", 1, 8}, {"urandom", 1, 9}, {"tty", 5, 0}};

constexpr uint64_t kPlain = MOUNT_ATTR_NOSUID | MOUNT_ATTR_NOEXEC;

// Whatever way the host's name leads to, the device number says what it is.
Result<DeviceNode> TakeDevice(int host_dev, const Device& device) {
  UniqueFd tree = TRY(sys::CloneMountAt(host_dev, device.name));
  struct stat info = TRY(sys::Stat(tree.get()));
  if (!S_ISCHR(info.st_mode) || info.st_rdev != makedev(device.major, device.minor)) {
    return Error(Kind::kViolation, Text("'/dev/", device.name, "' is not the character device ",
                                        device.major, ":", device.minor));
  }
  // Without nodev, or it would be no device; read-only still lets a device be written to.
  TRY(sys::SetMountAttributes(tree.get(), kPlain | MOUNT_ATTR_RDONLY, 0, false));
  return DeviceNode{device.name, std::move(tree)};
}

Status AttachNew(int dev, const char* name, Result<UniqueFd> made) {
  UniqueFd mount = TRY(std::move(made));
  TRY(sys::MakeDirectory(dev, name, 0755));
  return sys::AttachMountAt(mount.get(), dev, name);
}

}  // namespace

Result<std::vector<DeviceNode>> TakeDevices() {
  UniqueFd host_dev = TRY(sys::Open("/dev", O_PATH | O_DIRECTORY));
  std::vector<DeviceNode> devices;
  for (const Device& device : kDevices) devices.push_back(TRY(TakeDevice(host_dev.get(), device)));
  return devices;
}

Status MakeDeviceTree(CellRoot& root, const std::vector<DeviceNode>& devices) {
  // Nobody else is in this mount namespace: every name in it is what was made here.
  UniqueFd dev = TRY(
      sys::MakeFileSystem("tmpfs", {{"size", "64k"}, {"mode", "0755"}}, kPlain | MOUNT_ATTR_NODEV));
  TRY(root.Attach("/dev", cell::EntryKind::kDirectory, dev.get()));
  for (const DeviceNode& device : devices) {
    TRY(sys::MakeFile(dev.get(), device.name, 0444));
    TRY(sys::AttachMountAt(device.tree.get(), dev.get(), device.name));
  }
  EntryMaker maker(dev.get());
  TRY(maker.Link({"fd", "/proc/self/fd"}));
  TRY(maker.Link({"stdin", "/proc/self/fd/0"}));
  TRY(maker.Link({"stdout", "/proc/self/fd/1"}));
  TRY(maker.Link({"stderr", "/proc/self/fd/2"}));
  TRY(maker.Link({"ptmx", "pts/ptmx"}));
  TRY(AttachNew(dev.get(), "pts",
                sys::MakeFileSystem(
                    "devpts", {{"ptmxmode", "0666"}, {"mode", "0620"}, {"max", "256"}}, kPlain)));
  TRY(AttachNew(dev.get(), "shm",
                sys::MakeFileSystem("tmpfs", {{"size", kSharedMemorySize}, {"mode", "1777"}},
                                    kPlain | MOUNT_ATTR_NODEV)));
  return sys::SetMountAttributes(dev.get(), MOUNT_ATTR_RDONLY, 0, false);
}

}  // namespace taskcell::native
