#include "plan/sqlite.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sqlite3.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <optional>
#include <string_view>
#include <system_error>

#include "base/text.h"

namespace tw::plan {
namespace {

constexpr int kBusyMilliseconds = 15000;

// What went wrong, in words for the person who must act on it.
Unexpected<Failure> sqlite_failure(int code, const std::string& path, const std::string& words) {
    switch (code & 0xff) {
        case SQLITE_CORRUPT:
        case SQLITE_NOTADB:
            return fail(
                FailureKind::io_error, fmt::format("the database {} is damaged ({}); it was left as it is", path, words),
                fmt::format("move it away and start anew: mv {0} {0}.damaged (sqlite3's .recover may read what is left of it)", path));
        case SQLITE_FULL:
            return fail(FailureKind::io_error,
                        fmt::format("the disk is full: nothing more can be written to {}; what was written before is safe", path),
                        "free some space and resume");
        case SQLITE_READONLY:
        case SQLITE_PERM:
            return fail(FailureKind::io_error, fmt::format("{} cannot be written ({})", path, words),
                        "choose another folder with TILEWRIGHT_STATE=FOLDER or --journal FILE");
        case SQLITE_CANTOPEN:
            return fail(FailureKind::io_error, fmt::format("{} cannot be opened ({})", path, words),
                        "choose another folder with TILEWRIGHT_STATE=FOLDER or --journal FILE");
        case SQLITE_BUSY:
        case SQLITE_LOCKED:
            return fail(FailureKind::io_error,
                        fmt::format("{} is in use by another process and stayed locked for {} s", path, kBusyMilliseconds / 1000),
                        "wait for the other run, or give this one its own --journal FILE");
        case SQLITE_IOERR:
            return fail(FailureKind::io_error, fmt::format("reading or writing {} failed ({})", path, words),
                        "look at the disk: full, removed, or failing");
        case SQLITE_TOOBIG: return fail(FailureKind::bad_input, fmt::format("a text is too long for the database {}", path));
        default: return fail(FailureKind::internal, fmt::format("SQLite on {}: {}", path, words));
    }
}

Unexpected<Failure> last_failure(sqlite3* database, const std::string& path) {
    return sqlite_failure(sqlite3_extended_errcode(database), path, sqlite3_errmsg(database));
}

// What cannot be a database: SQLite would wait for a file of the kernel that has nothing to say, and nobody else's file gets our mode.
std::optional<Unexpected<Failure>> no_database(const std::filesystem::path& path) {
    const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (file < 0) return std::nullopt;  // none yet, or SQLite says what is wrong
    struct stat found {};
    constexpr std::string_view head("SQLite format 3\0", 16);
    char begin[head.size()];
    const bool plain = ::fstat(file, &found) == 0 && S_ISREG(found.st_mode);
    const ssize_t got = plain ? ::read(file, begin, sizeof begin) : 0;
    ::close(file);
    if (!plain)
        return fail(FailureKind::bad_input, fmt::format("{} is no plain file", path.string()), "choose another file with --journal FILE");
    if (got == 0 || std::string_view(begin, static_cast<std::size_t>(std::max<ssize_t>(got, 0))) == head) return std::nullopt;
    return sqlite_failure(SQLITE_NOTADB, path.string(), "file is not a database");
}

std::string as_uri(const std::filesystem::path& path, const char* query) {
    std::string uri = "file:";
    for (const char c : std::filesystem::absolute(path).string()) {
        if (c == '?' || c == '#' || c == '%') uri += fmt::format("%{:02x}", static_cast<unsigned char>(c));
        else uri += c;
    }
    return uri + query;
}

Result<std::int64_t> pragma(Database& database, const char* name) {
    auto asked = database.prepare(fmt::format("PRAGMA {}", name));
    if (!asked) return std::move(asked).propagate();
    auto row = asked->step();
    if (!row) return std::move(row).propagate();
    return *row ? asked->integer(0) : 0;
}

}  // namespace

std::filesystem::path state_folder() {
    if (const std::string given = environment("TILEWRIGHT_STATE"); !given.empty()) return given;
    if (const std::string given = environment("XDG_STATE_HOME"); !given.empty()) return std::filesystem::path(given) / "tilewright";
    if (const std::string home = environment("HOME"); !home.empty()) return std::filesystem::path(home) / ".local" / "state" / "tilewright";
    return ".tilewright";
}

void Statement::Finalize::operator()(sqlite3_stmt* statement) const { sqlite3_finalize(statement); }
void Database::Close::operator()(sqlite3* database) const { sqlite3_close_v2(database); }

Statement& Statement::bind(int parameter, std::string_view text) {
    // An empty view may have no address; SQLite would take that for NULL.
    sqlite3_bind_text64(statement_.get(), parameter, text.empty() ? "" : text.data(), text.size(), SQLITE_TRANSIENT, SQLITE_UTF8);
    return *this;
}
Statement& Statement::bind(int parameter, std::int64_t value) {
    sqlite3_bind_int64(statement_.get(), parameter, value);
    return *this;
}
Statement& Statement::bind(int parameter, double value) {
    sqlite3_bind_double(statement_.get(), parameter, value);
    return *this;
}
Statement& Statement::bind(int parameter, const std::optional<double>& value) {
    if (value) return bind(parameter, *value);
    sqlite3_bind_null(statement_.get(), parameter);
    return *this;
}

Result<bool> Statement::step() {
    const int code = sqlite3_step(statement_.get());
    if (code == SQLITE_ROW) return true;
    if (code == SQLITE_DONE) return false;
    auto failure = last_failure(sqlite3_db_handle(statement_.get()), path_);
    sqlite3_reset(statement_.get());
    return failure;
}

Result<void> Statement::run() {
    for (;;) {
        auto more = step();
        if (!more) return std::move(more).propagate();
        if (!*more) break;
    }
    sqlite3_reset(statement_.get());
    return {};
}

std::string Statement::text(int column) const {
    const unsigned char* bytes = sqlite3_column_text(statement_.get(), column);
    if (!bytes) return {};
    return std::string(reinterpret_cast<const char*>(bytes), static_cast<std::size_t>(sqlite3_column_bytes(statement_.get(), column)));
}
std::int64_t Statement::integer(int column) const { return sqlite3_column_int64(statement_.get(), column); }
double Statement::real(int column) const { return sqlite3_column_double(statement_.get(), column); }
bool Statement::is_null(int column) const { return sqlite3_column_type(statement_.get(), column) == SQLITE_NULL; }
std::optional<double> Statement::optional_real(int column) const {
    if (is_null(column)) return std::nullopt;
    return real(column);
}

Result<Statement> Database::prepare(std::string_view sql) {
    sqlite3_stmt* made = nullptr;
    const int code = sqlite3_prepare_v2(database_.get(), sql.data(), static_cast<int>(sql.size()), &made, nullptr);
    if (code != SQLITE_OK) return last_failure(database_.get(), path_.string());
    Statement statement;
    statement.statement_.reset(made);
    statement.path_ = path_.string();
    return statement;
}

Result<void> Database::execute(const char* sql) {
    if (sqlite3_exec(database_.get(), sql, nullptr, nullptr, nullptr) != SQLITE_OK) return last_failure(database_.get(), path_.string());
    return {};
}

// Checks whose file it is, and brings an older one of ours up to date.
Result<void> Database::adopt(Mode mode, const Schema& schema) {
    auto application = pragma(*this, "application_id");
    if (!application) return std::move(application).propagate();
    auto version = pragma(*this, "user_version");
    if (!version) return std::move(version).propagate();
    auto tables =
        prepare("SELECT count(*), coalesce(sum(type NOT IN ('table', 'index') OR sql LIKE 'create virtual%'), 0) FROM sqlite_master");
    if (!tables) return std::move(tables).propagate();
    auto counted = tables->step();
    if (!counted) return std::move(counted).propagate();
    const bool empty = tables->integer(0) == 0;
    if (!empty && *application != schema.application)
        return fail(FailureKind::bad_input, fmt::format("{} is a database of another program", path_.string()),
                    "choose another file with --journal FILE");
    // A view in the place of a table may have rows without end, a trigger does what nobody asked for; a file of ours has neither.
    if (tables->integer(1) != 0)
        return fail(FailureKind::bad_input, fmt::format("{} holds views or triggers, which no file of ours has", path_.string()),
                    "choose another file with --journal FILE");
    if (*version > schema.version)
        return fail(FailureKind::bad_input,
                    fmt::format("{} was written by a newer Tilewright (schema {}, this program knows {})", path_.string(), *version,
                                schema.version),
                    "use that version, or another file with --journal FILE");
    if (*version == schema.version) return {};
    if (mode == Mode::read)
        return fail(FailureKind::bad_input, fmt::format("{} holds no runs yet", path_.string()),
                    "start one with `tilewright optimize TASK`");
    tables = Statement();  // an open read would block the switch to the write-ahead log
    auto transaction = Transaction::begin(*this);
    if (!transaction) return std::move(transaction).propagate();
    // Another process may have done it while we waited for the lock.
    version = pragma(*this, "user_version");
    if (!version) return std::move(version).propagate();
    for (std::int64_t from = *version; from < schema.version; ++from) {
        if (auto done = execute(schema.steps[from]); !done) return done;
    }
    if (auto done =
            execute(fmt::format("PRAGMA application_id = {}; PRAGMA user_version = {}", schema.application, schema.version).c_str());
        !done)
        return done;
    return transaction->commit();
}

Result<Database> Database::open(const std::filesystem::path& path, Mode mode, const Schema& schema) {
    std::error_code error;
    if (mode == Mode::write && path.has_parent_path() && !std::filesystem::exists(path.parent_path(), error)) {
        std::filesystem::create_directories(path.parent_path(), error);
        std::error_code ignored;
        std::filesystem::permissions(path.parent_path(), std::filesystem::perms::owner_all, ignored);
        if (error)
            return fail(FailureKind::io_error, fmt::format("cannot make the folder {} ({})", path.parent_path().string(), error.message()),
                        "choose another folder with TILEWRIGHT_STATE=FOLDER or --journal FILE");
    }
    if (auto other = no_database(path)) return *std::move(other);
    // Prompts, sources and replies are nobody else's business. SQLite gives its other files the mode of this one.
    if (mode == Mode::write) {
        if (const int made = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NONBLOCK, 0600); made >= 0) {
            struct stat found {};
            if (::fstat(made, &found) == 0 && S_ISREG(found.st_mode) && found.st_uid == ::geteuid() && (found.st_mode & 077))
                ::fchmod(made, 0600);
            ::close(made);
        }
    }
    if (mode == Mode::read && !std::filesystem::exists(path, error))
        return fail(FailureKind::bad_input, fmt::format("there is no database {}", path.string()),
                    "start a run with `tilewright optimize TASK`");
    const auto attempt = [&](int flags, const char* query) -> Result<Database> {
        Database made;
        made.path_ = path;
        sqlite3* opened = nullptr;
        const int code = sqlite3_open_v2(as_uri(path, query).c_str(), &opened, flags | SQLITE_OPEN_URI | SQLITE_OPEN_NOMUTEX, nullptr);
        made.database_.reset(opened);
        if (code != SQLITE_OK) return sqlite_failure(code, path.string(), opened ? sqlite3_errmsg(opened) : sqlite3_errstr(code));
        sqlite3_extended_result_codes(opened, 1);
        sqlite3_busy_timeout(opened, kBusyMilliseconds);
        if (mode == Mode::write) {
            // FULL: a committed step survives a loss of power too; it costs one fsync a step.
            if (auto done = made.execute("PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA foreign_keys = ON"); !done)
                return std::move(done).propagate();
        }
        if (auto adopted = made.adopt(mode, schema); !adopted) return std::move(adopted).propagate();
        return made;
    };
    if (mode == Mode::write) return attempt(SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, "");
    auto opened = attempt(SQLITE_OPEN_READONLY, "");
    // A log cannot be opened in a folder that cannot be written; without writers the file alone is the whole truth.
    const bool nothing_in_log = !std::filesystem::exists(path.string() + "-wal", error);
    if (!opened && opened.error().kind == FailureKind::io_error && nothing_in_log) {
        auto frozen = attempt(SQLITE_OPEN_READONLY, "?immutable=1");
        if (frozen) return frozen;
    }
    return opened;
}

Result<Transaction> Transaction::begin(Database& database) {
    if (auto begun = database.execute("BEGIN IMMEDIATE"); !begun) return std::move(begun).propagate();
    return Transaction(&database);
}

Result<void> Transaction::commit() {
    auto done = database_->execute("COMMIT");
    if (done) database_ = nullptr;
    return done;
}

Transaction::~Transaction() {
    if (database_) static_cast<void>(database_->execute("ROLLBACK"));
}

}  // namespace tw::plan
