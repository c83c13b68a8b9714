#include "tasks/line.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstdlib>
#include <set>

#include <fmt/format.h>

#include "base/identifier.h"
#include "base/text.h"
#include "lang/computes.h"
#include "lang/computes_token.h"

namespace tw::tasks {
namespace {

using lang::ComputesSpec;
using lang::TermId;

constexpr std::size_t kMaxText = 1u << 16;

struct TensorFacts {
    std::string name;
    std::vector<std::string> dims;                                       // empty texts: not known yet
    bool output = false, steers = false, widened = false, bare = false;  // steers: indexes another; widened: cast to f32 where it is read
    std::optional<target::DType> dtype;
};

class LineReader {
public:
    LineReader(const OneLine& line, SourceMap& sources, DiagnosticSink& sink)
        : line_(line), sink_(sink), file_(sources.add("--computes", line.computes)), sources_(sources) {}

    std::optional<std::string> read() {
        if (line_.computes.size() > kMaxText) return fail("--computes is longer than 64 KiB");
        if (!pairs(line_.sets, "--set", "M=4096,N=4096", sizes_) || !pairs(line_.dtypes, "--dtype", "A=bf16", dtypes_) ||
            !pairs(line_.scalars, "--scalar", "eps=1e-5", scalars_))
            return std::nullopt;
        for (const auto& [name, value] : sizes_) {
            if (!is_identifier(name)) return fail(fmt::format("--set: '{}' is no name for a size", printable(name)));
            if (!is_count(value)) return fail(fmt::format("--set {}={}: a size is a whole number from 1 on", name, printable(value)));
        }
        for (auto& [name, value] : scalars_) {
            char* end = nullptr;
            const double number = std::strtod(value.c_str(), &end);
            if (!is_identifier(name) || value.empty() || *end || !std::isfinite(number))
                return fail(fmt::format("--scalar {}={} is no number with a name", printable(name), printable(value)), "--scalar eps=1e-5");
            value = fmt::format("{:.17g}", number);
        }
        spec_ = lang::parse_computes(lang::computes_text(sources_, file_), sink_);
        if (sink_.has_errors()) return std::nullopt;
        collect();
        if (!shapes_given() || sink_.has_errors()) return std::nullopt;
        infer_shapes();
        if (!types() || sink_.has_errors()) return std::nullopt;
        return write();
    }

private:
    std::nullopt_t fail(const std::string& message, const std::string& hint = {}) {
        auto& d = sink_.error(Code::task_value, {}, message);
        if (!hint.empty()) d.with_hint(hint);
        return std::nullopt;
    }
    static bool is_count(const std::string& s) {
        return !s.empty() && s.size() <= 13 && std::all_of(s.begin(), s.end(), [](unsigned char c) { return std::isdigit(c); }) &&
               std::atoll(s.c_str()) >= 1;
    }

    using Pairs = std::vector<std::pair<std::string, std::string>>;
    bool pairs(const std::vector<std::string>& from, const std::string& option, const std::string& example, Pairs& into) {
        for (const std::string& part : from) {
            for (const auto word : split_commas(part)) {
                const auto equal = word.find('=');
                const std::string name(trim(word.substr(0, std::min(equal, word.size()))));
                if (equal == std::string_view::npos || name.empty()) {
                    fail(fmt::format("{} '{}' is not NAME=VALUE", option, printable(std::string(word))),
                         fmt::format("{} {}", option, example));
                    return false;
                }
                if (value_in(into, name)) {
                    fail(fmt::format("{} names {} twice", option, printable(name)));
                    return false;
                }
                into.emplace_back(name, std::string(trim(word.substr(equal + 1))));
            }
        }
        return true;
    }
    static std::vector<std::string_view> split_commas(std::string_view text) {
        std::vector<std::string_view> out;
        while (true) {
            const auto comma = text.find(',');
            out.push_back(text.substr(0, comma));
            if (comma == std::string_view::npos) return out;
            text.remove_prefix(comma + 1);
        }
    }
    static const std::string* value_in(const Pairs& pairs, const std::string& name) {
        for (const auto& [n, v] : pairs)
            if (n == name) return &v;
        return nullptr;
    }

