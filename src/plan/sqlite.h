// SQLite with our error values: what a journal and a planner's memory share.
//
// One connection per Database; a Database is used by one thread. Several processes may have the same file open: writers wait
// for one another (up to 15 s), readers never wait (write-ahead log). A process that is killed at any moment leaves the
// file with all committed transactions and nothing of the one in flight.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "runtime/failure.h"

struct sqlite3;
struct sqlite3_stmt;

namespace tw::plan {

using runtime::fail;
using runtime::Failure;
using runtime::FailureKind;
using runtime::Result;

// $TILEWRIGHT_STATE, else $XDG_STATE_HOME/tilewright, else ~/.local/state/tilewright: journal and memory of a user.
std::filesystem::path state_folder();

// A compiled statement. Parameters are numbered from 1, columns from 0. Binding copies.
class Statement {
public:
    Statement& bind(int parameter, std::string_view text);
    Statement& bind(int parameter, const char* text) { return bind(parameter, std::string_view(text)); }
    Statement& bind(int parameter, std::int64_t value);
    Statement& bind(int parameter, int value) { return bind(parameter, static_cast<std::int64_t>(value)); }
    Statement& bind(int parameter, double value);
    Statement& bind(int parameter, const std::optional<double>& value);

    // True: there is a row to read. False: done.
    Result<bool> step();
    // For statements without rows.
    Result<void> run();

    std::string text(int column) const;
    std::int64_t integer(int column) const;
    double real(int column) const;
    std::optional<double> optional_real(int column) const;
    bool is_null(int column) const;

private:
    friend class Database;
    struct Finalize {
        void operator()(sqlite3_stmt* statement) const;
    };
    std::unique_ptr<sqlite3_stmt, Finalize> statement_;
    std::string path_;
};

class Database {
public:
    enum class Mode { write, read };

    // What the file must be: an application id (so that another program's database is not taken for ours), a schema version,
    // the statements that make version 1, and for each later version those that lead there from the one before.
    struct Schema {
        std::int64_t application = 0;
        std::int64_t version = 1;
        const char* const* steps = nullptr;  // `version` texts: steps[0] makes version 1, steps[1] leads to version 2, ...
    };

    // `write` makes folder and file when they are missing. `read` works in a folder that cannot be written.
    // A file that is damaged, newer than this program, or not ours is refused and left as it is.
    static Result<Database> open(const std::filesystem::path& path, Mode mode, const Schema& schema);

    Result<Statement> prepare(std::string_view sql);
    Result<void> execute(const char* sql);
    const std::filesystem::path& path() const { return path_; }

private:
    friend class Transaction;
    struct Close {
        void operator()(sqlite3* database) const;
    };
    Result<void> adopt(Mode mode, const Schema& schema);

    std::unique_ptr<sqlite3, Close> database_;
    std::filesystem::path path_;
};

// Takes the write lock at once, so that it fails before any work; rolls back unless committed.
class Transaction {
public:
    static Result<Transaction> begin(Database& database);
    Result<void> commit();
    Transaction(Transaction&& other) noexcept : database_(std::exchange(other.database_, nullptr)) {}
    Transaction& operator=(Transaction&&) = delete;
    ~Transaction();

private:
    explicit Transaction(Database* database) : database_(database) {}
    Database* database_;
};

}  // namespace tw::plan
