#include "probe/engine/curl_start.h"

#include <curl/curl.h>
#include <string.h>

#include <cstdlib>

#include "launcher/sys/wiped_memory.h"

namespace taskcell::probe {

bool StartCurl() {
  static const CURLcode kStarted =
      curl_global_init_mem(CURL_GLOBAL_DEFAULT, &std::malloc, &sys::FreeWiped,
                           &sys::ReallocateWiped, &::strdup, &std::calloc);
  return kStarted == CURLE_OK;
}

}  // namespace taskcell::probe
