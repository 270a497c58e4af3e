#pragma once

namespace taskcell::gateway {

// In a program that this is linked into, whatever C++ gives back to the heap is overwritten first;
// after this call what OpenSSL gives back, too. To be called before anything uses OpenSSL. (What
// libcurl gives back probe::StartCurl sees to.)
void WipeWhatOpensslFrees();

}  // namespace taskcell::gateway
