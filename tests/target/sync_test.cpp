// Barriers, groups, shuffles, reductions, register budgets, architectures, and the instruction table as a whole.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <set>

#include "target/instruction.h"
#include "target/registers.h"
#include "target/sync.h"
#include "target/warp.h"

namespace tw::target {
namespace sync_test {

const Arch& sm_80 = *find_arch("sm_80");
const Arch& sm_90a = *find_arch("sm_90a");

TEST(Mbarrier, AFreshBarrierPassesParityOneAndHoldsParityZero) {
    const MbarrierState s = mbarrier_init(2);
    EXPECT_TRUE(mbarrier_wait_parity(s, 1));
    EXPECT_FALSE(mbarrier_wait_parity(s, 0));
}

TEST(Mbarrier, PhaseEndsWithTheLastArrivalAndReloads) {
    MbarrierState s = mbarrier_init(2);
    MbarrierStep step = mbarrier_arrive(s);
    EXPECT_FALSE(step.phase_completed);
    step = mbarrier_arrive(step.state);
    EXPECT_TRUE(step.phase_completed);
    EXPECT_EQ(step.state.pending, 2);
    EXPECT_TRUE(mbarrier_wait_parity(step.state, 0));
    EXPECT_FALSE(mbarrier_wait_parity(step.state, 1));
}

TEST(Mbarrier, BytesHoldThePhaseOpenAndMayLandFirst) {
    MbarrierStep step = mbarrier_arrive_expect_tx(mbarrier_init(1), 256);
    EXPECT_FALSE(step.phase_completed);
    step = mbarrier_complete_tx(step.state, 128);
    EXPECT_FALSE(step.phase_completed);
    step = mbarrier_complete_tx(step.state, 128);
    EXPECT_TRUE(step.phase_completed);

    step = mbarrier_complete_tx(mbarrier_init(1), 64);  // landed before it was announced
    EXPECT_FALSE(step.phase_completed);
    EXPECT_EQ(step.state.tx, -64);
    step = mbarrier_arrive_expect_tx(step.state, 64);
    EXPECT_TRUE(step.phase_completed);
}

TEST(Mbarrier, ErrorsAreNamed) {
    EXPECT_FALSE(mbarrier_arrive(mbarrier_init(1), 2).legal);
    EXPECT_FALSE(mbarrier_expect_tx(mbarrier_init(1), 1 << 20).legal);
    EXPECT_TRUE(mbarrier_expect_tx(mbarrier_init(1), (1 << 20) - 1).legal);
    EXPECT_FALSE(mbarrier_init_legal(sm_90a, 0, 0));
    EXPECT_FALSE(mbarrier_init_legal(sm_90a, 0, 1 << 20));
    EXPECT_FALSE(mbarrier_init_legal(sm_90a, 4, 1));
    EXPECT_TRUE(mbarrier_init_legal(sm_80, 8, 128));
}

TEST(Mbarrier, CpAsyncArriveIsNeutralUnlessNoinc) {
    for (const int threads : {1, 32}) {
        // Plain: increments, later arrives; the count is for someone else.
        MbarrierState s = mbarrier_init(1);
        for (int i = 0; i < threads; ++i) s = mbarrier_increment_pending(s).state;
        for (int i = 0; i < threads; ++i) {
            const MbarrierStep step = mbarrier_arrive(s);
            EXPECT_FALSE(step.phase_completed);
            s = step.state;
        }
        EXPECT_EQ(s, mbarrier_init(1));
    }
    EXPECT_EQ(cp_async_mbarrier_pending_change(false), 0);
    EXPECT_EQ(cp_async_mbarrier_pending_change(true), -1);
}

TEST(Barriers, Legality) {
    EXPECT_TRUE(named_barrier_legal(sm_90a, 15, 256));
    EXPECT_FALSE(named_barrier_legal(sm_90a, 16, 256));
    EXPECT_FALSE(named_barrier_legal(sm_90a, -1, 256));
    EXPECT_FALSE(named_barrier_legal(sm_90a, 1, 48));
    EXPECT_FALSE(named_barrier_legal(sm_90a, 1, 0));
    EXPECT_FALSE(named_barrier_legal(sm_90a, 1, 1056));
    EXPECT_TRUE(cluster_legal(sm_90a, 2, 1, 1));
    EXPECT_TRUE(cluster_legal(sm_90a, 4, 2, 1));
    EXPECT_TRUE(cluster_legal(sm_90a, 16, 1, 1));
    EXPECT_FALSE(cluster_legal(sm_90a, 17, 1, 1));
    EXPECT_FALSE(cluster_legal(sm_90a, 8, 4, 1));
    EXPECT_FALSE(cluster_legal(sm_80, 2, 1, 1));
    EXPECT_TRUE(cluster_legal(sm_80, 1, 1, 1));
    EXPECT_FALSE(cluster_legal(sm_90a, 0, 1, 1));
    EXPECT_FALSE(block_legal(sm_90a, 1025));
    EXPECT_TRUE(wgmma_wait_legal(0));
    EXPECT_FALSE(wgmma_wait_legal(8));
}

TEST(Registers, SetMaxNReg) {
    EXPECT_TRUE(setmaxnreg_legal(sm_90a, 24));
    EXPECT_TRUE(setmaxnreg_legal(sm_90a, 256));
    EXPECT_FALSE(setmaxnreg_legal(sm_90a, 16));
    EXPECT_FALSE(setmaxnreg_legal(sm_90a, 100));
    EXPECT_FALSE(setmaxnreg_legal(sm_90a, 264));
    EXPECT_FALSE(setmaxnreg_legal(sm_80, 40));
    const std::array plan = {WarpgroupRegisters{1, 40}, WarpgroupRegisters{2, 232}};
    EXPECT_TRUE(setmaxnreg_plan_legal(sm_90a, 168, plan));  // 40 + 464 = 504 = 3 x 168
    const std::array greedy = {WarpgroupRegisters{1, 40}, WarpgroupRegisters{2, 240}};
    EXPECT_FALSE(setmaxnreg_plan_legal(sm_90a, 168, greedy));
}

TEST(Registers, Budgets) {
    EXPECT_EQ(registers_for(DType::BF16, 7), 4);
    EXPECT_EQ(registers_for(DType::F32, 128), 128);
    EXPECT_EQ(accumulator_registers(128, 256, 2), 128);
    EXPECT_EQ(max_registers_for_block(sm_90a, 384), 168);
    EXPECT_EQ(max_registers_for_block(sm_90a, 128), 255);
    EXPECT_EQ(max_registers_for_block(sm_90a, 1024), 64);
    EXPECT_EQ(max_registers_for_block(sm_90a, 384, 2), 80);
}

TEST(Arch, TablesAndOccupancy) {
    EXPECT_EQ(find_arch("sm_75"), nullptr);
    EXPECT_EQ(sm_90a.max_shared_bytes_per_block, 232448);
    EXPECT_EQ(sm_80.max_shared_bytes_per_block, 166912);
    EXPECT_FALSE(sm_80.has(Feature::Tma));
    EXPECT_TRUE(sm_90a.has(Feature::Wgmma));
    // From the occupancy calculator's rules, by hand.
    EXPECT_EQ(occupancy_blocks_per_sm(sm_90a, 384, 168, 200 * 1024), 1);
    EXPECT_EQ(occupancy_blocks_per_sm(sm_90a, 256, 32, 0), 8);           // 64 warps
    EXPECT_EQ(occupancy_blocks_per_sm(sm_90a, 128, 255, 0), 2);          // 16384 registers a partition, 8160 a warp
    EXPECT_EQ(occupancy_blocks_per_sm(sm_90a, 128, 32, 100 * 1024), 2);  // 228 KB, 1 KB reserved a block
    EXPECT_EQ(occupancy_blocks_per_sm(sm_90a, 32, 16, 0), 32);
    EXPECT_EQ(occupancy_blocks_per_sm(sm_90a, 128, 32, 228 * 1024), 0);
    EXPECT_EQ(occupancy_blocks_per_sm(sm_90a, 2048, 32, 0), 0);
}

TEST(Shuffle, WholeWarp) {
    for (int lane = 0; lane < 32; ++lane) {
        for (std::uint32_t d = 0; d < 32; ++d) {
            const int delta = static_cast<int>(d);
            const ShuffleSource down = shuffle_source(ShuffleMode::Down, lane, d, shuffle_clamp(ShuffleMode::Down, 32));
            EXPECT_EQ(down.lane, lane + delta < 32 ? lane + delta : lane);
            EXPECT_EQ(down.in_range, lane + delta < 32);
            const ShuffleSource up = shuffle_source(ShuffleMode::Up, lane, d, shuffle_clamp(ShuffleMode::Up, 32));
            EXPECT_EQ(up.lane, lane >= delta ? lane - delta : lane);
            EXPECT_EQ(shuffle_source(ShuffleMode::Bfly, lane, d, shuffle_clamp(ShuffleMode::Bfly, 32)).lane, lane ^ delta);
            EXPECT_EQ(shuffle_source(ShuffleMode::Idx, lane, d, shuffle_clamp(ShuffleMode::Idx, 32)).lane, delta);
        }
    }
}

TEST(Shuffle, SubWarpsDoNotLeak) {
    for (const int width : {2, 4, 8, 16})
        for (int lane = 0; lane < 32; ++lane)
            for (std::uint32_t b = 0; b < 32; ++b)
                for (const ShuffleMode m : {ShuffleMode::Up, ShuffleMode::Down, ShuffleMode::Idx}) {
                    const int from = shuffle_source(m, lane, b, shuffle_clamp(m, width)).lane;
                    EXPECT_EQ(from / width, lane / width) << name(m) << " " << lane << " " << b << " w" << width;
                }
    EXPECT_FALSE(shuffle_legal(12, ~0u, ~0u));
    EXPECT_FALSE(shuffle_legal(32, ~0u, 0xffff));
    EXPECT_FALSE(shuffle_legal(32, 0xffff, ~0u));
    EXPECT_TRUE(shuffle_legal(32, ~0u, ~0u));
}

TEST(MemoryReduce, LegalityAndNames) {
    EXPECT_TRUE(memory_reduce_legal(sm_80, {DType::F32, 1, false, false}));
    EXPECT_FALSE(memory_reduce_legal(sm_80, {DType::F32, 4, false, false}));
    EXPECT_TRUE(memory_reduce_legal(sm_90a, {DType::F32, 4, false, false}));
    EXPECT_FALSE(memory_reduce_legal(sm_90a, {DType::F32, 4, true, false}));
    EXPECT_FALSE(memory_reduce_legal(sm_90a, {DType::F32, 3, false, false}));
    EXPECT_TRUE(memory_reduce_legal(sm_80, {DType::F16, 2, false, false}));
    EXPECT_FALSE(memory_reduce_legal(sm_80, {DType::BF16, 2, false, false}));
    EXPECT_TRUE(memory_reduce_legal(sm_90a, {DType::BF16, 2, false, false}));
    EXPECT_FALSE(memory_reduce_legal(sm_90a, {DType::I8, 1, false, false}));
    EXPECT_EQ((MemoryReduce{DType::F32, 4, false, false}.ptx_name()), "red.global.add.v4.f32");
    EXPECT_EQ((MemoryReduce{DType::BF16, 2, false, false}.ptx_name()), "red.global.add.noftz.bf16x2");
    EXPECT_EQ((MemoryReduce{DType::F16, 8, false, false}.ptx_name()), "red.global.add.noftz.v4.f16x2");
    EXPECT_FALSE(memory_reduce_aligned({DType::F32, 4, false, false}, 8));
    EXPECT_TRUE(memory_reduce_aligned({DType::F32, 4, false, false}, 48));
}

TEST(InstructionTable, EveryOpHasACompleteRow) {
    std::set<std::string_view> names;
    for (int i = 0; i < op_count; ++i) {
        const Instruction& row = info(static_cast<Op>(i));
        EXPECT_EQ(static_cast<int>(row.op), i);
        EXPECT_TRUE(names.insert(row.name).second) << row.name;
        EXPECT_FALSE(row.ptx.empty() || row.rule.empty() || row.legality.empty() || row.bytes.empty()) << row.name;
        EXPECT_EQ(row.section.substr(0, 4), "9.7.") << row.name;
    }
}

TEST(InstructionTable, AsynchronousWritersSayHowTheyComplete) {
    for (const Instruction& row : all_instructions()) {
        const bool async = row.reads.proxy == Proxy::Async || row.writes.proxy == Proxy::Async;
        if (!async) continue;
        EXPECT_TRUE(row.completion == Completion::MbarrierTx || row.completion == Completion::BulkGroup ||
                    row.completion == Completion::WgmmaGroup)
            << row.name;
    }
    EXPECT_EQ(info(Op::CpAsync).writes.proxy, Proxy::Generic);
    EXPECT_EQ(info(Op::CpAsync).completion, Completion::CpAsyncGroup);
}

TEST(InstructionTable, Availability) {
    for (const Op op : {Op::Wgmma, Op::TmaLoad, Op::Stmatrix, Op::ClusterArrive, Op::SetMaxNRegInc, Op::MbarrierTryWait,
                        Op::FenceProxyAsync, Op::GridDepWait, Op::BulkLoad}) {
        EXPECT_FALSE(available(sm_80, op)) << name(op);
        EXPECT_TRUE(available(sm_90a, op)) << name(op);
    }
    for (const Op op : {Op::CpAsync, Op::Ldmatrix, Op::MmaSync, Op::MbarrierInit, Op::Shuffle, Op::BarSync})
        for (const Arch& a : all_archs()) EXPECT_TRUE(available(a, op)) << name(op);
}

TEST(OrderingRules, TheOnesKernelsStandOn) {
    const auto needs = [](Actor a, Actor b) {
        const OrderingRule* r = find_rule(a, b);
        EXPECT_TRUE(r != nullptr) << name(a) << " -> " << name(b);
        return r ? std::vector<OrderingStep>(r->needs.begin(), r->needs.end()) : std::vector<OrderingStep>{};
    };
    using S = OrderingStep;
    EXPECT_EQ(needs(Actor::CpAsyncWrite, Actor::WgmmaSharedRead), (std::vector{S::CpAsyncWait, S::FenceProxyAsync, S::ThreadSync}));
    EXPECT_EQ(needs(Actor::TmaLoadWrite, Actor::WgmmaSharedRead), (std::vector{S::MbarrierWait}));
    EXPECT_EQ(needs(Actor::GenericWrite, Actor::TmaStoreRead), (std::vector{S::FenceProxyAsync, S::ThreadSync}));
    EXPECT_EQ(needs(Actor::TmaStoreRead, Actor::GenericWrite), (std::vector{S::BulkWaitRead, S::ThreadSync}));
    EXPECT_EQ(needs(Actor::WgmmaRegisterWrite, Actor::RegisterRead), (std::vector{S::WgmmaWait}));
    EXPECT_TRUE(needs(Actor::WgmmaRegisterWrite, Actor::WgmmaRegisterWrite).empty());
    EXPECT_EQ(find_rule(Actor::BlockExit, Actor::BlockExit), nullptr);
    std::set<std::pair<Actor, Actor>> seen;
    for (const OrderingRule& r : all_ordering_rules()) EXPECT_TRUE(seen.insert({r.first, r.second}).second) << r.text;
}

}  // namespace sync_test
}  // namespace tw::target
