#include "tasks/load.h"

#include <set>

#include <fmt/format.h>
#define TOML_EXCEPTIONS 0
#define TOML_ASSERT(condition) static_cast<void>(0)  // hostile text is an error of the text, not of the program
#define TOML_ENABLE_FORMATTERS 0
#include <toml++/toml.h>

#include "base/identifier.h"
#include "base/input.h"
#include "base/text.h"
#include "lower/lower.h"
#include "tasks/classify.h"
#include "tasks/extent.h"

namespace tw::tasks {
namespace {

constexpr std::size_t kMaxFile = 1u << 20;
constexpr std::int64_t kMaxSize = std::int64_t{1} << 40;
constexpr std::size_t kMaxTensors = 64;

class Reader {
public:
    Reader(FileId file, const SourceMap& sources, DiagnosticSink& sink) : file_(file), sources_(sources), sink_(sink) {}

    Span span(const toml::source_region& region) const {
        const SourceFile& f = sources_.file(file_);
        const std::uint32_t line = region.begin.line;
        if (line == 0 || line > f.line_count()) return {};
        const std::uint32_t begin = f.line_begin(line) + (region.begin.column ? region.begin.column - 1 : 0);
        const auto size = static_cast<std::uint32_t>(f.text().size());
        return {file_, std::min(begin, size), std::min(begin + 1, size)};
    }
    void key_error(const toml::node& node, const std::string& message, const std::string& hint = {}) {
        auto& d = sink_.error(Code::task_key, span(node.source()), message);
        if (!hint.empty()) d.with_hint(hint);
    }
    void value_error(const toml::node& node, const std::string& message) { sink_.error(Code::task_value, span(node.source()), message); }

    std::string string(const toml::node& node, const std::string& what) {
        if (auto s = node.value<std::string>(); s && node.is_string()) return *s;
        key_error(node, fmt::format("{} is a string", what));
        return {};
    }

    Sizes sizes(const toml::node& node, const std::string& what) {
        Sizes out;
        const toml::table* t = node.as_table();
        if (!t) {
            key_error(node, fmt::format("{} is a table of NAME = integer", what));
            return out;
        }
        for (const auto& [key, value] : *t) {
            const std::string name(key.str());
            const auto v = value.value<std::int64_t>();
            if (!value.is_integer() || !v) key_error(value, fmt::format("{}.{} is an integer", what, name));
            else if (!is_identifier(name)) value_error(value, fmt::format("'{}' is no name for a size", printable(name)));
            else if (*v < 1 || *v > kMaxSize) value_error(value, fmt::format("size {} is {}, it must lie between 1 and 2^40", name, *v));
            else out.emplace_back(name, *v);
        }
        return out;
    }

