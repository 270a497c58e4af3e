#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "launcher/base/result.h"
#include "launcher/base/unique_fd.h"
#include "launcher/cell/cell_plan.h"
#include "launcher/native/mount_source.h"

namespace taskcell::native {

// What RootKind::kHost takes from the host. Everything else of it stays outside.

// Small world-readable files of /etc, copied into the cell, and why a program needs them.
inline constexpr std::string_view kHostEtcFiles[] = {
    "ld.so.cache",      // the dynamic linker finds libraries below /usr/local and alternatives
    "localtime",        // what a program shows when it is told another TZ than UTC
    "mime.types",       // web clients and servers
    "protocols",        // getprotobyname
    "services",         // getservbyname
    "os-release",       // installers and language runtimes ask what system this is
    "debian_version",   // the same
    "ssl/openssl.cnf",  // every OpenSSL program, python and node included, reads it at start
};
// Directories of /etc without secrets, mounted read-only.
inline constexpr std::string_view kHostEtcDirectories[] = {
    "alternatives",            // /usr/bin/awk, java, cc ... are links through it
    "ssl/certs",               // certificate authorities
    "pki/ca-trust/extracted",  // the same on Fedora
    "crypto-policies",         // OpenSSL's defaults on Fedora
};
inline constexpr std::size_t kMaxHostEtcFileBytes = 1U << 20U;

// One symbolic link or file to be made in the cell's root.
struct RootEntry {
  std::string path;  // without a leading slash
  std::string content;
  UniqueFd source = {};  // when valid, the content is what this file holds
};

struct HostRoot {
  std::vector<MountSource> mounts;
  std::vector<RootEntry> links;  // content: where to
  std::vector<RootEntry> files;
};

// Gathers them in the calling mount namespace, and the files that are generated: passwd, group,
// hosts, hostname, nsswitch.conf and an empty resolv.conf. What does not exist on this host, or is
// not readable for everybody, is left out.
Result<HostRoot> TakeHostRoot(const cell::CellPlan& plan, const MountTable& mounts);

}  // namespace taskcell::native
