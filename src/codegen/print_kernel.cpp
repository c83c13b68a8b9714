// The kernel's frame: parameters, scopes, control flow, roles.
#include <algorithm>

#include "codegen/printer.h"
#include "device/form.h"
#include "device/messages.h"
#include "ir/uses.h"

namespace tw::codegen {

using ir::Region;
using ir::Stmt;

const char* name_of(Argument::Kind kind) {
    switch (kind) {
        case Argument::Kind::tensor_map: return "tensor_map";
        case Argument::Kind::tensor: return "tensor";
        case Argument::Kind::size: return "size";
        case Argument::Kind::scalar: return "scalar";
    }
    return "?";
}

void Printer::line(const std::string& text) { out_ += std::string(static_cast<std::size_t>(2 * depth_), ' ') + text + "\n"; }
void Printer::open(const std::string& text) {
    line(text.empty() ? "{" : text + " {");
    ++depth_;
}
void Printer::close(const std::string& after) {
    --depth_;
    line("}" + after);
}
void Printer::fail(const std::string& message) {
    if (!problem_) problem_ = EmitFailure{message, now_};
}
void Printer::place(const Stmt& s, const std::string& what) {
    line("// " + comment_text(what) + (s.loc.line ? "   " + comment_text(ir::place_text(s.loc, file_)) : ""));
}

std::string Printer::open_unrolled(int count, const std::string& name) {
    if (count == 1) return "0";
    out_ += "#pragma unroll\n";
    open(fmt::format("for (int {0} = 0; {0} < {1}; ++{0})", name, count));
    return name;
}
void Printer::close_unrolled(int count) {
    if (count != 1) close();
}

UnitText Printer::table_text(const std::vector<int>& table, const std::vector<int>& extents) {
    if (auto sum = fit_digits(table, extents)) {
        return [sum = *sum](const std::string& unit) {
            std::string text = digit_text(sum, unit);
            if (unit == "0") text = "0";
            if (sum.base != 0) text = text == "0" ? std::to_string(sum.base) : text + " + " + std::to_string(sum.base);
            return text;
        };
    }
    const std::string name = fmt::format("table_{}", tables_++);
    std::string list;
    for (int v : table) list += (list.empty() ? "" : ", ") + std::to_string(v);
    line(fmt::format("constexpr int {}[{}] = {{{}}};", name, table.size(), list));
    return [name](const std::string& unit) { return name + "[" + unit + "]"; };
}

void Printer::comment(const std::string& words) { line("// " + comment_text(words)); }

namespace {

const ir::DeviceStmt& how_of(const Stmt& s) {
    static const ir::DeviceStmt plainly;
    return s.device ? *s.device : plainly;
}

// The name occurs as a word from `from` on.
bool mentions(const std::string& text, std::size_t from, const std::string& name) {
    auto letter = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; };
    for (std::size_t at = text.find(name, from); at != std::string::npos; at = text.find(name, at + 1)) {
        if (!letter(text[at - 1]) && !letter(text[at + name.size()])) return true;
    }
    return false;
}

}  // namespace

void Printer::find_scopes() {
    declarations_ = Declarations(k_, names_.counter_of);
    var_declared_.assign(k_.vars.size(), false);
    pointer_used_.assign(k_.tensors.size(), false);
    auto tensor = [&](int t) { pointer_used_[static_cast<std::size_t>(t)] = true; };
    auto expr = [&](const ir::Expr& e) {
        ir::visit_leaves(
            e, [](int) {}, tensor);
    };
    ir::for_each_stmt(k_.body, [&](const Stmt& s) { ir::visit_uses(s, {.expr = expr, .synchronises = expr, .tensor = tensor}); });
}

