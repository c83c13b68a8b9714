// `tilewright attach FOLDER`: watch units that an engine works on, start again what was lost, or cancel them.
#include <fmt/format.h>

#include <iostream>
#include <memory>

#include "base/diagnostic.h"
#include "cli/command.h"
#include "cli/engine_options.h"
#include "cli/terminal.h"

namespace tw::cli {
namespace attach_command {

struct Options {
    units::EngineOptions engine;
    bool once = false, cancel = false, as_json = false;
};

int run(const Options& o) {
    const auto manifest = units::read_manifest(o.engine.folder);
    if (!manifest) return complain(exit_bad_input, manifest.error().message, manifest.error().fix);
    units::EngineOptions engine = o.engine;
    engine.seconds = manifest->seconds;
    if (o.cancel) {
        if (engine.name != "slurm" && engine.name != "ray")
            return complain(exit_bad_input, "--cancel needs --engine slurm or ray", "units of `local` end with their driver");
        auto made = units::make_engine(engine, *manifest);
        if (!made) return complain(exit_bad_input, made.error().message, made.error().fix);
        fmt::print("cancelled: {}\n", (*made)->about());
        (*made)->cancel();
        return exit_fine;
    }
    const auto said = [&](int status) {
        const auto p = units::look(engine.folder, *manifest);
        if (!p) return complain(exit_bad_input, p.error().message, p.error().fix);
        if (o.as_json) {
            print_json(units::to_json(*p));
            return status;
        }
        fmt::print("{}\n{} of {} units done, {} running, {} given up, {} repeated\n", printable(manifest->command), p->done, p->units,
                   p->running, p->failed, p->repeated);
        for (const std::string& f : p->failures) fmt::print("given up: {}\n", f);
        if (p->done + p->failed == p->units) fmt::print("`tilewright merge {} -o FILE` makes the table\n", engine.folder);
        return status;
    };
    if (o.once) return said(exit_fine);
    const int status = watch_units(engine, *manifest, [] { return exit_fine; });
    return status == 130 || status == exit_bad_input ? status : said(status);
}

}  // namespace attach_command

std::function<int()> declare_attach(CLI::App& app) {
    using namespace attach_command;
    auto o = std::make_shared<Options>();
    declare_engine(app, o->engine);
    app.add_option("units", o->engine.folder, "a folder that a command with --engine has made")->required();
    app.add_flag("--once", o->once, "say how far it is, and end");
    app.add_flag("--cancel", o->cancel, "take back what is queued and running; what is done stays");
    app.add_flag("--allow-python", o->engine.perform.allow_python, "the folder's Python programs are yours, and may be started again");
    app.add_option("--proposer", o->engine.perform.proposer, "of units of `optimize`: instead of their own, may be a program");
    app.add_flag("--json", o->as_json, "the state at the end as JSON");
    app.footer(
        "Without --engine it only watches: a folder alone starts nothing. With the options of the first command, units whose worker was "
        "lost are started\n"
        "again, each at most once.\n"
        "Exit status: 0 all units are done, 2 bad input, 3 some were given up, 130 Ctrl-C (detached).\n"
        "Example: tilewright attach tilewright-units/crosscheck-3fa8 --engine slurm --partition gpu");
    return [o] { return run(*o); };
}

}  // namespace tw::cli