    TensorFacts& facts(const std::string& name) {
        for (TensorFacts& t : tensors_)
            if (t.name == name) return t;
        tensors_.push_back({name, {}, false, false, false, false, {}});
        return tensors_.back();
    }

    // One dimension is indexed by one variable of one equation or reduction: scopes are numbered, because j may mean two things.
    struct Use {
        std::string tensor;
        std::size_t dim;
        std::string variable;
        int scope;
    };

    void collect() {
        std::set<std::string> lets;
        for (const auto& e : spec_.equations) {
            scope_.clear();
            for (const lang::LeftIndex& i : e.indices) bind(i.binding);
            for (const lang::IndexBinding& source : lang::sources_of(e)) bind(source);
            for (const lang::LeftIndex& i : e.indices) scattered(i);
            walk(e.value, false, false);
            if (e.is_let) {
                lets.insert(e.tensor);
                names_used_.erase(e.tensor);
            }
            // A `let` links its indices like a tensor does.
            TensorFacts& t = facts(e.tensor);
            t.output = !e.is_let;
            t.bare |= e.becomes != lang::Becomes::value;  // what it held is read
            t.dims.resize(std::max(t.dims.size(), e.indices.size()));
            for (std::size_t d = 0; d < e.indices.size(); ++d) {
                if (e.indices[d].binding.variable.empty()) continue;
                uses_.push_back({e.tensor, d, e.indices[d].binding.variable, scope_.at(e.indices[d].binding.variable)});
            }
            if (!e.is_let) t.dtype = result_type(e.value);
        }
        lets_ = std::move(lets);
    }
    void scattered(const lang::LeftIndex& i) {  // cache[slot[t], n]
        if (i.tensor.empty()) return;
        TensorFacts& t = facts(i.tensor);
        t.steers = true;
        t.dims.resize(std::max(t.dims.size(), i.variables.size()));
        for (std::size_t d = 0; d < i.variables.size(); ++d)
            uses_.push_back({i.tensor, d, i.variables[d].variable, scope_[i.variables[d].variable]});
    }
    void bind(const lang::IndexBinding& b) {
        if (b.variable.empty()) return;
        scope_[b.variable] = ++scopes_;
        Extent x{b.variable, ""};
        if (b.low && b.high) {
            const auto* low = spec_.get_if<lang::Number>(b.low);
            const auto* high = spec_.get_if<lang::Number>(b.high);
            const auto* size = spec_.get_if<lang::FreeName>(b.high);
            const bool from_zero = low && low->is_integer && low->integer == 0;
            if (from_zero && high && high->is_integer) x.text = std::to_string(high->integer);
            else if (from_zero && size && value_in(sizes_, size->name)) x.text = size->name;
            else x.partial = true;
            walk(b.low, false, false), walk(b.high, false, false);
        }
        extents_[scopes_] = x;
    }
    void walk(TermId id, bool in_index, bool widened) {
        if (!id) return;
        if (const auto* e = spec_.get_if<lang::Element>(id)) {
            TensorFacts& t = facts(e->tensor);
            t.steers |= in_index;
            (widened ? t.widened : t.bare) |= !in_index;
            t.dims.resize(std::max(t.dims.size(), e->indices.size()));
            for (std::size_t d = 0; d < e->indices.size(); ++d) {
                if (const auto* v = spec_.get_if<lang::Variable>(e->indices[d]))
                    uses_.push_back({e->tensor, d, v->name, scope_.count(v->name) ? scope_[v->name] : 0});
                else walk(e->indices[d], true, false);
            }
        } else if (const auto* c = spec_.get_if<lang::CastTerm>(id)) {
            walk(c->operand, in_index, c->dtype == target::DType::F32 && spec_.get_if<lang::Element>(c->operand));
        } else if (const auto* o = spec_.get_if<lang::Operation>(id)) {
            walk(o->left, in_index, false), walk(o->right, in_index, false);
        } else if (const auto* a = spec_.get_if<lang::Apply>(id)) {
            for (TermId x : a->arguments) walk(x, in_index, false);
        } else if (const auto* r = spec_.get_if<lang::Reduction>(id)) {
            const auto outer = scope_;
            // softmax(n, ...) names the variable that is bound around it.
            const bool own = r->kind != lang::ReductionKind::softmax;
            for (const lang::IndexBinding& b : r->over)
                if (own || !scope_.count(b.variable)) bind(b);
            walk(r->body, in_index, false);
            scope_ = outer;
        } else if (const auto* f = spec_.get_if<lang::FreeName>(id)) {
            names_used_.insert(f->name);
        }
    }
    std::optional<target::DType> result_type(TermId id) const {
        if (const auto* c = spec_.get_if<lang::CastTerm>(id)) return c->dtype;
        if (const auto* r = spec_.get_if<lang::Reduction>(id);
            r && (r->kind == lang::ReductionKind::argmax || r->kind == lang::ReductionKind::argmin))
            return target::DType::I32;
        return std::nullopt;
    }