void Printer::parameters() {
    auto add = [&](Argument::Kind kind, std::size_t id, const std::string& text) {
        arguments_.push_back({kind, static_cast<int>(id)});
        out_ += (arguments_.size() > 1 ? ",\n    " : "") + text;
    };
    for (std::size_t i = 0; i < k_.tensor_maps.size(); ++i) {
        add(Argument::Kind::tensor_map, i, "const __grid_constant__ tw::TensorMap " + names_.maps[i]);
    }
    for (std::size_t i = 0; i < k_.tensors.size(); ++i) {
        if (!pointer_used_[i]) continue;
        const ir::Tensor& t = k_.tensors[i];
        add(Argument::Kind::tensor, i,
            fmt::format("{}{}* __restrict__ {}", t.is_output ? "" : "const ", dtype_text(t.dtype), names_.tensors[i]));
    }
    for (std::size_t i = 0; i < k_.sizes.size(); ++i) add(Argument::Kind::size, i, "int " + names_.sizes[i]);
    for (std::size_t i = 0; i < k_.scalars.size(); ++i)
        add(Argument::Kind::scalar, i, dtype_text(k_.scalars[i].dtype) + " " + names_.scalars[i]);
}

Expected<EmittedKernel, EmitFailure> Printer::run() {
    now_ = k_.loc;
    find_scopes();
    bool swizzled = false;
    for (const auto& b : k_.buffers) swizzled |= b.swizzle != target::SwizzleMode::None;
    comment(fmt::format("{} for {}, made by tilewright from {}.", k_.name, k_.arch, file_));
    if (!k_.doc.empty()) comment(k_.doc.substr(0, k_.doc.find('\n')));
    if (!k_.computes.text.empty()) comment("computes " + k_.computes.text);
    for (const auto& a : k_.assumptions) comment("assumes " + ir::to_string(a.condition, ir::names_of(k_)));
    std::string constants;
    for (const auto& c : k_.consts) constants += fmt::format("{}{} = {}", constants.empty() ? "" : ", ", c.name, c.value);
    if (!constants.empty()) comment("with " + constants);
    out_ += "#include \"tw_tile.cuh\"\n";
    if (!k_.teams.empty()) out_ += "#include \"tw_team.cuh\"\n";
    out_ += "\n";
    const std::size_t functions_at = out_.size();
    for (std::size_t i = 0; i < k_.buffers.size(); ++i) {
        const auto& b = k_.buffers[i];
        out_ += fmt::format("constexpr tw::u32 AT_{} = {};  // {} bytes of {}\n", names_.buffers[i], b.byte_offset, b.bytes,
                            target::name(b.dtype));
    }
    for (std::size_t i = 0; i < k_.barriers.size(); ++i) {
        const auto& b = k_.barriers[i];
        out_ += fmt::format("constexpr tw::u32 AT_{} = {};  // {} mbarriers, {} arrivals a phase\n", names_.barriers[i], b.byte_offset,
                            b.slots, b.arrivals);
    }
    for (std::size_t i = 0; i < k_.teams.size(); ++i) {
        const auto& t = k_.teams[i];
        out_ += fmt::format("constexpr tw::u32 AT_{} = {};  // {} bytes of mailboxes\n", names_.teams[i], t.byte_offset, t.bytes);
        out_ += fmt::format("__device__ tw::TeamWords<{}, {}, {}> words_{};\n", t.words(), t.slots(), *k_.grid[0].as_constant(),
                            names_.teams[i]);
    }
    if (k_.shared_bytes) out_ += "\n";
    out_ += fmt::format("extern \"C\" __global__ void __launch_bounds__({}, {}) {}(\n    ", k_.device->threads,
                        std::max(1, k_.min_blocks_per_sm), entry_name(k_.name));
    parameters();
    out_ += ") {\n";
    depth_ = 1;
    if (k_.shared_bytes) {
        line("extern __shared__ __align__(1024) char arena[];");
        line("const tw::u32 smem = tw::smem_addr(arena);");
        if (swizzled) line("if (smem % 1024 != 0) __trap();  // the swizzle patterns would be off");
    }
    carriers();
    const std::string thread = "  const int tid = threadIdx.x;\n";
    const std::size_t thread_at = out_.size();
    bool uses_warp = false;
    ir::for_each_stmt(
        k_.body, [&](const Stmt& s) { uses_warp |= std::holds_alternative<ir::Role>(s.op) || std::holds_alternative<ir::Elect>(s.op); });
    if (uses_warp) line("const int warp = tw::warp_index();");
    if (k_.cluster[0] * k_.cluster[1] * k_.cluster[2] > 1) line("const int cluster_rank = tw::cluster_cta_rank();");
    group_threads_ = 32 * k_.warps;
    elect_condition_ = k_.arch == "sm_80" ? "tid == 0" : "warp == 0 && tw::elect_one()";
    region(k_.body);
    out_ += "}\n";
    if (mentions(out_, thread_at, "tid")) out_.insert(thread_at, thread);
    if (!functions_.empty()) {
        std::string text = "namespace tw {\n\n";
        for (const auto& [name, function] : functions_) text += function + "\n";
        out_.insert(functions_at, text + "}  // namespace tw\n\n");
    }
    if (problem_) return Unexpected<EmitFailure>{*problem_};
    if (const auto foreign = foreign_directive(out_))
        return Unexpected<EmitFailure>{{"the printed text has a line for the preprocessor that is not ours: " + *foreign, k_.loc}};
    return EmittedKernel{entry_name(k_.name), out_, arguments_};
}

