// Statements: scopes, assignment, loops, branches, roles.
#include <fmt/format.h>

#include "lower/facts.h"
#include "lower/resolver.h"

namespace tw::lower {

using lang::ExprId;
using lang::StmtId;
using K = Value::Kind;

ir::Stmt& Resolver::emit(ir::Operation op, Span span, std::string note) {
    body_started_ = true;
    if (++statements_ > kMaxStatements && !stopped_) {
        stopped_ = true;
        error(Code::too_much_code, span, fmt::format("the kernel has more than {} statements after inlining and unrolling", kMaxStatements),
              "use tw.range instead of tw.unroll for long loops");
    }
    out_->push_back(ir::Stmt{std::move(op), loc(span), std::move(note)});
    return out_->back();
}

// ---- names ----

const Binding* Resolver::find(const std::string& name) const {
    for (std::size_t i = frames_.size(); i-- > 0;) {
        auto it = frames_[i].names.find(name);
        if (it != frames_[i].names.end()) return &it->second;
        if (frames_[i].function) break;
    }
    auto it = module.names.find(name);
    return it == module.names.end() ? nullptr : &it->second;
}

// The binding an assignment may write through to. `outer`: it belongs to an enclosing block, so it must be changed in place.
Binding* Resolver::find_assignable(const std::string& name, bool& outer) {
    outer = false;
    for (std::size_t i = frames_.size(); i-- > 0;) {
        auto it = frames_[i].names.find(name);
        if (it != frames_[i].names.end()) {
            outer = i + 1 != frames_.size();
            return &it->second;
        }
        if (frames_[i].function || frames_[i].role) break;
    }
    return nullptr;
}

ir::Expr Resolver::size_of(const std::string& name) {
    auto& sizes = d.kernel.sizes;
    for (std::size_t i = 0; i < sizes.size(); ++i) {
        if (sizes[i] == name) return ir::size_expr(static_cast<int>(i));
    }
    sizes.push_back(name);
    d.taken[name] = 1;
    return ir::size_expr(static_cast<int>(sizes.size()) - 1);
}

Value Resolver::lookup(const std::string& name, Span span) {
    if (const Binding* b = find(name)) {
        const Value& v = b->value;
        if (v.is(K::size) && !module_level) return Value::of_expr(size_of(v.text));
        if (v.is(K::tile) && v.tile->element->op == ir::ElementOp::fragment) {
            const int fragment = v.tile->element->id;
            if (d.notes[static_cast<std::size_t>(fragment)].group != group_) {
                auto& diagnostic = cx.error(Code::foreign_fragment, span, fmt::format("'{}' lives in the registers of other threads", name));
                diagnostic.with_note(b->span, "it is made here").with_hint("make it inside the role that uses it, or pass it through shared memory");
                return {};
            }
        }
        return v;
    }
    static const std::set<std::string> python = {"range", "min", "max", "abs", "float", "int", "len"};
    if (python.count(name)) return Value::named(K::builtin, name);
    auto ended = ended_.find(name);
    if (ended != ended_.end()) {
        auto& diagnostic = cx.error(Code::name_out_of_scope, span, fmt::format("'{}' ended with the block that defined it", name));
        diagnostic.with_note(ended->second, "it is defined here").with_hint("define it before the loop, branch or role");
        return {};
    }
    std::string hint;
    std::size_t best = 3;
    auto consider = [&](const std::string& candidate) {
        const std::size_t distance = edit_distance(name, candidate);
        if (distance < best) best = distance, hint = "did you mean '" + candidate + "'?";
    };
    for (const Frame& f : frames_) {
        for (const auto& [n, b] : f.names) consider(n);
    }
    for (const auto& [n, b] : module.names) consider(n);
    return error(Code::unknown_name, span, fmt::format("'{}' is not defined", name), hint);
}

void Resolver::assign_target(ExprId target, Value value, Span span) {
    if (!value) {
        // Give the names a value that fails quietly, so that one mistake is reported once.
        if (const auto* n = ast.get_if<lang::Name>(target)) {
            bool outer = false;
            if (!find_assignable(n->id, outer)) declare(n->id, {}, span);
        }
        if (const auto* t = ast.get_if<lang::Tuple>(target)) {
            for (ExprId x : t->elements) assign_target(x, {}, span);
        }
        return;
    }
    if (const auto* n = ast.get_if<lang::Name>(target)) return assign_name(n->id, std::move(value), span);
    const std::vector<ExprId>* elements = nullptr;
    if (const auto* t = ast.get_if<lang::Tuple>(target)) elements = &t->elements;
    if (const auto* l = ast.get_if<lang::List>(target)) elements = &l->elements;
    if (elements) {
        if (!value.is(K::sequence) || value.items.size() != elements->size()) {
            error(Code::unpack_mismatch, ast[target].span,
                  value.is(K::sequence) ? fmt::format("{} names for {} values", elements->size(), value.items.size())
                                        : fmt::format("{} names for {}", elements->size(), describe(value)));
            for (ExprId x : *elements) assign_target(x, {}, span);
            return;
        }
        // All right sides are read before any left side changes: a, b = b, a.
        std::vector<Value> items = value.items;
        for (std::size_t i = 0; i < items.size(); ++i) {
            if (items[i].is(K::tile) && !items[i].tile->fresh && !items[i].tile->weak && items[i].tile->element->op == ir::ElementOp::fragment &&
                items[i].tile->element->dims.size() == items[i].tile->shape.size()) {
                Tile t = *items[i].tile;
                const int copy = new_fragment("copy", t.dtype, t.shape, span);
                emit(ir::Compute{copy, t.element}, span);
                items[i] = fragment_value(copy, false);
            } else if (items[i].is(K::expr) && items[i].expr.kind() != ir::ExprKind::constant && items[i].fresh_var < 0 && elements->size() > 1) {
                if (items[i].expr.kind() == ir::ExprKind::var && d.kernel.vars[static_cast<std::size_t>(items[i].expr->id)].kind != ir::Variable::Kind::scalar) continue;
                if (items[i].expr.kind() == ir::ExprKind::block_index || items[i].expr.kind() == ir::ExprKind::size) continue;
                const int copy = d.add_var("copy");
                emit(ir::Assign{copy, items[i].expr}, span);
                items[i] = Value::of_expr(ir::var_expr(copy));
                items[i].fresh_var = copy;
            }
        }
        for (std::size_t i = 0; i < elements->size(); ++i) assign_target((*elements)[i], items[i], span);
        return;
    }
    error(Code::unsupported_statement, ast[target].span, "only names can be assigned to",
          ast.get_if<lang::Subscript>(target) ? "write tiles to memory with tw.store(X[...], x)" : "");
}

void Resolver::assign_name(const std::string& name, Value value, Span span) {
    if (value.is(K::size)) value = Value::of_expr(size_of(value.text));
    if (value.is(K::global)) {
        const ir::Tensor& t = d.kernel.tensors[static_cast<std::size_t>(value.global->tensor)];
        bool scalar = !target::info(t.dtype).is_float && t.dtype != DType::Bool;
        for (const Index& i : value.global->indices) scalar &= i.kind == Index::Kind::scalar;
        if (scalar) value = Value::of_expr(*as_expr(value, span, "the value"));
    }
    bool outer = false;
    Binding* existing = find_assignable(name, outer);
    if (!existing) {
        for (std::size_t i = frames_.size(); i-- > 0;) {
            auto it = frames_[i].names.find(name);
            if (it == frames_[i].names.end()) {
                if (frames_[i].function) break;
                continue;
            }
            auto& diagnostic = cx.error(Code::assigned_in_role, span, fmt::format("'{}' belongs to the whole block and is assigned by some of its threads", name));
            diagnostic.with_note(it->second.span, "it is defined here").with_hint("use another name inside the role");
            return;
        }
    }
    if (existing && !existing->value) {
        existing->value = {};
        if (outer) return;
        existing = nullptr;
    }
    if (existing && outer) {
        Value& old = existing->value;
        auto kind_error = [&] {
            auto& diagnostic = cx.error(Code::changes_kind, span, fmt::format("'{}' is {} outside this block and {} here", name, describe(old), describe(value)));
            diagnostic.with_note(existing->span, "it is defined here").with_hint("a name that changes inside a loop or branch keeps its kind, dtype and shape; use another name");
        };
        const bool integer = value.is(K::expr) || value.is(K::integer) || value.is(K::boolean);
        if (old.is(K::expr) && old.expr.kind() == ir::ExprKind::var && integer) {
            const int var = old.expr->id;
            if (d.kernel.vars[static_cast<std::size_t>(var)].kind != ir::Variable::Kind::scalar) return kind_error();
            emit(ir::Assign{var, *as_expr(value, span, "the value")}, span);
            return;
        }
        if (old.is(K::tile) && old.tile->element->op == ir::ElementOp::fragment && (value.is(K::tile) || value.is(K::real) || integer)) {
            Tile t = *as_tile(value, span, "the value");
            if (t.weak) t = cast(t, old.tile->dtype);
            if (t.shape.empty() && !old.tile->shape.empty()) return kind_error();
            if (t.shape != old.tile->shape || t.dtype != old.tile->dtype || t.spread != old.tile->spread) return kind_error();
            const int target = old.tile->element->id;
            // The statement that made a fresh fragment writes to the old one instead.
            if (t.fresh && t.element->op == ir::ElementOp::fragment && t.element->id + 1 == static_cast<int>(d.kernel.fragments.size()) &&
                !out_->empty() && d.notes.back().layout.kind == LayoutKind::none) {
                const int made = t.element->id;
                int* dst = nullptr;
                ir::Operation& op = out_->back().op;
                if (auto* c = std::get_if<ir::Compute>(&op)) dst = &c->dst;
                if (auto* r = std::get_if<ir::Reduce>(&op)) dst = &r->dst;
                if (auto* s = std::get_if<ir::Scan>(&op)) dst = &s->dst;
                if (auto* l = std::get_if<ir::LoadGlobal>(&op)) dst = &l->dst;
                if (auto* l = std::get_if<ir::LoadShared>(&op)) dst = &l->dst;
                if (dst && *dst == made && target != made) {
                    *dst = target;
                    d.taken[d.kernel.fragments.back().name]--;
                    d.kernel.fragments.pop_back();
                    d.notes.pop_back();
                    return;
                }
            }
            std::vector<int> to;
            Tile flat = t;
            int next = 0;
            for (std::size_t i = 0; i < t.shape.size(); ++i) {
                to.push_back(next);
                if (!t.spread[i]) ++next;
            }
            if (next != static_cast<int>(t.shape.size())) {
                const int f = materialize(t, name, span);
                if (f < 0) return;
                flat = *fragment_value(f, false).tile;
            }
            if (flat.element->op == ir::ElementOp::fragment && flat.element->offset.empty() && flat.element->id == target) return;
            emit(ir::Compute{target, flat.element}, span);
            return;
        }
        return kind_error();
    }
    // A new binding in this block.
    switch (value.kind) {
        case K::expr: {
            const ir::ExprKind kind = value.expr.kind();
            if (value.fresh_var >= 0) {
                auto& variable = d.kernel.vars[static_cast<std::size_t>(value.fresh_var)];
                if (variable.name.rfind(name, 0) != 0) variable.name = d.unique(name);
                value.fresh_var = -1;
            } else if (kind == ir::ExprKind::var && d.kernel.vars[static_cast<std::size_t>(value.expr->id)].kind != ir::Variable::Kind::scalar) {
                // loop variables and instance indices never change: an alias is enough
            } else if (kind != ir::ExprKind::size && kind != ir::ExprKind::block_index && kind != ir::ExprKind::cluster_rank) {
                if (!out_) { error(Code::not_constant, span, "module-level values are constants"); return; }
                const int var = d.add_var(name);
                emit(ir::Assign{var, value.expr}, span);
                value = Value::of_expr(ir::var_expr(var));
            }
            break;
        }
        case K::tile: {
            if (!out_) { error(Code::not_constant, span, "module-level values are constants"); return; }
            Tile& t = *value.tile;
            if (t.weak) {   // an integer scalar as a value, or a folded literal: fixed to its natural dtype
                Tile fixed = t;
                fixed.weak = false;
                value = settled(Value::of_tile(fixed), name, span);
            } else if (t.element->op == ir::ElementOp::fragment && t.element->offset.empty() && !t.fresh) {
                // y = x: a copy, because x may change later.
                Tile copied = t;
                std::vector<int> shape;
                auto leaf = std::make_shared<ir::ElementNode>(*t.element);
                leaf->dims.clear();
                for (std::size_t i = 0; i < t.shape.size(); ++i) {
                    if (!t.spread[i]) {
                        leaf->dims.push_back(static_cast<int>(shape.size()));
                        shape.push_back(t.shape[i]);
                    }
                }
                if (!can_hold_tiles(span, "a register tile")) return;
                const int f = new_fragment(name, t.dtype, shape, span);
                emit(ir::Compute{f, leaf}, span);
                auto node = std::make_shared<ir::ElementNode>(*t.element);
                node->id = f;
                node->dims.clear();
                for (std::size_t i = 0; i < t.shape.size(); ++i) {
                    if (!t.spread[i]) node->dims.push_back(static_cast<int>(i));
                }
                copied.element = node;
                value = Value::of_tile(copied);
            } else {
                value = settled(value, name, span);
            }
            if (!value) { declare(name, {}, span); return; }
            value.tile = std::make_shared<Tile>(*value.tile);
            value.tile->fresh = false;
            value.tile->layout = {};
            break;
        }
        default: break;
    }
    declare(name, std::move(value), span);
}

// ---- blocks ----

void Resolver::collect_assigned(const std::vector<StmtId>& stmts, std::set<std::string>& out, int depth) const {
    auto target = [&](ExprId id, auto&& self) -> void {
        if (const auto* n = ast.get_if<lang::Name>(id)) out.insert(n->id);
        if (const auto* t = ast.get_if<lang::Tuple>(id)) for (ExprId x : t->elements) self(x, self);
        if (const auto* l = ast.get_if<lang::List>(id)) for (ExprId x : l->elements) self(x, self);
    };
    for (StmtId id : stmts) {
        if (const auto* a = ast.get_if<lang::Assign>(id)) target(a->target, target);
        if (const auto* a = ast.get_if<lang::AugmentedAssign>(id)) target(a->target, target);
        if (const auto* a = ast.get_if<lang::AnnotatedAssign>(id)) target(a->target, target);
        if (const auto* f = ast.get_if<lang::For>(id)) collect_assigned(f->body, out, depth + 1);
        if (const auto* w = ast.get_if<lang::With>(id)) collect_assigned(w->body, out, depth + 1);
        if (const auto* i = ast.get_if<lang::If>(id)) {
            for (const auto& b : i->branches) collect_assigned(b.body, out, depth + 1);
            collect_assigned(i->otherwise, out, depth + 1);
        }
    }
}

// Before a block that may run zero or several times: constants that it assigns become variables, so that every use in the
// block reads what was assigned last.
void Resolver::promote(const std::vector<StmtId>& stmts) {
    std::set<std::string> assigned;
    collect_assigned(stmts, assigned, 0);
    for (const std::string& name : assigned) {
        bool outer = false;
        Binding* b = find_assignable(name, outer);
        if (!b) continue;
        Value& v = b->value;
        const bool variable = v.is(K::expr) && v.expr.kind() == ir::ExprKind::var &&
                              d.kernel.vars[static_cast<std::size_t>(v.expr->id)].kind == ir::Variable::Kind::scalar;
        if ((v.is(K::integer) || v.is(K::boolean) || v.is(K::expr)) && !variable) {
            const int var = d.add_var(name);
            emit(ir::Assign{var, *as_expr(v, b->span, "the value")}, b->span);
            v = Value{};
            v.kind = K::expr;
            v.expr = ir::var_expr(var);
        } else if (v.is(K::real) && !group().elected) {
            Tile t = *as_tile(v, b->span, "the value");
            t.weak = false;
            const int f = materialize(t, name, b->span);
            if (f >= 0) v = fragment_value(f, false);
        }
    }
}

void Resolver::dynamic_block(const std::vector<StmtId>& stmts, ir::Region& into, const std::map<std::string, Binding>& names) {
    ir::Region* saved = out_;
    out_ = &into;
    frames_.push_back({names, false, false});
    body(stmts);
    for (const auto& [name, b] : frames_.back().names) ended_[name] = b.span;
    frames_.pop_back();
    out_ = saved;
}

void Resolver::body(const std::vector<StmtId>& stmts) {
    for (StmtId id : stmts) {
        if (stopped_ || cx.sink.full()) return;
        statement(id);
    }
}

void Resolver::statement(StmtId id) {
    const lang::Stmt& s = ast[id];
    const Span span = s.span;
    if (++work_ > kMaxWork && !stopped_) {
        stopped_ = true;
        error(Code::too_much_code, s.header, "unrolling visits too many statements", "use tw.range instead of tw.unroll for long loops");
        return;
    }
    assigning_.clear();
    auto named = [&](ExprId target) {
        if (const auto* n = ast.get_if<lang::Name>(target)) assigning_ = n->id;
    };
    std::visit(
        [&](const auto& n) {
            using T = std::decay_t<decltype(n)>;
            if constexpr (std::is_same_v<T, lang::Assign>) {
                named(n.target);
                Value v = evaluate(n.value);
                assign_target(n.target, std::move(v), span);
            } else if constexpr (std::is_same_v<T, lang::AnnotatedAssign>) {
                if (!n.value) {
                    error(Code::unsupported_statement, span, "a declaration without a value");
                    return;
                }
                named(n.target);
                Value v = evaluate(n.value);
                assign_target(n.target, std::move(v), span);
            } else if constexpr (std::is_same_v<T, lang::AugmentedAssign>) {
                named(n.target);
                Value a = evaluate(n.target), b = evaluate(n.value);
                if (!a || !b) return;
                assign_target(n.target, binary(n.op, a, b, span, ast[n.target].span, ast[n.value].span), span);
            } else if constexpr (std::is_same_v<T, lang::For>) for_loop(n, span, s.header);
            else if constexpr (std::is_same_v<T, lang::If>) if_statement(n, s.header, 0);
            else if constexpr (std::is_same_v<T, lang::With>) with_statement(n, s.header);
            else if constexpr (std::is_same_v<T, lang::While>) {
                error(Code::while_loop, s.header, "`while` is not in the language", "a loop has a trip count that is known when it starts: for i in tw.range(n)");
            } else if constexpr (std::is_same_v<T, lang::Pass>) {
            } else if constexpr (std::is_same_v<T, lang::Assert>) {
                Value c = evaluate(n.condition);
                if (!c) return;
                auto known = constant_bool(c);
                if (!known) {
                    error(Code::not_constant, ast[n.condition].span, "the condition of `assert` is not known at compile time",
                          "tw.assume(...) states what must hold of sizes at launch, tw.expect(...) what must hold here");
                    return;
                }
                if (!*known) {
                    std::string message = "the assertion does not hold";
                    if (n.message) {
                        if (const auto* text = ast.get_if<lang::StringLiteral>(n.message)) message += ": " + text->value;
                    }
                    auto& diagnostic = cx.error(Code::static_assert_failed, ast[n.condition].span, message);
                    std::string values;
                    for (const auto& c2 : d.kernel.consts) values += fmt::format("{}{} = {}", values.empty() ? "" : ", ", c2.name, c2.value);
                    if (!values.empty()) diagnostic.with_note({}, "with " + values);
                }
            } else if constexpr (std::is_same_v<T, lang::ExprStmt>) expression_statement(n.value, span);
            else if constexpr (std::is_same_v<T, lang::Return>) {
                if (inline_stack_.empty() && !n.value) error(Code::unsupported_statement, span, "`return` in a kernel", "every block runs the whole kernel; put the rest under an `if`");
                else if (inline_stack_.empty()) error(Code::unsupported_statement, span, "a kernel returns nothing", "write results with tw.store");
                else error(Code::inline_form, span, "`return` is not the last statement of the inline function");
            } else if constexpr (std::is_same_v<T, lang::Break> || std::is_same_v<T, lang::Continue>) {
                error(Code::unsupported_statement, span, "loops run to their end: there is no `break` or `continue`", "put the rest of the body under an `if`");
            } else if constexpr (std::is_same_v<T, lang::FunctionDef>) {
                error(Code::unsupported_statement, s.header, "a function is defined inside a kernel", "define it at module level with @tw.inline");
            } else {
                error(Code::unsupported_statement, span, "this statement is not allowed inside a kernel");
            }
        },
        s.node);
    assigning_.clear();
}

void Resolver::if_statement(const lang::If& i, Span span, std::size_t branch) {
    if (branch >= i.branches.size()) return body(i.otherwise);
    const auto& b = i.branches[branch];
    Value condition = evaluate(b.condition);
    if (!condition) return;
    if (auto known = constant_bool(condition)) {
        if (*known) body(b.body);
        else if_statement(i, span, branch + 1);
        return;
    }
    if (condition.is(K::tile)) {
        error(Code::type_mismatch, ast[b.condition].span, "the condition of `if` is a tile, but a branch is taken by all threads together",
              "use tw.where(c, a, b) for values that differ by element");
        return;
    }
    auto e = as_expr(condition, ast[b.condition].span, "the condition");
    if (!e) return;
    for (std::size_t k = branch; k < i.branches.size(); ++k) promote(i.branches[k].body);
    promote(i.otherwise);
    const std::size_t at = out_->size();
    emit(ir::If{*e, {}, {}}, span);
    ir::If made{*e, {}, {}};
    dynamic_block(b.body, made.then, {});
    if (branch + 1 < i.branches.size()) {
        ir::Region* saved = out_;
        out_ = &made.otherwise;
        frames_.push_back({});
        if_statement(i, span, branch + 1);
        frames_.pop_back();
        out_ = saved;
    } else {
        dynamic_block(i.otherwise, made.otherwise, {});
    }
    (*out_)[at].op = std::move(made);
}

void Resolver::for_loop(const lang::For& f, Span span, Span header) {
    (void)span;
    const auto* c = ast.get_if<lang::Call>(f.iterable);
    if (c) {
        Value callee = evaluate(c->callee);
        if (!callee) return;
        if (callee.is(K::builtin)) {
            const CallArgs args = arguments(*c, ast[f.iterable].span, ast[c->callee].span);
            for (const Value& v : args.positional) if (!v) return;
            for (const auto& [k, v] : args.keyword) if (!v) return;
            if (callee.text == "range") return range_loop(args, f.target, f.body, header);
            if (callee.text == "unroll") return unroll_loop(args, f.target, f.body, header);
            if (callee.text == "tiles") return tiles_loop(args, f.target, f.body, header);
            if (callee.text == "persistent") return persistent_loop(args, f.target, f.body, header);
        }
    }
    Value v = evaluate(f.iterable);
    if (!v) return;
    if (!v.is(K::sequence)) {
        error(Code::bad_iterable, ast[f.iterable].span, fmt::format("a loop cannot run over {}", describe(v)),
              "use tw.range, tw.unroll, tw.tiles or tw.persistent");
        return;
    }
    for (const Value& item : v.items) {
        assign_target(f.target, item, ast[f.target].span);
        body(f.body);
        if (stopped_) return;
    }
}

namespace {
std::optional<std::string> single_name(const lang::Module& ast, ExprId id) {
    if (const auto* n = ast.get_if<lang::Name>(id)) return n->id;
    return std::nullopt;
}
}  // namespace

void Resolver::range_loop(const CallArgs& call, ExprId target, const std::vector<StmtId>& stmts, Span span) {
    CallArgs args = call;
    if (args.positional.size() == 1) {   // range(hi)
        args.positional.insert(args.positional.begin(), Value::of(0));
        args.positional_spans.insert(args.positional_spans.begin(), args.positional_spans[0]);
    }
    auto b = bind(args, "tw.range", "lo hi step= unroll=");
    if (!b) return;
    auto name = single_name(ast, target);
    if (!name) {
        error(Code::unpack_mismatch, ast[target].span, "tw.range gives one integer");
        return;
    }
    auto lo = as_expr(b->at("lo"), b->where("lo"), "the start"), hi = as_expr(b->at("hi"), b->where("hi"), "the end");
    std::optional<ir::Expr> step = ir::Expr(1);
    if (b->has("step")) step = as_expr(b->at("step"), b->where("step"), "the step");
    if (!lo || !hi || !step) return;
    if (auto s = step->as_constant(); s && *s <= 0) {
        error(Code::value_out_of_range, b->where("step"), fmt::format("the step is {}", *s), "loops run upwards; compute the descending index from the loop variable");
        return;
    }
    int unroll = 0;
    if (b->has("unroll")) {
        if (b->at("unroll").is(K::boolean)) unroll = b->at("unroll").integer ? -1 : 1;
        else if (auto u = small_int(b->at("unroll"), b->where("unroll"), "unroll", 1, 1024)) unroll = *u;
        else return;
    }
    if (!uniform_region(span, "a loop")) return;
    promote(stmts);
    const int var = d.add_var(*name, ir::Variable::Kind::loop);
    const std::size_t at = out_->size();
    emit(ir::For{var, *lo, *hi, *step, unroll, {}}, span);
    ir::For made{var, *lo, *hi, *step, unroll, {}};
    dynamic_block(stmts, made.body, {{*name, {Value::of_expr(ir::var_expr(var)), ast[target].span}}});
    (*out_)[at].op = std::move(made);
}

void Resolver::unroll_loop(const CallArgs& call, ExprId target, const std::vector<StmtId>& stmts, Span span) {
    CallArgs args = call;
    if (args.positional.size() == 1) {
        args.positional.insert(args.positional.begin(), Value::of(0));
        args.positional_spans.insert(args.positional_spans.begin(), args.positional_spans[0]);
    }
    auto b = bind(args, "tw.unroll", "lo hi step=");
    if (!b) return;
    auto lo = constant_int(b->at("lo"), b->where("lo"), "the start of an unrolled loop");
    auto hi = constant_int(b->at("hi"), b->where("hi"), "the end of an unrolled loop");
    std::optional<std::int64_t> step = 1;
    if (b->has("step")) step = constant_int(b->at("step"), b->where("step"), "the step");
    if (!lo || !hi || !step) return;
    if (*step <= 0) {
        error(Code::value_out_of_range, b->where("step"), "the step of a loop is positive");
        return;
    }
    std::int64_t distance = 0;
    if (__builtin_sub_overflow(*hi, *lo, &distance) || distance / *step > kMaxUnroll) {
        error(Code::too_much_code, span, fmt::format("the loop would be unrolled more than {} times", kMaxUnroll), "use tw.range");
        return;
    }
    for (std::int64_t i = *lo; i < *hi && !stopped_; i += *step) {
        assign_target(target, Value::of(i), ast[target].span);
        body(stmts);
    }
}

bool Resolver::set_grid(std::vector<ir::Expr> grid, bool persistent, Span span) {
    for (const ir::Expr& e : grid) {
        bool launch_time = true;
        std::function<void(const ir::Expr&)> look = [&](const ir::Expr& x) {
            switch (x.kind()) {
                case ir::ExprKind::var: case ir::ExprKind::block_index: case ir::ExprKind::grid_size: case ir::ExprKind::cluster_rank:
                case ir::ExprKind::element: launch_time = false; break;
                default: break;
            }
            for (const ir::Expr& a : x->args) look(a);
        };
        look(e);
        if (!launch_time) {
            error(Code::bad_grid, span, "the grid must be known at launch: sizes, constants and const parameters only");
            return false;
        }
    }
    while (grid.size() < 3) grid.emplace_back(1);
    if (grid_set_) {
        bool same = persistent && d.kernel.persistent;
        for (int i = 0; i < 3; ++i) same &= ir::same(grid[static_cast<std::size_t>(i)], d.kernel.grid[i]);
        if (!same) {
            auto& diagnostic = cx.error(Code::bad_grid, span, "the kernel's grid is set twice, differently");
            diagnostic.with_note(grid_span_, "it is set here").with_hint("the tile loops of all roles run over the same tiles");
            return false;
        }
        return true;
    }
    grid_set_ = true;
    grid_span_ = span;
    for (int i = 0; i < 3; ++i) d.kernel.grid[i] = grid[static_cast<std::size_t>(i)];
    d.kernel.persistent = persistent;
    return true;
}

void Resolver::persistent_loop(const CallArgs& call, ExprId target, const std::vector<StmtId>& stmts, Span span) {
    auto b = bind(call, "tw.persistent", "n");
    if (!b) return;
    auto name = single_name(ast, target);
    if (!name) {
        error(Code::unpack_mismatch, ast[target].span, "tw.persistent gives one integer");
        return;
    }
    auto n = as_expr(b->at("n"), b->where("n"), "the number of tiles");
    if (!n) return;
    const int c = d.kernel.cluster[0] * d.kernel.cluster[1] * d.kernel.cluster[2];
    if (!set_grid({*n * ir::Expr(c)}, true, span)) return;
    if (!uniform_region(span, "a loop")) return;
    promote(stmts);
    const int var = d.add_var(*name, ir::Variable::Kind::loop);
    ir::For made{var, ir::block_index(0) / ir::Expr(c), *n, ir::grid_size(0) / ir::Expr(c), 0, {}};
    const std::size_t at = out_->size();
    emit(ir::For{made.var, made.lo, made.hi, made.step, 0, {}}, span, "persistent");
    dynamic_block(stmts, made.body, {{*name, {Value::of_expr(ir::var_expr(var)), ast[target].span}}});
    (*out_)[at].op = std::move(made);
}

// The grouped raster: groups of `group` tile rows, inside a group column by column. The order of the assignments below is the
// one the scheduler lemma of the verifier is stated for.
void Resolver::tiles_loop(const CallArgs& call, ExprId target, const std::vector<StmtId>& stmts, Span span) {
    auto b = bind(call, "tw.tiles", "rows columns tile_rows tile_columns group= cluster_dim=");
    if (!b) return;
    std::vector<std::string> names;
    if (const auto* t = ast.get_if<lang::Tuple>(target)) {
        for (ExprId x : t->elements) {
            if (auto n = single_name(ast, x)) names.push_back(*n);
        }
    }
    if (names.size() != 2) {
        error(Code::unpack_mismatch, ast[target].span, "tw.tiles gives two integers", "write: for bm, bn in tw.tiles(M, N, BM, BN)");
        return;
    }
    auto m = as_expr(b->at("rows"), b->where("rows"), "the number of rows"), n = as_expr(b->at("columns"), b->where("columns"), "the number of columns");
    auto tm = small_int(b->at("tile_rows"), b->where("tile_rows"), "the tile's rows", 1, 1 << 20);
    auto tn = small_int(b->at("tile_columns"), b->where("tile_columns"), "the tile's columns", 1, 1 << 20);
    std::optional<int> group_rows = 8, cluster_dim = 0;
    if (b->has("group")) group_rows = small_int(b->at("group"), b->where("group"), "group", 1, 1 << 20);
    if (b->has("cluster_dim")) cluster_dim = small_int(b->at("cluster_dim"), b->where("cluster_dim"), "cluster_dim", 0, 1);
    if (!m || !n || !tm || !tn || !group_rows || !cluster_dim) return;
    const int c = d.kernel.cluster[0] * d.kernel.cluster[1] * d.kernel.cluster[2];
    ir::Expr tiles_m = ir::ceil_div(*m, ir::Expr(*tm)), tiles_n = ir::ceil_div(*n, ir::Expr(*tn));
    if (c > 1 && *cluster_dim == 0) tiles_m = ir::ceil_div(tiles_m, ir::Expr(c));
    if (c > 1 && *cluster_dim == 1) tiles_n = ir::ceil_div(tiles_n, ir::Expr(c));
    if (!set_grid({tiles_m * tiles_n * ir::Expr(c)}, true, span)) return;
    if (!uniform_region(span, "a loop")) return;
    promote(stmts);
    auto assign = [&](const char* name, const ir::Expr& value) {
        const int v = d.add_var(name);
        emit(ir::Assign{v, value}, span);
        return ir::var_expr(v);
    };
    const ir::Expr rows = assign("tiles_m", tiles_m), columns = assign("tiles_n", tiles_n);
    const int var = d.add_var("tile", ir::Variable::Kind::loop);
    ir::For made{var, ir::block_index(0) / ir::Expr(c), rows * columns, ir::grid_size(0) / ir::Expr(c), 0, {}};
    const std::size_t at = out_->size();
    emit(ir::For{made.var, made.lo, made.hi, made.step, 0, {}}, span, fmt::format("tiles: grouped raster, {} rows a group", *group_rows));
    ir::Region* saved = out_;
    out_ = &made.body;
    const ir::Expr t = ir::var_expr(var), g = ir::Expr(*group_rows);
    const ir::Expr per_group = assign("per_group", g * columns);
    const ir::Expr first = assign("first_row", t / per_group * g);
    const ir::Expr height = assign("group_rows", ir::min(rows - first, g));
    const ir::Expr within = assign("in_group", t % per_group);
    ir::Expr bm = first + within % height, bn = within / height;
    if (c > 1 && *cluster_dim == 0) bm = bm * ir::Expr(c) + ir::cluster_rank();
    if (c > 1 && *cluster_dim == 1) bn = bn * ir::Expr(c) + ir::cluster_rank();
    const ir::Expr bm_var = assign(names[0].c_str(), bm), bn_var = assign(names[1].c_str(), bn);
    out_ = saved;
    dynamic_block(stmts, made.body, {{names[0], {Value::of_expr(bm_var), ast[target].span}}, {names[1], {Value::of_expr(bn_var), ast[target].span}}});
    (*out_)[at].op = std::move(made);
}

bool Resolver::uniform_region(Span span, const char* what) {
    if (module_level || !out_) {
        error(Code::unsupported_statement, span, fmt::format("{} stands outside a kernel", what));
        return false;
    }
    return true;
}

// ---- roles ----

void Resolver::with_statement(const lang::With& w, Span span) {
    if (w.items.size() != 1) {
        error(Code::unsupported_statement, span, "`with` takes one item here", "nest the blocks");
        return;
    }
    const auto* c = ast.get_if<lang::Call>(w.items[0].context);
    Value callee = c ? evaluate(c->callee) : Value{};
    if (c && !callee) return;
    if (!c || !callee.is(K::builtin)) {
        error(Code::unsupported_statement, span, "`with` takes tw.warpgroups(...), tw.warps(...), tw.elected() or tw.wgmma_batch()");
        return;
    }
    const CallArgs args = arguments(*c, ast[w.items[0].context].span, ast[c->callee].span);
    if (callee.text == "warpgroups" || callee.text == "warps") return role(args, callee.text == "warpgroups", w.items[0], w, span);
    if (callee.text == "elected") {
        if (!bind(args, "tw.elected", "")) return;
        if (group().elected) {
            error(Code::role_placement, span, "tw.elected() inside an elected block");
            return;
        }
        const int saved = group_;
        d.groups.push_back({1, group().role, true});
        group_ = static_cast<int>(d.groups.size()) - 1;
        const std::size_t where = out_->size();
        emit(ir::Elect{}, span);
        ir::Elect made;
        ir::Region* region = out_;
        out_ = &made.body;
        frames_.push_back({{}, false, true});
        body(w.body);
        frames_.pop_back();
        out_ = region;
        (*out_)[where].op = std::move(made);
        group_ = saved;
        return;
    }
    if (callee.text == "wgmma_batch") {
        if (!bind(args, "tw.wgmma_batch", "")) return;
        if (batch_depth_ > 0) {
            error(Code::role_placement, span, "tw.wgmma_batch() inside another batch");
            return;
        }
        ++batch_depth_;
        out_->push_back(d.sugar_stmt(WgmmaBatchBegin{}, "wgmma_batch begin", loc(span)));
        body(w.body);
        out_->push_back(d.sugar_stmt(WgmmaBatchEnd{}, "wgmma_batch end", loc(span)));
        --batch_depth_;
        return;
    }
    error(Code::unsupported_statement, span, fmt::format("tw.{} cannot be used in `with`", callee.text));
}

void Resolver::role(const CallArgs& call, bool warpgroups, const lang::WithItem& item, const lang::With& w, Span span) {
    const char* what = warpgroups ? "tw.warpgroups" : "tw.warps";
    if (group_ != 0) {
        error(Code::role_placement, span, fmt::format("{} inside another role", what), "roles divide the block; they do not nest");
        return;
    }
    std::vector<int> ids;
    for (std::size_t i = 0; i < call.positional.size(); ++i) {
        auto id = small_int(call.positional[i], call.positional_spans[i], warpgroups ? "a warpgroup" : "a warp", 0, warpgroups ? 7 : 31);
        if (!id) return;
        if (!ids.empty() && *id != ids.back() + 1) {
            error(Code::role_placement, call.positional_spans[i], "the instances of a role are neighbours, in ascending order");
            return;
        }
        ids.push_back(*id);
    }
    if (ids.empty()) {
        error(Code::argument_count, call.span, fmt::format("{} needs at least one number", what));
        return;
    }
    ir::Role made;
    for (const auto& [key, v] : call.keyword) {
        if (key == "regs") {
            auto r = small_int(v, call.keyword_spans.at(key), "regs", 1, 1024);
            if (!r) return;
            made.registers = *r;
        } else if (key == "name") {
            if (!v.is(K::string)) { error(Code::type_mismatch, call.keyword_spans.at(key), "a role's name is a string"); return; }
            made.name = v.text;
        } else {
            error(Code::unknown_keyword, call.keyword_spans.at(key), fmt::format("{} has no parameter '{}'", what, key), "its parameters are numbers, regs= and name=");
            return;
        }
    }
    const int per = warpgroups ? 4 : 1;
    made.first_warp = per * ids[0];
    made.warps_per_instance = per;
    made.instances = static_cast<int>(ids.size());
    const int end = made.first_warp + per * made.instances;
    for (const auto& [first, last] : role_warps_) {
        if ((first != made.first_warp || last != end) && first < end && made.first_warp < last) {
            error(Code::role_overlap, span, fmt::format("warps {} to {} are partly in another role", made.first_warp, end - 1), "roles of a kernel use disjoint warps, or exactly the same ones");
            return;
        }
    }
    role_warps_.emplace_back(made.first_warp, end);
    highest_warp_ = std::max(highest_warp_, end - 1);
    if (made.name.empty()) {
        made.name = warpgroups ? "wg" : "warp";
        made.name += std::to_string(ids[0]);
        if (ids.size() > 1) made.name += "_" + std::to_string(ids.back());
    }
    made.name = d.unique(made.name);
    Frame frame;
    frame.role = true;
    if (item.target) {
        auto name = single_name(ast, item.target);
        if (!name) {
            error(Code::unpack_mismatch, ast[item.target].span, "a role has one instance index");
            return;
        }
        Value index = Value::of(0);
        if (made.instances > 1) {
            made.instance_var = d.add_var(*name, ir::Variable::Kind::instance);
            index = Value::of_expr(ir::var_expr(made.instance_var));
        }
        frame.names[*name] = {index, ast[item.target].span};
    } else if (made.instances > 1) {
        made.instance_var = d.add_var("instance", ir::Variable::Kind::instance);
    }
    const int saved = group_;
    d.groups.push_back({32 * per, role_count_++, false});
    group_ = static_cast<int>(d.groups.size()) - 1;
    const std::size_t at = out_->size();
    emit(ir::Role{}, span);
    ir::Region* region = out_;
    out_ = &made.body;
    frames_.push_back(std::move(frame));
    body(w.body);
    for (const auto& [name, b] : frames_.back().names) ended_[name] = b.span;
    frames_.pop_back();
    out_ = region;
    (*out_)[at].op = std::move(made);
    group_ = saved;
}

}  // namespace tw::lower