    bool shapes_given() {
        for (const std::string& text : line_.shapes) {
            const auto equal = text.find('=');
            const std::string name(trim(std::string_view(text).substr(0, std::min(equal, text.size()))));
            const auto known =
                std::find_if(tensors_.begin(), tensors_.end(), [&](const TensorFacts& t) { return t.name == name && !lets_.count(name); });
            if (equal == std::string::npos || known == tensors_.end()) {
                fail(fmt::format("--shape '{}' names no tensor of --computes", printable(text)), "--shape X=M,K");
                return false;
            }
            const auto dims = split_commas(std::string_view(text).substr(equal + 1));
            if (dims.size() != known->dims.size()) {
                fail(fmt::format("--shape gives {} {} dimensions, --computes indexes {}", name, dims.size(), known->dims.size()));
                return false;
            }
            for (std::size_t d = 0; d < dims.size(); ++d) known->dims[d] = std::string(trim(dims[d]));
        }
        return true;
    }

    // A variable's extent goes to every dimension it indexes, and from there to every variable that indexes the same dimension.
    void infer_shapes() {
        for (auto& [scope, x] : extents_) {
            std::string capital = x.variable;
            for (char& c : capital) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
            if (x.text.empty() && !x.partial && value_in(sizes_, capital)) x.text = capital;
        }
        for (bool changed = true; changed;) {
            changed = false;
            for (const Use& u : uses_) {
                TensorFacts& t = facts(u.tensor);
                Extent* x = extents_.count(u.scope) ? &extents_[u.scope] : nullptr;
                if (!x) continue;
                if (t.dims[u.dim].empty() && !x->text.empty()) t.dims[u.dim] = x->text, changed = true;
                else if (!t.dims[u.dim].empty() && x->text.empty() && !x->partial) x->text = t.dims[u.dim], changed = true;
            }
        }
        std::set<std::string> told;  // one report a variable
        for (const TensorFacts& t : tensors_) {
            if (lets_.count(t.name)) continue;
            for (std::size_t d = 0; d < t.dims.size(); ++d) {
                if (!t.dims[d].empty()) continue;
                std::string variable;
                for (const Use& u : uses_)
                    if (u.tensor == t.name && u.dim == d) variable = u.variable;
                if (!variable.empty() && !told.insert(variable).second) continue;
                std::string capital = variable;
                for (char& c : capital) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
                if (variable.empty())
                    fail(fmt::format("dimension {} of {} is indexed by an expression: how large it is cannot be told", d + 1, t.name),
                         fmt::format("give the shape: --shape {}={}", t.name, shape_hint(t)));
                else
                    fail(fmt::format("how far {} runs is not known: dimension {} of {} has no size", variable, d + 1, t.name),
                         fmt::format("give its size, --set {}=..., or its range, `{} in 0:128`", capital, variable));
            }
        }
        if (sink_.has_errors()) return;
        std::set<std::string> used = names_used_;
        for (const TensorFacts& t : tensors_) used.insert(t.dims.begin(), t.dims.end());
        for (const auto& [name, value] : sizes_) {
            if (!used.count(name))
                fail(fmt::format("--set gives {}, which nothing in --computes uses", printable(name)),
                     "a dimension indexed by m takes its extent from M");
        }
        for (const std::string& name : names_used_) {
            if (!value_in(sizes_, name) && !value_in(scalars_, name) && !lets_.count(name))
                fail(fmt::format("'{}' has no value", printable(name)),
                     fmt::format("a size: --set {0}=...; a number that is passed to the kernel: --scalar {0}=...", name));
        }
    }
    std::string shape_hint(const TensorFacts& t) const {
        std::vector<std::string> out;
        for (const std::string& d : t.dims) out.push_back(d.empty() ? "?" : d);
        return join(out, ",");
    }

