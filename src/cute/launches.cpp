// Launches of a file's kernels: what their parameters and template parameters stand for, and how many threads a block has.
//
// A kernel that is launched several times is looked at once for each launch (Evaluator's `variant`).
#include <algorithm>
#include <utility>

#include "cute/evaluate.h"

namespace tw::cute {

using Kind = Value::Kind;

namespace {
constexpr std::size_t kMaxLaunches = 200;
}

// The parts of `<<<blocks, threads, ...>>>`; `end` is the token after it.
std::vector<Range> Evaluator::launch_parts(std::size_t at, std::size_t* end) const {
    std::vector<Range> parts;
    std::size_t from = at + 3, j = from;
    for (; j + 2 < t_.size() && j < at + 200; ++j) {
        if (t_[j].is("(") || t_[j].is("[") || t_[j].is("{")) j = matching(j);
        else if (t_[j].is("<") && t_[j - 1].kind == Token::Kind::name && matching(j) < t_.size() - 1) j = matching(j);
        else if (t_[j].is(",")) parts.push_back({from, j}), from = j + 1;
        else if (t_[j].is(";") || (t_[j].is(">") && t_[j + 1].is(">") && t_[j + 2].is(">"))) break;
    }
    parts.push_back({from, j});
    *end = j + 3;
    return parts;
}

// The kernel that a name stands for, with its template arguments: itself, `kernel<A, B>`, or a variable that holds its address.
std::optional<std::pair<std::string, std::vector<Range>>> Evaluator::kernel_named(std::size_t at, int depth) {
    const std::string& name = t_[at].text;
    if (kernels_.count(name)) {
        std::vector<Range> templates;
        if (at + 1 < t_.size() && t_[at + 1].is("<") && !(at + 2 < t_.size() && t_[at + 2].is("<"))) templates = arguments(at + 1);
        return std::pair(name, templates);
    }
    const Range value = depth < 3 ? meaning(name, at) : Range{};
    for (std::size_t i = value.begin; i < value.end && i < value.begin + 200; ++i) {
        if (t_[i].kind != Token::Kind::name || t_[i].text == name) continue;
        if (kernels_.count(t_[i].text)) return kernel_named(i, depth + 1);
    }
    return std::nullopt;
}

void Evaluator::find_kernels() {
    for (std::size_t i = 0; i + 2 < t_.size() && kernels_.size() < kMaxLaunches; ++i) {
        if (t_[i].text != "__global__") continue;
        Kernel k;
        k.at = i;
        std::size_t open = i;
        while (open < t_.size() && !t_[open].is("{") && !t_[open].is(";")) {
            if (t_[open].is("(")) {
                if (t_[open - 1].text != "__launch_bounds__") k.parameters = open;
                else k.bounds = open;
                open = matching(open);
            }
            ++open;
        }
        if (open >= t_.size() || !t_[open].is("{") || k.parameters == 0) continue;
        k.body = open, k.end = matching(open);
        for (std::size_t j = i; j > 0 && j + 12 > i; --j) {  // template <...> before `__global__ static`
            if (t_[j - 1].is(";") || t_[j - 1].is("}")) break;
            if (!t_[j - 1].is(">")) continue;
            std::size_t head = j - 1;
            const std::size_t limit = head > kMaxExpression ? head - kMaxExpression : 0;
            while (head > limit && !(t_[head].text == "template" && t_[head + 1].is("<") && matching(head + 1) == j - 1)) --head;
            if (t_[head].text == "template") k.templates = head + 1;
            break;
        }
        kernels_.emplace(t_[k.parameters - 1].text, k);
        i = open;
    }
}

void Evaluator::find_launches() {
    find_kernels();
    std::size_t looked = 0;
    for (std::size_t i = 0; i + 4 < t_.size() && looked < kMaxLaunches && !kernels_.empty(); ++i) {
        if (t_[i].kind != Token::Kind::name) continue;
        std::size_t after = i + 1;
        const bool launches = t_[after].is("<") && t_[after + 1].is("<") && t_[after + 2].is("<");
        if (t_[after].is("<") && !launches) {
            if (!kernels_.count(t_[i].text)) continue;
            after = matching(after) + 1;
        }
        Launch l;
        l.at = i;
        if (after + 3 < t_.size() && t_[after].is("<") && t_[after + 1].is("<") && t_[after + 2].is("<")) {
            ++looked;
            const auto kernel = kernel_named(i);
            std::size_t end = 0;
            const auto parts = launch_parts(after, &end);
            if (parts.size() > 1) l.threads = parts[1];
            if (!kernel || end >= t_.size() || !t_[end].is("(")) continue;
            l.templates = kernel->second, l.arguments = arguments(end);
            kernels_.at(kernel->first).launches.push_back(l);
        } else if ((t_[i].text == "launch_kernel_on_cluster" || t_[i].text == "cudaLaunchKernelEx") && t_[after].is("(")) {
            ++looked;
            const auto args = arguments(after);
            if (args.size() < 2) continue;
            std::size_t named = args[1].begin;
            while (named + 1 < args[1].end && t_[named].kind != Token::Kind::name) ++named;
            const auto kernel = t_[named].kind == Token::Kind::name ? kernel_named(named) : std::nullopt;
            if (!kernel) continue;
            l.templates = kernel->second, l.arguments.assign(args.begin() + 2, args.end());
            kernels_.at(kernel->first).launches.push_back(l);
        }
    }
    for (const auto& [name, k] : kernels_) variants_ = std::max(variants_, static_cast<int>(std::min<std::size_t>(k.launches.size(), 6)));
    for (auto& [name, k] : kernels_) bind(name, k);
}

// The name that a parameter declares, without its default.
std::size_t Evaluator::declared(Range parameter) const {
    std::size_t last = parameter.end;
    for (std::size_t j = parameter.begin; j < parameter.end; ++j)
        if (t_[j].is("=")) last = std::min(last, j);
    return last == parameter.begin || t_[last - 1].kind != Token::Kind::name ? t_.size() : last - 1;
}

void Evaluator::bind_name(std::size_t name, Range value, const Kernel& k) {
    if (value.empty() || (value.end == value.begin + 1 && t_[value.begin].text == t_[name].text && scopes_[value.begin] == k.body)) return;
    definitions_.emplace(t_[name].text + "@" + std::to_string(k.body), Definition{value, {}, value.begin});
}

// template <int N, class L> __global__ void k(L layout, ...): N, L and `layout` are what the launch says.
void Evaluator::bind(const std::string& name, const Kernel& k) {
    for (std::size_t j = k.templates ? k.templates : k.at; j < k.body; ++j) scopes_[j] = k.body;  // its names hold in its head too
    const auto parameters = k.templates ? arguments(k.templates) : std::vector<Range>{};
    Launch l;
    if (!k.launches.empty()) l = k.launches[std::min<std::size_t>(static_cast<std::size_t>(variant_), k.launches.size() - 1)];
    else l.templates = instantiated(name, k);
    for (std::size_t p = 0; p < parameters.size(); ++p) {
        const std::size_t at = declared(parameters[p]);
        if (at >= t_.size()) continue;
        if (p < l.templates.size()) bind_name(at, l.templates[p], k);
        else if (at + 2 < parameters[p].end && (!l.templates.empty() || !k.launches.empty())) bind_name(at, {at + 2, parameters[p].end}, k);
    }
    const auto declared_ones = arguments(k.parameters);
    for (std::size_t p = 0; p < declared_ones.size() && p < l.arguments.size(); ++p) {
        const Range d = declared_ones[p];
        const std::size_t at = declared(d);
        if (at >= t_.size()) continue;
        // Numbers and pointers stay what they are: any size that the kernel may be given.
        std::size_t type = t_.size();
        bool builtin = false;
        for (std::size_t j = d.begin; j < at; ++j) {
            static const std::set<std::string> words = {"int",     "unsigned", "long",     "size_t",   "float", "double", "bool",
                                                        "int32_t", "int64_t",  "uint32_t", "uint64_t", "char",  "short"};
            builtin = builtin || words.count(t_[j].text) != 0 || t_[j].is("*");
            if (t_[j].kind == Token::Kind::name && t_[j].text != "const" && t_[j].text != "typename" && type == t_.size() &&
                t_[j].text.find("GRID_CONSTANT") == std::string::npos && t_[j].text != "__grid_constant__")
                type = j;
        }
        if (builtin) continue;
        bind_name(at, l.arguments[p], k);
        // class L, ..., L layout: L is the argument's type.
        const auto is_type = [&](Range r) {
            const std::size_t n = declared(r);
            return type < t_.size() && n < t_.size() && t_[n].text == t_[type].text;
        };
        if (std::any_of(parameters.begin(), parameters.end(), is_type)) bind_name(type, l.arguments[p], k);
    }
}

// Arguments of an explicit instantiation, or of another use that is the only one.
std::vector<Range> Evaluator::instantiated(const std::string& name, const Kernel& k) {
    std::vector<Range> given;
    for (std::size_t j = 0; j + 3 < t_.size(); ++j) {
        if (j == k.parameters - 1 || t_[j].text != name || !t_[j + 1].is("<") || t_[j + 2].is("<")) continue;
        const auto args = arguments(j + 1);
        if (args.empty()) continue;
        if (given.empty()) given = args;
        const bool same = args.size() == given.size() && std::equal(args.begin(), args.end(), given.begin(),
                                                                    [&](const Range& a, const Range& b) { return text(a) == text(b); });
        if (!same) return {};
    }
    return given;
}

// `dim3 block(size(mma))` before the launch that takes it, or a number.
std::optional<std::int64_t> Evaluator::threads_in(Range r) {
    const Value v = expression(r);
    if (v.kind == Kind::integer) return v.integer;
    if (r.end != r.begin + 1 || t_[r.begin].kind != Token::Kind::name) return std::nullopt;
    const std::size_t limit = r.begin > 2000 ? r.begin - 2000 : 1;
    for (std::size_t i = r.begin - 1; i > limit; --i) {
        if (t_[i].text != t_[r.begin].text || t_[i - 1].text != "dim3") continue;
        if (!t_[i + 1].is("(") && !t_[i + 1].is("{")) return std::nullopt;
        std::int64_t n = 1;
        for (const Range& part : arguments(i + 1)) {
            const Value e = expression(part);
            if (e.kind != Kind::integer || e.integer < 1 || e.integer > 1024) return std::nullopt;
            n *= e.integer;
        }
        return n;
    }
    return std::nullopt;
}

// Of the kernel, or of the launch in the host's function, that a place is in.
std::optional<std::int64_t> Evaluator::block_threads_at(std::size_t at) const {
    for (const auto& region : block_regions_)
        if (at >= region.begin && at < region.end) return region.threads;
    return block_threads_;
}

void Evaluator::find_block_regions() {
    const auto function_of = [&](std::size_t at) {
        std::size_t block = scopes_[at];
        for (auto it = around_.find(block); it != around_.end() && it->second != 0; it = around_.find(block)) block = it->second;
        return block;
    };
    for (const auto& [name, k] : kernels_) {
        std::optional<std::int64_t> threads;
        const auto bounds = k.bounds ? arguments(k.bounds) : std::vector<Range>{};
        const Value v = bounds.empty() ? Value{} : expression(bounds[0]);
        if (v.kind == Kind::integer) threads = v.integer;
        for (std::size_t n = 0; n < k.launches.size(); ++n) {
            const Launch& l = k.launches[n];
            const bool ours = n == std::min<std::size_t>(static_cast<std::size_t>(variant_), k.launches.size() - 1);
            auto launched = l.threads.empty() ? std::nullopt : threads_in(l.threads);
            if (ours && !threads) threads = launched;
            if (!launched && ours) launched = threads;
            const std::size_t block = function_of(l.at);
            if (block == 0) continue;
            const auto other = std::find_if(block_regions_.begin(), block_regions_.end(), [&](const auto& r) { return r.begin == block; });
            if (other == block_regions_.end()) block_regions_.push_back({block, matching(block), launched});
            else if (other->threads != launched) other->threads = std::nullopt;  // several launches in one function
        }
        if (threads) block_regions_.push_back({k.templates ? k.templates : k.at, k.end, threads});
    }
}

}  // namespace tw::cute
