#include "lower/draft.h"

#include <fmt/format.h>

#include <filesystem>

namespace tw::lower {

std::string Draft::unique(const std::string& wanted) {
    const int count = taken[wanted]++;
    if (count == 0) return wanted;
    std::string name = wanted + "_" + std::to_string(count + 1);
    while (taken.count(name)) name += "_";
    taken[name] = 1;
    return name;
}

int Draft::add_var(const std::string& name, ir::Variable::Kind kind) {
    kernel.vars.push_back({unique(name), kind});
    return static_cast<int>(kernel.vars.size()) - 1;
}

int Draft::add_fragment(const std::string& name, DType dtype, std::vector<int> shape, int group, ir::Loc loc) {
    ir::Fragment f;
    f.name = unique(name);
    f.dtype = dtype;
    f.dist.shape = std::move(shape);
    f.loc = loc;
    kernel.fragments.push_back(std::move(f));
    notes.push_back({group, {}});
    return static_cast<int>(kernel.fragments.size()) - 1;
}

// Row-major; with a swizzle the last dimension is cut into panels of one span each (see docs/language.md).
int Draft::add_buffer(const std::string& name, DType dtype, const std::vector<int>& shape, target::SwizzleMode swizzle, int pad,
                      ir::Loc loc) {
    ir::SharedBuffer b;
    b.name = unique(name);
    b.dtype = dtype;
    b.swizzle = swizzle;
    b.loc = loc;
    b.dims.resize(shape.size());
    long long stride = 1;
    const int rank = static_cast<int>(shape.size());
    for (int d = rank - 1; d >= 0; --d) {
        const int extent = shape[static_cast<std::size_t>(d)];
        ir::SharedDim& dim = b.dims[static_cast<std::size_t>(d)];
        const int panel = swizzle == target::SwizzleMode::None ? extent : target::span_bytes(swizzle) / target::bytes(dtype);
        if (d == rank - 1 && panel < extent && rank >= 2) {
            const int rows = shape[static_cast<std::size_t>(rank - 2)];
            dim.extents = {panel, extent / panel};
            dim.strides = {1, rows * panel};
            stride = panel;
        } else if (d == rank - 2 && b.dims.back().extents.size() == 2) {
            dim.extents = {extent};
            dim.strides = {static_cast<int>(stride)};
            stride = static_cast<long long>(extent) * shape.back();
        } else {
            dim.extents = {extent};
            dim.strides = {static_cast<int>(stride)};
            stride *= extent;
            if (d == rank - 1) stride += pad;
        }
    }
    b.bytes = static_cast<int>(stride * target::bytes(dtype));
    kernel.buffers.push_back(std::move(b));
    return static_cast<int>(kernel.buffers.size()) - 1;
}

ir::Stmt Draft::sugar_stmt(SugarOp op, std::string text, ir::Loc loc) {
    sugar.push_back(std::move(op));
    return ir::Stmt{ir::Sugar{static_cast<int>(sugar.size()) - 1, std::move(text)}, loc, ""};
}

FileId file_of(const SourceMap& sources, FileId own, const ir::Loc& loc) {
    for (FileId f = loc.file.empty() ? kNoFile : 0; f < sources.size(); ++f) {
        if (std::filesystem::path(sources.file(f).name()).filename() == loc.file) return f;
    }
    return own;
}

ir::Loc Context::loc(Span span) const {
    if (!span.known() || !sources.contains(span.file)) return {};
    const SourceFile& f = sources.file(span.file);
    const LineColumn a = f.position(span.begin), b = f.position(span.end);
    ir::Loc loc{static_cast<int>(a.line), static_cast<int>(a.column), static_cast<int>(b.line), static_cast<int>(b.column), {}};
    if (span.file != file) loc.file = ir::imported_file(std::filesystem::path(f.name()).filename().string());
    return loc;
}

Span Context::span(const ir::Loc& loc) const {
    if (loc.line <= 0 || !sources.contains(file)) return {};
    const FileId where = file_of(sources, file, loc);
    const SourceFile& f = sources.file(where);
    auto offset = [&](int line, int column) {
        if (line < 1 || static_cast<std::uint32_t>(line) > f.line_count()) return static_cast<std::uint32_t>(f.text().size());
        std::uint32_t at = f.line_begin(static_cast<std::uint32_t>(line));
        const std::uint32_t size = static_cast<std::uint32_t>(f.text().size());
        for (int c = 1; c < column && at < size; ++c) {
            ++at;
            while (at < size && (static_cast<unsigned char>(f.text()[at]) & 0xC0u) == 0x80u) ++at;
        }
        return at;
    };
    return {where, offset(loc.line, loc.column), offset(loc.end_line, loc.end_column)};
}

void for_each_with_threads(ir::Region& region, int threads, const GroupVisitor& visit) {
    for (ir::Stmt& s : region) {
        visit(s, threads);
        if (auto* f = std::get_if<ir::For>(&s.op)) for_each_with_threads(f->body, threads, visit);
        if (auto* i = std::get_if<ir::If>(&s.op)) {
            for_each_with_threads(i->then, threads, visit);
            for_each_with_threads(i->otherwise, threads, visit);
        }
        if (auto* r = std::get_if<ir::Role>(&s.op)) for_each_with_threads(r->body, 32 * r->warps_per_instance, visit);
        if (auto* e = std::get_if<ir::Elect>(&s.op)) for_each_with_threads(e->body, 1, visit);
    }
}

void for_each_region(ir::Region& region, const std::function<void(ir::Region&)>& edit) {
    for (ir::Stmt& s : region) {
        if (auto* f = std::get_if<ir::For>(&s.op)) for_each_region(f->body, edit);
        if (auto* i = std::get_if<ir::If>(&s.op)) {
            for_each_region(i->then, edit);
            for_each_region(i->otherwise, edit);
        }
        if (auto* r = std::get_if<ir::Role>(&s.op)) for_each_region(r->body, edit);
        if (auto* e = std::get_if<ir::Elect>(&s.op)) for_each_region(e->body, edit);
    }
    edit(region);
}

void for_each_leaf(const ir::Element& element, const std::function<void(const ir::ElementNode&)>& visit) {
    if (!element) return;
    if (element->op == ir::ElementOp::fragment) visit(*element);
    for (const ir::Element& a : element->args) for_each_leaf(a, visit);
}

std::string shape_text(const std::vector<int>& shape) {
    std::string s = "(";
    for (std::size_t i = 0; i < shape.size(); ++i) s += (i ? ", " : "") + std::to_string(shape[i]);
    return s + (shape.size() == 1 ? ",)" : ")");
}

}  // namespace tw::lower
