#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "launcher/base/result.h"

struct sqlite3;
struct sqlite3_stmt;

namespace taskcell::gateway {

// One prepared statement. Values are bound by position, from 1; an error at binding shows at the
// next Step.
class Statement {
 public:
  Statement& Bind(std::string_view text);
  Statement& Bind(int64_t number);

  // True: there is a row; false: the end.
  Result<bool> Step();
  // Runs to the end, rows unread.
  Status Run();

  std::string Text(int column) const;
  int64_t Integer(int column) const;

 private:
  friend class Database;
  struct Finalize {
    void operator()(sqlite3_stmt* statement) const;
  };
  Statement(sqlite3* database, sqlite3_stmt* statement)
      : database_(database), statement_(statement) {}

  sqlite3* database_;
  std::unique_ptr<sqlite3_stmt, Finalize> statement_;
  int next_ = 1;  // position of the next value
  int bind_error_ = 0;
};

// An SQLite database, where it is ours in write-ahead mode. Every Error is of kind kSystem, or
// kConfig where the file is no database. One thread at a time.
class Database {
 public:
  // Opens a file that exists; writers of other processes are waited for up to 5 s.
  static Result<Database> Open(const std::string& path);
  // The same with a database that belongs to somebody else: nothing of how it is kept is changed.
  static Result<Database> OpenForeign(const std::string& path);

  Result<Statement> Prepare(std::string_view sql);
  Status Execute(std::string_view sql);  // one statement without values

  // Gives back what it keeps of the file in memory.
  void ReleaseMemory();

  // Makes `work`, a callable that returns Status, one transaction: all of it or nothing. Inside
  // another one it is part of that, whose work must fail where this fails.
  template <typename Work>
  Status Transact(Work work) {
    if (IsInTransaction()) return work();
    TRY(Execute("BEGIN IMMEDIATE"));
    Status done = work();
    if (done.ok()) done = Execute("COMMIT");
    if (!done.ok()) (void)Execute("ROLLBACK");  // ignoring: the first error is the one to tell
    return done;
  }

 private:
  struct Close {
    void operator()(sqlite3* database) const;
  };
  explicit Database(sqlite3* database) : database_(database) {}
  bool IsInTransaction() const;
  Status KeepWriteAheadLog();

  std::unique_ptr<sqlite3, Close> database_;
};

}  // namespace taskcell::gateway
