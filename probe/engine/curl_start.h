#pragma once

namespace taskcell::probe {

// Makes libcurl ready for this process, once, from any thread; to be called before any other use of
// it. What it gives back to the heap is overwritten first: headers with credentials pass through
// its memory. False where it can't be used.
bool StartCurl();

}  // namespace taskcell::probe