    std::optional<TensorSpec> tensor(const std::string& name, const toml::node& node, const Task& task) {
        TensorSpec spec;
        spec.name = name;
        const toml::table* t = node.as_table();
        if (!t)
            return key_error(node, fmt::format("tensor {} is a table", name), "X = { dtype = \"f32\", dims = [\"M\", \"N\"] }"),
                   std::nullopt;
        bool has_type = false, has_dims = false;
        for (const auto& [key, value] : *t) {
            if (key.str() == "dtype") {
                const auto dtype = target::dtype_from_name(string(value, "dtype"));
                if (!dtype) return value_error(value, fmt::format("tensor {} has an unknown dtype", name)), std::nullopt;
                spec.dtype = *dtype;
                has_type = true;
            } else if (key.str() == "dims") {
                const toml::array* a = value.as_array();
                if (!a || a->size() > 8)
                    return value_error(value, fmt::format("tensor {}: dims is a list of at most 8 sizes", name)), std::nullopt;
                for (const toml::node& d : *a) {
                    if (auto i = d.value<std::int64_t>(); i && d.is_integer()) {
                        if (*i < 1 || *i > kMaxSize)
                            return value_error(d, fmt::format("tensor {} has an extent of {}", name, *i)), std::nullopt;
                        spec.dims.push_back(std::to_string(*i));
                    } else {
                        const std::string text = string(d, "a dimension");
                        if (!extent_of(task, text))
                            return value_error(d, fmt::format("tensor {}: '{}' is neither in [sizes] nor one of them plus a number", name,
                                                              printable(text))),
                                   std::nullopt;
                        spec.dims.push_back(text);
                    }
                }
                has_dims = true;
            } else if (key.str() == "values") {
                const toml::array* a = value.as_array();
                if (!a) return key_error(value, fmt::format("tensor {}: values is a list of integers", name)), std::nullopt;
                for (const toml::node& v : *a) spec.values.push_back(v.value<std::int64_t>().value_or(0));
            } else if (key.str() == "range") {
                const toml::array* a = value.as_array();
                if (!a || a->size() != 2) return key_error(value, "range is [low, high]"), std::nullopt;
                std::string ends[2];
                for (std::size_t i = 0; i < 2; ++i) {
                    const toml::node& d = (*a)[i];
                    if (auto n = d.value<std::int64_t>(); n && d.is_integer()) ends[i] = std::to_string(*n);
                    else if (std::string text = string(d, "a bound"); task.size(text)) ends[i] = text;
                    else return value_error(d, fmt::format("tensor {}: a bound of range is an integer or a size", name)), std::nullopt;
                }
                spec.extra += fmt::format(", range=({}, {})", ends[0], ends[1]);
            } else if (key.str() == "offsets_of") {
                const std::string of = string(value, "offsets_of");
                if (!is_identifier(of))
                    return value_error(value, fmt::format("tensor {}: offsets_of names the tensor of group numbers", name)), std::nullopt;
                spec.extra += fmt::format(", offsets_of=\"{}\"", of);
            } else if (key.str() == "sorted") {
                if (value.value<bool>().value_or(false)) spec.extra += ", sorted=True";
            } else {
                key_error(value, fmt::format("tensor {} has no key '{}'", name, printable(key.str())),
                          "its keys are dtype, dims, values, range, sorted and offsets_of");
            }
        }
        if (!has_type || !has_dims) return key_error(node, fmt::format("tensor {} needs dtype and dims", name)), std::nullopt;
        return spec;
    }

