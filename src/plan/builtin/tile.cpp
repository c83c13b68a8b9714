// The tile skeleton: elementwise maps, reductions, norms and scans.
//
// Axes: Q is contiguous in the main tensor, P the next one (or the reduced one, when the reduction runs along another axis than
// Q). Axes that are not reduced are cut into blocks; reduced axes are walked in chunks, once per level of reductions that
// depend on one another, and a last time to write outputs that have the axis. With mode=registers the whole reduced axis is
// one tile and there is nothing to walk.
#include <algorithm>

#include <fmt/format.h>

#include "plan/builtin/tile_writer.h"

namespace tw::plan::builtin {

Value TileWriter::load(const Term& t) {
    const ir::Tensor& tensor = spec_.tensors[static_cast<std::size_t>(t->id)];
    std::string view;
    std::vector<int> order;
    for (const Expr& e : t->indices) {
        if (!view.empty()) view += ", ";
        if (e.kind() == ExprKind::constant) {
            view += std::to_string(e->value);
            const Expr& dim = tensor.dims[static_cast<std::size_t>(&e - t->indices.data())];
            std::string bound = fmt::format("{} < {}", e->value, text_of(dim, spec_));
            if (!dim.as_constant() && std::find(assumes_.begin(), assumes_.end(), bound) == assumes_.end()) assumes_.push_back(bound);
            continue;
        }
        const int c = e.kind() == ExprKind::var ? class_of(e->id) : -1;
        const auto it = origin_.find(c);
        if (it == origin_.end()) {
            if (write_.problem.empty()) write_.problem = fmt::format("an index of {} is not a plain variable", tensor.name);
            view += "0";
            continue;
        }
        if (bit(c)) {
            const std::string& o = it->second;
            const bool zero = o == "0";
            view += zero ? fmt::format("0:{}", block_name(c)) : fmt::format("{} : {} + {}", o, o, block_name(c));
            order.push_back(bit(c));
        } else view += it->second;
    }
    int axes = 0;
    for (int b : order) axes |= b;
    if (axes == 0) {
        // One element for the whole tile: a tile of one value.
        const std::string name = body_.fresh("scalar_" + tensor.name);
        std::string one;
        for (const Expr& e : t->indices) {
            if (!one.empty()) one += ", ";
            one += e.kind() == ExprKind::constant ? std::to_string(e->value) : origin_[class_of(e->id)];
        }
        const bool integer = tensor.dtype == target::DType::I32;
        body_.line(fmt::format("{} = tw.load({}){}", name, one.empty() ? tensor.name : fmt::format("{}[{}]", tensor.name, one),
                               tensor.dtype == target::DType::F32 || integer ? "" : ".to(f32)"));
        return {name, 0, integer, false, true};
    }
    const std::string name = body_.fresh(fmt::format("{}_tile", tensor.name));
    const bool flipped = order.size() == 2 && order[0] == kQ;
    std::string text =
        fmt::format("tw.load({}[{}], fill=0{}{})", tensor.name, view, target::info(tensor.dtype).is_float ? ".0" : "", hint());
    if (flipped) {
        const std::string buffer = fmt::format("s_{}", name);
        buffers_.push_back(fmt::format("{} = tw.shared({}, (BQ, BP), pad=1)", buffer, target::name(tensor.dtype)));
        if (!loops_.empty()) body_.line("tw.sync()");
        body_.line(fmt::format("tw.store({}, {})", buffer, text));
        body_.line("tw.sync()");
        text = fmt::format("tw.load({}.T)", buffer);
        uses_shared_ = true;
    }
    const bool integer = tensor.dtype == target::DType::I32;
    if (tensor.dtype != target::DType::F32 && !integer) text += ".to(f32)";
    body_.line(fmt::format("{} = {}", name, text));
    return {name, axes, integer, false, true};
}

bool TileWriter::output_is_looped(const ir::Equation& e) const {
    for (int v : e.output_vars) {
        const int c = class_of(v);
        for (int l : loops_)
            if (l == c) return true;
    }
    return false;
}

void TileWriter::store(const ir::Equation& e, const Value& raw) {
    const ir::Tensor& out = spec_.tensors[static_cast<std::size_t>(e.output)];
    std::string view;
    std::vector<int> order;
    for (int v : e.output_vars) {
        const int c = class_of(v);
        if (!view.empty()) view += ", ";
        if (bit(c)) {
            const std::string& o = origin_[c];
            view += o == "0" ? fmt::format("0:{}", block_name(c)) : fmt::format("{} : {} + {}", o, o, block_name(c));
            order.push_back(bit(c));
        } else view += origin_[c];
    }
    int axes = 0;
    for (int b : order) axes |= b;
    Value v = raw;
    const bool integers = v.integer && out.dtype == target::DType::I32;
    if (v.axes != axes)
        v = {fmt::format("tw.{}({}, {}) + {}", integers ? "full" : "zeros", integers ? "tw.i32" : "f32",
                         integers ? shape_of(axes) + ", 0" : shape_of(axes), write_.spread(raw, axes)),
             axes, integers, false, false};
    v = write_.named(v, "result");
    if (!integers && (v.integer || v.boolean)) v = write_.named({v.text + ".to(f32)", axes, false, false, false}, "result");
    std::string value = out.dtype == target::DType::F32 || integers ? v.text : fmt::format("{}.to({})", v.text, target::name(out.dtype));
    if (order.size() == 2 && order[0] == kQ) {
        const std::string buffer = body_.fresh("s_" + out.name);
        buffers_.push_back(fmt::format("{} = tw.shared({}, (BP, BQ), pad=1)", buffer, target::name(out.dtype)));
        if (!loops_.empty()) body_.line("tw.sync()");
        body_.line(fmt::format("tw.store({}, {})", buffer, value));
        body_.line("tw.sync()");
        value = fmt::format("tw.load({}.T)", buffer);
    }
    const bool alike = cluster() > 1 && !(axes & kQ);  // every block of the cluster has it: the first one stores it
    if (alike) {
        body_.line("if rank == 0:");
        body_.in();
    }
    body_.line(fmt::format("tw.store({}, {}{})", view.empty() ? out.name : fmt::format("{}[{}]", out.name, view), value, hint()));
    if (alike) body_.out();
}

void TileWriter::store_outputs(bool inside) {
    const bool any = std::any_of(axes_.equations.begin(), axes_.equations.end(), [&](const ir::Equation& e) {
        eq_ = static_cast<std::size_t>(&e - axes_.equations.data());
        return output_is_looped(e) == inside;
    });
    if (!any) return;
    if (inside) {
        for (Fold& f : folds_)
            if (f.scan) start(f);
        open_loops();
    }
    for (std::size_t i = 0; i < axes_.equations.size(); ++i) {
        eq_ = i;
        const ir::Equation& e = axes_.equations[i];
        if (output_is_looped(e) != inside) continue;
        Term value = e.value;
        if (value->kind == TermKind::cast && value->dtype == spec_.tensors[static_cast<std::size_t>(e.output)].dtype)
            value = value->args[0];
        const Value v = write_.eval(value);
        eq_ = i;
        store(e, v);
    }
    if (inside) {
        for (Fold& f : folds_) {
            if (!f.scan) continue;
            eq_ = f.equation;
            const Value v = write_.eval(f.body);
            body_.line(fmt::format("{} = {}", f.name,
                                   folded(f.op, f.name, reduced_text(f.op, v.text, v.axes, bit(*f.over.begin()), axes_.p >= 0))));
        }
        close_loops();
    }
}

// May neighbouring blocks take neighbouring memory (the last axis first)? Rows of a long matrix lie on pages of their own: taken down the
// rows, a GELU of 4096 x 393216 is 5% slower. The other dimensions of a grid have at most 65535 blocks.
bool TileWriter::neighbours_first() const {
    if (axes_.q < 0 || axes_.looped(axes_.q)) return false;
    const auto value = [&](int c, const tasks::Sizes& shape) -> std::int64_t {
        const IndexClass& axis = axes_.of(c);
        for (const auto& [name, size] : shape)
            if (name == axis.extent_text) return size;
        const std::int64_t size = task_.size(axis.extent_text);
        return size ? size : axis.extent.as_constant().value_or(65536);
    };
    std::vector<tasks::Sizes> shapes = task_.held_out;
    shapes.emplace_back();
    return std::all_of(shapes.begin(), shapes.end(), [&](const tasks::Sizes& shape) {
        std::int64_t outer = 1;
        for (int c : axes_.outer_kept) outer *= value(c, shape);
        return outer <= 65535 && (axes_.p < 0 || value(axes_.p, shape) <= 65535);
    });
}

// Blocks over everything that is not reduced: the outermost grid dimension holds all outer classes together.
void TileWriter::declare_grid() {
    std::vector<std::string> names, extents;
    const auto blocked = [&](int c) {
        if (c < 0 || axes_.looped(c)) return;
        const std::string b = "b_" + axes_.of(c).name;
        names.push_back(b);
        extents.push_back(fmt::format("tw.cdiv({}, {})", axes_.of(c).extent_text, block_name(c)));
        origin_[c] = fmt::format("{} * {}", b, block_name(c));
    };
    // What has the most blocks comes first: only the first dimension of a grid has no bound of 65535.
    std::vector<std::string> outer;
    for (int c : axes_.outer_kept) outer.push_back(axes_.of(c).extent_text);
    if (outer.size() == 1) {
        names.push_back("i_" + axes_.of(axes_.outer_kept[0]).name);
        extents.push_back(outer[0]);
        origin_[axes_.outer_kept[0]] = names.back();
    } else if (!outer.empty()) {
        names.push_back("i_outer");
        extents.push_back(fmt::format("{}", fmt::join(outer, " * ")));
        std::string rest = "i_outer";
        for (std::size_t i = outer.size(); i-- > 0;) {
            const std::string name = "i_" + axes_.of(axes_.outer_kept[i]).name;
            body_.line(i == 0 ? fmt::format("{} = {}", name, rest) : fmt::format("{} = {} % {}", name, rest, outer[i]));
            if (i > 0) body_.line(fmt::format("rest_{} = {} // {}", i, rest, outer[i]));
            rest = fmt::format("rest_{}", i);
            origin_[axes_.outer_kept[i]] = name;
        }
    }
    blocked(axes_.p);
    blocked(axes_.q);
    if (neighbours_first()) std::reverse(names.begin(), names.end()), std::reverse(extents.begin(), extents.end());
    if (cluster() > 1)
        names.insert(names.begin(), "rank"),
            extents.insert(extents.begin(), std::to_string(cluster()));  // blocks of a cluster are neighbours
    if (names.empty()) return;
    std::string line = fmt::format("{} = tw.grid({})", fmt::join(names, ", "), fmt::join(extents, ", "));
    // Before the decoding lines.
    Lines head;
    head.line(line);
    const std::string decoded = body_.text();
    body_ = head;
    body_.raw(decoded);
    for (int c : {axes_.p, axes_.q}) {
        if (c < 0 || axes_.looped(c)) continue;
        const std::string name = body_.fresh("first_" + axes_.of(c).name);
        body_.line(fmt::format("{} = {}", name, origin_[c]));
        origin_[c] = name;
    }
}

void TileWriter::setup() {
    for (int c : axes_.outer_reduced) loops_.push_back(c);
    for (int c : {axes_.p, axes_.q})
        if (axes_.looped(c)) loops_.push_back(c);
    declare_grid();
    if (in_registers()) {
        for (int c : loops_) {
            if (!bit(c)) continue;  // walked: an index of its own
            origin_[c] = "0";
            if (cluster() > 1 && c == axes_.q) {
                body_.line("part = rank * BQ");
                origin_[c] = "part";
            }
            assumes_.push_back(fmt::format("{} {} {}{}", axes_.of(c).extent_text, exact() ? "==" : "<=", block_name(c),
                                           cluster() > 1 && c == axes_.q ? fmt::format(" * {}", cluster()) : ""));
        }
        std::erase_if(loops_, [this](int c) { return bit(c) != 0; });
        if (cluster() > 1 && !loops_.empty()) write_.problem = "a cluster shares one reduced axis";
    } else if (exact()) {
        for (int c : loops_)
            if (bit(c)) assumes_.push_back(fmt::format("{} % {} == 0", axes_.of(c).extent_text, block_name(c)));
    }
    if (exact()) {
        for (int c : {axes_.p, axes_.q}) {
            if (c >= 0 && !axes_.looped(c)) assumes_.push_back(fmt::format("{} % {} == 0", axes_.of(c).extent_text, block_name(c)));
        }
    }
    if (const int v = sketch_.number("vector", 1); v > 1 && !axes_.of(axes_.q).extent.as_constant()) {
        assumes_.push_back(fmt::format("{} % {} == 0", axes_.of(axes_.q).extent_text, v));
    }
    write_.approximate = sketch_.on("approx");
    write_.key_name = [this](int v) {
        const int c = class_of(v);
        return c < 0 ? fmt::format("v{}", v) : fmt::format("c{}", c);
    };
    write_.element = [this](const Term& t) { return load(t); };
    write_.reduce = [this](const Term& t) -> Value {
        if (const Fold* f = find(t)) {
            if (f->scan) return scan_value(*f);
            if (!f->name.empty()) return combine_name(f->name, f->axes);
        }
        if (write_.problem.empty()) write_.problem = "a reduction is needed before it is known";
        return {"0.0", 0, false, false, true};
    };
    write_.variable = [this](int v) -> Value {
        const int c = class_of(v);
        const auto it = origin_.find(c);
        if (it == origin_.end()) return {"0", 0, true, false, true};
        if (!bit(c)) return {it->second, 0, true, false, true};
        const std::string text =
            it->second == "0" ? fmt::format("tw.arange({})", block_name(c)) : fmt::format("tw.arange({}) + {}", block_name(c), it->second);
        return write_.named({text, bit(c), true, false, false}, "at_" + axes_.of(c).name);
    };
}

Expected<std::string, std::string> TileWriter::write() {
    if (!axes_.problem.empty()) return Unexpected{axes_.problem};
    setup();
    for (std::size_t i = 0; i < axes_.equations.size(); ++i) {
        eq_ = i;
        collect(axes_.equations[i].value);
    }
    int levels = 0;
    for (const Fold& f : folds_) levels = std::max(levels, f.level);
    for (int level = 1; level <= levels; ++level) pass(level);
    store_outputs(false);
    if (!loops_.empty()) store_outputs(true);
    if (!write_.problem.empty()) return Unexpected{write_.problem};

    std::string parameters = fmt::format("    BQ: tw.const = {},\n", sketch_.number("bq", 256));
    if (axes_.p >= 0) parameters = fmt::format("    BP: tw.const = {},\n", sketch_.number("bp", 1)) + parameters;
    std::string decorator = fmt::format(", threads={}", sketch_.number("threads", 128));
    if (cluster() > 1) decorator += fmt::format(", cluster=({}, 1, 1)", cluster());
    if (const int b = sketch_.number("blocks", 0)) decorator += fmt::format(", blocks_per_sm={}", b);
    std::string out =
        fmt::format("\"\"\"{}, written by the built-in proposer.\"\"\"\n", task_.name) + to_line(sketch_) + tasks::file_head(task_);
    out += tasks::kernel_head(task_, task_.name, decorator, parameters);
    Lines head;
    for (const std::string& a : assumes_) head.line(fmt::format("tw.assume({})", a));
    for (const std::string& b : buffers_) head.line(b);
    return out + head.text() + body_.text();
}

Expected<std::string, std::string> write_tile_kernel(const tasks::Task& task, const Sketch& sketch) {
    return TileWriter(task, sketch).write();
}

}  // namespace tw::plan::builtin
