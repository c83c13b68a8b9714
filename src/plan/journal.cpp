#include "plan/journal.h"

#include <fcntl.h>
#include <fmt/chrono.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <random>

#include "base/diagnostic.h"
#include "base/text.h"
#include "plan/text_diff.h"

namespace tw::plan {
namespace {

using nlohmann::json;

// `record` is the step's JSON without the four texts that have columns of their own.
const char* const kSchemaSteps[] = {R"sql(
CREATE TABLE runs(
    id TEXT PRIMARY KEY, task_name TEXT NOT NULL, task_text TEXT NOT NULL, proposer TEXT NOT NULL, options TEXT NOT NULL,
    version TEXT NOT NULL, machine TEXT NOT NULL, started TEXT NOT NULL, state TEXT NOT NULL, summary TEXT NOT NULL,
    began_ms INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE steps(
    run TEXT NOT NULL REFERENCES runs(id), number INTEGER NOT NULL, accepted INTEGER NOT NULL, microseconds REAL, roofline_share REAL,
    tokens INTEGER NOT NULL, dollars REAL NOT NULL, source TEXT NOT NULL, diff TEXT NOT NULL, prompt TEXT NOT NULL, reply TEXT NOT NULL,
    record TEXT NOT NULL, PRIMARY KEY(run, number)) WITHOUT ROWID;
)sql"};

constexpr Database::Schema kSchema{0x54574a4c /* "TWJL" */, 1, kSchemaSteps};

std::int64_t now_ms() {
    return std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::system_clock::now().time_since_epoch()).count();
}

// Texts of models and compilers may hold anything; JSON must be dumped all the same.
std::string dumped(const json& value) { return value.dump(-1, ' ', false, json::error_handler_t::replace); }

json parsed(const std::string& text, json otherwise) {
    json value = json::parse(text, nullptr, false);
    return value.is_discarded() ? otherwise : value;
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

RunHeader header_row(const Statement& row) {
    RunHeader header;
    header.id = row.text(0), header.task_name = row.text(1), header.task_text = row.text(2), header.proposer = row.text(3);
    header.options = parsed(row.text(4), json::object());
    header.version = row.text(5), header.machine = row.text(6), header.started = row.text(7);
    return header;
}
constexpr const char* kHeaderColumns = "id, task_name, task_text, proposer, options, version, machine, started";

RunSummary summary_from(const std::string& text) {
    const json j = parsed(text, json::object());
    RunSummary summary;
    if (!j.is_object()) return summary;
    const auto text_at = [&](const char* key) { return j.contains(key) && j[key].is_string() ? j[key].get<std::string>() : std::string(); };
    const auto integer_at = [&](const char* key) { return j.contains(key) && j[key].is_number_integer() ? j[key].get<int>() : 0; };
    summary.outcome = text_at("outcome"), summary.statement = text_at("statement");
    summary.candidates = integer_at("candidates"), summary.best_step = integer_at("best_step");
    if (j.contains("figures")) summary.figures = j["figures"];
    return summary;
}

std::string summary_text(const RunSummary& s) {
    return dumped({{"outcome", s.outcome}, {"candidates", s.candidates}, {"best_step", s.best_step}, {"statement", s.statement}, {"figures", s.figures}});
}

std::string utc_now() { return fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(std::chrono::system_clock::now())); }

std::filesystem::path lock_path(const std::filesystem::path& journal, const std::string& run) {
    return journal.string() + "-locks/" + run + ".lock";
}

}  // namespace

int parent_of(const std::vector<Step>& steps, int i) {
    const Step& step = steps[static_cast<std::size_t>(i)];
    if (step.attempt > 0 && i > 0 && !steps[static_cast<std::size_t>(i - 1)].source.empty()) return i - 1;
    for (int p = i - 1; p >= 0; --p)
        if (steps[static_cast<std::size_t>(p)].accepted) return p;
    return -1;
}

int best_of(const std::vector<Step>& steps) {
    for (int i = static_cast<int>(steps.size()) - 1; i >= 0; --i)
        if (steps[static_cast<std::size_t>(i)].accepted) return i;
    return -1;
}

std::string_view verdict_of(const Step& step) {
    if (step.failure == FailureClass::invariant || step.failure == FailureClass::race) return "violated";
    if (step.failure == FailureClass::unproved) return "not_proved";
    if (step.proof.obligations == 0) return "";
    return step.proof.proved == step.proof.obligations ? "proved" : "not_proved";
}

std::filesystem::path Journal::default_path() { return state_folder() / "journal.db"; }

Result<Journal> Journal::open(const std::filesystem::path& path, Database::Mode mode) {
    auto database = Database::open(path, mode, kSchema);
    if (!database) return std::move(database).propagate();
    return Journal(std::move(*database));
}

Result<void> Journal::begin(RunHeader& header) {
    header.id = new_id(header.task_name);
    if (header.started.empty()) header.started = utc_now();
    if (header.version.empty()) header.version = TW_VERSION;
    auto insert = database_.prepare("INSERT INTO runs VALUES(?,?,?,?,?,?,?,?,'running','{}',?)");
    if (!insert) return std::move(insert).propagate();
    insert->bind(1, header.id).bind(2, printable(header.task_name)).bind(3, header.task_text).bind(4, header.proposer).bind(5, dumped(header.options));
    insert->bind(6, header.version).bind(7, header.machine).bind(8, header.started).bind(9, now_ms());
    return insert->run();
}

Result<void> Journal::append(const std::string& run, const Step& step) {
    auto transaction = Transaction::begin(database_);
    if (!transaction) return std::move(transaction).propagate();
    {
        auto next = database_.prepare("SELECT (SELECT count(*) FROM runs WHERE id = ?1), (SELECT count(*) FROM steps WHERE run = ?1)");
        if (!next) return std::move(next).propagate();
        auto row = next->bind(1, run).step();
        if (!row) return std::move(row).propagate();
        if (next->integer(0) == 0) return fail(FailureKind::internal, fmt::format("there is no run '{}' in {}", run, path().string()));
        if (next->integer(1) + 1 != step.number)
            return fail(FailureKind::internal, fmt::format("step {} of run '{}' comes after {} steps: another process works on this run", step.number, run, next->integer(1)));
    }
    std::string diff;
    {
        // The parent: see parent_of.
        auto parent = database_.prepare("SELECT source FROM steps WHERE run = ?1 AND number < ?2 AND (accepted OR (?3 AND number = ?2 - 1 AND source != '')) ORDER BY number DESC LIMIT 1");
        if (!parent) return std::move(parent).propagate();
        auto row = parent->bind(1, run).bind(2, step.number).bind(3, step.attempt > 0 ? 1 : 0).step();
        if (!row) return std::move(row).propagate();
        if (*row && !step.source.empty()) diff = unified_diff(parent->text(0), step.source);
    }
    Step rest = step;
    rest.source.clear(), rest.usage.prompt.clear(), rest.usage.reply.clear();
    auto insert = database_.prepare("INSERT INTO steps VALUES(?,?,?,?,?,?,?,?,?,?,?,?)");
    if (!insert) return std::move(insert).propagate();
    const auto measured = [&](double value) { return step.timing.measured ? std::optional<double>(value) : std::nullopt; };
    insert->bind(1, run).bind(2, step.number).bind(3, step.accepted ? 1 : 0).bind(4, measured(step.timing.microseconds)).bind(5, measured(step.timing.roofline_share));
    insert->bind(6, step.usage.input_tokens + step.usage.output_tokens).bind(7, step.usage.dollars).bind(8, step.source).bind(9, diff);
    insert->bind(10, step.usage.prompt).bind(11, step.usage.reply).bind(12, dumped(to_json(rest)));
    if (auto done = insert->run(); !done) return done;
    return transaction->commit();
}

Result<void> Journal::finish(const std::string& run, const RunSummary& summary) {
    auto update = database_.prepare("UPDATE runs SET state = 'finished', summary = ? WHERE id = ?");
    if (!update) return std::move(update).propagate();
    return update->bind(1, summary_text(summary)).bind(2, run).run();
}

Result<void> Journal::reopen(const std::string& run) {
    auto update = database_.prepare("UPDATE runs SET state = 'running', summary = '{}' WHERE id = ?");
    if (!update) return std::move(update).propagate();
    return update->bind(1, run).run();
}

Result<std::vector<RunEntry>> Journal::runs() {
    auto rows = database_.prepare(fmt::format(
        "SELECT {}, state, summary, count(number), coalesce(sum(accepted), 0), min(CASE WHEN accepted THEN microseconds END), "
        "max(CASE WHEN accepted THEN roofline_share END), coalesce(sum(tokens), 0), coalesce(sum(dollars), 0), "
        "(SELECT microseconds FROM steps AS f WHERE f.run = runs.id AND f.accepted ORDER BY number LIMIT 1) "
        "FROM runs LEFT JOIN steps ON steps.run = runs.id GROUP BY runs.id ORDER BY began_ms DESC, id", kHeaderColumns));
    if (!rows) return std::move(rows).propagate();
    std::vector<RunEntry> out;
    for (;;) {
        auto row = rows->step();
        if (!row) return std::move(row).propagate();
        if (!*row) return out;
        RunEntry entry;
        entry.header = header_row(*rows);
        entry.state = rows->text(8), entry.outcome = summary_from(rows->text(9)).outcome;
        entry.steps = static_cast<int>(rows->integer(10)), entry.accepted = static_cast<int>(rows->integer(11));
        entry.best_microseconds = rows->optional_real(12), entry.best_roofline_share = rows->optional_real(13);
        entry.tokens = rows->integer(14), entry.dollars = rows->real(15), entry.first_microseconds = rows->optional_real(16);
        entry.interrupted = entry.state == "running" && !RunLock::is_held(path(), entry.header.id);
        out.push_back(std::move(entry));
    }
}

Result<std::string> Journal::find(const std::string& name) {
    auto rows = database_.prepare(name == "last" ? "SELECT id FROM runs ORDER BY began_ms DESC, id LIMIT 1"
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
    if (ids.empty()) return fail(FailureKind::bad_input, fmt::format("there is no run '{}' in {}", printable(name), path().string()), "`tilewright runs` lists them");
    return fail(FailureKind::bad_input, fmt::format("{} runs begin with '{}', for example {} and {}", ids.size(), printable(name), ids[0], ids[1]), "give more of the id");
}

Result<RunDocument> Journal::read(const std::string& run) {
    RunDocument document;
    {
        auto row = database_.prepare(fmt::format("SELECT {}, state, summary FROM runs WHERE id = ?", kHeaderColumns));
        if (!row) return std::move(row).propagate();
        auto found = row->bind(1, run).step();
        if (!found) return std::move(found).propagate();
        if (!*found) return fail(FailureKind::bad_input, fmt::format("there is no run '{}' in {}", printable(run), path().string()), "`tilewright runs` lists them");
        document.header = header_row(*row);
        document.state = row->text(8), document.summary = summary_from(row->text(9));
    }
    auto rows = database_.prepare("SELECT source, diff, prompt, reply, record FROM steps WHERE run = ? ORDER BY number");
    if (!rows) return std::move(rows).propagate();
    rows->bind(1, run);
    for (;;) {
        auto row = rows->step();
        if (!row) return std::move(row).propagate();
        if (!*row) return document;
        Step step;
        if (!from_json(parsed(rows->text(4), json()), step) || step.number != static_cast<int>(document.steps.size()) + 1)
            return fail(FailureKind::io_error, fmt::format("step {} of run '{}' in {} is damaged", document.steps.size() + 1, run, path().string()),
                        fmt::format("move the journal away and start anew: mv {0} {0}.damaged", path().string()));
        step.source = rows->text(0), step.usage.prompt = rows->text(2), step.usage.reply = rows->text(3);
        document.steps.push_back(std::move(step));
        document.diffs.push_back(rows->text(1));
    }
}

Result<void> JournalRecorder::resume(const std::string& run) {
    auto lock = RunLock::take(journal_, run);
    if (!lock) return std::move(lock).propagate();
    lock_.emplace(std::move(*lock));
    run_ = run;
    return journal_.reopen(run);
}

std::string JournalRecorder::begin(RunHeader& header) {
    if (auto begun = journal_.begin(header); !begun) return begun.error().text();
    run_ = header.id;
    auto lock = RunLock::take(journal_, run_);
    if (!lock) return lock.error().text();
    lock_.emplace(std::move(*lock));
    return {};
}

std::string JournalRecorder::flush() {
    while (!waiting_.empty()) {
        if (auto done = journal_.append(run_, waiting_.front()); !done) return done.error().text();
        waiting_.erase(waiting_.begin());
    }
    return {};
}

std::string JournalRecorder::record(const Step& step) {
    waiting_.push_back(step);
    return flush();
}

std::string JournalRecorder::end(const RunSummary& summary) {
    const std::string unwritten = flush();
    auto done = journal_.finish(run_, summary);
    lock_.reset();
    return !unwritten.empty() ? unwritten : done ? std::string() : done.error().text();
}

Result<RunLock> RunLock::take(const Journal& journal, const std::string& run) {
    const auto path = lock_path(journal.path(), run);
    std::error_code error;
    std::filesystem::create_directories(path.parent_path(), error);
    const int file = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
    if (file < 0) return fail(FailureKind::io_error, fmt::format("cannot open {} ({})", path.string(), std::strerror(errno)), "choose another folder with TILEWRIGHT_STATE=FOLDER or --journal FILE");
    RunLock lock(file);
    if (::flock(file, LOCK_EX | LOCK_NB) == 0) return lock;
    return fail(FailureKind::bad_input, fmt::format("run {} is being worked on by another process", run), "wait for it, or stop it; `tilewright runs` shows what is running");
}

bool RunLock::is_held(const std::filesystem::path& journal, const std::string& run) {
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
