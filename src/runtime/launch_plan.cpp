#include "runtime/launch_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <optional>

#include "ir/int_range.h"

namespace tw::runtime {

namespace {

std::string list(const std::vector<std::int64_t>& values) {
    std::string text;
    for (std::int64_t v : values) text += (text.empty() ? "" : ", ") + std::to_string(v);
    return "(" + text + ")";
}

struct Sizes {
    std::vector<std::optional<std::int64_t>> value;
    std::vector<std::string> from;  // which argument gave it

    std::optional<std::int64_t> operator()(const ir::Expr& e) const {
        return ir::evaluate(e, [&](const ir::ExprNode& leaf, const std::vector<std::int64_t>&) -> std::optional<std::int64_t> {
            if (leaf.kind == ir::ExprKind::size) return value[static_cast<std::size_t>(leaf.id)];
            return std::nullopt;
        });
    }
};

Unexpected<Failure> refuse(std::string message, std::string fix = {}) {
    return fail(FailureKind::bad_input, std::move(message), std::move(fix));
}

// Bytes [first, end) that a tensor touches; empty when it has no element.
std::pair<std::uint64_t, std::uint64_t> span_of(const TensorArgument& t) {
    std::uint64_t last = 0;
    for (std::size_t i = 0; i < t.dims.size(); ++i) {
        if (t.dims[i] == 0) return {t.address, t.address};
        last += static_cast<std::uint64_t>((t.dims[i] - 1) * t.strides[i]);
    }
    return {t.address, t.address + (last + 1) * static_cast<std::uint64_t>(target::bytes(t.dtype))};
}

// Do two elements share an address? In order of the strides each step must be longer than what the dimensions below it reach, which is what
// the verifier demands of the declared strides for all sizes (verify/strides.h).
bool elements_meet(const TensorArgument& t) {
    std::vector<std::pair<std::int64_t, std::int64_t>> steps;  // stride, extent
    for (std::size_t d = 0; d < t.dims.size(); ++d) {
        if (t.dims[d] == 0) return false;
        if (t.dims[d] > 1) steps.emplace_back(t.strides[d], t.dims[d]);
    }
    std::sort(steps.begin(), steps.end());
    std::int64_t reach = 0;
    for (const auto& [stride, extent] : steps) {
        if (stride <= reach) return true;
        reach += stride * (extent - 1);
    }
    return false;
}

// The only size without a value in a sum of products, -1 when there is none or it is not the only one (or occurs otherwise).
int only_unknown(const ir::Expr& e, const Sizes& sizes) {
    int found = -1;
    bool one = true;
    const std::function<void(const ir::Expr&)> look = [&](const ir::Expr& x) {
        if (x.kind() == ir::ExprKind::size && !sizes.value[static_cast<std::size_t>(x->id)]) {
            one &= found < 0;
            found = x->id;
        }
        one &= x.kind() == ir::ExprKind::size || x.kind() == ir::ExprKind::constant || x.kind() == ir::ExprKind::add ||
               x.kind() == ir::ExprKind::sub || x.kind() == ir::ExprKind::mul;
        for (const ir::Expr& arg : x->args) look(arg);
    };
    look(e);
    return one ? found : -1;
}

// Sizes that are no whole dimension: `8 * TILES` tells TILES. Whether every dimension then fits is for check_layout to say.
Result<void> solve_sizes(const ir::Kernel& k, const LaunchArguments& a, Sizes& sizes) {
    for (bool again = true; again;) {
        again = false;
        for (std::size_t i = 0; i < k.tensors.size(); ++i) {
            for (std::size_t d = 0; d < k.tensors[i].dims.size(); ++d) {
                const ir::Expr& want = k.tensors[i].dims[d];
                const int id = only_unknown(want, sizes);
                if (id < 0) continue;
                auto& value = sizes.value[static_cast<std::size_t>(id)];
                value = 0;
                const auto at_zero = sizes(want);
                value = 1;
                const auto at_one = sizes(want);
                value.reset();
                if (!at_zero || !at_one || *at_one <= *at_zero) continue;
                const std::int64_t step = *at_one - *at_zero, rest = a.tensors[i].dims[d] - *at_zero;
                if (rest < 0 || rest % step != 0) {
                    return refuse(fmt::format("dimension {} of {} is {}; {} is expected, {} and a multiple of {}", d, k.tensors[i].name,
                                              a.tensors[i].dims[d], ir::to_string(want, ir::names_of(k)), *at_zero, step));
                }
                value = rest / step;
                sizes.from[static_cast<std::size_t>(id)] = fmt::format("dimension {} of {}", d, k.tensors[i].name);
                again = true;
            }
        }
    }
    return {};
}

Result<void> check_shapes(const ir::Kernel& k, const LaunchArguments& a, Sizes& sizes) {
    for (std::size_t i = 0; i < k.tensors.size(); ++i) {
        const ir::Tensor& want = k.tensors[i];
        const TensorArgument& got = a.tensors[i];
        if (got.dtype != want.dtype) {
            return refuse(fmt::format("{} is {}, {} is expected", want.name, target::name(got.dtype), target::name(want.dtype)),
                          "convert it before the call");
        }
        if (got.dims.size() != want.dims.size() || got.strides.size() != want.dims.size()) {
            return refuse(
                fmt::format("{} has {} dimensions {}, {} are expected", want.name, got.dims.size(), list(got.dims), want.dims.size()));
        }
        for (std::size_t d = 0; d < want.dims.size(); ++d) {
            // Indices are 32-bit and may run past the end by less than a tile.
            if (got.dims[d] < 0 || got.dims[d] > INT32_MAX - 65535)
                return refuse(fmt::format("dimension {} of {} is {}; kernels take up to 2^31 - 2^16", d, want.name, got.dims[d]));
            if (want.dims[d].kind() != ir::ExprKind::size) continue;
            const auto id = static_cast<std::size_t>(want.dims[d]->id);
            if (!sizes.value[id]) {
                sizes.value[id] = got.dims[d];
                sizes.from[id] = fmt::format("dimension {} of {}", d, want.name);
            } else if (*sizes.value[id] != got.dims[d]) {
                return refuse(fmt::format("{} is {} as dimension {} of {}, but {} as {}", k.sizes[id], got.dims[d], d, want.name,
                                          *sizes.value[id], sizes.from[id]));
            }
        }
    }
    if (auto solved = solve_sizes(k, a, sizes); !solved) return solved;
    for (std::size_t id = 0; id < k.sizes.size(); ++id) {
        if (!sizes.value[id])
            return refuse(fmt::format("no argument tells the size {}", k.sizes[id]),
                          "a tensor parameter needs it as a dimension, whole or multiplied by what is known");
        if (*sizes.value[id] > INT32_MAX - 65535)
            return refuse(fmt::format("{} is {}, from {}; kernels take up to 2^31 - 2^16", k.sizes[id], *sizes.value[id], sizes.from[id]));
    }
    return {};
}

}  // namespace

int address_multiple(const ir::Tensor& tensor) {
    const bool strided = !tensor.strides.empty() && std::all_of(tensor.strides.begin(), tensor.strides.end(), [](const ir::Expr& s) {
        const auto value = s.as_constant();
        return value && *value > 1;
    });
    return strided ? target::bytes(tensor.dtype) : 16;
}

namespace {

Result<void> check_layout(const ir::Kernel& k, const LaunchArguments& a, const Sizes& sizes) {
    const ir::ExprNames names = ir::names_of(k);
    for (std::size_t i = 0; i < k.tensors.size(); ++i) {
        const ir::Tensor& want = k.tensors[i];
        const TensorArgument& got = a.tensors[i];
        bool has_elements = true;
        for (std::size_t d = 0; d < want.dims.size(); ++d) {
            const auto extent = sizes(want.dims[d]);
            if (!extent || *extent != got.dims[d]) {
                return refuse(fmt::format("dimension {} of {} is {}, {} = {} is expected", d, want.name, got.dims[d],
                                          ir::to_string(want.dims[d], names), extent.value_or(-1)));
            }
            has_elements &= got.dims[d] > 0;
        }
        for (std::size_t d = 0; d < want.dims.size() && has_elements; ++d) {
            if (got.dims[d] > 1 && got.strides[d] < 0)
                return refuse(fmt::format("{} has strides {}; a stride is not negative", want.name, list(got.strides)));
        }
        if (want.is_output && elements_meet(got)) {
            return refuse(fmt::format("{} is written, and with strides {} two of its {} elements are one place in memory", want.name,
                                      list(got.strides), list(got.dims)),
                          fmt::format("give {} memory of its own for every element: not an expanded or overlapping view", want.name));
        }
        for (std::size_t d = 0; d < want.dims.size() && has_elements; ++d) {
            const auto stride = sizes(want.strides[d]);
            if (got.dims[d] > 1 && (!stride || *stride != got.strides[d])) {
                return refuse(
                    fmt::format("{} has strides {}; dimension {} must step by {} = {}", want.name, list(got.strides), d,
                                ir::to_string(want.strides[d], names), stride.value_or(-1)),
                    want.is_output
                        ? fmt::format("give {} memory with these strides: torch.empty makes rows that follow one another", want.name)
                        : fmt::format("pass {}.contiguous()", want.name));
            }
        }
        if (const int multiple = address_multiple(want); has_elements && got.address % multiple != 0) {
            return refuse(fmt::format("{} starts at an address that is not a multiple of {}", want.name, multiple),
                          fmt::format("pass {}.clone(), or a view that starts at a multiple of {} bytes", want.name, multiple));
        }
        if (has_elements && got.address == 0) return refuse(fmt::format("{} has no memory", want.name));
    }
    for (std::size_t i = 0; i < k.tensors.size(); ++i) {
        if (!k.tensors[i].is_output) continue;
        const auto out = span_of(a.tensors[i]);
        for (std::size_t j = 0; j < k.tensors.size(); ++j) {
            const auto other = span_of(a.tensors[j]);
            if (i != j && out.first < other.second && other.first < out.second) {
                return refuse(
                    fmt::format("{} and {} share memory, and {} is written", k.tensors[i].name, k.tensors[j].name, k.tensors[i].name),
                    fmt::format("give {} memory of its own", k.tensors[i].name));
            }
        }
    }
    return {};
}

std::string values_of(const ir::Kernel& k, const Sizes& sizes) {
    std::string text;
    for (std::size_t i = 0; i < k.sizes.size(); ++i) text += fmt::format("{}{} = {}", i ? ", " : "", k.sizes[i], *sizes.value[i]);
    return text;
}

}  // namespace

Result<BoundLaunch> bind(const ir::Kernel& k, const LaunchArguments& a) {
    if (a.tensors.size() != k.tensors.size() || a.scalars.size() != k.scalars.size()) {
        return refuse(fmt::format("{} takes {} tensors and {} scalars; {} and {} were given", k.name, k.tensors.size(), k.scalars.size(),
                                  a.tensors.size(), a.scalars.size()));
    }
    for (std::size_t i = 0; i < k.scalars.size(); ++i) {
        if (k.scalars[i].positive && !(a.scalars[i] > 0))
            return refuse(fmt::format("{} of {} must be positive, and is {}", k.scalars[i].name, k.name, a.scalars[i]));
    }
    Sizes sizes{std::vector<std::optional<std::int64_t>>(k.sizes.size()), std::vector<std::string>(k.sizes.size())};
    if (auto ok = check_shapes(k, a, sizes); !ok) return std::move(ok).propagate();
    if (auto ok = check_layout(k, a, sizes); !ok) return std::move(ok).propagate();
    for (const ir::Assumption& assumed : k.assumptions) {
        if (sizes(assumed.condition).value_or(0) == 0) {
            return refuse(fmt::format("the kernel assumes {}, which does not hold for {}", assumed.text, values_of(k, sizes)),
                          "pad the tensors, or add a variant without this assumption");
        }
    }
    BoundLaunch bound;
    for (const auto& v : sizes.value) bound.sizes.push_back(*v);
    for (const ir::Tensor& t : k.tensors) {
        bound.strides.emplace_back();
        for (const ir::Expr& e : t.strides) bound.strides.back().push_back(sizes(e).value_or(0));
    }
    for (int axis = 0; axis < 3; ++axis) {
        const auto blocks = sizes(k.grid[axis]);
        if (!blocks) return fail(FailureKind::internal, fmt::format("the grid of {} cannot be computed", k.name));
        const std::int64_t most = axis == 0 ? INT32_MAX : 65535;
        if (*blocks > most)
            return refuse(fmt::format("{} blocks along axis {} are more than the {} a launch can have", *blocks, axis, most),
                          "use larger tiles, or put the long dimension first in tw.grid");
        if (*blocks <= 0) bound.empty = true;
        bound.grid[axis] = static_cast<std::uint32_t>(std::max<std::int64_t>(*blocks, 0));
    }
    if (bound.empty) return bound;
    const std::int64_t grid[3] = {bound.grid[0], bound.grid[1], bound.grid[2]};
    if (const auto far = ir::beyond_32_bits(k, bound.sizes, grid)) {
        return refuse(fmt::format("{} counts with 32 bits, and for {} that may not be enough for {}", k.name, values_of(k, sizes), *far),
                      "launch it on parts of the tensors");
    }
    return bound;
}

Result<Choice> choose(const std::vector<const ir::Kernel*>& variants, const LaunchArguments& arguments) {
    std::string reasons, fix;
    for (std::size_t i = 0; i < variants.size(); ++i) {
        auto bound = bind(*variants[i], arguments);
        if (bound) return Choice{i, *std::move(bound)};
        if (bound.error().kind != FailureKind::bad_input) return std::move(bound).propagate();
        if (variants.size() == 1) return std::move(bound).propagate();
        if (reasons.find(bound.error().message) == std::string::npos) reasons += (reasons.empty() ? "" : "; ") + bound.error().message;
        fix = bound.error().fix;
    }
    return refuse(variants.empty() ? "there is no such kernel" : "no variant takes these arguments: " + reasons, fix);
}

std::uint32_t resident_grid(const ir::Kernel& k, std::uint32_t work, int multiprocessors) {
    if (!k.persistent) return work;
    const auto cluster = static_cast<std::uint32_t>(std::max(1, k.cluster[0]));
    const auto resident = static_cast<std::uint32_t>(multiprocessors * std::max(1, k.min_blocks_per_sm)) / cluster * cluster;
    return std::min(work, std::max(resident, cluster));
}

}  // namespace tw::runtime
