// The static gates of a candidate in CuTe: what the text may hold, its launches, our checks of CuTe text, the compiler.
//
// CuTe text is never proved. Where it is, letter for letter, what our printer makes of a tile kernel (the built-in proposer's are), the
// gate `verify` judges that kernel, and the evidence says so; the verdict on the text stays "not_proved".
#include <future>

#include <fmt/format.h>

#include "base/text.h"
#include "cute/check.h"
#include "cute/compile_errors.h"
#include "emulate/trial.h"
#include "plan/builtin/skeleton.h"
#include "plan/cute_gates.h"
#include "plan/feedback.h"
#include "plan/gate_sequence.h"
#include "runtime/cute_candidate.h"
#include "runtime/cute_units.h"
#include "tasks/task.h"

namespace tw::plan {
namespace {

using nlohmann::json;

std::string source_line(const std::string& source, int line) {
    const auto lines = split_lines(source);
    if (line < 1 || static_cast<std::size_t>(line) > lines.size()) return {};
    return fmt::format("    {:>4} | {}\n", line, printable(std::string(lines[static_cast<std::size_t>(line) - 1].substr(0, 300))));
}

class CuteJudge : private GateSequence {
public:
    CuteJudge(const tasks::Task& task, const std::string& source, const GateOptions& options, const TileJudge& judge_tile)
        : GateSequence(task, source, options), judge_tile_(judge_tile) {}

    Judgement run() {
        j_.verdict = "not_proved";
        if (!gate("parse", [&] { return parse(); }) || !gate("specification", [&] { return specification(); })) return std::move(j_);
        // The compiler takes seconds: it runs beside the rest.
        if (options_.compile) {
            build_.emplace(source_, task_.name + ".cu", task_.target, made_.entries);
            built_ = std::async(std::launch::async, [this] { return build_->finish(); });
        }
        if (gate("check", [&] { return check(); }) && gate("verify", [&] { return verify(); }) && options_.compile)
            gate("compile", [&] { return compile(); });
        if (built_.valid()) built_.wait();
        return std::move(j_);
    }

private:
    using GateSequence::refuse;
    Answer refuse(FailureClass failure, const runtime::CuteProblem& p) {
        std::string text = fmt::format("Line {}: {}\n{}", p.line, p.message, source_line(source_, p.line));
        if (!p.hint.empty()) text += fmt::format("Hint: {}\n", p.hint);
        j_.findings["diagnostics"] = json::array({{{"line", p.line}, {"message", p.message}, {"hint", p.hint}}});
        return refuse(failure, text, p.message);
    }

    Answer parse() {
        if (const auto problem = runtime::cute_text_problem(source_)) return refuse(FailureClass::syntax, *problem);
        auto launches = runtime::cute_launches(source_);
        if (!launches) return refuse(FailureClass::syntax, launches.error());
        launches_ = *std::move(launches);
        auto program = runtime::cute_program(source_);
        if (!program) return refuse(FailureClass::syntax, program.error());
        program_ = *std::move(program);
        return Answer::pass;
    }

    Answer specification() {
        auto made = runtime::cute_module(tasks::signature_source(task_), launches_, program_);
        if (!made) return refuse(FailureClass::specification, made.error());
        made_ = *std::move(made);
        std::vector<tasks::Sizes> shapes = task_.held_out;
        shapes.insert(shapes.begin(), tasks::Sizes{});
        for (const tasks::Sizes& shape : shapes) {
            if (taken(shape)) continue;
            const std::string what =
                shape.empty() ? "no launch accepts the task's sizes" : "no launch accepts one of the task's held-out shapes";
            return refuse(FailureClass::specification, what + "\n", what);
        }
        for (const ir::Kernel& k : made_.module.kernels) {
            j_.threads = std::max(j_.threads, 32 * k.warps);
            j_.shared_bytes = std::max(j_.shared_bytes, k.shared_bytes);
        }
        return Answer::pass;
    }

    // Some variant of the kernel, or of each kernel that the program launches, takes the shape.
    bool taken(const tasks::Sizes& shape) const {
        const std::vector<ir::Kernel>& kernels = made_.module.kernels;
        if (made_.module.programs.empty())
            return std::any_of(kernels.begin(), kernels.end(), [&](const ir::Kernel& k) { return accepts(k, sizes_for(k, shape)); });
        const ir::Program& p = made_.module.programs.front();
        ir::Kernel whole;
        whole.sizes = p.sizes;
        const std::vector<std::int64_t> sizes = sizes_for(whole, shape);
        return std::all_of(p.launches.begin(), p.launches.end(), [&](const ir::Launch& l) {
            std::vector<std::int64_t> own;
            for (const ir::Expr& e : l.sizes) own.push_back(emulate::size_value(e, sizes).value_or(0));
            const std::string& name = kernels[static_cast<std::size_t>(l.kernel)].name;
            return std::any_of(kernels.begin(), kernels.end(), [&](const ir::Kernel& k) { return k.name == name && accepts(k, own); });
        });
    }

    // What is read of the text, by our own layout algebra and order of events.
    Answer check() {
        SourceMap sources;
        DiagnosticSink sink;
        const FileId id = sources.add(task_.name + ".cu", source_);
        const cute::Report report = cute::check(sources, id, sink);
        j_.findings["covered"] = report.covered.size(), j_.findings["not_analysed"] = report.not_analysed.size();
        if (!sink.has_errors()) {
            detail_ = fmt::format("{} questions answered, {} things not analysed", report.checks, report.not_analysed.size());
            return Answer::pass;
        }
        json all = json::array();
        bool order = false;
        for (const Diagnostic& d : sink.diagnostics()) {
            const int code = static_cast<int>(d.code);
            order |= code >= 4608 && code <= 4613;
            if (all.size() < 6) all.push_back(to_json(d, sources));
        }
        j_.findings["diagnostics"] = all;
        return refuse(order ? FailureClass::race : FailureClass::type, feedback_of(sink, sources), sink.in_source_order().front()->message);
    }

