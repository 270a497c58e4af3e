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
  const char* path;
  unsigned major;
  unsigned minor;
};
// Numbers from the kernel's Documentation/admin-guide/devices.txt.
constexpr Device kDevices[] = {{"/dev/null", 1, 3},   {"/dev/zero", 1, 5},    {"/dev/full", 1, 7},
                               {"/dev/random", 1, 8}, {"/dev/urandom", 1, 9}, {"/dev/tty", 5, 0}};

constexpr uint64_t kPlain = MOUNT_ATTR_NOSUID | MOUNT_ATTR_NOEXEC;

Result<MountSource> TakeDevice(const Device& device) {
  UniqueFd pin = TRY(PinPath(device.path));
  struct stat info = TRY(sys::Stat(pin.get()));
  if (!S_ISCHR(info.st_mode) || info.st_rdev != makedev(device.major, device.minor)) {
    return Error(Kind::kViolation, Text("'", device.path, "' is not the character device ",
                                        device.major, ":", device.minor));
  }
  UniqueFd tree = TRY(sys::CloneMount(pin.get(), false));
  // Without nodev, or it would be no device; read-only still lets a device be written to.
  TRY(sys::SetMountAttributes(tree.get(), kPlain | MOUNT_ATTR_RDONLY, 0, false));
  return MountSource{device.path, cell::EntryKind::kFile, std::move(tree)};
}

Status AttachNew(CellRoot& root, const std::string& target, Result<UniqueFd> made) {
  UniqueFd mount = TRY(std::move(made));
  return root.Attach(target, cell::EntryKind::kDirectory, mount.get());
}

}  // namespace

Result<std::vector<MountSource>> TakeDevices() {
  std::vector<MountSource> devices;
  for (const Device& device : kDevices) devices.push_back(TRY(TakeDevice(device)));
  return devices;
}

Status MakeDeviceTree(CellRoot& root, const std::vector<MountSource>& devices) {
  UniqueFd dev = TRY(
      sys::MakeFileSystem("tmpfs", {{"size", "64k"}, {"mode", "0755"}}, kPlain | MOUNT_ATTR_NODEV));
  TRY(root.Attach("/dev", cell::EntryKind::kDirectory, dev.get()));
  EntryMaker maker(dev.get());
  for (const char* name : {"null", "zero", "full", "random", "urandom", "tty"})
    TRY(maker.File({name, ""}));
  TRY(maker.Link({"fd", "/proc/self/fd"}));
  TRY(maker.Link({"stdin", "/proc/self/fd/0"}));
  TRY(maker.Link({"stdout", "/proc/self/fd/1"}));
  TRY(maker.Link({"stderr", "/proc/self/fd/2"}));
  TRY(maker.Link({"ptmx", "pts/ptmx"}));
  TRY(sys::MakeDirectory(dev.get(), "pts", 0755));
  TRY(sys::MakeDirectory(dev.get(), "shm", 0755));
  TRY(sys::SetMountAttributes(dev.get(), MOUNT_ATTR_RDONLY, 0, false));
  for (const MountSource& device : devices)
    TRY(root.Attach(device.target, device.kind, device.tree.get()));
  TRY(AttachNew(root, "/dev/pts",
                sys::MakeFileSystem(
                    "devpts", {{"ptmxmode", "0666"}, {"mode", "0620"}, {"max", "256"}}, kPlain)));
  return AttachNew(root, "/dev/shm",
                   sys::MakeFileSystem("tmpfs", {{"size", kSharedMemorySize}, {"mode", "1777"}},
                                       kPlain | MOUNT_ATTR_NODEV));
}

}  // namespace taskcell::native
