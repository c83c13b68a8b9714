#include "lower/names.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "base/nearest_name.h"

namespace tw::lower {
namespace {

constexpr std::string_view kBuiltins[] = {
    // grid and loops
    "grid", "tiles", "persistent", "block", "num_blocks", "cluster_rank", "range", "unroll", "cdiv", "assume", "expect", "tag", "covers",
    "disjoint", "fresh",
    // memory
    "shared", "overlay", "load", "store", "atomic_add",
    // tiles
    "zeros", "full", "arange", "coord", "relayout", "sum", "prod", "min", "max", "argmax", "argmin", "any", "minimum", "maximum", "cumsum",
    "cumprod", "shuffle", "exp", "exp2", "log", "log2", "sqrt", "rsqrt", "rcp", "sin", "cos", "tanh", "erf", "sigmoid", "abs", "floor",
    "ceil", "pow", "fma", "where", "mulhi", "philox", "uniform",
    // layouts
    "blocked", "rows", "warp_rows", "mma_a", "mma_b", "mma_c", "wgmma_c", "like",
    // sm_80
    "cp_async", "cp_async_commit", "cp_async_wait", "cp_async_arrive", "mma", "sync", "syncwarp",
    // Hopper
    "mbarrier", "pipeline", "tma_load", "tma_store", "tma_reduce_add", "tma_store_commit", "tma_store_wait", "fence_async", "wgmma",
    "wgmma_wait", "wgmma_batch", "warpgroups", "warps", "elected", "named_barrier", "cluster_sync", "cluster_arrive", "cluster_wait",
    "team",
    // module level
    "sizes", "kernel", "inline", "program", "signature", "record", "table", "Tensor", "scalar", "const", "each", "buffer", "view",
    "parameters"};

struct Methods {
    Value::Kind kind;
    std::string_view names[8];
};
constexpr Methods kMethods[] = {
    {Value::Kind::tile, {"to"}},
    {Value::Kind::barrier, {"wait", "arrive", "expect"}},
    {Value::Kind::ring, {"acquire", "full", "commit", "wait", "release"}},
    {Value::Kind::named_barrier, {"sync", "arrive"}},
    {Value::Kind::team, {"send", "receive"}},
    {Value::Kind::table, {"get"}},
};

}  // namespace

bool is_builtin(const std::string& name) { return std::find(std::begin(kBuiltins), std::end(kBuiltins), name) != std::end(kBuiltins); }

std::vector<std::string> builtin_names() { return {std::begin(kBuiltins), std::end(kBuiltins)}; }

std::string nearest_builtin_hint(const std::string& name) {
    if (std::string hint = borrowed_function(name); !hint.empty()) return hint;
    NearestName nearest(name);
    for (std::string_view candidate : kBuiltins) nearest.consider(candidate);
    return nearest.best().empty() ? "docs/language.md lists every name" : "did you mean tw." + nearest.best() + "?";
}

bool has_method(const Value& v, const std::string& name) {
    for (const Methods& m : kMethods) {
        if (m.kind != v.kind) continue;
        for (std::string_view n : m.names) {
            if (n == name) return true;
        }
    }
    return false;
}

std::string method_hint(const Value& v, const std::string& name) {
    if (std::string hint = borrowed_method(v, name); !hint.empty()) return hint;
    if (v.is(Value::Kind::barriers)) return "take one of them: bars[0].wait(0), bars[i].arrive()";
    for (const Methods& m : kMethods) {
        if (m.kind != v.kind) continue;
        std::string s;
        for (std::string_view n : m.names) {
            if (!n.empty()) s += (s.empty() ? "it has ." : ", .") + std::string(n);
        }
        return s;
    }
    if (v.is(Value::Kind::shared)) return "it has .T";
    return "";
}

std::string not_a_name(const std::string& text) {
    std::string shown = text.substr(0, 40);
    std::replace_if(
        shown.begin(), shown.end(), [](unsigned char c) { return c < 0x20; }, ' ');
    return "'" + shown + (text.size() > 40 ? "..." : "") + "' is not a name";
}

}  // namespace tw::lower
