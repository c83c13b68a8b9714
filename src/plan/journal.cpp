#include "plan/journal.h"

#include <fcntl.h>
#include <fmt/chrono.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <limits>
#include <random>

#include "base/diagnostic.h"
#include "base/input.h"
#include "base/text.h"
#include "plan/text_diff.h"

namespace tw::plan {
namespace {

using nlohmann::json;

const char* const kSchemaSteps[] = {R"sql(
CREATE TABLE runs(
    id TEXT PRIMARY KEY, task_name TEXT NOT NULL, task_text TEXT NOT NULL, proposer TEXT NOT NULL, settings TEXT NOT NULL,
    facts TEXT NOT NULL, state TEXT NOT NULL, reason TEXT NOT NULL, started_ms INTEGER NOT NULL, ended_ms INTEGER NOT NULL,
    version TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE steps(
    run TEXT NOT NULL REFERENCES runs(id), number INTEGER NOT NULL, parent INTEGER NOT NULL, stage TEXT NOT NULL,
    technique TEXT NOT NULL, outcome TEXT NOT NULL, verdict TEXT NOT NULL, failure_class TEXT NOT NULL, message TEXT NOT NULL,
    source TEXT NOT NULL, diff TEXT NOT NULL, microseconds REAL, speedup REAL, roofline_share REAL, seconds REAL NOT NULL,
    started_ms INTEGER NOT NULL, gates TEXT NOT NULL, evidence TEXT NOT NULL, state TEXT NOT NULL,
    PRIMARY KEY(run, number)) WITHOUT ROWID;
CREATE TABLE exchanges(
    run TEXT NOT NULL, step INTEGER NOT NULL, number INTEGER NOT NULL, proposer TEXT NOT NULL, model TEXT NOT NULL,
    prompt_version TEXT NOT NULL, prompt TEXT NOT NULL, reply TEXT NOT NULL, tokens_in INTEGER NOT NULL,
    tokens_out INTEGER NOT NULL, cost_usd REAL NOT NULL, seconds REAL NOT NULL, failure TEXT NOT NULL,
    PRIMARY KEY(run, step, number), FOREIGN KEY(run, step) REFERENCES steps(run, number)) WITHOUT ROWID;
)sql"};

constexpr Database::Schema kSchema{0x54574a4c /* "TWJL" */, 1, kSchemaSteps};

std::int64_t now_ms() {
    return std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::system_clock::now().time_since_epoch()).count();
}

// Texts of models and compilers may hold anything; JSON must be dumped all the same.
std::string dumped(const json& value) { return value.dump(-1, ' ', false, json::error_handler_t::replace); }

// A journal may come from anywhere: what is damaged or of another type is as if it were not there.
json parsed(const std::string& text, json otherwise) {
    json value = parse_json(text);
    return value.type() == otherwise.type() ? value : otherwise;
}

// Letters, digits, '-' and '_' of the task's name: an id is typed by people and names a lock file.
std::string id_stem(const std::string& name) {
    std::string stem;
    for (const char c : name.substr(0, 60)) {
        const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '_';
        stem += plain ? c : '-';
    }
    return stem.empty() ? "task" : stem;
}

std::string new_id(const std::string& task_name) {
    static constexpr char letters[] = "abcdefghijkmnpqrstuvwxyz23456789";
    std::random_device random;
    std::string suffix;
    for (int i = 0; i < 4; ++i) suffix += letters[random() % (sizeof letters - 1)];
    return fmt::format("{}-{:%Y%m%d-%H%M%S}-{}", id_stem(task_name), fmt::gmtime(std::chrono::system_clock::now()), suffix);
}

Run run_row(const Statement& row) {
    Run run;
    run.id = row.text(0), run.task_name = row.text(1), run.task_text = row.text(2), run.proposer = row.text(3);
    run.settings = parsed(row.text(4), json::object()), run.facts = parsed(row.text(5), json::object());
    run.state = row.text(6), run.reason = row.text(7);
    run.started_ms = row.integer(8), run.ended_ms = row.integer(9), run.version = row.text(10);
    return run;
}
constexpr const char* kRunColumns =
    "id, task_name, task_text, proposer, settings, facts, runs.state, reason, runs.started_ms, ended_ms, version";

Step step_row(const Statement& row) {
    Step step;
    step.number = static_cast<int>(row.integer(0)), step.parent = static_cast<int>(row.integer(1));
    step.stage = row.text(2), step.technique = row.text(3), step.outcome = row.text(4), step.verdict = row.text(5);
    step.failure_class = row.text(6), step.message = row.text(7), step.source = row.text(8), step.diff = row.text(9);
    step.microseconds = row.optional_real(10), step.speedup = row.optional_real(11), step.roofline_share = row.optional_real(12);
    step.seconds = row.real(13), step.started_ms = row.integer(14);
    step.gates = parsed(row.text(15), json::array()), step.evidence = parsed(row.text(16), json::object());
    step.state = parsed(row.text(17), json::object());
    return step;
}

bool plain_id(const std::string& id) {
    const auto plain = [](char c) {
        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '_';
    };
    return !id.empty() && id.size() <= 120 && std::all_of(id.begin(), id.end(), plain);
}

std::filesystem::path lock_path(const std::filesystem::path& journal, const std::string& run) {
    return journal.string() + "-locks/" + run + ".lock";
}

}  // namespace

std::int64_t Step::tokens() const {
    std::int64_t total = 0;
    for (const Exchange& e : exchanges) total = saturating_sum(total, saturating_sum(e.tokens_in, e.tokens_out));
    return total;
}

double Step::cost_usd() const {
    double total = 0;
    for (const Exchange& e : exchanges) total += e.cost_usd;
    return total;
}

std::filesystem::path Journal::default_path() { return state_folder() / "journal.db"; }

Result<Journal> Journal::open(const std::filesystem::path& path, Database::Mode mode) {
    auto database = Database::open(path, mode, kSchema);
    if (!database) return std::move(database).propagate();
    return Journal(std::move(*database));
}

Result<std::string> Journal::begin(Run run) {
    run.id = new_id(run.task_name);
    auto transaction = Transaction::begin(database_);
    if (!transaction) return std::move(transaction).propagate();
    auto insert = database_.prepare("INSERT INTO runs VALUES(?,?,?,?,?,?,'running','',?,0,?)");
    if (!insert) return std::move(insert).propagate();
    insert->bind(1, run.id).bind(2, printable(run.task_name)).bind(3, run.task_text).bind(4, run.proposer).bind(5, dumped(run.settings));
    insert->bind(6, dumped(run.facts)).bind(7, now_ms()).bind(8, TW_VERSION);
    if (auto done = insert->run(); !done) return std::move(done).propagate();
    if (auto done = transaction->commit(); !done) return std::move(done).propagate();
    return run.id;
}

Result<void> Journal::add(const RunDocument& document) {
    auto transaction = Transaction::begin(database_);
    if (!transaction) return std::move(transaction).propagate();
    const Run& run = document.run;
    auto insert = database_.prepare("INSERT INTO runs VALUES(?,?,?,?,?,?,?,?,?,?,?)");
    if (!insert) return std::move(insert).propagate();
    insert->bind(1, run.id).bind(2, run.task_name).bind(3, run.task_text).bind(4, run.proposer).bind(5, dumped(run.settings));
    // "interrupted" is what a reader makes of "running" without a process.
    insert->bind(6, dumped(run.facts)).bind(7, run.state == "interrupted" ? "running" : run.state).bind(8, run.reason);
    insert->bind(9, run.started_ms).bind(10, run.ended_ms).bind(11, run.version);
    if (auto done = insert->run(); !done) return done;
    for (const Step& step : document.steps)
        if (auto done = insert_step(run.id, step); !done) return done;
    return transaction->commit();
}

Result<void> Journal::append(const std::string& run, Step step) {
    auto transaction = Transaction::begin(database_);
    if (!transaction) return std::move(transaction).propagate();
    {
        auto next = database_.prepare("SELECT (SELECT count(*) FROM runs WHERE id = ?1), (SELECT count(*) FROM steps WHERE run = ?1)");
        if (!next) return std::move(next).propagate();
        auto row = next->bind(1, run).step();
        if (!row) return std::move(row).propagate();
        if (next->integer(0) == 0) return fail(FailureKind::internal, fmt::format("there is no run '{}' in {}", run, path().string()));
        if (next->integer(1) != step.number)
            return fail(FailureKind::internal, fmt::format("step {} of run '{}' comes after {} steps: another process works on this run",
                                                           step.number, run, next->integer(1)));
    }
    if (step.diff.empty() && step.parent >= 0 && !step.source.empty()) {
        auto parent = database_.prepare("SELECT source FROM steps WHERE run = ? AND number = ?");
        if (!parent) return std::move(parent).propagate();
        auto row = parent->bind(1, run).bind(2, step.parent).step();
        if (!row) return std::move(row).propagate();
        if (*row) step.diff = unified_diff(parent->text(0), step.source);
    }
    if (step.started_ms == 0) step.started_ms = now_ms() - static_cast<std::int64_t>(step.seconds * 1000);
    if (auto done = insert_step(run, step); !done) return done;
    return transaction->commit();
}

Result<void> Journal::insert_step(const std::string& run, const Step& step) {
    auto insert = database_.prepare("INSERT INTO steps VALUES(?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)");
    if (!insert) return std::move(insert).propagate();
    insert->bind(1, run).bind(2, step.number).bind(3, step.parent).bind(4, step.stage).bind(5, step.technique).bind(6, step.outcome);
    insert->bind(7, step.verdict).bind(8, step.failure_class).bind(9, step.message).bind(10, step.source).bind(11, step.diff);
    insert->bind(12, step.microseconds).bind(13, step.speedup).bind(14, step.roofline_share).bind(15, step.seconds);
    insert->bind(16, step.started_ms);
    insert->bind(17, dumped(step.gates)).bind(18, dumped(step.evidence)).bind(19, dumped(step.state));
    if (auto done = insert->run(); !done) return done;
    int number = 0;
    for (const Exchange& e : step.exchanges) {
        auto add = database_.prepare("INSERT INTO exchanges VALUES(?,?,?,?,?,?,?,?,?,?,?,?,?)");
        if (!add) return std::move(add).propagate();
        add->bind(1, run)
            .bind(2, step.number)
            .bind(3, number++)
            .bind(4, e.proposer)
            .bind(5, e.model)
            .bind(6, e.prompt_version)
            .bind(7, e.prompt);
        add->bind(8, e.reply).bind(9, e.tokens_in).bind(10, e.tokens_out).bind(11, e.cost_usd).bind(12, e.seconds).bind(13, e.failure);
        if (auto done = add->run(); !done) return done;
    }
    return {};
}

Result<void> Journal::learn(const std::string& run, const json& facts) {
    auto transaction = Transaction::begin(database_);
    if (!transaction) return std::move(transaction).propagate();
    auto known = database_.prepare("SELECT facts FROM runs WHERE id = ?");
    if (!known) return std::move(known).propagate();
    auto row = known->bind(1, run).step();
    if (!row) return std::move(row).propagate();
    if (!*row) return fail(FailureKind::internal, fmt::format("there is no run '{}' in {}", run, path().string()));
    json merged = parsed(known->text(0), json::object());
    merged.merge_patch(facts);
    auto update = database_.prepare("UPDATE runs SET facts = ? WHERE id = ?");
    if (!update) return std::move(update).propagate();
    if (auto done = update->bind(1, dumped(merged)).bind(2, run).run(); !done) return done;
    return transaction->commit();
}

Result<void> Journal::finish(const std::string& run, const std::string& reason) {
    auto update = database_.prepare("UPDATE runs SET state = 'finished', reason = ?, ended_ms = ? WHERE id = ?");
    if (!update) return std::move(update).propagate();
    return update->bind(1, reason).bind(2, now_ms()).bind(3, run).run();
}

Result<void> Journal::reopen(const std::string& run) {
    auto update = database_.prepare("UPDATE runs SET state = 'running', reason = '', ended_ms = 0 WHERE id = ?");
    if (!update) return std::move(update).propagate();
    return update->bind(1, run).run();
}

Result<std::vector<RunSummary>> Journal::runs() {
    auto rows = database_.prepare(fmt::format(
        "SELECT {}, count(number), coalesce(sum(outcome = 'accepted'), 0), min(CASE WHEN outcome = 'accepted' THEN microseconds END), "
        "max(CASE WHEN outcome = 'accepted' THEN speedup END), max(CASE WHEN outcome = 'accepted' THEN roofline_share END), "
        "(SELECT total(max(tokens_in, 0)) + total(max(tokens_out, 0)) FROM exchanges WHERE exchanges.run = runs.id), "  // total: sum fails
                                                                                                                        // where 64 bits
                                                                                                                        // overflow
        "(SELECT total(cost_usd) FROM exchanges WHERE exchanges.run = runs.id) "
        "FROM runs LEFT JOIN steps ON steps.run = runs.id GROUP BY runs.id ORDER BY runs.started_ms DESC, id",
        kRunColumns));
    if (!rows) return std::move(rows).propagate();
    std::vector<RunSummary> out;
    for (;;) {
        auto row = rows->step();
        if (!row) return std::move(row).propagate();
        if (!*row) return out;
        RunSummary summary;
        summary.run = run_row(*rows);
        summary.steps = static_cast<int>(rows->integer(11)), summary.accepted = static_cast<int>(rows->integer(12));
        summary.best_microseconds = rows->optional_real(13), summary.best_speedup = rows->optional_real(14);
        summary.best_roofline_share = rows->optional_real(15);
        summary.tokens = rows->real(16) < 9.2e18 ? static_cast<std::int64_t>(rows->real(16)) : std::numeric_limits<std::int64_t>::max(),
        summary.cost_usd = rows->real(17);
        summary.interrupted = summary.run.state == "running" && !RunLock::is_held(path(), summary.run.id);
        out.push_back(std::move(summary));
    }
}

Result<std::string> Journal::find(const std::string& name) {
    auto rows = database_.prepare(name == "last" ? "SELECT id FROM runs ORDER BY started_ms DESC, id LIMIT 1"
                                                 : "SELECT id FROM runs WHERE substr(id, 1, length(?1)) = ?1 ORDER BY id = ?1 DESC, id");
    if (!rows) return std::move(rows).propagate();
    if (name != "last") rows->bind(1, name);
    std::vector<std::string> ids;
    for (;;) {
        auto row = rows->step();
        if (!row) return std::move(row).propagate();
        if (!*row) break;
        ids.push_back(rows->text(0));
        if (ids.front() == name) return name;
    }
    if (ids.size() == 1) return ids.front();
    if (ids.empty())
        return fail(FailureKind::bad_input, fmt::format("there is no run '{}' in {}", printable(name), path().string()),
                    "`tilewright runs` lists them");
    return fail(FailureKind::bad_input,
                fmt::format("{} runs begin with '{}', for example {} and {}", ids.size(), printable(name), ids[0], ids[1]),
                "give more of the id");
}

Result<std::vector<Exchange>> Journal::exchanges(const std::string& run, int step) {
    auto rows = database_.prepare(
        "SELECT proposer, model, prompt_version, prompt, reply, tokens_in, tokens_out, cost_usd, seconds, failure "
        "FROM exchanges WHERE run = ? AND step = ? ORDER BY number");
    if (!rows) return std::move(rows).propagate();
    rows->bind(1, run).bind(2, step);
    std::vector<Exchange> out;
    for (;;) {
        auto row = rows->step();
        if (!row) return std::move(row).propagate();
        if (!*row) return out;
        out.push_back({rows->text(0), rows->text(1), rows->text(2), rows->text(3), rows->text(4), rows->integer(5), rows->integer(6),
                       rows->real(7), rows->real(8), rows->text(9)});
    }
}

Result<RunDocument> Journal::read(const std::string& run) {
    RunDocument document;
    {
        auto row = database_.prepare(fmt::format("SELECT {} FROM runs WHERE id = ?", kRunColumns));
        if (!row) return std::move(row).propagate();
        auto found = row->bind(1, run).step();
        if (!found) return std::move(found).propagate();
        if (!*found)
            return fail(FailureKind::bad_input, fmt::format("there is no run '{}' in {}", printable(run), path().string()),
                        "`tilewright runs` lists them");
        document.run = run_row(*row);
        if (document.run.state == "running" && !RunLock::is_held(path(), run)) document.run.state = "interrupted";
    }
    auto rows = database_.prepare(
        "SELECT number, parent, stage, technique, outcome, verdict, failure_class, message, source, diff, microseconds, "
        "speedup, roofline_share, seconds, started_ms, gates, evidence, state FROM steps WHERE run = ? ORDER BY number");
    if (!rows) return std::move(rows).propagate();
    rows->bind(1, run);
    for (;;) {
        auto row = rows->step();
        if (!row) return std::move(row).propagate();
        if (!*row) return document;
        Step step = step_row(*rows);
        const auto here = static_cast<std::int64_t>(document.steps.size());
        if (rows->integer(0) != here || rows->integer(1) < -1 || rows->integer(1) >= here)
            return fail(FailureKind::bad_input, fmt::format("run '{}' in {} is damaged: its step {} has number {} and parent {}",
                                                            printable(run), path().string(), here, rows->integer(0), rows->integer(1)));
        auto spoken = exchanges(run, step.number);
        if (!spoken) return std::move(spoken).propagate();
        step.exchanges = std::move(*spoken);
        document.steps.push_back(std::move(step));
    }
}

Result<RunLock> RunLock::take(const Journal& journal, const std::string& run) {
    // Files are named after the id; one of a foreign journal could name a place elsewhere.
    if (!plain_id(run))
        return fail(FailureKind::bad_input, fmt::format("'{}' is no id of a run that Tilewright made; it is not worked on", printable(run)),
                    "`tilewright show` shows what it holds");
    const auto path = lock_path(journal.path(), run);
    std::error_code error;
    std::filesystem::create_directories(path.parent_path(), error);
    const int file = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (file < 0)
        return fail(FailureKind::io_error, fmt::format("cannot open {} ({})", path.string(), std::strerror(errno)),
                    "choose another folder with TILEWRIGHT_STATE=FOLDER or --journal FILE");
    RunLock lock(file);
    // A process that was killed just now may have a worker that dies a moment after it and shares the lock until then.
    for (int i = 0; i < 50; ++i) {
        if (::flock(file, LOCK_EX | LOCK_NB) == 0) return lock;
        ::usleep(20'000);
    }
    return fail(FailureKind::bad_input, fmt::format("run {} is being worked on by another process", run),
                "wait for it, or stop it; `tilewright runs` shows what is running");
}

bool RunLock::is_held(const std::filesystem::path& journal, const std::string& run) {
    if (!plain_id(run)) return false;
    const int file = ::open(lock_path(journal, run).c_str(), O_RDONLY | O_CLOEXEC);
    if (file < 0) return false;
    const bool held = ::flock(file, LOCK_SH | LOCK_NB) != 0;
    ::close(file);
    return held;
}

RunLock::~RunLock() {
    if (file_ >= 0) ::close(file_);
}

}  // namespace tw::plan
