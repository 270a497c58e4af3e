#pragma once

#include <string>

#include "launcher/base/result.h"
#include "launcher/native/id_maps.h"

namespace taskcell::native {

struct WalkBounds {
  std::size_t entries;
  int depth;
};
inline constexpr WalkBounds kSourceBounds = {200'000, 64};
inline constexpr WalkBounds kRootBounds = {1'000'000, 64};

// Refuses a source that is or holds a socket, FIFO or device: through it a cell could talk to, or
// act on, what is outside (a container engine's socket is root). The host's /usr is not walked.
// What is past the bounds is refused too: nothing unseen is mounted; and what MountTable refuses.
// `path` is its canonical path.
Status CheckSource(int fd, const std::string& path, const WalkBounds& bounds = kSourceBounds);

// Refuses a directory as the root of a cell with those kernel ids when it holds a socket or FIFO,
// whose other end may be outside. Devices may be there (debootstrap and images have some): they are
// nodev in the cell, and no user namespace could open them. Refused too: a mount below it, since a
// root is one mount; what is past the bounds; a directory that the cell may enter and this process
// cannot list. One that the cell cannot enter is not looked at. And what MountTable refuses. `path`
// is its canonical path.
Status CheckRootDirectory(int fd, const std::string& path, const OutsideIds& outside,
                          const WalkBounds& bounds = kRootBounds);

}  // namespace taskcell::native
