#include "runtime/profile.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>

#include "base/input.h"
#include "base/text.h"
#include "codegen/emit.h"
#include "lang/bundle.h"
#include "runtime/compile.h"
#include "runtime/evaluate.h"
#include "runtime/launch.h"
#include "runtime/session.h"
#include "runtime/shared_library.h"
#include "runtime/temporary_file.h"
#include "runtime/worker.h"

namespace tw::runtime {
namespace {

using nlohmann::json;

// The last line of the worker's answer that is evidence.
json evidence_in(const std::string& answer) {
    json found;
    for (const auto line : split_lines(answer)) {
        json said = parse_json(line);
        if (said.is_object() && said.contains("status")) found = std::move(said);
    }
    return found;
}

std::string end_of(const std::string& text, std::size_t bytes) { return text.size() > bytes ? text.substr(text.size() - bytes) : text; }

}  // namespace

Result<std::string> disassemble(const std::string& cubin) {
    const TemporaryFile file("cubin");
    if (file.path.empty() || !write_file_atomically(file.path, cubin)) return fail(FailureKind::io_error, "no temporary file can be made");
    std::string why = "neither nvdisasm nor cuobjdump was found";
    for (const auto& [program, option] : {std::pair<const char*, const char*>{"nvdisasm", "-c"}, {"cuobjdump", "-sass"}}) {
        const auto path = find_cuda_program(program);
        if (path.empty()) continue;
        WorkerLimits limits;
        limits.box = box_for_gpu();
        const auto ran = run_program_in_worker({path.string(), option, file.path}, limits);
        if (ran.end == WorkerEnd::finished && !ran.answer.empty()) return ran.answer;
        why = fmt::format("{} {}: {}", path.string(), ran.sentence(), std::string(trim(ran.words.substr(0, 200))));
    }
    return fail(FailureKind::missing_library, "no disassembler: " + why,
                "run scripts/setup.sh, or `pip install nvidia-cuda-nvdisasm`, or put the CUDA toolkit's bin folder on PATH");
}

const char* instruction_kind(std::string_view opcode) {
    const auto base = opcode.substr(0, opcode.find('.'));
    const auto is = [&](std::initializer_list<std::string_view> names) {
        return std::find(names.begin(), names.end(), base) != names.end();
    };
    if (base.find("GMMA") != std::string_view::npos || base.find("MMA") != std::string_view::npos) return "tensor";
    if (is({"UTMALDG", "UTMASTG", "UTMAREDG", "UTMAPF", "UBLKCP", "UBLKRED", "LDGSTS", "UTMACMDFLUSH", "UTMACCTL"})) return "async copy";
    if (is({"LDG", "LD", "LDC", "ULDC", "LDCU"})) return base == "LDG" || base == "LD" ? "global load" : "constant load";
    if (is({"STG", "ST"})) return "global store";
    if (is({"LDS", "LDSM"})) return "shared load";
    if (is({"STS", "STSM"})) return "shared store";
    if (is({"LDL", "STL"})) return "local memory";
    if (is({"ATOM", "ATOMG", "ATOMS", "RED", "REDG"})) return "atomic";
    if (is({"BAR", "SYNCS", "WARPSYNC", "DEPBAR", "LDGDEPBAR", "MEMBAR", "FENCE", "UCGABAR_ARV", "UCGABAR_WAIT", "WARPGROUP", "ERRBAR",
            "CCTL", "B2R", "ARRIVES", "ACQBULK", "WARPGROUPSET"}))
        return "barrier";
    if (is({"BRA", "EXIT", "CALL", "RET", "BSSY", "BSYNC", "BRX", "JMP", "NOP", "BREAK", "YIELD", "NANOSLEEP", "USETMAXREG", "ELECT",
            "KILL", "BPT"}))
        return "control";
    if (is({"MUFU"})) return "special function";
    if (is({"SHFL", "VOTE", "REDUX", "CREDUX", "MATCH", "VOTEU", "R2UR", "S2UR", "S2R", "CS2R", "MOVM"})) return "warp exchange";
    if (base.starts_with("HADD") || base.starts_with("HMUL") || base.starts_with("HFMA") || base.starts_with("HMNMX") ||
        base.starts_with("HSET"))
        return "fp16";
    if (is({"DADD", "DMUL", "DFMA", "DSETP", "DMNMX"})) return "fp64";
    if (is({"FADD", "FMUL", "FFMA", "FMNMX", "FSEL", "FSETP", "FSET", "FCHK", "FSWZADD", "FADD2", "FFMA2", "FMUL2"})) return "fp32";
    if (base.starts_with("F2") || base.starts_with("I2") || is({"FRND"})) return "conversion";
    if (is({"MOV", "UMOV", "PRMT", "UPRMT", "SEL", "USEL", "PLOP3", "UPLOP3", "P2R", "R2P", "MOV32I", "LEPC"})) return "move";
    return "integer";
}

InstructionMix instruction_mix(std::string_view sass) {
    InstructionMix mix;
    for (const auto line : split_lines(sass)) {
        // "        /*0010*/                   @P0 IMAD.MOV.U32 R1, RZ, RZ, c[0x0][0x28] ;   /* encoding */"
        const std::string_view text = trim(line);
        if (!text.starts_with("/*")) continue;
        const auto close = text.find("*/");
        if (close == std::string_view::npos || close > 10 || text.find(';') == std::string_view::npos) continue;
        std::string_view rest = trim(text.substr(close + 2));
        if (rest.starts_with("{")) rest = trim(rest.substr(1));
        if (rest.starts_with("@")) rest = trim(rest.substr(std::min(rest.find(' '), rest.size())));
        const auto end = rest.find_first_of(" ;");
        if (end == 0 || rest.empty() || !std::isupper(static_cast<unsigned char>(rest[0]))) continue;
        const std::string_view opcode = rest.substr(0, end);
        ++mix.total;
        ++mix.kinds[instruction_kind(opcode)];
        ++mix.opcodes[std::string(opcode.substr(0, opcode.find('.')))];
    }
    return mix;
}

const std::vector<MetricMeaning>& chosen_metrics() {
    static const std::vector<MetricMeaning> metrics = {
        {"gpu__time_duration.sum", "time of the launch"},
        {"sm__throughput.avg.pct_of_peak_sustained_elapsed", "the busiest unit of the multiprocessors"},
        {"gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed", "the busiest part of the memory system"},
        {"dram__throughput.avg.pct_of_peak_sustained_elapsed", "DRAM bandwidth used"},
        {"dram__bytes_read.sum", "bytes read from DRAM"},
        {"dram__bytes_write.sum", "bytes written to DRAM"},
        {"lts__t_sector_hit_rate.pct", "L2 hit rate"},
        {"l1tex__data_bank_conflicts_pipe_lsu_mem_shared.sum", "bank conflicts of shared memory"},
        {"sm__warps_active.avg.pct_of_peak_sustained_active", "resident warps"},
        {"smsp__issue_active.avg.pct_of_peak_sustained_active", "cycles in which an instruction was issued"},
        {"sm__inst_executed_pipe_tensor.avg.pct_of_peak_sustained_active", "tensor core instructions issued"},
        {"smsp__average_warps_issue_stalled_long_scoreboard_per_issue_active.ratio", "warps waiting for global or local memory"},
        {"smsp__average_warps_issue_stalled_barrier_per_issue_active.ratio", "warps waiting at a barrier"},
        {"smsp__average_warps_issue_stalled_mio_throttle_per_issue_active.ratio", "warps waiting for the shared-memory queue"},
        {"launch__registers_per_thread", "registers a thread"},
        {"launch__occupancy_limit_registers", "blocks a multiprocessor could hold by registers"},
        {"launch__occupancy_limit_shared_mem", "blocks a multiprocessor could hold by shared memory"},
    };
    return metrics;
}

std::vector<Metric> parse_ncu_csv(std::string_view text) {
    const auto fields_of = [](std::string_view line) {
        std::vector<std::string> fields;
        std::string field;
        bool quoted = false;
        for (std::size_t i = 0; i < line.size(); ++i) {
            const char c = line[i];
            if (c == '"') {
                if (quoted && i + 1 < line.size() && line[i + 1] == '"') field += '"', ++i;
                else quoted = !quoted;
            } else if (c == ',' && !quoted) {
                fields.push_back(std::move(field));
                field.clear();
            } else {
                field += c;
            }
        }
        fields.push_back(std::move(field));
        return fields;
    };
    std::vector<Metric> metrics;
    std::size_t kernel = 0, name = 0, unit = 0, value = 0, columns = 0;
    for (const auto line : split_lines(text)) {
        if (line.empty() || line.front() != '"') continue;  // "==PROF== ..." and the program's own words
        const auto fields = fields_of(line);
        if (columns == 0) {
            const auto find = [&](const char* title) {
                return static_cast<std::size_t>(std::find(fields.begin(), fields.end(), title) - fields.begin());
            };
            kernel = find("Kernel Name"), name = find("Metric Name"), unit = find("Metric Unit"), value = find("Metric Value");
            if (std::max({kernel, name, unit, value}) >= fields.size()) continue;  // another table
            columns = fields.size();
            continue;
        }
        if (fields.size() != columns) continue;
        std::string number;
        for (char c : fields[value]) {
            if (c != ',') number += c;  // thousands
        }
        char* rest = nullptr;
        const double parsed = std::strtod(number.c_str(), &rest);
        if (rest == number.c_str() || *rest) continue;  // "n/a"
        metrics.push_back({fields[kernel], fields[name], fields[unit], parsed});
    }
    return metrics;
}

json static_profile(const json& request) {
    json out = {{"source", "static"}, {"resources", static_figures(request)}};
    json constants = request.value("constants", json::object());
    const std::string file = request.value("file", std::string("kernel.py"));
    const auto text =
        request.contains("text") ? Expected<std::string, std::string>(request.at("text").get<std::string>()) : lang::kernel_text(file);
    if (!text) return out;
    auto module = KernelModule::from_text(file, *text, constants.get<lower::ConstValues>());
    if (!module) return out;
    json mixes = json::array();
    for (const ir::Kernel& k : (*module)->ir().kernels) {
        if (request.contains("kernel") && json(k.name) != request["kernel"]) continue;
        auto emitted = codegen::emit(k, file);
        if (!emitted) continue;
        auto compiled = compile(request_for_own_text(emitted->source, k.name + ".cu", k.arch));
        if (!compiled) continue;
        auto sass = disassemble(compiled->cubin);
        if (!sass) {
            out["mix_note"] = sass.error().message;
            break;
        }
        const InstructionMix mix = instruction_mix(*sass);
        mixes.push_back({{"kernel", k.name}, {"instructions", mix.total}, {"kinds", mix.kinds}, {"opcodes", mix.opcodes}});
    }
    out["mix"] = mixes;
    return out;
}

json profile(const json& request, double seconds, const std::vector<MetricMeaning>& all) {
    json asked = request;
    asked["time"] = false;
    const TemporaryFile requests("request"), log("ncu");
    if (requests.path.empty() || log.path.empty() || !write_file_atomically(requests.path, asked.dump() + "\n"))
        return {{"source", "static"}, {"why", "no temporary file can be made"}};
    std::string names;
    for (const MetricMeaning& m : all) names += (names.empty() ? "" : ",") + std::string(m.name);
    WorkerLimits limits;
    limits.seconds = seconds;
    limits.box = box_for_profilers();
    // Kernels of the harness are named tw_...; the candidate's are all others.
    const auto ran = run_program_in_worker(
        {"ncu", "--csv", "--print-units", "base", "--clock-control", "none", "--kernel-name", "regex:^(?!tw_).*$", "--launch-count", "4",
         "--metrics", names, "--log-file", log.path, own_program(), "gpu-worker", "--requests", requests.path},
        limits);
    const auto text = read_file(log.path);
    const json answer = evidence_in(ran.answer);
    const std::string status =
        answer.is_object() ? answer.value("status", "unknown") : "unknown";  // nothing where the worker died under the profiler
    const auto metrics = parse_ncu_csv(text ? *text : "");
    if (metrics.empty()) {
        json out = static_profile(request);
        const bool refused = text && text->find("ERR_NVGPUCTRPERM") != std::string::npos;
        out["why"] = refused                             ? "the driver does not let this user read the counters (ERR_NVGPUCTRPERM)"
                     : ran.end == WorkerEnd::not_started ? "ncu is not in PATH"
                     : status == "no gpu"
                         ? "no GPU here"
                         : "ncu gave no figures: " + std::string(trim(end_of(text ? *text : ran.words, 300))) + " (" + ran.sentence() + ")";
        return out;
    }
    json values = json::object();
    for (const Metric& m : metrics) {
        json& mine = values[m.kernel][m.name];
        if (!mine.is_null()) continue;  // the first launch of each kernel
        const auto known = std::find_if(all.begin(), all.end(), [&](const MetricMeaning& c) { return m.name == c.name; });
        mine = {{"value", m.value}, {"unit", m.unit}, {"meaning", known == all.end() ? "" : known->meaning}};
    }
    return {{"source", "ncu"}, {"kernels", values}, {"status", status}};
}

json sanitize(const json& request, const std::string& tool, double seconds) {
    json asked = request;
    asked["time"] = false;
    json out = {{"tool", tool}};
    const TemporaryFile requests("request"), log("sanitizer");
    if (requests.path.empty() || log.path.empty() || !write_file_atomically(requests.path, asked.dump() + "\n"))
        return out["problem"] = "no temporary file can be made", out;
    WorkerLimits limits;
    limits.seconds = seconds;
    limits.box = box_for_profilers();
    const auto ran = run_program_in_worker(
        {"compute-sanitizer", "--tool", tool, "--log-file", log.path, own_program(), "gpu-worker", "--requests", requests.path}, limits);
    const auto text = read_file(log.path);
    out["evidence"] = evidence_in(ran.answer);
    const std::string report = text ? *text : "";
    // "========= ERROR SUMMARY: 0 errors", of racecheck "========= RACECHECK SUMMARY: 0 hazards displayed (0 errors, 0 warnings)"
    for (const char* summary : {"ERROR SUMMARY: ", "RACECHECK SUMMARY: "}) {
        const auto at = report.rfind(summary);
        if (at != std::string::npos) out["errors"] = std::atoi(report.c_str() + at + std::string_view(summary).size());
    }
    if (out.contains("errors") && out["errors"].get<int>() > 0) out["report"] = report.substr(0, 4000);
    if (!out.contains("errors")) {
        out["problem"] = ran.end == WorkerEnd::not_started ? "compute-sanitizer is not in PATH"
                         : out["evidence"].is_object() && out["evidence"].value("status", "") == "no gpu"
                             ? "no GPU here"
                             : "compute-sanitizer gave no summary: " + std::string(trim(end_of(report.empty() ? ran.words : report, 300))) +
                                   " (" + ran.sentence() + ")";
    }
    return out;
}

}  // namespace tw::runtime
