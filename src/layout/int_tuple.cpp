#include "layout/int_tuple.h"

#include <fmt/format.h>

namespace tw::layout {

int IntTupleView::depth() const {
    if (is_leaf()) return 0;
    int deepest = 0;
    for (IntTupleView child : *this) deepest = std::max(deepest, child.depth());
    return deepest + 1;
}

int IntTupleView::leaf_count() const {
    int count = 0;
    for (const IntTupleNode* n = node_; n != node_ + node_->nodes; ++n) count += n->arity < 0;
    return count;
}

IntTupleView IntTupleView::operator[](int i) const {
    assert(i >= 0 && i < rank());
    Iterator it = begin();
    for (; i > 0; --i) ++it;
    return *it;
}

bool IntTupleView::operator==(const IntTupleView& other) const {
    return node_->nodes == other.node_->nodes && std::equal(node_, node_ + node_->nodes, other.node_);
}

IntTuple IntTuple::empty() {
    IntTuple t;
    t.nodes_[0] = {0, 0, 1};
    return t;
}

void IntTuple::push_back(IntTupleView child) {
    assert(is_tuple());
    const IntTupleNode* first = child.node();
    const std::int32_t count = first->nodes;
    if (first >= nodes_.begin() && first < nodes_.end()) {  // the child is a part of this very tuple
        const IntTuple copy(child);
        nodes_.append(copy.nodes_.begin(), copy.nodes_.end());
    } else {
        nodes_.append(first, first + count);
    }
    nodes_[0].arity += 1;
    nodes_[0].nodes += count;
}

FlatInts leaves(IntTupleView t) {
    FlatInts out;
    for (const IntTupleNode* n = t.node(); n != t.node() + t.node()->nodes; ++n)
        if (n->arity < 0) out.push_back(n->value);
    return out;
}

namespace {

IntTuple unflatten_from(const FlatInts& values, IntTupleView profile, std::size_t& next) {
    if (profile.is_leaf()) return IntTuple(values[next++]);
    IntTuple out = IntTuple::empty();
    for (IntTupleView child : profile) out.push_back(unflatten_from(values, child, next));
    return out;
}

void print(IntTupleView t, std::string& out) {
    if (t.is_underscore()) {
        out += '_';
    } else if (t.is_leaf()) {
        fmt::format_to(std::back_inserter(out), "{}", t.value());
    } else {
        out += '(';
        bool first = true;
        for (IntTupleView child : t) {
            if (!first) out += ',';
            first = false;
            print(child, out);
        }
        out += ')';
    }
}

}  // namespace

IntTuple unflatten(const FlatInts& values, IntTupleView profile) {
    assert(static_cast<int>(values.size()) == profile.leaf_count());
    std::size_t next = 0;
    return unflatten_from(values, profile, next);
}

IntTuple unwrap(const FlatInts& values) {
    if (values.size() == 1) return IntTuple(values[0]);
    IntTuple out = IntTuple::empty();
    for (std::int64_t v : values) out.push_back(IntTuple(v));
    return out;
}

bool congruent(IntTupleView a, IntTupleView b) {
    const IntTupleNode* x = a.node();
    const IntTupleNode* y = b.node();
    if (x->nodes != y->nodes) return false;
    for (std::int32_t i = 0; i < x->nodes; ++i)
        if (x[i].arity != y[i].arity) return false;
    return true;
}

Result<std::int64_t> product(IntTupleView t) {
    std::int64_t result = 1;
    for (std::int64_t v : leaves(t)) {
        const auto next = checked_mul(result, v);
        if (!next) return fail(fmt::format("the product of {} does not fit in 64 bits", to_string(t)));
        result = *next;
    }
    return result;
}

Result<IntTuple> product_each(IntTupleView t) {
    if (t.is_leaf()) return IntTuple(t);
    IntTuple out = IntTuple::empty();
    for (IntTupleView child : t) {
        TW_LAYOUT_TRY(p, product(child));
        out.push_back(IntTuple(p));
    }
    return out;
}

std::string to_string(IntTupleView t) {
    std::string out;
    print(t, out);
    return out;
}

}  // namespace tw::layout
