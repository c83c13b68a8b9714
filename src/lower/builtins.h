// The functions of `tw.`, by family. Each gives nothing when the name is not of its family.
#pragma once

#include <optional>

#include "lower/resolver.h"

namespace tw::lower {

struct Builtins {
    Resolver& r;

    std::optional<Value> scalars(const std::string& name, const CallArgs& args);  // cdiv, min, grid, block, assume ...
    std::optional<Value> tiles(const std::string& name, const CallArgs& args);    // zeros, exp, sum, layouts ...
    std::optional<Value> memory(const std::string& name, const CallArgs& args);   // shared, load, store, cp_async, tma ...
    std::optional<Value> sync(const std::string& name, const CallArgs& args);     // barriers, pipelines, wgmma, mma ...
    std::optional<Value> method(const Value& receiver, const std::string& name, const CallArgs& args);

    // of integers
    Value real(const CallArgs& args);
    Value integer(const CallArgs& args);
    Value grid(const CallArgs& args);
    Value assume(const CallArgs& args);

    // of tiles
    Value unary(ir::ElementOp op, const std::string& name, const CallArgs& args);
    Value where(const CallArgs& args);
    std::optional<Value> random(const std::string& name, const CallArgs& args);
    Value folded(const std::string& name, const CallArgs& args);
    Value vote(const CallArgs& args);
    Value scanned(const std::string& name, const CallArgs& args);
    Value filled(const std::string& name, const CallArgs& args);
    Value coordinates(const std::string& name, const CallArgs& args);
    Value relayout(const CallArgs& args);
    Value layout(LayoutKind kind, const std::string& name, const CallArgs& args);

    // shared by the families
    std::optional<LayoutRequest> layout_of(const Bound& b, const char* key);
    std::optional<ir::CacheHint> hint_of(const Bound& b);
    std::optional<std::vector<std::optional<ir::Expr>>> limits_of(const Bound& b, std::size_t rank);
    Value emit_sugar(SugarOp op, std::string text, Span span);
    Value wgmma(const CallArgs& args);
    Value mma(const CallArgs& args);
    Value team(const CallArgs& args);
    Value team_send(int team, const CallArgs& args);
    Value team_receive(int team, const CallArgs& args);
    Value tma(const std::string& name, const CallArgs& args);
    bool peer_of(const Bound& b, ir::SharedView& view);  // rank=: another block's shared memory; false: reported
    bool filled_from(const Value& limit, const Value& tile, std::size_t axis, double identity);
    Value extreme_index(ir::FoldKind fold, const Bound& b, Span span);  // tw.argmax, tw.argmin
    Value shuffle(const Bound& b, Span span);
    Value load(const CallArgs& args);
    Value store(const std::string& name, const CallArgs& args);
    Value cp_async(const CallArgs& args);
    Value shared(const CallArgs& args);
    Value overlay(const CallArgs& args);
    Value done() const { return Value::of_none(); }
    std::string fragment_name(int f) const { return "%" + r.d.kernel.fragments[static_cast<std::size_t>(f)].name; }
};

}  // namespace tw::lower