// The warps that carry messages come after those of the kernel's own text, three for each team, and leave it here.
void Printer::carriers() {
    if (k_.device->carriers.empty()) return;
    for (std::size_t i = 0; i < k_.teams.size(); ++i) {
        const auto& t = k_.teams[i];
        const std::string type = fmt::format("tw::TeamBox<{}, {}, {}>", t.words(), t.slots(), k_.warps);
        line(fmt::format("{0}& box_{1} = *reinterpret_cast<{0}*>(arena + AT_{1});", type, names_.teams[i]));
        line(fmt::format("static_assert(sizeof({}) == {});", type, t.bytes));
    }
    open("if (threadIdx.x == 0)");
    for (const std::string& name : names_.teams) line(fmt::format("tw::team_init(box_{});", name));
    close();
    line("__syncthreads();");
    for (const ir::Carrier& c : k_.device->carriers) {
        const auto team = static_cast<std::size_t>(c.team);
        open(fmt::format("if (threadIdx.x >= {} && threadIdx.x < {})", c.first_thread, c.first_thread + c.threads));
        line(fmt::format("tw::team_carry<{3}>(box_{0}, words_{0}, {1}, {2});", names_.teams[team], expr(k_.teams[team].messages),
                         c.first_thread, k_.teams[team].fold == ir::Team::Fold::sum ? "tw::TeamSum" : "tw::TeamExpSum"));
        line("return;");
        close();
    }
}

int threads_of(const ir::Kernel& kernel) { return 32 * kernel.warps + 96 * static_cast<int>(kernel.teams.size()); }

void Printer::team_send(const ir::TeamSend& op) {
    const ir::Team& team = k_.teams[static_cast<std::size_t>(op.team)];
    const bool sums = team.fold == ir::Team::Fold::sum;
    const auto slots = device::sent_slots(k_, op);
    if (!slots) return fail(slots.error());
    open("");
    line(fmt::format("float part[{}];", team.words()));
    for (int r = 0; r < team.rows; ++r) {
        const std::vector<int>& mine = (*slots)[static_cast<std::size_t>(r)];
        auto folded = [&](const char* from, const char* function, const std::function<std::string(int)>& text) {
            std::string all = mine.empty() ? from : text(mine[0]);
            for (std::size_t i = 1; i < mine.size(); ++i)
                all = function[0] == '+' ? all + " + " + text(mine[i]) : fmt::format("{}({}, {})", function, all, text(mine[i]));
            return all;
        };
        auto value = [&](int number) {
            return [this, &op, number](int v) { return value_text(op.src[static_cast<std::size_t>(number)], std::to_string(v)); };
        };
        const int at = r * team.numbers;
        if (sums) {
            for (int i = 0; i < team.numbers; ++i) line(fmt::format("part[{}] = {};", at + i, folded("0.0f", "+", value(i))));
        } else {
            line(fmt::format("part[{}] = {};", at, folded("tw::team_lowest", "fmaxf", value(0))));
            const auto largest = value(0), sum = value(1);
            if (mine.size() == 1) line(fmt::format("part[{}] = {};", at + 1, sum(mine[0])));
            else
                line(fmt::format("part[{}] = {};", at + 1, folded("0.0f", "+", [&](int v) {
                                     return fmt::format("{} * tw::team_weight({}, part[{}])", sum(v), largest(v), at);
                                 })));
        }
    }
    line(fmt::format("tw::team_send<{}>(box_{}, {}, part);", sums ? "tw::TeamSum" : "tw::TeamExpSum",
                     names_.teams[static_cast<std::size_t>(op.team)], expr(op.message)));
    close();
}

