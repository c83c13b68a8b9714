// The kernel as a whole: names, scopes, control flow, parameters.
#include <algorithm>

#include "base/text.h"
#include "codegen/cute/helpers.h"
#include "codegen/cute/printer.h"
#include "codegen/user_text.h"
#include "device/form.h"

namespace tw::codegen {

Expected<CuteKernel, EmitFailure> emit_cute(const ir::Kernel& kernel, const std::string& file, int number) {
    return cute::Printer(kernel, file, number).run();
}

}  // namespace tw::codegen

namespace tw::codegen::cute {

using ir::Region;
using ir::Stmt;

namespace {

bool waits_inside(const Region& body) {
    bool found = false;
    ir::for_each_stmt(body, [&](const Stmt& s) { found |= std::holds_alternative<ir::BarrierWait>(s.op); });
    return found;
}

// A short loop over tiles of a tensor, in which nobody waits: several rounds' loads shall be on their way. The compiler would see to it,
// but counts what CuTe's text has before it is folded.
bool loads_ahead(const ir::Kernel& k, const Region& body) {
    int loaded = 0;
    bool plain = true;
    ir::for_each_stmt(body, [&](const Stmt& s) {
        if (const auto* load = std::get_if<ir::LoadGlobal>(&s.op)) loaded += k.fragments[static_cast<std::size_t>(load->dst)].dist.values();
        else plain &= std::holds_alternative<ir::Compute>(s.op) || std::holds_alternative<ir::Assign>(s.op);
    });
    return plain && loaded > 0 && loaded <= 8;
}

const ir::DeviceStmt& how_of(const Stmt& s) {
    static const ir::DeviceStmt plainly;
    return s.device ? *s.device : plainly;
}

}  // namespace

void Printer::line(const std::string& text) { out_ += std::string(static_cast<std::size_t>(depth_) * 2, ' ') + text + "\n"; }

void Printer::open(const std::string& text) {
    line(text.empty() ? "{" : text + " {");
    ++depth_;
}

void Printer::close(const std::string& after) {
    --depth_;
    line("}" + after);
}

Printer::Printer(const ir::Kernel& kernel, std::string file, int number)
    : k_(device::device_form(kernel)), file_(std::move(file)), number_(number) {
    if (k_.arch != "sm_80") elected_ = "warp == 0 && elect_one_sync()";
}

// What is refused, as the end of "CuTe text has no ...".
void Printer::fail(const std::string& message) {
    if (!problem_) problem_ = EmitFailure{"--to cute has no text for " + message, loc_};
}

void Printer::choose_names() {
    const std::string suffix = number_ > 0 ? std::to_string(number_) : "";
    entry_ = entry_name(k_.name) + suffix;
    std::set<std::string> none;
    launcher_ = identifier(k_.name, none) + "launch" + suffix;
}

void Printer::declare_fragment(int f) {
    const std::string type = element_type(dtype(f));
    if (type.empty() || dtype(f) == ir::DType::TF32) return fail(fmt::format("a tile of {}", target::name(dtype(f))));
    if (const auto it = matrix_.find(f); it != matrix_.end()) {
        const MatrixUse& m = it->second;
        if (m.operand != 'C')
            return line(
                fmt::format("Tensor {} = make_tensor<{}>(partition_shape_{}({}{{}}, {}{{}}));", name(f), type, m.operand, m.name, m.shape));
        return line(fmt::format("Tensor {} = partition_fragment_C({}{{}}, {}{{}});", name(f), m.name, m.shape));
    }
    line(fmt::format("Tensor {} = make_tensor<{}>({}{{}});", name(f), type, shape({dist(f).values()})));
}

void Printer::declare_at(const Region& body, std::size_t index) {
    for (int f : declarations_.fragments(body, index)) declare_fragment(f);
    for (int v : declarations_.variables(body, index)) {
        const auto* here = std::get_if<ir::Assign>(&body[index].op);
        if (here && here->var == v) continue;  // declared where it is given its value
        var_declared_[static_cast<std::size_t>(v)] = true;
        line(names_.rings.count(v) ? names_.ring_start(v, true) : fmt::format("int {} = 0;", names_.vars[static_cast<std::size_t>(v)]));
    }
}

void Printer::region(const Region& body) {
    for (std::size_t i = 0; i < body.size() && !failed(); ++i) {
        if (body[i].loc.line) loc_ = body[i].loc;
        declare_at(body, i);
        if (!std::holds_alternative<ir::Role>(body[i].op)) {
            stmt(body[i]);
            continue;
        }
        const std::size_t first = i;
        while (i + 1 < body.size() && std::holds_alternative<ir::Role>(body[i + 1].op)) declare_at(body, ++i);
        for (std::size_t r = first; r <= i; ++r) {
            if (r > first) --depth_;
            role(std::get<ir::Role>(body[r].op), r > first);
        }
        close();
    }
}

void Printer::place(const Stmt& s) {
    const std::string words = s.note.empty() ? ir::print(k_, s) : s.note;
    std::string text = s.loc.line ? fmt::format("{}: {}", ir::place_text(s.loc, file_), words) : words;
    line("// " + comment_text(text));
}

void Printer::for_loop(const ir::For& op, const ir::DeviceStmt& how) {
    const std::string &v = names_.vars[static_cast<std::size_t>(op.var)], outer = tid_;
    if (how.opaque) {
        use("opaque");
        line(fmt::format("int const {} = {};", companion(v, "outer"), tid_));
    }
    if (op.unroll == -1) line("CUTE_UNROLL");
    // A loop that waits at an mbarrier is paced by it: unrolled, it would only be longer.
    if (op.unroll == 1 || (op.unroll == 0 && waits_inside(op.body))) line("CUTE_NO_UNROLL");
    if (op.unroll > 1 || (op.unroll == 0 && loads_ahead(k_, op.body)))
        out_ += fmt::format("#pragma unroll {}\n", op.unroll > 1 ? op.unroll : 4);
    std::string bounds, end = expr(op.hi), step = expr(op.step);
    auto keep = [&](const char* what, const ir::Expr& e, std::string& text) {  // the bounds are those at the entry
        if (!changes_inside(op, e)) return;
        bounds += fmt::format(", {} = {}", companion(v, what), text);
        text = companion(v, what);
    };
    keep("end", op.hi, end);
    keep("step", op.step, step);
    open(fmt::format("for (int {0} = {1}{2}; {0} < {3}; {4})", v, expr(op.lo), bounds, end,
                     op.step.is_constant(1) ? "++" + v : fmt::format("{} += {}", v, step)));
    if (how.opaque) {
        tid_ = companion(v, "thread");
        line(fmt::format("int const {} = tw::opaque({});   // each round makes its addresses anew", tid_, companion(v, "outer")));
    }
    region(op.body);
    close();
    tid_ = outer;
}

void Printer::if_else(const ir::If& op) {
    if (op.vote >= 0) {
        std::vector<std::string> values;
        for (int v = 0; v < dist(op.vote).values(); ++v) values.push_back(fmt::format("{}({})", name(op.vote), v));
        open(fmt::format("if (__any_sync(0xffffffffu, {}))", join(values, " || ")));
    } else open("if (" + expr(op.condition) + ")");
    region(op.then);
    if (!op.otherwise.empty()) {
        --depth_;
        line("} else {");
        ++depth_;
        region(op.otherwise);
    }
    close();
}

void Printer::assign(const ir::Assign& op, bool is_ring) {
    const auto id = static_cast<std::size_t>(op.var);
    if (is_ring) {
        if (op.value.is_constant(0)) line(names_.ring_start(op.var, !var_declared_[id]));
        else
            for (const std::string& text : names_.ring_step(op.var)) line(text);
        var_declared_[id] = true;
        return;
    }
    const std::string text = fmt::format("{} = {};", names_.vars[id], expr(op.value));
    if (var_declared_[id]) return line(text);
    var_declared_[id] = true;
    line((facts_.assignments(op.var) == 1 ? "int const " : "int ") + text);
}

void Printer::elect(const ir::Elect& op) {
    uses_warp_ |= k_.arch != "sm_80";
    open("if (" + elected_ + ")");
    region(op.body);
    close();
}

// Warps and instances are the same in all lanes of a warp, and the compiler shall know it: it then keeps what a role computes of them in
// uniform registers, which TMA and descriptors read. `follows`: the statement before is a role too.
void Printer::role(const ir::Role& op, bool follows) {
    const std::string outer = tid_, outer_elected = elected_;
    const int outer_threads = group_threads_;
    const int first = op.first_warp, warps = op.warps_per_instance, last = first + warps * op.instances;
    const std::string test = first == 0 ? fmt::format("warp < {}", last) : fmt::format("warp >= {} && warp < {}", first, last);
    open((follows ? "} else if (" : "if (") + test + ")");
    line("// " + comment_text("role " + op.name));
    const int threads = warps * 32;
    const bool power = (threads & (threads - 1)) == 0 && first % warps == 0;
    if (op.instances > 1) line(fmt::format("int const instance = (warp - {}) / {};", first, warps));
    line(fmt::format("int const thread_of_role = {};", power ? fmt::format("int(threadIdx.x) % {}", threads)
                                                       : op.instances == 1
                                                           ? fmt::format("int(threadIdx.x) - {}", first * 32)
                                                           : fmt::format("int(threadIdx.x) - {} - instance * {}", first * 32, threads)));
    if (op.instance_var >= 0)
        line(
            fmt::format("int const {} = {};", names_.vars[static_cast<std::size_t>(op.instance_var)], op.instances > 1 ? "instance" : "0"));
    tid_ = "thread_of_role";
    uses_warp_ = true;
    elected_ = k_.arch == "sm_80"  ? "thread_of_role == 0"
               : warps == 1        ? "elect_one_sync()"
               : op.instances == 1 ? fmt::format("warp == {} && elect_one_sync()", first)
                                   : fmt::format("warp % {} == {} && elect_one_sync()", warps, first % warps);
    group_threads_ = threads;
    region(op.body);
    tid_ = outer;
    elected_ = outer_elected;
    group_threads_ = outer_threads;
}

void Printer::stmt(const Stmt& s) {
    if (std::holds_alternative<ir::Expect>(s.op)) return;  // checked before, never executed
    const ir::DeviceStmt& how = how_of(s);
    if (auto* o = std::get_if<ir::For>(&s.op)) return for_loop(*o, how);
    if (auto* o = std::get_if<ir::If>(&s.op)) return if_else(*o);
    if (auto* o = std::get_if<ir::Elect>(&s.op)) return elect(*o);
    if (auto* o = std::get_if<ir::Assign>(&s.op)) return assign(*o, how.ring.has_value());
    if (synchronisation(s)) return;
    place(s);
    if (auto* o = std::get_if<ir::Compute>(&s.op)) return compute(*o, how);
    if (auto* o = std::get_if<ir::Reduce>(&s.op)) return reduce(*o, *how.fold);
    if (auto* o = std::get_if<ir::Scan>(&s.op)) return scan(*o);
    if (auto* o = std::get_if<ir::Shuffle>(&s.op)) return shuffle(*o);
    if (auto* o = std::get_if<ir::LoadGlobal>(&s.op)) return load_global(*o, *how.access);
    if (auto* o = std::get_if<ir::StoreGlobal>(&s.op)) return store_global(*o, *how.access);
    if (auto* o = std::get_if<ir::AtomicAdd>(&s.op)) return atomic_add(*o, *how.access);
    if (auto* o = std::get_if<ir::LoadShared>(&s.op)) return load_shared(*o);
    if (auto* o = std::get_if<ir::StoreShared>(&s.op)) return store_shared(*o);
    if (auto* o = std::get_if<ir::CpAsync>(&s.op)) return cp_async(*o, how.access ? &*how.access : nullptr);
    if (auto* o = std::get_if<ir::Mma>(&s.op)) return mma(*o);
    if (auto* o = std::get_if<ir::Wgmma>(&s.op)) return wgmma(*o);
    if (auto* o = std::get_if<ir::TmaLoad>(&s.op)) return tma_load(*o);
    if (auto* o = std::get_if<ir::TmaStore>(&s.op)) return tma_store(*o);
    fail(fmt::format("the statement `{}`", ir::print(k_, s)));
}

std::string Printer::global_tensors() {
    std::string text;
    for (std::size_t i = 0; i < k_.tensors.size(); ++i) {
        const ir::Tensor& t = k_.tensors[i];
        std::vector<std::string> dims, strides;
        for (std::size_t d = 0; d < t.dims.size(); ++d) {
            const auto stride = t.strides[d].as_constant();
            dims.push_back(expr(t.dims[d]));
            strides.push_back(stride ? fmt::format("Int<{}>{{}}", *stride) : expr(t.strides[d], true));
        }
        if (dims.empty()) dims = {"1"}, strides = {"_1{}"};
        text += fmt::format("  Tensor {} = make_tensor(make_gmem_ptr({}), make_shape({}), make_stride({}));\n", names_.tensors[i],
                            companion(names_.tensors[i], "ptr"), join(dims, ", "), join(strides, ", "));
    }
    return text;
}

std::string Printer::shared_tensors() {
    std::string text;
    if (k_.shared_bytes == 0) return text;
    text += "  extern __shared__ __align__(1024) char arena[];\n";
    for (std::size_t i = 0; i < k_.buffers.size(); ++i) {
        const ir::SharedBuffer& b = k_.buffers[i];
        const std::string type = element_type(b.dtype);
        if (type.empty()) return fail(fmt::format("a shared buffer of {}", target::name(b.dtype))), text;
        auto define = [&](const std::string& name, const std::string& layout, const char* remark) {
            text += fmt::format("  Tensor {} = make_tensor(make_smem_ptr(reinterpret_cast<{}*>(arena + {})), {});{}\n", name, type,
                                b.byte_offset, layout, remark);
        };
        const int id = static_cast<int>(i);
        const bool swizzled = b.swizzle != target::SwizzleMode::None, engine = engine_buffers_.count(id) != 0;
        if (engine || !swizzled) define(names_.buffers[i], buffer_layout(b), "");
        if (swizzled && thread_buffers_.count(id)) define(thread_buffer(id), element_layout(b), engine ? "   // for threads" : "");
    }
    for (std::size_t i = 0; i < k_.barriers.size(); ++i) {
        const ir::BarrierArray& b = k_.barriers[i];
        text += fmt::format("  auto* {} = reinterpret_cast<uint64_t*>(arena + {});   // {} mbarriers, {} arrivals a phase\n",
                            names_.barriers[i], b.byte_offset, b.slots, b.arrivals);
    }
    return text;
}

std::string Printer::parameters(bool host) {
    std::vector<std::string> list;
    for (std::size_t i = 0; i < k_.tensor_maps.size() && !host; ++i)
        list.push_back(fmt::format("CUTE_GRID_CONSTANT {1}Tma{0} const tma{0}", i, as_candidate_ ? entry_ + "_" : ""));
    for (std::size_t i = 0; i < k_.tensors.size(); ++i) {
        const ir::Tensor& t = k_.tensors[i];
        const std::string type = element_type(t.dtype);
        if (type.empty()) return fail(fmt::format("a tensor of {} (`{}`)", target::name(t.dtype), t.name)), "";
        list.push_back(
            fmt::format("{}{}*{} {}", type, t.is_output ? "" : " const", host ? "" : " __restrict__", companion(names_.tensors[i], "ptr")));
    }
    for (const std::string& s : names_.sizes) list.push_back("int " + s);
    for (std::size_t i = 0; i < k_.scalars.size(); ++i) {
        const std::string type = element_type(k_.scalars[i].dtype);
        if (type.empty()) return fail(fmt::format("a scalar of {}", target::name(k_.scalars[i].dtype))), "";
        list.push_back(type + " " + names_.scalars[i]);
    }
    if (host) list.push_back("cudaStream_t stream");
    return join(list, ", ");
}

void Printer::refuse_what_has_no_text() {
    loc_ = k_.loc;
    if (!k_.teams.empty()) return fail("messages between the blocks of a team");
}

// TMA and wgmma find the swizzle in a tensor's pointer, threads have it in the layout.
void Printer::find_buffers() {
    auto engine = [&](const ir::SharedView& v) { engine_buffers_.insert(v.buffer); };
    auto thread = [&](const ir::SharedView& v) { thread_buffers_.insert(v.buffer); };
    ir::for_each_stmt(k_.body, [&](const Stmt& s) {
        if (auto* o = std::get_if<ir::TmaLoad>(&s.op)) engine(o->dst);
        if (auto* o = std::get_if<ir::TmaStore>(&s.op)) engine(o->src);
        if (auto* o = std::get_if<ir::Wgmma>(&s.op)) {
            engine(o->b);
            if (const auto* a = std::get_if<ir::SharedView>(&o->a)) engine(*a);
        }
        if (auto* o = std::get_if<ir::LoadShared>(&s.op)) thread(o->src);
        if (auto* o = std::get_if<ir::StoreShared>(&s.op)) thread(o->dst);
        if (auto* o = std::get_if<ir::CpAsync>(&s.op)) thread(o->dst);
    });
}

void Printer::print_body() {
    choose_names();
    find_buffers();
    declarations_ = Declarations(k_, names_.counter_of);
    var_declared_.assign(k_.vars.size(), false);
    refuse_what_has_no_text();
    if (!failed()) find_products();
    if (!failed()) check_maps();
    group_threads_ = 32 * k_.warps;
    body_list_ = failed() ? "" : parameters(false);
    if (!failed()) region(k_.body);
    body_tensors_ = failed() ? "" : global_tensors() + shared_tensors();  // last: which are needed is known then
    if (uses_warp_)
        body_tensors_ +=
            fmt::format("  int const warp = {};\n",
                        k_.arch == "sm_90a" ? "cutlass::canonical_warp_idx_sync()" : "__shfl_sync(0xffffffffu, int(threadIdx.x) / 32, 0)");
}

Expected<CuteKernel, EmitFailure> Printer::run() {
    print_body();
    const std::string host = failed() ? "" : launcher();
    if (failed()) return Unexpected<EmitFailure>{*problem_};
    std::string head;
    auto comment = [&](const std::string& words) { head += "// " + comment_text(words) + "\n"; };
    comment(fmt::format("{} for {} in CuTe, made by tilewright from {}.", k_.name, k_.arch, file_));
    if (!k_.doc.empty()) comment(k_.doc.substr(0, k_.doc.find('\n')));
    if (!k_.computes.text.empty()) comment("computes " + k_.computes.text);
    for (const auto& a : k_.assumptions) comment("assumes " + ir::to_string(a.condition, ir::names_of(k_)));
    head += include_text(k_.arch, helpers_) + "\nusing namespace cute;\n\n" + helper_text(helpers_);
    for (const auto& [product, text] : products_) head += fmt::format("using {} = {};\n", product, text);
    if (!products_.empty()) head += "\n";
    std::string templates;
    for (std::size_t i = 0; i < k_.tensor_maps.size(); ++i) templates += fmt::format("{}class Tma{}", i ? ", " : "", i);
    if (!templates.empty()) head += "template <" + templates + ">\n";
    head += fmt::format("__global__ void __launch_bounds__({}, {}) {}({}) {{\n", 32 * k_.warps, std::max(1, k_.min_blocks_per_sm), entry_,
                        body_list_);
    return CuteKernel{entry_, launcher_, head + body_tensors_ + out_ + "}\n\n" + host};
}

}  // namespace tw::codegen::cute
