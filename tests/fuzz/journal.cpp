// Journals: an exported run (JSON), or the database itself. Whatever comes out can be shown, made into a page and into evidence.
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string>

#include "base/input.h"
#include "plan/journal.h"
#include "plan/replay.h"
#include "report/evidence.h"
#include "report/page.h"
#include "report/run_text.h"

namespace {

void show(const tw::plan::RunDocument& document) {
    using namespace tw;
    (void)report::run_text(document);
    (void)report::run_page(document);
    for (const plan::Step& step : document.steps) (void)report::step_text(step);
    if (const auto certificate = report::evidence_certificate(document, -1)) (void)report::certified_kernel(*certificate);
    const auto again = plan::run_from_json(plan::to_json(document, true));
    (void)again;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace tw;
    const std::string text(reinterpret_cast<const char*>(data), size);
    if (text.rfind("SQLite format 3", 0) != 0) {
        const nlohmann::json parsed = parse_json(text);
        (void)report::certified_kernel(parsed);
        if (const auto document = plan::run_from_json(parsed)) show(*document);
        return 0;
    }
    static const std::filesystem::path path =
        std::filesystem::temp_directory_path() / ("tilewright-fuzz-journal-" + std::to_string(::getpid()) + ".db");
    std::ofstream(path, std::ios::binary) << text;
    if (auto journal = plan::Journal::open(path, plan::Database::Mode::read)) {
        if (const auto runs = journal->runs()) (void)report::runs_text(*runs);
        if (const auto id = journal->find("last"))
            if (const auto document = journal->read(*id)) show(*document);
    }
    std::error_code ignored;
    std::filesystem::remove(path, ignored);
    return 0;
}
