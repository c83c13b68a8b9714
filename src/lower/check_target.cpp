// Instruction legality and resources, asked of target/: what only the user can put right.
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "ir/legality.h"
#include "ir/shuffle.h"
#include "lower/facts.h"
#include "lower/steps.h"
#include "target/arch.h"
#include "target/descriptor.h"
#include "target/registers.h"
#include "target/sync.h"
#include "target/warp.h"
#include "target/wgmma.h"

namespace tw::lower {
namespace {

class Check {
public:
    Check(Draft& draft, const Context& context)
        : k_(draft.kernel), cx_(context), arch_(*target::find_arch(draft.kernel.arch)), multiples_(draft.kernel) {}

    void run() {
        for_each_with_threads(k_.body, 32 * k_.warps, [&](ir::Stmt& s, int threads) {
            if (auto* w = std::get_if<ir::Wgmma>(&s.op)) wgmma(*w, s, threads);
            if (auto* x = std::get_if<ir::Shuffle>(&s.op);
                x && !ir::keeps_copies(k_.fragments[static_cast<std::size_t>(x->src)].dist, *x)) {
                cx_.error(Code::bad_instruction, s.loc,
                          fmt::format("lanes that hold the same element of a tile of shape {} would receive different ones",
                                      shape_text(k_.fragments[static_cast<std::size_t>(x->src)].dist.shape)))
                    .with_hint("shuffle a tile that fills whole warps, or use xor=");
            }
            if (auto* i = std::get_if<ir::If>(&s.op); i && i->vote >= 0) {
                if (const ir::Stmt* unfit = ir::unfit_for_vote(k_, *i)) {
                    cx_.error(Code::bad_instruction, unfit->loc,
                              "each warp takes this branch for itself, so other warps cannot take part in what it does, nor see an integer "
                              "that it sets")
                        .with_hint(
                            "inside `if tw.any(...)`: elementwise code, reductions inside a warp, loads of tensors that the kernel does "
                            "not write, tw.mma");
                }
            }
            if (auto* n = std::get_if<ir::NamedSync>(&s.op)) named(n->id, n->threads, s);
            if (auto* n = std::get_if<ir::NamedArrive>(&s.op)) named(n->id, n->threads, s);
            if (auto* r = std::get_if<ir::Role>(&s.op); r && r->registers) registers(*r, s);
            if (auto* e = std::get_if<ir::BarrierExpect>(&s.op)) {
                if (auto bytes = e->bytes.as_constant(); bytes && (*bytes < 0 || *bytes > target::mbarrier_max_tx)) {
                    cx_.error(Code::bad_instruction, s.loc,
                              fmt::format("an mbarrier counts up to {} bytes in a phase, here are {}", target::mbarrier_max_tx, *bytes))
                        .with_hint("use smaller tiles per stage");
                }
            }
        });
        if (!budgets_.empty()) plan_of_registers();
    }

private:
    // Warpgroups that no role budgets keep what they were launched with; one that has several roles counts with its largest, since the
    // others may be in theirs then.
    void plan_of_registers() {
        const int launch = target::max_registers_for_block(arch_, 32 * k_.warps, k_.min_blocks_per_sm);
        std::vector<target::WarpgroupRegisters> plan;
        for (int w = 0; w < k_.warps / 4; ++w) plan.push_back({1, budgets_.count(w) ? budgets_.at(w) : launch / 8 * 8});
        if (auto legal = target::setmaxnreg_plan_legal(arch_, launch, plan); !legal)
            cx_.error(Code::bad_registers, k_.loc, legal.reason)
                .with_hint(fmt::format("{} registers a multiprocessor: {} blocks of {} threads are launched with {} registers a thread",
                                       arch_.registers_per_sm, k_.min_blocks_per_sm, 32 * k_.warps, launch));
    }

    void registers(const ir::Role& r, const ir::Stmt& s) {
        if (!arch_.has(target::Feature::SetMaxNReg)) {
            cx_.error(Code::not_on_target, s.loc, fmt::format("{} cannot redistribute registers", arch_.name)).with_hint("leave out regs=");
            return;
        }
        if (r.warps_per_instance % 4) {
            cx_.error(Code::bad_registers, s.loc, "regs= is for whole warpgroups");
            return;
        }
        if (auto legal = target::setmaxnreg_legal(arch_, r.registers); !legal) {
            cx_.error(Code::bad_registers, s.loc, legal.reason);
            return;
        }
        for (int w = r.first_warp / 4; w < (r.first_warp + r.instances * r.warps_per_instance) / 4; ++w)
            budgets_[w] = std::max(budgets_[w], r.registers);
    }

    void named(const ir::Expr& id, int threads, const ir::Stmt& s) {
        if (threads > 32 * k_.warps) {
            cx_.error(Code::bad_named_barrier, s.loc,
                      fmt::format("the barrier waits for {} threads, the block has {}", threads, 32 * k_.warps));
            return;
        }
        if (auto c = id.as_constant()) {
            if (auto legal = target::named_barrier_legal(arch_, static_cast<int>(*c), threads); !legal)
                cx_.error(Code::bad_named_barrier, s.loc, legal.reason);
        }
    }

