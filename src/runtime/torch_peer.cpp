#include "runtime/torch_peer.h"

#include <fmt/format.h>
#include <unistd.h>

#include <chrono>
#include <thread>

#include "base/input.h"
#include "base/text.h"
#include "emulate/contents.h"
#include "emulate/index_use.h"
#include "lang/bundle.h"
#include "runtime/cubin_cache.h"
#include "runtime/device_data.h"
#include "runtime/launch.h"
#include "runtime/measure.h"
#include "runtime/shared_library.h"
#include "runtime/signature.h"
#include "runtime/worker.h"

namespace tw::runtime {

using nlohmann::json;
namespace fs = std::filesystem;

namespace {

std::string temporary_file(const char* purpose) {
    std::string path = (fs::temp_directory_path() / (std::string("tilewright-") + purpose + "-XXXXXX")).string();
    const int file = ::mkstemp(path.data());
    if (file < 0) return {};
    ::close(file);
    return path;
}

}  // namespace

fs::path bench_folder() {
    // What is run from there is Python: the working folder, which may be anybody's, does not decide it.
    std::error_code ignored;
    if (const std::string named = environment("TILEWRIGHT_BENCH"); !named.empty()) return named;
    fs::path above = own_folder();
    for (int level = 0; level < 4 && !above.empty(); ++level, above = above.parent_path()) {
        for (const char* below : {".", "share/tilewright"}) {
            if (fs::exists(above / below / "bench/suites", ignored)) return above / below;
        }
    }
    return {};
}

json torch_case(const json& request, std::string& problem) {
    const std::string label = request.value("file", std::string("kernel.py"));
    const bool cute = request.value("language", std::string()) == "cute";
    auto text = request.contains("text") ? Expected<std::string, std::string>(request.at("text").get<std::string>())
                : cute                   ? read_file(label)
                                         : lang::kernel_text(label);
    if (!text) return problem = text.error(), json();
    auto module = cute ? KernelModule::from_cute(label, *text, request.at("signature").get<std::string>())
                       : KernelModule::from_text(label, *text, request.value("constants", json::object()).get<lower::ConstValues>());
    if (!module) return problem = module.error().text(), json();
    auto signature = find_signature((*module)->ir(), request.value("kernel", std::string()));
    if (!signature) return problem = signature.error().text(), json();
    auto sizes = size_values(*signature, request.at("sizes").get<std::map<std::string, std::int64_t>>());
    if (!sizes) return problem = sizes.error().text(), json();
    auto scalars = scalar_values(*signature, request.value("scalars", json::object()).get<std::map<std::string, double>>(),
                                 request.value("seed", std::uint64_t{1}));
    if (!scalars) return problem = scalars.error().text(), json();
    const auto indices = emulate::index_tensors(signature->tensors, signature->computes, signature->kernels);
    json tensors = json::array(), values = json::object(), inputs = request.value("inputs", json::object());
    const auto promised =
        emulate::promised_contents(signature->tensors, *sizes, emulate::Spread::random, request.value("seed", std::uint64_t{1}));
    for (std::size_t i = 0; i < signature->tensors.size(); ++i) {
        const ir::Tensor& t = signature->tensors[i];
        json dims = json::array();
        for (const ir::Expr& e : t.dims) dims.push_back(size_value(e, *sizes).value_or(0));
        tensors.push_back({{"name", t.name},
                           {"dtype", target::name(t.dtype)},
                           {"dims", dims},
                           {"output", t.is_output},
                           {"index", static_cast<bool>(indices[i])}});
        if (!t.is_output && !promised[i].empty() && !inputs.contains(t.name)) inputs[t.name] = promised[i];
    }
    for (std::size_t i = 0; i < scalars->size(); ++i) values[signature->scalars[i].name] = (*scalars)[i];
    json out = request;
    out["kernel"] = signature->name;
    out["tensors"] = tensors;
    out["inputs"] = inputs;
    out["scalars"] = values;
    return out;
}

json named_torch_peer(const std::string& name, std::string& problem) {
    const fs::path root = bench_folder();
    const auto text = root.empty() ? Expected<std::string, std::string>(Unexpected{std::string("there is no folder bench/ here")})
                                   : read_file(root / "bench/peers.json");
    if (!text) return problem = text.error(), json();
    const json all = parse_json(*text);
    if (!all.is_object() || !all.contains(name) || !all[name].is_object() || !all[name].contains("torch"))
        return problem = fmt::format("bench/peers.json has no '{}'", printable(name)), json();
    return all[name];
}

namespace {

// What the Python process has written so far: answers by number, and the case it began last.
struct Said {
    std::size_t began = 0;
    bool any = false;
};

Said read_answers(const std::string& out, json& answers) {
    Said said;
    const auto text = read_file(out);
    for (const auto line : split_lines(text ? std::string_view(*text) : std::string_view())) {
        json word = parse_json(line);
        if (!word.is_object()) continue;
        if (word.contains("began")) said.began = std::max(said.began, word["began"].get<std::size_t>()), said.any = true;
        if (!word.contains("number")) continue;
        const std::size_t number = word["number"];
        word.erase("number");
        if (number < answers.size()) answers[number] = std::move(word);
    }
    return said;
}

// torch and Triton compile into folders of their own, which the box does not let them write.
std::vector<std::string> torch_caches() {
    std::vector<std::string> out;
    const fs::path cache = CubinCache::standard().folder();
    for (const auto& [name, below] : {std::pair("TRITON_CACHE_DIR", "triton"), std::pair("TORCHINDUCTOR_CACHE_DIR", "inductor")})
        if (environment(name).empty() && !cache.empty()) out.push_back(fmt::format("{}={}", name, (cache / below).string()));
    return out;
}

bool reached(const json& answer) { return answer.value("problem", std::string()) != "not reached"; }

}  // namespace

json time_against_torch(const json& cases, double seconds_each, const std::string& python, const TorchAnswer& told) {
    json answers = json::array();
    for (std::size_t i = 0; i < cases.size(); ++i) answers.push_back({{"problem", "not reached"}});
    std::size_t told_of = 0;
    const auto tell = [&](bool all) {
        for (; told_of < answers.size() && (all || reached(answers[told_of])); ++told_of) {
            if (told) told(told_of, answers[told_of]);
        }
    };
    const auto all_failed = [&](const std::string& problem) {
        for (json& a : answers) a["problem"] = problem;
        tell(true);
        return answers;
    };
    const fs::path root = bench_folder();
    if (cases.empty()) return answers;
    if (root.empty()) return all_failed("bench/torch_peer.py was not found; run this in the source tree");
    // Kernels that are no files become some while they are needed.
    json listed = cases;
    std::vector<std::string> sources;
    for (json& c : listed) {
        if (!c.contains("text")) continue;
        sources.push_back(temporary_file("kernel"));
        if (!sources.back().empty() && write_file_atomically(sources.back(), c["text"].get<std::string>())) c["file"] = sources.back();
        c.erase("text");
    }
    const std::string file = temporary_file("cases"), out = temporary_file("torch");
    if (file.empty() || out.empty() || !write_file_atomically(file, listed.dump())) return all_failed("no temporary file can be made");
    // The kernels are compiled and launched by this installation, whatever Python finds first.
    std::size_t next = 0;
    while (next < cases.size()) {
        WorkerLimits limits;
        limits.seconds = 30 + seconds_each * static_cast<double>(cases.size() - next);
        WorkerResult ran;
        {
            std::jthread listener([&](const std::stop_token& stop) {
                while (told && !stop.stop_requested()) {
                    std::this_thread::sleep_for(std::chrono::milliseconds(200));
                    read_answers(out, answers);
                    tell(false);
                }
            });
            // The process itself waits for the GPU, once torch is imported: others measure meanwhile.
            limits.box = box_for_gpu();
            ran = run_program_in_worker(
                {python, (root / "bench/torch_peer.py").string(), file, out, std::to_string(next), GpuLock::file(0).string()}, limits,
                torch_caches());
        }
        const Said said = read_answers(out, answers);
        if (!said.any || said.began < next) {
            for (std::size_t i = next; i < cases.size(); ++i)
                answers[i]["problem"] =
                    "torch did not start: " + std::string(trim(ran.words.substr(ran.words.size() > 400 ? ran.words.size() - 400 : 0))) +
                    " (" + ran.sentence() + ")";
            break;
        }
        if (!reached(answers[said.began])) answers[said.began]["problem"] = "the process " + ran.sentence();
        tell(false);
        if (ran.end == WorkerEnd::finished) break;
        next = said.began + 1;
    }
    tell(true);
    std::error_code ignored;
    fs::remove(file, ignored);
    fs::remove(out, ignored);
    for (const std::string& s : sources) fs::remove(s, ignored);
    return answers;
}

}  // namespace tw::runtime
