#include "codegen/plan.h"

namespace tw::codegen {

nlohmann::json plan(const ir::Kernel& k, const EmittedKernel& emitted) {
    using nlohmann::json;
    const ir::ExprNames names = ir::names_of(k);
    auto text = [&](const ir::Expr& e) { return ir::to_string(e, names); };
    auto texts = [&](const std::vector<ir::Expr>& list) {
        json out = json::array();
        for (const ir::Expr& e : list) out.push_back(text(e));
        return out;
    };
    json tensors = json::array(), scalars = json::array(), maps = json::array(), arguments = json::array(), parameters = json::array(),
         assumptions = json::array(), constants = json::object();
    for (const ir::Tensor& t : k.tensors) {
        tensors.push_back({{"name", t.name},
                           {"dtype", target::name(t.dtype)},
                           {"dims", texts(t.dims)},
                           {"strides", texts(t.strides)},
                           {"output", t.is_output},
                           {"zeroed", t.zero_initialised},
                           {"stable", t.stable}});
    }
    for (const ir::ScalarParam& s : k.scalars) scalars.push_back({{"name", s.name}, {"dtype", target::name(s.dtype)}});
    for (const ir::TensorMap& m : k.tensor_maps) {
        maps.push_back({{"tensor", m.tensor},
                        {"dims", m.dims},
                        {"box", m.box},
                        {"swizzle_bytes", m.swizzle == target::SwizzleMode::None ? 0 : target::span_bytes(m.swizzle)},
                        {"fill_with_nan", m.nan_fill},
                        {"l2_promotion_bytes", m.l2_promotion_bytes}});
    }
    for (const Argument& a : emitted.arguments) arguments.push_back({{"kind", name_of(a.kind)}, {"id", a.id}});
    for (const auto& [kind, id] : k.parameters) parameters.push_back({{"kind", kind == 't' ? "tensor" : "scalar"}, {"id", id}});
    for (const ir::Assumption& a : k.assumptions) assumptions.push_back({{"condition", text(a.condition)}, {"text", a.text}});
    for (const ir::ConstParam& c : k.consts) constants[c.name] = c.value;
    return {{"name", k.name},
            {"variant", k.variant},
            {"entry", emitted.entry},
            {"arch", k.arch},
            {"source", emitted.source},
            {"sizes", k.sizes},
            {"tensors", tensors},
            {"scalars", scalars},
            {"parameters", parameters},
            {"tensor_maps", maps},
            {"arguments", arguments},
            {"assumptions", assumptions},
            {"constants", constants},
            {"threads", 32 * k.warps},
            {"cluster", {k.cluster[0], k.cluster[1], k.cluster[2]}},
            {"grid", {text(k.grid[0]), text(k.grid[1]), text(k.grid[2])}},
            {"persistent", k.persistent},
            {"blocks_per_sm", k.min_blocks_per_sm},
            {"dependent_launch", k.dependent_launch},
            {"shared_bytes", k.shared_bytes}};
}

}  // namespace tw::codegen
