#include "ir/print_device.h"

namespace tw::ir {
namespace {

std::string numbers(const std::vector<int>& list) {
    std::string text;
    for (int n : list) text += (text.empty() ? "" : ",") + std::to_string(n);
    return text;
}

std::string text_of(const FoldPlan& f, const auto& fragment) {
    if (!f.cannot.empty()) return " ! fold impossible: " + f.cannot;
    static constexpr const char* units[] = {"", " words of two results", " words"};
    std::string text = " ! fold " + std::to_string(f.parts.size()) + " x " + std::to_string(f.parts[0].size()) +
                       units[static_cast<int>(f.unit)] + " chains=" + std::to_string(f.chains);
    if (!f.lanes.empty()) text += " lanes=" + numbers(f.lanes);
    if (f.meet) text += " halves meet";
    if (f.left_over >= 0) text += " last=" + std::to_string(f.left_over);
    if (f.own >= 0) text += " own=" + fragment(f.own);
    if (f.flag >= 0) text += " unless not " + fragment(f.flag);
    return text;
}

std::string text_of(const AccessPlan& a, const auto& expr) {
    static constexpr const char* ends[] = {"whole", "some", "between"};
    std::string text = " ! access width=" + std::to_string(a.width) + " ends=" + ends[static_cast<int>(a.ends)];
    for (std::size_t i = 0; i < a.dims.size(); ++i) {
        if (!a.dims[i].tested) continue;
        text += " dim" + std::to_string(i) + (a.dims[i].from_start ? ">=0" : "") + "<" + expr(a.dims[i].end);
    }
    return text + (a.two_ways ? " two_ways" : "") + (a.read_only ? " read_only" : "");
}

}  // namespace

std::string device_text(const Kernel& k, const DeviceStmt& d) {
    const ExprNames names = names_of(k);
    auto expr = [&](const Expr& e) { return to_string(e, names); };
    auto fragment = [&](int f) { return "%" + k.fragments[static_cast<std::size_t>(f)].name; };
    std::string text;
    if (d.mask) text += " ! mask everywhere=" + expr(d.mask->everywhere) + " run=" + std::to_string(d.mask->run);
    if (d.search)
        text += " ! search " + fragment(d.search->flag) +
                (d.search->own < 0 ? " by elements"
                                   : " = " + fragment(d.search->own) + (d.search->is_max ? " >= " : " <= ") + fragment(d.search->best));
    if (d.unless_ones >= 0) text += " ! unless all " + fragment(d.unless_ones) + " are 1";
    if (d.in_words) text += " ! in words";
    if (d.pinned) text += " ! pinned";
    if (d.fold) text += text_of(*d.fold, fragment);
    if (d.access) text += text_of(*d.access, expr);
    if (d.ring) text += " ! ring of " + std::to_string(d.ring->period) + ": " + names.var(d.ring->slot) + ", " + names.var(d.ring->phase);
    if (d.width > 0) text += " ! width=" + std::to_string(d.width);
    if (d.opaque) text += " ! addresses anew";
    return text;
}

}  // namespace tw::ir