    // How an operand of wgmma (mn x k view) lies in shared memory.
    bool operand(const ir::SharedView& v, bool is_a, const ir::Stmt& s, target::Major& major) {
        const ir::SharedBuffer& b = k_.buffers[static_cast<std::size_t>(v.buffer)];
        const char* which = is_a ? "first" : "second";
        auto fail = [&](const std::string& why, const char* hint = "") {
            auto& diagnostic =
                cx_.error(Code::wgmma_operand, s.loc, fmt::format("the {} operand of wgmma, a view of {}: {}", which, b.name, why));
            if (*hint) diagnostic.with_hint(hint);
            return false;
        };
        const ir::SharedDim& mn = b.dims[static_cast<std::size_t>(v.dims[0])];
        const ir::SharedDim& k = b.dims[static_cast<std::size_t>(v.dims[1])];
        if (k.strides[0] == 1 && k.extents[0] > 1) major = target::Major::K;
        else if (mn.strides[0] == 1) major = target::Major::MN;
        else return fail("neither dimension is contiguous");
        const ir::SharedDim& inner = major == target::Major::K ? k : mn;
        const ir::SharedDim& outer = major == target::Major::K ? mn : k;
        const int size = target::bytes(b.dtype);
        const int span = b.swizzle == target::SwizzleMode::None ? 16 / size : target::span_bytes(b.swizzle) / size;
        if (b.swizzle == target::SwizzleMode::None)
            return fail("a buffer without swizzle lies row by row, not in the core matrices that wgmma reads",
                        "allocate it with swizzle=128 (or 64, 32)");
        if (inner.extents[0] != span)
            return fail(fmt::format("rows of {} bytes do not fill the {}-byte swizzle", inner.extents[0] * size, span * size));
        if (outer.extents.size() != 1 || outer.strides[0] != span) return fail("its rows are not one panel apart");
        const std::size_t inner_view = major == target::Major::K ? 1 : 0, outer_view = 1 - inner_view;
        const int inner_extent = v.extents[inner_view];
        const target::OperandTile tile{b.dtype, major, b.swizzle, major == target::Major::K ? outer.extents[0] : b.extent(v.dims[0]),
                                       major == target::Major::K ? b.extent(v.dims[1]) : outer.extents[0]};
        if (auto legal = target::tile_legal(tile); !legal) return fail(legal.reason);
        if (multiples_.of(v.origin[static_cast<std::size_t>(v.dims[outer_view])]) < 8)
            return fail("it starts at a row that is not known to be a multiple of 8");
        const std::int64_t inner_start = multiples_.of(v.origin[static_cast<std::size_t>(v.dims[inner_view])]);
        const int k_step = target::wgmma_k_bytes / size;
        if (inner_start < (major == target::Major::K ? k_step : span)) return fail("it starts inside a panel");
        if (major == target::Major::MN && inner_extent % span)
            return fail(fmt::format("{} elements along the contiguous dimension are not whole panels of {}", inner_extent, span));
        return true;
    }

    void wgmma(const ir::Wgmma& w, const ir::Stmt& s, int threads) {
        if (threads % 128) {
            cx_.error(Code::bad_wgmma, s.loc, fmt::format("wgmma is executed by warpgroups of 128 threads, not by {} threads", threads));
            return;
        }
        const ir::Fragment& acc = k_.fragments[static_cast<std::size_t>(w.acc)];
        target::WgmmaInstruction i{};
        i.n = w.b.extents[0];
        i.b = k_.buffers[static_cast<std::size_t>(w.b.buffer)].dtype;
        i.d = acc.dtype;
        i.a_major = i.b_major = target::Major::K;
        if (auto* a = std::get_if<int>(&w.a)) {
            i.a_in_registers = true;
            i.a = k_.fragments[static_cast<std::size_t>(*a)].dtype;
        } else {
            const auto& view = std::get<ir::SharedView>(w.a);
            i.a = k_.buffers[static_cast<std::size_t>(view.buffer)].dtype;
            if (!operand(view, true, s, i.a_major)) return;
        }
        if (!operand(w.b, false, s, i.b_major)) return;
        if (auto legal = target::wgmma_legal(arch_, i); !legal) cx_.error(Code::bad_wgmma, s.loc, legal.reason);
        const int depth = w.b.extents[1];
        if (depth % i.k())
            cx_.error(Code::bad_wgmma, s.loc,
                      fmt::format("wgmma of {} goes {} deep at a time, which does not divide {}", target::name(i.a), i.k(), depth));
    }

    ir::Kernel& k_;
    const Context& cx_;
    const target::Arch& arch_;
    Multiples multiples_;
    std::map<int, int> budgets_;  // warpgroup -> the most registers that one of its roles takes
};

}  // namespace

void check_target(Draft& draft, const Context& context) { Check(draft, context).run(); }

}  // namespace tw::lower
