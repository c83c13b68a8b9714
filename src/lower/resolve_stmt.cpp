// Statements: scopes, assignment, branches. Loops and roles are in resolve_loop.cpp.
#include <fmt/format.h>

#include "base/nearest_name.h"
#include "ir/legality.h"
#include "lower/facts.h"
#include "lower/resolver.h"
#include "lower/size_limits.h"

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
    const ir::LegalityRule& rule = ir::legality_table()[op.index()];
    if (rule.executor == ir::Executor::group && group().elected) {
        error(Code::role_placement, span, fmt::format("`{}` is for all threads of a group, and a single one comes here", rule.kind),
              "move it out of `with tw.elected():`");
    }
    out_->push_back(ir::Stmt{std::move(op), loc(span), std::move(note)});
    return out_->back();
}

// ---- names ----

const Binding* Resolver::find(const std::string& name) const {
    const Binding* b = find(name, names_of);
    return b || names_of == kNoFile ? b : find(name, kNoFile);
}

const Binding* Resolver::find(const std::string& name, FileId file) const {
    for (std::size_t i = frames_.size(); i-- > 0;) {
        auto it = frames_[i].names.find(name);
        if (it != frames_[i].names.end()) return &it->second;
        if (frames_[i].function) break;
    }
    const ModuleLevel& names = module.names_in(file);
    auto it = names.find(name);
    return it == names.end() ? nullptr : &it->second;
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
    if (const Binding* b = find(name, span.file)) {
        const Value& v = b->value;
        if (v.is(K::size) && !module_level) return Value::of_expr(size_of(v.text));
        if (v.is(K::tile) && v.tile->element->op == ir::ElementOp::fragment) {
            const int fragment = v.tile->element->id;
            if (d.notes[static_cast<std::size_t>(fragment)].group != group_) {
                auto& diagnostic =
                    cx.error(Code::foreign_fragment, span, fmt::format("'{}' lives in the registers of other threads", name));
                diagnostic.with_note(b->span, "it is made here")
                    .with_hint("make it inside the role that uses it, or pass it through shared memory");
                return {};
            }
        }
        return v;
    }
    if (coordinate_of) {
        if (auto c = coordinate_of(name)) return *c;
    }
    static const std::set<std::string> python = {"range", "min", "max", "abs", "float", "int", "len"};
    if (python.count(name)) return Value::named(K::builtin, name);
    auto ended = ended_.find(name);
    if (ended != ended_.end()) {
        auto& diagnostic = cx.error(Code::name_out_of_scope, span, fmt::format("'{}' ended with the block that defined it", name));
        diagnostic.with_note(ended->second, "it is defined here").with_hint("define it before the loop, branch or role");
        return {};
    }
    if (const auto foreign = ast.foreign.find(name); foreign != ast.foreign.end()) {
        const std::string hint = borrowed_name(name);
        if (!hint.empty()) return error(Code::unknown_name, span, fmt::format("'{}' is not defined in the language", name), hint);
        return error(
            Code::unknown_name, span, fmt::format("'{}' is not defined in the language", name),
            fmt::format("'{0}' comes from '{1}', which is no kernel file: no {1}.py that imports tilewright lies in this file's folder or "
                        "among the kernels of the package",
                        name, foreign->second));
    }
    std::string hint = borrowed_name(name);
    if (hint.empty()) {
        NearestName nearest(name);
        for (const Frame& f : frames_) {
            for (const auto& [n, b] : f.names) nearest.consider(n);
        }
        for (const auto& [n, b] : module.names_in(span.file)) nearest.consider(n);
        if (!nearest.best().empty()) hint = "did you mean '" + nearest.best() + "'?";
        else if (is_builtin(name)) hint = "it is tw." + name;
    }
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
            if (items[i].is(K::tile) && !items[i].tile->fresh && !items[i].tile->weak &&
                items[i].tile->element->op == ir::ElementOp::fragment &&
                items[i].tile->element->dims.size() == items[i].tile->shape.size()) {
                Tile t = *items[i].tile;
                const int copy = new_fragment("copy", t.dtype, t.shape, span);
                emit(ir::Compute{copy, t.element}, span);
                items[i] = fragment_value(copy, false);
            } else if (items[i].is(K::expr) && items[i].expr.kind() != ir::ExprKind::constant && items[i].fresh_var < 0 &&
                       elements->size() > 1) {
                if (items[i].expr.kind() == ir::ExprKind::var &&
                    d.kernel.vars[static_cast<std::size_t>(items[i].expr->id)].kind != ir::Variable::Kind::scalar)
                    continue;
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
    if (const auto* part = ast.get_if<lang::Subscript>(target)) return assign_part(*part, std::move(value), span);
    error(Code::unsupported_statement, ast[target].span, "only names, and parts of lists, can be assigned to");
}

void Resolver::assign_name(const std::string& name, Value value, Span span) {
    if (const char* problem = value.is(K::expr) ? size_problem(value.expr) : size_problem(value)) {
        error(Code::too_much_code, span, problem);
        value = {};
    }
    if (value.is(K::size)) value = Value::of_expr(size_of(value.text));
    if (value.is(K::global)) {
        const ir::Tensor& t = d.kernel.tensors[static_cast<std::size_t>(value.global->tensor)];
        bool scalar = !target::info(t.dtype).is_float && t.dtype != DType::Bool;
        for (const Index& i : value.global->indices) scalar &= i.kind == Index::Kind::scalar;
        if (scalar) value = Value::of_expr(*as_expr(value, span, "the value"));
    }
    bool outer = false;
    Binding* existing = find_assignable(name, outer);
    if (!existing && belongs_to_the_block(name, span)) return;
    if (existing && !existing->value) {
        existing->value = {};
        if (outer) return;
        existing = nullptr;
    }
    if (existing && outer) {
        if (!assign_in_place(name, existing->value, value, span)) changes_kind(name, *existing, value, span);
        return;
    }
    declare(name, owned(name, std::move(value), span).value_or(Value{}), span);
}

// A name of the whole block cannot be assigned in a role.
bool Resolver::belongs_to_the_block(const std::string& name, Span span) {
    for (std::size_t i = frames_.size(); i-- > 0;) {
        const auto it = frames_[i].names.find(name);
        if (it != frames_[i].names.end()) {
            auto& diagnostic = cx.error(Code::assigned_in_role, span,
                                        fmt::format("'{}' belongs to the whole block and is assigned by some of its threads", name));
            diagnostic.with_note(it->second.span, "it is defined here").with_hint("use another name inside the role");
            return true;
        }
        if (frames_[i].function) break;
    }
    return false;
}

void Resolver::changes_kind(const std::string& name, const Binding& binding, const Value& value, Span span) {
    auto& diagnostic = cx.error(Code::changes_kind, span,
                                fmt::format("'{}' is {} outside this block and {} here", name, describe(binding.value), describe(value)));
    diagnostic.with_note(binding.span, "it is defined here")
        .with_hint("a name that changes inside a loop or branch keeps its kind, dtype and shape; use another name");
}

bool Resolver::assign_in_place(const std::string& name, Value& old, const Value& value, Span span) {
    const bool integer = value.is(K::expr) || value.is(K::integer) || value.is(K::boolean);
    if (old.is(K::expr) && old.expr.kind() == ir::ExprKind::var && integer) {
        const int var = old.expr->id;
        if (d.kernel.vars[static_cast<std::size_t>(var)].kind != ir::Variable::Kind::scalar) return false;
        emit(ir::Assign{var, *as_expr(value, span, "the value")}, span);
        return true;
    }
    if (old.is(K::tile) && old.tile->element->op == ir::ElementOp::fragment && (value.is(K::tile) || value.is(K::real) || integer))
        return assign_tile(name, old, value, span);
    return old.has_parts() && value.has_parts() && assign_parts(name, old, value, span);
}

bool Resolver::assign_tile(const std::string& name, Value& old, const Value& value, Span span) {
    Tile t = *as_tile(value, span, "the value");
    if (t.weak) t = cast(t, old.tile->dtype);
    if (t.shape.empty() && !old.tile->shape.empty()) return false;
    if (t.shape != old.tile->shape || t.dtype != old.tile->dtype || t.spread != old.tile->spread) return false;
    const int target = old.tile->element->id;
    if (retarget(t, target)) return true;
    Tile flat = t;
    if (std::find(t.spread.begin(), t.spread.end(), char{1}) != t.spread.end()) {
        const int f = materialize(t, name, span);
        if (f < 0) return true;
        flat = *fragment_value(f, false).tile;
    }
    if (flat.element->op == ir::ElementOp::fragment && flat.element->offset.empty() && flat.element->id == target) return true;
    emit(ir::Compute{target, flat.element}, span);
    return true;
}

// The statement that made a fresh fragment writes to `target` instead, where that is possible.
bool Resolver::retarget(const Tile& made, int target) {
    if (!made.fresh || made.element->op != ir::ElementOp::fragment || made.element->id + 1 != static_cast<int>(d.kernel.fragments.size()) ||
        out_->empty() || d.notes.back().layout.kind != LayoutKind::none || made.element->id == target)
        return false;
    int* dst = nullptr;
    ir::Operation& op = out_->back().op;
    if (auto* c = std::get_if<ir::Compute>(&op)) dst = &c->dst;
    if (auto* r = std::get_if<ir::Reduce>(&op)) dst = &r->dst;
    if (auto* s = std::get_if<ir::Scan>(&op)) dst = &s->dst;
    if (auto* s = std::get_if<ir::Shuffle>(&op)) dst = &s->dst;
    if (auto* l = std::get_if<ir::LoadGlobal>(&op)) dst = &l->dst;
    if (auto* l = std::get_if<ir::LoadShared>(&op)) dst = &l->dst;
    if (!dst || *dst != made.element->id) return false;
    *dst = target;
    d.taken[d.kernel.fragments.back().name]--;
    d.kernel.fragments.pop_back();
    d.notes.pop_back();
    return true;
}

// ---- new names ----

std::optional<Value> Resolver::owned(const std::string& name, Value value, Span span) {
    switch (value.kind) {
        case K::expr: return owned_integer(name, std::move(value), span);
        case K::tile: return owned_tile(name, value, span);
        case K::sequence:
        case K::record: return settled(value, name, span);
        default: return value;
    }
}

std::optional<Value> Resolver::owned_integer(const std::string& name, Value value, Span span) {
    const ir::ExprKind kind = value.expr.kind();
    if (value.fresh_var >= 0) {
        auto& variable = d.kernel.vars[static_cast<std::size_t>(value.fresh_var)];
        if (variable.name.rfind(name, 0) != 0) variable.name = d.unique(name);
        value.fresh_var = -1;
        return value;
    }
    // Loop variables and instance indices never change: an alias is enough.
    if (kind == ir::ExprKind::var && d.kernel.vars[static_cast<std::size_t>(value.expr->id)].kind != ir::Variable::Kind::scalar)
        return value;
    if (kind == ir::ExprKind::size || kind == ir::ExprKind::block_index || kind == ir::ExprKind::cluster_rank) return value;
    if (!out_) {
        error(Code::not_constant, span, "module-level values are constants");
        return std::nullopt;
    }
    const int var = d.add_var(name);
    emit(ir::Assign{var, value.expr}, span);
    return Value::of_expr(ir::var_expr(var));
}

std::optional<Value> Resolver::owned_tile(const std::string& name, const Value& given, Span span) {
    if (!out_) {
        error(Code::not_constant, span, "module-level values are constants");
        return std::nullopt;
    }
    Value value = given;
    const Tile& t = *given.tile;
    if (t.weak) {  // an integer scalar as a value, or a folded literal: fixed to its natural dtype
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
        if (!can_hold_tiles(span, "a register tile")) return std::nullopt;
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
    if (!value) return std::nullopt;
    value.tile = std::make_shared<Tile>(*value.tile);
    value.tile->fresh = false;
    value.tile->layout = {};
    return value;
}

// ---- blocks ----

void Resolver::collect_assigned(const std::vector<StmtId>& stmts, std::set<std::string>& out, int depth) const {
    auto target = [&](ExprId id, auto&& self) -> void {
        if (const auto* n = ast.get_if<lang::Name>(id)) out.insert(n->id);
        if (const auto* t = ast.get_if<lang::Tuple>(id))
            for (ExprId x : t->elements) self(x, self);
        if (const auto* l = ast.get_if<lang::List>(id))
            for (ExprId x : l->elements) self(x, self);
        if (const auto* s = ast.get_if<lang::Subscript>(id)) self(s->base, self);  // a part of a list
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
// block reads what was assigned last; the parts of tuples and records that it assigns get places of their own.
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
        } else if (v.has_parts()) {
            own_parts(name, v, b->span);
        } else if (v.is(K::tile) && v.tile->element->op == ir::ElementOp::fragment && references(v.tile->element->id) > 1) {
            // Also a part of a tuple, or the caller's: those keep what they are.
            if (auto made = owned_tile(name, v, b->span)) v = *std::move(made);
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
                error(Code::while_loop, s.header, "`while` is not in the language",
                      "a loop has a trip count that is known when it starts: for i in tw.range(n)");
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
                    for (const auto& c2 : d.kernel.consts)
                        values += fmt::format("{}{} = {}", values.empty() ? "" : ", ", c2.name, c2.value);
                    if (!values.empty()) diagnostic.with_note({}, "with " + values);
                    stopped_ = true;  // what follows relies on it
                }
            } else if constexpr (std::is_same_v<T, lang::ExprStmt>) expression_statement(n.value, span);
            else if constexpr (std::is_same_v<T, lang::Return>) {
                if (inline_stack_.empty() && !n.value)
                    error(Code::unsupported_statement, span, "`return` in a kernel",
                          "every block runs the whole kernel; put the rest under an `if`");
                else if (inline_stack_.empty())
                    error(Code::unsupported_statement, span, "a kernel returns nothing", "write results with tw.store");
                else error(Code::inline_form, span, "`return` is not the last statement of the inline function");
            } else if constexpr (std::is_same_v<T, lang::Break> || std::is_same_v<T, lang::Continue>) {
                error(Code::unsupported_statement, span, "loops run to their end: there is no `break` or `continue`",
                      "put the rest of the body under an `if`");
            } else if constexpr (std::is_same_v<T, lang::FunctionDef>) {
                error(Code::unsupported_statement, s.header, "a function is defined inside a kernel",
                      "define it at module level with @tw.inline");
            } else {
                error(Code::unsupported_statement, span, "this statement is not allowed inside a kernel");
            }
        },
        s.node);
    assigning_.clear();
}

// `if tw.any(c):`. Warps decide for themselves, so the branch may hold nothing that another warp takes part in.
void Resolver::vote(const lang::If& i, int fragment, Span span, std::size_t branch) {
    if (branch + 1 < i.branches.size() || !i.otherwise.empty()) {
        error(Code::type_mismatch, span, "`if tw.any(...)` has no other side: it is a rare other way to values that are there already",
              "compute the usual values before it");
        return;
    }
    promote(i.branches[branch].body);
    const std::size_t at = out_->size();
    emit(ir::If{1, {}, {}, fragment}, span);
    ir::If made{1, {}, {}, fragment};
    dynamic_block(i.branches[branch].body, made.then, {});
    (*out_)[at].op = std::move(made);
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
              "use tw.where(c, a, b) for values that differ by element, tw.any(c) for a rare other way to the same values");
        return;
    }
    if (condition.is(K::vote)) return vote(i, static_cast<int>(condition.integer), span, branch);
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

}  // namespace tw::lower