void Printer::team_receive(const ir::TeamReceive& op) {
    const ir::Team& team = k_.teams[static_cast<std::size_t>(op.team)];
    const auto rows = device::received_rows(k_, op);
    if (!rows) return fail(rows.error());
    open("");
    line(fmt::format("float whole[{}];", team.words()));
    line(fmt::format("tw::team_receive(box_{}, {}, whole);", names_.teams[static_cast<std::size_t>(op.team)], expr(op.message)));
    for (std::size_t i = 0; i < op.dst.size(); ++i) {
        for (std::size_t v = 0; v < (*rows)[i].size(); ++v)
            line(fmt::format("{}[{}] = whole[{}];", fragment_name(op.dst[i]), v, (*rows)[i][v] * team.numbers + static_cast<int>(i)));
    }
    close();
}

void Printer::declare_at(const Region& body, std::size_t index) {
    for (int f : declarations_.fragments(body, index))
        line(fmt::format("{} {}[{}];", word_text(dtype(f)), fragment_name(f), std::max(1, words(f))));
    for (int v : declarations_.variables(body, index)) {
        const auto* a = std::get_if<ir::Assign>(&body[index].op);
        if (a && a->var == v) continue;  // declared by its assignment
        const auto ring = names_.rings.find(v);
        if (ring == names_.rings.end() || ring->second.needed) line(fmt::format("int {} = 0;", names_.vars[static_cast<std::size_t>(v)]));
        if (ring != names_.rings.end())
            line(fmt::format("int {} = 0, {} = 0;", names_.vars[static_cast<std::size_t>(ring->second.slot)],
                             names_.vars[static_cast<std::size_t>(ring->second.phase)]));
        var_declared_[static_cast<std::size_t>(v)] = true;
    }
}

void Printer::assign(const ir::Assign& op, const ir::DeviceStmt& how) {
    const auto id = static_cast<std::size_t>(op.var);
    const std::string& name = names_.vars[id];
    const bool first = !var_declared_[id];
    var_declared_[id] = true;
    if (how.ring) {
        if (op.value.is_constant(0)) line(names_.ring_start(op.var, first));
        else
            for (const std::string& text : names_.ring_step(op.var)) line(text);
        return;
    }
    const bool once = facts_.assignments(op.var) == 1;
    line(fmt::format("{}{} = {};", first ? (once ? "const int " : "int ") : "", name, expr(op.value)));
}

void Printer::for_loop(const ir::For& op, const ir::DeviceStmt& how) {
    const std::string& name = names_.vars[static_cast<std::size_t>(op.var)];
    std::string bounds, end = wrapped(op.hi), by = expr(op.step);
    auto keep = [&](const char* what, std::string& value) {
        const std::string kept = companion(name, what);
        bounds += fmt::format(", {} = {}", kept, value);
        value = kept;
    };
    // The bounds are those at the entry, whatever the body assigns.
    if (changes_inside(op, op.hi)) keep("end", end);
    if (changes_inside(op, op.step)) keep("step", by);
    const std::string step = op.step.is_constant(1) ? "++" + name : fmt::format("{} += {}", name, by);
    if (how.opaque) line(fmt::format("const int {} = tid;", companion(name, "tid")));
    if (op.unroll == -1) out_ += "#pragma unroll\n";
    else if (op.unroll >= 1) out_ += fmt::format("#pragma unroll {}\n", op.unroll);
    open(fmt::format("for (int {0} = {1}{2}; {0} < {3}; {4})", name, expr(op.lo), bounds, end, step));
    if (how.opaque) line(fmt::format("const int tid = tw::opaque({});", companion(name, "tid")));
    region(op.body);
    close();
}

void Printer::region(const Region& body) {
    for (std::size_t i = 0; i < body.size() && !failed(); ++i) {
        declare_at(body, i);
        now_ = body[i].loc;
        if (std::holds_alternative<ir::Role>(body[i].op)) {
            std::vector<const Stmt*> list;
            while (i < body.size() && std::holds_alternative<ir::Role>(body[i].op)) {
                if (!list.empty()) declare_at(body, i);
                list.push_back(&body[i++]);
            }
            --i;
            roles(list);
            continue;
        }
        stmt(body[i]);
    }
}

