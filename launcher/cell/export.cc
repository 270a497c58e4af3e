#include "launcher/cell/export.h"

#include "launcher/base/text.h"
#include "launcher/cell/wire.h"

namespace taskcell::cell {
namespace {

constexpr std::size_t kMaxWhyBytes = 4096;

template <typename Io, typename Value>
void FileFields(Io& io, Value& file) {
  io.String(file.path, kMaxExportPathBytes);
  io.Number(file.bytes);
}

template <typename Io, typename Value>
void EndFields(Io& io, Value& end) {
  io.Flag(end.is_complete);
  io.Number(end.left_out);
  io.String(end.text, kMaxWhyBytes);
}

Error Bad(std::string_view path, std::string_view why) {
  return Error(Kind::kViolation, Text("the path '", Printable(path), "' ", why));
}

bool HasControlByte(std::string_view name) {
  constexpr unsigned char kSpace = 0x20;
  constexpr unsigned char kDelete = 0x7f;
  for (char c : name) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < kSpace || byte == kDelete) return true;
  }
  return false;
}

Status CheckName(std::string_view path, std::string_view name) {
  if (name.empty()) return Bad(path, "has an empty name in it");
  if (name == "." || name == "..") return Bad(path, "leads elsewhere");
  if (name.size() > kMaxExportNameBytes)
    return Bad(path, Text("has a name of more than ", kMaxExportNameBytes, " bytes"));
  if (HasControlByte(name)) return Bad(path, "has a control byte in it");
  if (!IsUtf8(name)) return Bad(path, "is not UTF-8");
  return Ok();
}

}  // namespace

std::string EncodeExportFile(const ExportFile& file) {
  WireWriter writer;
  FileFields(writer, file);
  return writer.Take();
}

Result<ExportFile> ParseExportFile(std::string_view payload) {
  WireReader reader(payload);
  ExportFile file;
  FileFields(reader, file);
  TRY(reader.Finish("export frame"));
  TRY(CheckExportPath(file.path));
  if (file.bytes > kMaxExportBytes)
    return Bad(file.path, Text("is a file of more than ", kMaxExportBytes, " bytes"));
  return file;
}

Status CheckExportPath(std::string_view path) {
  if (path.size() > kMaxExportPathBytes)
    return Error(Kind::kViolation, Text("a path of more than ", kMaxExportPathBytes, " bytes"));
  std::size_t names = 0;
  for (std::string_view name : Split(path, '/')) {
    TRY(CheckName(path, name));
    ++names;
  }
  if (names > kMaxExportDepth)
    return Bad(path, Text("is more than ", kMaxExportDepth, " levels deep"));
  return Ok();
}

std::string EncodeExportEnd(const ExportEnd& end) {
  ExportEnd cut = end;
  if (cut.text.size() > kMaxWhyBytes) cut.text.resize(kMaxWhyBytes);
  WireWriter writer;
  EndFields(writer, cut);
  return writer.Take();
}

Result<ExportEnd> ParseExportEnd(std::string_view payload) {
  WireReader reader(payload);
  ExportEnd end;
  EndFields(reader, end);
  TRY(reader.Finish("end of an export"));
  return end;
}

}  // namespace taskcell::cell
