#include "plan/knowledge.h"

#include <algorithm>

#include <fmt/format.h>
#define TOML_EXCEPTIONS 0
#define TOML_ASSERT(condition) static_cast<void>(0)  // hostile text is an error of the text, not of the program
#define TOML_ENABLE_FORMATTERS 0
#include <toml++/toml.h>

#include "base/input.h"
#include "base/text.h"

namespace tw::plan {
namespace fs = std::filesystem;

const Technique* Knowledge::find(const std::string& id) const {
    for (const Technique& t : techniques)
        if (t.id == id) return &t;
    return nullptr;
}

fs::path knowledge_folder() {
    if (const std::string folder = environment("TILEWRIGHT_KNOWLEDGE"); !folder.empty()) return folder;
    std::error_code ignored;
    fs::path above = fs::read_symlink("/proc/self/exe", ignored).parent_path();
    for (int level = 0; level < 5 && !above.empty(); ++level, above = above.parent_path()) {
        for (const char* below : {"share/tilewright/knowledge", "knowledge"}) {
            if (fs::is_directory(above / below, ignored)) return above / below;
        }
    }
    return "knowledge";
}

std::optional<Technique> parse_technique(const std::string& id, const std::string& text, DiagnosticSink& sink) {
    const auto bad = [&](const std::string& why) -> std::optional<Technique> {
        sink.error(Code::knowledge_file, {}, fmt::format("{}.md: {}", printable(id), printable(why)));
        return std::nullopt;
    };
    if (text.size() > (1u << 18)) return bad("it is larger than 256 KiB");
    if (text.substr(0, 4) != "+++\n") return bad("it does not start with a line of +++");
    const auto end = text.find("\n+++\n", 3);
    if (end == std::string::npos) return bad("its front matter is not closed by a line of +++");
    const std::string_view front = std::string_view(text).substr(4, end - 3);
    if (toml_is_deeper(front)) return bad(fmt::format("it is nested deeper than {} levels", kInputDepth));
    if (toml_stray_byte(front)) return bad("its front matter has a character beyond ASCII outside of a string");
    const toml::parse_result parsed = toml::parse(front);
    if (!parsed) return bad(std::string(parsed.error().description()));
    const toml::table& root = parsed.table();
    Technique t;
    t.id = id;
    t.prompt = std::string(trim(std::string_view(text).substr(end + 5)));
    std::string problem;
    const auto strings = [&](const toml::node& n, std::string_view key) {
        std::vector<std::string> out;
        if (const toml::array* a = n.as_array()) {
            for (const toml::node& x : *a) {
                if (auto s = x.value<std::string>()) out.push_back(*s);
                else problem = fmt::format("{} is a list of strings", key);
            }
        } else problem = fmt::format("{} is a list of strings", key);
        return out;
    };
    for (const auto& [key_node, value] : root) {
        const std::string_view key = key_node.str();
        if (key == "title") t.title = value.value_or(std::string());
        else if (key == "stage") {
            if (!parse_stage(value.value_or(std::string()), t.stage)) problem = "an unknown stage";
        } else if (key == "classes") {
            for (const std::string& s : strings(value, key)) {
                const auto c = tasks::parse_workload_class(s);
                if (c) t.classes.push_back(*c);
                else problem = fmt::format("an unknown workload class '{}'", s);
            }
        } else if (key == "targets") t.targets = strings(value, key);
        else if (key == "bound") t.bound = value.value_or(std::string());
        else if (key == "expected_gain") t.expected_gain = value.value_or(0.0);
        else if (key == "uncertainty") t.uncertainty = value.value_or(0.0);
        else if (key == "enables") t.enables = strings(value, key);
        else if (key == "invariants") t.invariants = strings(value, key);
        else if (key == "failure_modes") t.failure_modes = strings(value, key);
        else if (key == "rewrite") t.rewrite = value.value_or(std::string());
        else problem = fmt::format("an unknown key '{}'", key);
    }
    if (problem.empty() && t.title.empty()) problem = "it has no title";
    if (problem.empty() && t.classes.empty()) problem = "it has no classes";
    if (problem.empty() && !(t.expected_gain > 0.1 && t.expected_gain < 1000)) problem = "expected_gain is a factor between 0.1 and 1000";
    if (problem.empty() && !(t.uncertainty > 0 && t.uncertainty < 10)) problem = "uncertainty is a number between 0 and 10";
    if (problem.empty() && t.prompt.empty()) problem = "it has no text";
    if (!problem.empty()) return bad(problem);
    return t;
}

Knowledge load_knowledge(const fs::path& folder, DiagnosticSink& sink) {
    Knowledge out;
    std::error_code error;
    std::vector<fs::path> files;
    for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
        if (it->path().extension() == ".md" && it->path().stem() != "README") files.push_back(it->path());
    }
    std::sort(files.begin(), files.end());
    for (const fs::path& file : files) {
        auto text = read_file(file);
        if (!text) {
            sink.error(Code::knowledge_file, {}, text.error());
            continue;
        }
        if (auto t = parse_technique(file.stem().string(), *text, sink)) out.techniques.push_back(std::move(*t));
    }
    return out;
}

bool applies(const Technique& t, const tasks::Task& task, bool memory_bound) {
    if (std::find(t.classes.begin(), t.classes.end(), task.workload) == t.classes.end()) return false;
    if (!t.targets.empty() && std::find(t.targets.begin(), t.targets.end(), task.target) == t.targets.end()) return false;
    return t.bound.empty() || (t.bound == "memory") == memory_bound;
}

std::vector<const Technique*> search(const Knowledge& knowledge, const std::string& words) {
    std::vector<std::pair<int, const Technique*>> found;
    const auto lower = [](std::string s) {
        std::transform(s.begin(), s.end(), s.begin(), [](unsigned char c) { return std::tolower(c); });
        return s;
    };
    for (const Technique& t : knowledge.techniques) {
        const std::string head = lower(t.id + " " + t.title),
                          all = head + " " +
                                lower(t.prompt + " " + fmt::format("{} {}", fmt::join(t.invariants, " "), fmt::join(t.failure_modes, " ")));
        int score = 0;
        bool every = true;
        for (const std::string& w : split_words(lower(words))) {
            every &= all.find(w) != std::string::npos;
            score += head.find(w) != std::string::npos ? 2 : 1;
        }
        if (every) found.push_back({score, &t});
    }
    std::stable_sort(found.begin(), found.end(), [](const auto& a, const auto& b) { return a.first > b.first; });
    std::vector<const Technique*> out;
    for (const auto& f : found) out.push_back(f.second);
    return out;
}

}  // namespace tw::plan