void Printer::roles(const std::vector<const Stmt*>& list) {
    const int outer_threads = group_threads_;
    const std::string outer_elect = elect_condition_;
    bool first = true;
    for (const Stmt* s : list) {
        const auto& r = std::get<ir::Role>(s->op);
        const int last = r.first_warp + r.warps_per_instance * r.instances;
        const std::string test =
            r.first_warp == 0 ? fmt::format("warp < {}", last) : fmt::format("warp >= {} && warp < {}", r.first_warp, last);
        if (first) open("if (" + test + ")");
        else {
            --depth_;
            open("} else if (" + test + ")");
        }
        first = false;
        place(*s, "role " + r.name);
        const int threads = 32 * r.warps_per_instance;
        const bool power = (threads & (threads - 1)) == 0 && r.first_warp % r.warps_per_instance == 0;
        const std::string instance = r.instances == 1 ? "0" : fmt::format("(warp - {}) / {}", r.first_warp, r.warps_per_instance);
        const std::string thread = power ? fmt::format("const int tid = threadIdx.x % {};", threads)
                                         : fmt::format("const int tid = threadIdx.x - {} - {} * {};", 32 * r.first_warp, instance, threads);
        const std::size_t thread_at = out_.size();
        if (r.instance_var >= 0) line(fmt::format("const int {} = {};", names_.vars[static_cast<std::size_t>(r.instance_var)], instance));
        group_threads_ = threads;
        elect_condition_ = k_.arch == "sm_80"          ? "tid == 0"
                           : r.warps_per_instance == 1 ? "tw::elect_one()"
                           : r.instances == 1          ? fmt::format("warp == {} && tw::elect_one()", r.first_warp)
                                                       : fmt::format("warp % {} == {} && tw::elect_one()", r.warps_per_instance,
                                                                     r.first_warp % r.warps_per_instance);
        region(r.body);
        if (mentions(out_, thread_at, "tid"))
            out_.insert(thread_at, std::string(static_cast<std::size_t>(2 * depth_), ' ') + thread + "\n");
    }
    close();
    group_threads_ = outer_threads;
    elect_condition_ = outer_elect;
}

void Printer::elect(const ir::Elect& op) {
    open("if (" + elect_condition_ + ")");
    region(op.body);
    close();
}

void Printer::if_else(const ir::If& op) {
    if (op.vote >= 0) {
        std::string any;
        for (int v = 0; v < words(op.vote); ++v) any += fmt::format("{}{}[{}]", v ? " || " : "", fragment_name(op.vote), v);
        open(fmt::format("if (__any_sync(0xffffffffu, {}))", any));
    } else {
        open("if (" + expr(op.condition) + ")");
    }
    region(op.then);
    if (!op.otherwise.empty()) {
        --depth_;
        open("} else");
        region(op.otherwise);
    }
    close();
}

void Printer::stmt(const Stmt& s) {
    std::visit([&](const auto& op) { print(op, s, how_of(s)); }, s.op);
}

void Printer::print(const ir::For& op, const Stmt& s, const ir::DeviceStmt& how) {
    if (!s.note.empty()) place(s, s.note);
    for_loop(op, how);
}

void Printer::print(const ir::CpAsync& op, const Stmt& s, const ir::DeviceStmt& how) {
    place(s, s.note);
    if (op.whole_vectors) cp_async_whole_vectors(op);
    else cp_async(op, *how.access);
}

Expected<EmittedKernel, EmitFailure> emit(const ir::Kernel& kernel, const std::string& file) {
    const ir::Kernel device = device::device_form(kernel);
    return Printer(device, file).run();
}

std::string without_comments(const std::string& source) {
    std::string text;
    for (std::size_t at = 0; at < source.size();) {
        const std::size_t end = std::min(source.find('\n', at), source.size());
        text.append(source, at, std::min(source.find("//", at), end) - at) += '\n';
        at = end + 1;
    }
    return text;
}

}  // namespace tw::codegen