    // TOML tables are unordered; the order of the text is the order of the kernel's parameters.
    template <class F>
    void in_text_order(const toml::table& table, F&& each) {
        std::vector<std::pair<std::pair<std::uint32_t, std::uint32_t>, std::pair<std::string, const toml::node*>>> items;
        for (const auto& [key, value] : table) {
            items.push_back({{key.source().begin.line, key.source().begin.column}, {std::string(key.str()), &value}});
        }
        std::sort(items.begin(), items.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
        for (const auto& item : items) each(item.second.first, *item.second.second);
    }

    void read(const toml::table& root, Task& task, bool& class_given) {
        if (const toml::node* n = root.get("sizes")) task.sizes = sizes(*n, "sizes");
        for (const auto& [key_node, value] : root) {
            const std::string key(key_node.str());
            if (key == "sizes") continue;
            else if (key == "name") task.name = string(value, key);
            else if (key == "computes") task.computes = string(value, key);
            else if (key == "peer") {
                task.peer = string(value, key);
                const bool torch = task.peer.rfind("torch:", 0) == 0 && is_identifier(task.peer.substr(6));
                if (task.peer != "cublaslt" && !torch) value_error(value, "peer is cublaslt or torch:NAME, a name of bench/peers.json");
            } else if (key == "target") {
                task.target = string(value, key);
                if (task.target != "sm_90a" && task.target != "sm_80") value_error(value, "target is sm_90a or sm_80");
            } else if (key == "precision") {
                task.precision = string(value, key);
                if (task.precision != "strict" && task.precision != "tf32") value_error(value, "precision is strict or tf32");
            } else if (key == "language") {
                task.language = string(value, key);
                if (task.language != "tile" && task.language != "cute") value_error(value, "language is tile or cute");
            } else if (key == "class") {
                const auto c = parse_workload_class(string(value, key));
                if (!c) value_error(value, "class is elementwise, reduction, scan, contraction, attention, grouped or convolution");
                else task.workload = *c, class_given = true;
            } else if (key == "assume") {
                const toml::array* a = value.as_array();
                if (!a) key_error(value, "assume is a list of conditions");
                else
                    for (const toml::node& n : *a) task.assumes.push_back(string(n, "a condition"));
            } else if (key == "tensors") {
                if (const toml::table* t = value.as_table()) {
                    if (t->size() > kMaxTensors) value_error(value, "too many tensors");
                    else
                        in_text_order(*t, [&](const std::string& name, const toml::node& n) {
                            if (!is_identifier(name)) return value_error(n, fmt::format("'{}' is no name for a tensor", printable(name)));
                            if (auto spec = tensor(name, n, task)) task.tensors.push_back(std::move(*spec));
                        });
                } else key_error(value, "tensors is a table");
            } else if (key == "scalars") {
                if (const toml::table* t = value.as_table()) {
                    in_text_order(*t, [&](const std::string& name, const toml::node& n) {
                        ScalarSpec s;
                        s.name = name;
                        const toml::table* st = n.as_table();
                        const toml::node* v = st ? st->get("value") : &n;
                        if (st && st->get("dtype")) {
                            const auto d = target::dtype_from_name(string(*st->get("dtype"), "dtype"));
                            if (!d) return value_error(n, fmt::format("scalar {} has an unknown dtype", name));
                            s.dtype = *d;
                        }
                        if (!is_identifier(name) || !v || !v->is_number())
                            return key_error(n, fmt::format("scalar '{}' needs a value", printable(name)));
                        s.value = v->value<double>().value_or(1.0);
                        task.scalars.push_back(s);
                    });
                } else key_error(value, "scalars is a table");
            } else if (key == "tolerance") {
                if (const toml::table* t = value.as_table()) {
                    for (const auto& [name, n] : *t) {
                        const auto v = n.value<double>();
                        if (!v || !(*v > 0) || *v >= 1) value_error(n, "a tolerance lies between 0 and 1");
                        else task.tolerance[std::string(name.str())] = *v;
                    }
                } else key_error(value, "tolerance is a table of OUTPUT = number");
            } else if (key == "held_out") {
                if (const toml::array* a = value.as_array())
                    for (const toml::node& n : *a) task.held_out.push_back(sizes(n, "held_out"));
                else key_error(value, "held_out is an array of tables");
            } else {
                key_error(value, fmt::format("a task has no key '{}'", printable(key)),
                          "its keys are name, computes, class, target, precision, language, assume, peer, sizes, tensors, scalars, "
                          "tolerance, held_out");
            }
        }
    }

private:
    FileId file_;
    const SourceMap& sources_;
    DiagnosticSink& sink_;
};

void check_whole(Task& task, DiagnosticSink& sink) {
    if (task.computes.empty()) sink.error(Code::task_key, {}, "the task has no `computes`");
    if (task.tensors.empty()) sink.error(Code::task_key, {}, "the task has no [tensors]");
    if (!is_identifier(task.name)) sink.error(Code::task_value, {}, fmt::format("'{}' is no name for a task", printable(task.name)));
    std::set<std::string> names;
    const auto once = [&](const std::string& name) {
        if (!names.insert(name).second) sink.error(Code::task_value, {}, fmt::format("the name '{}' is used twice", name));
    };
    double bytes = 0;
    for (const auto& [name, value] : task.sizes) once(name);
    for (const ScalarSpec& s : task.scalars) once(s.name);
    for (const TensorSpec& t : task.tensors) {
        once(t.name);
        double elements = 1;
        for (const std::string& d : t.dims) elements *= static_cast<double>(extent_of(task, d));
        bytes += elements * target::bits(t.dtype) / 8;
    }
    if (bytes > 9e18) sink.error(Code::task_value, {}, "the tensors together have more bytes than 64 bits can count");
    for (const auto& [name, value] : task.tolerance) {
        if (!task.tensor(name)) sink.error(Code::task_value, {}, fmt::format("tolerance names '{}', which is no tensor", printable(name)));
    }
    for (const Sizes& shape : task.held_out) {
        for (const auto& [name, value] : shape) {
            if (!task.size(name)) sink.error(Code::task_value, {}, fmt::format("held_out names '{}', which is not in [sizes]", name));
        }
    }
}

}  // namespace

std::optional<Task> load_task_text(SourceMap& sources, const std::string& name, const std::string& text, DiagnosticSink& sink) {
    const FileId file = sources.add(name, text);
    if (text.size() > kMaxFile) return sink.error(Code::task_file, {}, fmt::format("{} is larger than 1 MiB", name)), std::nullopt;
    Task task;
    task.text = text;
    const auto slash = name.find_last_of('/');
    task.name = name.substr(slash == std::string::npos ? 0 : slash + 1);
    if (const auto dot = task.name.find('.'); dot != std::string::npos) task.name.resize(dot);
    Reader reader(file, sources, sink);
    // The TOML library takes these for granted.
    for (std::size_t i = 0; i < text.size();) {
        const std::size_t length = utf8_sequence_length(text, i);
        if (length == 0 || text[i] == '\0' || text.compare(i, 3, "[[[") == 0) {
            const auto at = static_cast<std::uint32_t>(i);
            sink.error(Code::task_syntax, {file, at, at + 1},
                       length == 0 || text[i] == '\0' ? "a byte that is not text" : "three brackets in a row mean nothing in a task");
            return std::nullopt;
        }
        i += length;
    }
    if (toml_is_deeper(text))
        return sink.error(Code::task_syntax, {}, fmt::format("{} is nested deeper than {} levels", printable(name), kInputDepth)),
               std::nullopt;
    if (const auto stray = toml_stray_byte(text)) {
        const auto at = static_cast<std::uint32_t>(*stray);
        sink.error(Code::task_syntax, {file, at, at + 1}, "a character beyond ASCII outside of a string")
            .with_hint("put the text in quotes");
        return std::nullopt;
    }
    toml::parse_result parsed = toml::parse(text, name);
    if (!parsed) {
        sink.error(Code::task_syntax, reader.span(parsed.error().source()), printable(parsed.error().description()));
        return std::nullopt;
    }
    bool class_given = false;
    reader.read(parsed.table(), task, class_given);
    if (!sink.has_errors()) check_whole(task, sink);
    if (sink.has_errors() || !resolve_task(sources, task, class_given, sink)) return std::nullopt;
    return task;
}

std::optional<Task> load_task_file(SourceMap& sources, const std::string& path, DiagnosticSink& sink) {
    auto text = read_file(path, kMaxFile);
    if (!text) return sink.error(Code::task_file, {}, text.error()), std::nullopt;
    return load_task_text(sources, path, *text, sink);
}

bool resolve_task(SourceMap& sources, Task& task, bool class_given, DiagnosticSink& sink) {
    auto module = lower::compile_text(sources, task.name + " (signature)", signature_source(task), {}, sink);
    if (!module || module->kernels.empty() || sink.has_errors()) {
        if (!sink.has_errors()) sink.error(Code::task_value, {}, "the task's signature cannot be made into a kernel");
        return false;
    }
    task.spec = std::make_shared<ir::Kernel>(module->kernels.front());
    if (!class_given) task.workload = classify(*task.spec);
    return true;
}

}  // namespace tw::tasks
