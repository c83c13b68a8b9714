#include "verify/strides.h"

#include <algorithm>
#include <numeric>

#include "base/processor_time.h"
#include "ir/promise.h"
#include "verify/prove.h"

namespace tw::verify {
namespace {

// Dimensions beyond this are tried in the order written and reversed only: 24 orders are few, 40320 are not.
constexpr std::size_t most_ordered = 4;

class Strides {
public:
    explicit Strides(const ir::Kernel& k) : k_(k), prover_(ints_) {
        for (const std::string& name : k.sizes) sizes_.push_back(Poly::of(ints_.symbol(name, 0)));
        for (const ir::Assumption& a : k.assumptions) prover_.assume(ints_.condition_from(a.condition, leaf()));
    }

    std::vector<Obligation> run() {
        std::vector<Obligation> result;
        for (const ir::Tensor& t : k_.tensors) {
            if (rows_follow_one_another(t)) continue;
            const double start = processor_milliseconds();
            Obligation o;
            o.kind = "places";
            o.code = "TW1003";
            o.text = t.is_output ? "every element of " + t.name + " has a place of its own, all sizes"
                                 : "no element of " + t.name + " lies before its first, all sizes";
            o.loc = k_.loc;
            prover_.push();
            for (const ir::Expr& e : t.dims) prover_.assume(at_least(of(e), Poly(1)));  // a tensor without elements has no two that meet
            const bool proved = none_before_the_first(t, o.reason) && (!t.is_output || apart(t, o.reason));
            o.prover = proved ? (prover_.last().empty() ? "affine" : prover_.last()) : "";
            prover_.pop();
            o.status = proved ? Status::proved : Status::not_proved;
            for (const ir::Assumption& a : k_.assumptions) o.used.push_back("precondition: " + a.text);
            o.milliseconds = processor_milliseconds() - start;
            result.push_back(std::move(o));
        }
        return result;
    }

private:
    Integers::Leaf leaf() {
        return [this](const ir::ExprNode& n) {
            return n.kind == ir::ExprKind::size ? sizes_[static_cast<std::size_t>(n.id)] : Poly::of(ints_.fresh("unset"));
        };
    }
    Poly of(const ir::Expr& e) { return ints_.from(e, leaf()); }
    std::string text(const ir::Expr& e) const { return ir::to_string(e, ir::names_of(k_)); }

    bool rows_follow_one_another(const ir::Tensor& t) {
        Poly stride(1);
        for (std::size_t d = t.dims.size(); d-- > 0;) {
            if (!(of(t.strides[d]) == stride)) return false;
            stride = stride * of(t.dims[d]);
        }
        return true;
    }

    // A stride matters only where the dimension has two indices.
    bool holds_where_it_matters(const ir::Tensor& t, std::size_t d, const Condition& c) {
        return prover_.holds(either(at_least(Poly(1), of(t.dims[d])), c));
    }

    bool none_before_the_first(const ir::Tensor& t, std::string& why) {
        for (std::size_t d = 0; d < t.dims.size(); ++d) {
            if (!holds_where_it_matters(t, d, at_least(of(t.strides[d]), Poly(0))))
                return why = "stride " + std::to_string(d) + ", " + text(t.strides[d]) + ", may be negative", false;
        }
        return true;
    }

    // In some order of the dimensions each step is longer than all that lies below it reaches.
    bool apart(const ir::Tensor& t, std::string& why) {
        std::vector<std::size_t> order(t.dims.size());
        std::iota(order.begin(), order.end(), 0);
        const auto try_order = [&](const auto& first, const auto& end) {
            Poly reach(0);
            for (auto d = first; d != end; ++d) {
                if (!holds_where_it_matters(t, *d, less(reach, of(t.strides[*d])))) return false;
                reach = reach + of(t.strides[*d]) * (of(t.dims[*d]) - Poly(1));
            }
            return true;
        };
        if (try_order(order.rbegin(), order.rend()) || try_order(order.begin(), order.end())) return true;
        // Numbers say the order themselves, however many dimensions there are.
        if (std::all_of(t.strides.begin(), t.strides.end(), [](const ir::Expr& e) { return e.kind() == ir::ExprKind::constant; })) {
            std::vector<std::size_t> by_stride = order;
            std::stable_sort(by_stride.begin(), by_stride.end(),
                             [&](std::size_t a, std::size_t b) { return t.strides[a]->value < t.strides[b]->value; });
            if (try_order(by_stride.begin(), by_stride.end())) return true;
        }
        if (order.size() <= most_ordered) {
            do {
                if (try_order(order.begin(), order.end())) return true;
            } while (std::next_permutation(order.begin(), order.end()));
        }
        std::string strides, dims;
        for (std::size_t d = 0; d < t.dims.size(); ++d)
            strides += (d ? ", " : "") + text(t.strides[d]), dims += (d ? ", " : "") + text(t.dims[d]);
        why = "with strides (" + strides + ") two elements of (" + dims +
              ") may be one place: a stride must be longer than what the dimensions below it reach, for every size that the assumptions "
              "admit";
        return false;
    }

    const ir::Kernel& k_;
    Integers ints_;
    Prover prover_;
    std::vector<Poly> sizes_;
};

}  // namespace

std::vector<Obligation> check_strides(const ir::Kernel& kernel) {
    const std::uint64_t overflows = coefficient_overflows();
    std::vector<Obligation> obligations = Strides(kernel).run();
    distrust_after_overflow(obligations, overflows);
    return obligations;
}

}  // namespace tw::verify