    bool types() {
        for (const auto& [name, text] : dtypes_) {
            const bool known = std::any_of(tensors_.begin(), tensors_.end(),
                                           [&, n = name](const TensorFacts& t) { return t.name == n && !lets_.count(n); });
            const auto dtype = target::dtype_from_name(text);
            if (!known) return fail(fmt::format("--dtype names '{}', which is no tensor of --computes", printable(name))), false;
            if (!dtype)
                return fail(fmt::format("--dtype {}={}: there is no such type", name, printable(text)), "bf16, f16, f32, e4m3, i32, ..."),
                       false;
            facts(name).dtype = *dtype;
        }
        std::set<target::DType> narrow;
        for (const TensorFacts& t : tensors_)
            if (t.output && t.dtype && *t.dtype != target::DType::F32 && target::info(*t.dtype).is_float) narrow.insert(*t.dtype);
        for (TensorFacts& t : tensors_) {
            if (t.dtype || lets_.count(t.name)) continue;
            if (t.output || (t.bare && !t.widened)) t.dtype = target::DType::F32;
            else if (t.steers && !t.widened) t.dtype = target::DType::I32;
            else if (narrow.size() == 1) t.dtype = *narrow.begin();
            else
                fail(fmt::format("{} is cast to f32 where it is read, so it has another type, and no output tells which", t.name),
                     fmt::format("--dtype {}=bf16", t.name));
        }
        return !sink_.has_errors();
    }

    static std::string quoted(const std::string& text) {
        std::string out = "\"";
        for (char c : text) {
            if (c == '"' || c == '\\') out += '\\';
            if (c == '\n') out += "\\n";
            else if (c == '\t') out += "\\t";
            else out += c;
        }
        return out + "\"";
    }
    std::string write() const {
        std::string out = fmt::format("name = {}\ncomputes = {}\ntarget = {}\nprecision = {}\n\n[sizes]\n", quoted(line_.name),
                                      quoted(line_.computes), quoted(line_.target), quoted(line_.precision));
        for (const auto& [name, value] : sizes_) out += fmt::format("{} = {}\n", name, value);
        out += "\n[tensors]\n";
        for (const bool outputs : {false, true}) {
            for (const TensorFacts& t : tensors_) {
                if (lets_.count(t.name) || t.output != outputs) continue;
                std::vector<std::string> dims;
                for (const std::string& d : t.dims) dims.push_back(is_count(d) ? d : quoted(d));
                out += fmt::format("{} = {{ dtype = \"{}\", dims = [{}] }}\n", t.name, target::name(*t.dtype), join(dims, ", "));
            }
        }
        if (!scalars_.empty()) out += "\n[scalars]\n";
        for (const auto& [name, value] : scalars_) out += fmt::format("{} = {{ dtype = \"f32\", value = {} }}\n", name, value);
        return out;
    }

    struct Extent {
        std::string variable, text;
        bool partial = false;
    };  // partial: a range that is no whole dimension
    const OneLine& line_;
    DiagnosticSink& sink_;
    FileId file_;
    SourceMap& sources_;
    ComputesSpec spec_;
    Pairs sizes_, dtypes_, scalars_;
    std::vector<TensorFacts> tensors_;  // in the order they are read
    std::set<std::string> lets_, names_used_;
    std::map<std::string, int> scope_;
    std::map<int, Extent> extents_;
    std::vector<Use> uses_;
    int scopes_ = 0;
};

}  // namespace

std::optional<std::string> task_text(const OneLine& line, SourceMap& sources, DiagnosticSink& sink) {
    return LineReader(line, sources, sink).read();
}

}  // namespace tw::tasks