    // The tile kernel that the text is printed from, where it is.
    Answer verify() {
        const auto sketch = builtin::find_sketch(source_);
        const auto kernel = sketch ? builtin::write_kernel(task_, *sketch) : Expected<std::string, std::string>(Unexpected{std::string()});
        const auto text =
            kernel ? builtin::cute_text(task_, *sketch, *kernel) : Expected<std::string, std::string>(Unexpected{std::string()});
        if (!text || *text != source_) {
            detail_ = "CuTe text is not proved";
            return Answer::skip;
        }
        const Judgement tile = judge_tile_(*kernel);
        if (tile.failure != FailureClass::none) {
            j_.findings = tile.findings;
            return refuse(tile.failure, "The tile kernel that this text is printed from was refused:\n" + tile.feedback, tile.message);
        }
        j_.obligations = tile.obligations, j_.proved = tile.proved, j_.expectations = tile.expectations;
        j_.used = tile.used, j_.proof = tile.proof;
        j_.proof["printed_from"] = "a tile kernel with a complete proof; the CuTe text itself is not proved";
        detail_ = fmt::format("the tile kernel it is printed from: {} assertions", tile.obligations);
        return Answer::pass;
    }

    Answer compile() {
        const auto made = built_.get();
        if (!made) {
            if (made.error().kind == runtime::FailureKind::missing_library) {
                detail_ = "not compiled: " + made.error().message;
                return Answer::skip;
            }
            if (made.error().kind == runtime::FailureKind::compile_error) return template_errors(made.error().message);
            return refuse(FailureClass::resource, made.error().message + "\n", "its machine code is not safe to run");
        }
        double seconds = 0;
        bool serialised = false, from_cache = true;
        for (std::size_t i = 0; i < made_.entries.size(); ++i) {
            const runtime::CompiledKernels& unit = (*made)[i];
            if (const auto problem = runtime::parameter_problem(made_.module.kernels[i], made_.entries[i], unit.cubin))
                return refuse(FailureClass::specification, *problem + "\n", *problem);
            for (const runtime::KernelResources& r : unit.report.kernels) {
                if (!r.is_entry) continue;
                j_.resources_known = true;
                j_.registers = std::max(j_.registers, r.registers);
                j_.spill_bytes = std::max(j_.spill_bytes, r.spill_store_bytes + r.spill_load_bytes);
            }
            serialised |= unit.report.has(runtime::RemarkKind::wgmma_serialized);
            seconds += unit.seconds, from_cache &= unit.from_cache;
        }
        if (serialised)
            return refuse(FailureClass::resource,
                          "The compiler serialises the wgmma: an accumulator is touched while a group is in flight, or the registers do "
                          "not suffice.\n",
                          "wgmma is serialised");
        detail_ = fmt::format("{}{} registers, {} bytes spilled, {} bytes shared; {} took {:.1f} s", from_cache ? "from the cache: " : "",
                              j_.registers, j_.spill_bytes, j_.shared_bytes, made->front().compiler, seconds);
        if (j_.spill_bytes > 256)
            return refuse(FailureClass::resource, detail_ + ": the tile held by each thread is too large.\n", detail_);
        return Answer::pass;
    }

    // A mistake in CuTe is a page of types: the assertion, the line of the candidate, the layouts.
    Answer template_errors(const std::string& log) {
        const std::vector<cute::CompileError> errors = cute::compile_errors(log, 4);
        if (errors.empty()) return refuse(FailureClass::type, log.substr(0, 2000) + "\n", "the compiler refuses it");
        std::string text;
        json all = json::array();
        for (const cute::CompileError& e : errors) {
            const std::string what = printable(e.assertion.empty() ? e.message : e.assertion);
            text += fmt::format("{}:{}: does not compile: {}\n", printable(e.file), e.line, what);
            if (e.file.find(task_.name + ".cu") != std::string::npos) text += source_line(source_, e.line);
            for (const std::string& type : e.types) text += fmt::format("    with {}\n", printable(type));
            if (!e.hint.empty()) text += fmt::format("    hint: {}\n", e.hint);
            all.push_back(
                {{"line", e.line}, {"message", what}, {"assertion", printable(e.assertion)}, {"types", e.types}, {"hint", e.hint}});
        }
        j_.findings["compile_errors"] = all;
        const cute::CompileError& first = errors.front();
        return refuse(
            FailureClass::type, text,
            fmt::format("line {} does not compile: {}", first.line, printable(first.assertion.empty() ? first.message : first.assertion)));
    }

    const TileJudge& judge_tile_;
    std::vector<runtime::CuteLaunch> launches_;
    std::optional<runtime::CuteProgram> program_;
    runtime::CuteModule made_;
    std::optional<runtime::CuteBuild> build_;
    std::future<runtime::Result<std::vector<runtime::CompiledKernels>>> built_;  // last: it reads the others
};

}  // namespace

Judgement judge_cute(const tasks::Task& task, const std::string& source, const GateOptions& options, const TileJudge& judge_tile) {
    return CuteJudge(task, source, options, judge_tile).run();
}

}  // namespace tw::plan
