#include "gateway/ledger/database.h"

#include <sqlite3.h>

#include <chrono>
#include <thread>

#include "launcher/base/text.h"

namespace taskcell::gateway {
namespace {

constexpr int kBusyWaitMs = 5000;

Error DatabaseError(sqlite3* database) {
  const int code = ::sqlite3_errcode(database);
  const bool no_database = code == SQLITE_NOTADB || code == SQLITE_CORRUPT;
  return Error(no_database ? Kind::kConfig : Kind::kSystem, ::sqlite3_errmsg(database));
}

}  // namespace

void Statement::Finalize::operator()(sqlite3_stmt* statement) const {
  (void)::sqlite3_finalize(statement);  // repeats the statement's last error
}

void Database::Close::operator()(sqlite3* database) const {
  (void)::sqlite3_close_v2(database);  // always succeeds
}

Statement& Statement::Bind(std::string_view text) {
  const int bound = ::sqlite3_bind_text64(statement_.get(), next_++, text.data(), text.size(),
                                          SQLITE_TRANSIENT, SQLITE_UTF8);
  if (bound != SQLITE_OK) bind_error_ = bound;
  return *this;
}

Statement& Statement::Bind(int64_t number) {
  const int bound = ::sqlite3_bind_int64(statement_.get(), next_++, number);
  if (bound != SQLITE_OK) bind_error_ = bound;
  return *this;
}

Result<bool> Statement::Step() {
  if (bind_error_ != SQLITE_OK) return Error(Kind::kInternal, ::sqlite3_errstr(bind_error_));
  const int stepped = ::sqlite3_step(statement_.get());
  if (stepped == SQLITE_ROW) return true;
  if (stepped == SQLITE_DONE) return false;
  return DatabaseError(database_);
}

Status Statement::Run() {
  while (TRY(Step())) {
  }
  return Ok();
}

std::string Statement::Text(int column) const {
  const unsigned char* text = ::sqlite3_column_text(statement_.get(), column);
  if (text == nullptr) return "";
  const auto size = static_cast<std::size_t>(::sqlite3_column_bytes(statement_.get(), column));
  // NOLINTNEXTLINE(cppcoreguidelines-pro-type-reinterpret-cast): SQLite's bytes are unsigned
  return {reinterpret_cast<const char*>(text), size};
}

int64_t Statement::Integer(int column) const {
  return ::sqlite3_column_int64(statement_.get(), column);
}

Result<Database> Database::OpenForeign(const std::string& path) {
  sqlite3* opened = nullptr;
  const int code = ::sqlite3_open_v2(
      path.c_str(), &opened, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOFOLLOW | SQLITE_OPEN_NOMUTEX,
      nullptr);
  Database database(opened);
  if (opened == nullptr) return Error(Kind::kSystem, "out of memory");
  if (code != SQLITE_OK) return DatabaseError(opened);
  (void)::sqlite3_busy_timeout(opened, kBusyWaitMs);  // fails only for a broken handle
  // Each running task has a connection: it is to hold what it uses, and no block for small pieces.
  (void)::sqlite3_db_config(opened, SQLITE_DBCONFIG_LOOKASIDE, nullptr, 0,
                            0);  // ignoring: likewise
  TRY(database.Execute("PRAGMA trusted_schema = OFF"));
  return database;
}

// Into the mode that lets others read while one writes. A file that has it is only looked at. Two
// that change a new file at once would wait for each other, so SQLite tells one of them that it is
// busy without waiting: here it waits.
Status Database::KeepWriteAheadLog() {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::milliseconds(kBusyWaitMs);
  while (true) {
    Statement change = TRY(Prepare("PRAGMA journal_mode = WAL"));
    Result<bool> changed = change.Step();
    if (changed.ok()) {
      if (change.Text(0) == "wal") return Ok();
      return Error(Kind::kConfig, "its file system cannot hold a write-ahead log");
    }
    const bool busy = (::sqlite3_errcode(database_.get()) & 0xFF) == SQLITE_BUSY;
    if (!busy || std::chrono::steady_clock::now() > deadline) return std::move(changed).error();
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

Result<Database> Database::Open(const std::string& path) {
  Database database = TRY(OpenForeign(path));
  TRY(database.KeepWriteAheadLog());
  TRY(database.Execute("PRAGMA synchronous = FULL"));
  // What is removed is overwritten: prompts are.
  TRY(database.Execute("PRAGMA secure_delete = ON"));
  return database;
}

Result<Statement> Database::Prepare(std::string_view sql) {
  sqlite3_stmt* prepared = nullptr;
  const int code = ::sqlite3_prepare_v2(database_.get(), sql.data(), static_cast<int>(sql.size()),
                                        &prepared, nullptr);
  if (code != SQLITE_OK) return DatabaseError(database_.get());
  return Statement(database_.get(), prepared);
}

void Database::ReleaseMemory() {
  (void)::sqlite3_db_release_memory(database_.get());  // how much it was
}

bool Database::IsInTransaction() const { return ::sqlite3_get_autocommit(database_.get()) == 0; }

Status Database::Execute(std::string_view sql) {
  Statement statement = TRY(Prepare(sql));
  return statement.Run();
}

}  // namespace taskcell::gateway
