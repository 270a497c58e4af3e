// An archive from anybody, as `taskcell-probe --from` takes it.
#include <algorithm>

#include "launcher/base/json_value.h"
#include "probe/facts/bundle.h"
#include "probe/print/print.h"
#include "probe/tar/tar_format.h"
#include "tests/fuzz/fuzz.h"

namespace {

using namespace taskcell;
using namespace taskcell::probe;

// Puts the right checksum into whatever looks like a header, since none is found by chance.
std::string WithChecksums(std::string archive) {
  for (std::size_t at = 0; at + tar::kBlockBytes <= archive.size(); at += tar::kBlockBytes) {
    std::string_view magic(archive.data() + at + tar::kMagic.offset, tar::kMagic.width);
    if (magic != tar::kUstar) continue;
    tar::Block block;
    std::copy_n(archive.begin() + static_cast<std::ptrdiff_t>(at), block.size(), block.begin());
    uint64_t sum = tar::ChecksumOf(block);
    std::size_t digits = tar::kChecksum.width - 2;
    archive[at + tar::kChecksum.offset + digits] = '\0';
    for (std::size_t digit = digits; digit-- > 0; sum >>= 3U)
      archive[at + tar::kChecksum.offset + digit] = static_cast<char>('0' + (sum & 7U));
  }
  return archive;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, std::size_t size) {
  Result<Bundle> bundle = ReadBundle(WithChecksums(std::string(fuzz::TextOf(data, size))));
  if (!bundle.ok()) {
    fuzz::Require(bundle.error().kind == Kind::kViolation ||
                  bundle.error().kind == Kind::kUnsupported);
    return 0;
  }
  for (const auto& [key, answer] : bundle->record)
    fuzz::Require(ParseEntryName(EntryName(key, FailureIn(key, answer)))->key == key);
  std::string archive = WriteBundle(bundle.value()).value();
  fuzz::Require(WriteBundle(ReadBundle(archive).value()).value() == archive);
  RecordedTree tree(std::move(bundle->record));
  HostFacts facts = ReadHostFacts(tree, bundle->request);
  facts.live = std::move(bundle->live);
  fuzz::Require(ParseJson(JsonOf(Judge(facts))).ok());
  return 0;
}
