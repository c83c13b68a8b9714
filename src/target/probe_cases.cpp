// Cases for the hardware probes. Every expected number is computed by the functions of this folder that the checker, the
// emulator and the generator use; the probe only puts integers in and compares where they come out.
#include <algorithm>
#include <nlohmann/json.hpp>
#include <random>

#include "target/access_cost.h"
#include "target/descriptor.h"
#include "target/dump.h"
#include "target/ldmatrix.h"
#include "target/mma.h"
#include "target/sync.h"
#include "target/tma.h"
#include "target/warp.h"

namespace tw::target {

namespace {

using nlohmann::json;

// [[row, col] for value in values] for thread in threads, flattened.
json expanded(const FragmentMap& map) {
    json list = json::array();
    for (int t = 0; t < map.threads(); ++t)
        for (int v = 0; v < map.values(); ++v) {
            const Coord c = map.at(t, v);
            list.push_back(c.row);
            list.push_back(c.col);
        }
    return {{"rows", map.rows}, {"cols", map.cols}, {"threads", map.threads()}, {"values", map.values()}, {"at", list}};
}

json mma_cases() {
    json out = json::array();
    for (const MmaInstruction& m : all_mma())
        out.push_back({{"ptx", m.ptx_name()},
                       {"a", name(m.a)},
                       {"b", name(m.b)},
                       {"c", name(m.c)},
                       {"registers", {m.a_registers(), m.b_registers(), m.c_registers()}},
                       {"a_map", expanded(m.a_map)},
                       {"b_map", expanded(m.b_map)},
                       {"c_map", expanded(m.c_map)}});
    return out;
}

// Tiles are listed once and named by index.
class TileList {
public:
    int index(const OperandTile& t) {
        const auto found = std::find(tiles_.begin(), tiles_.end(), t);
        if (found != tiles_.end()) return static_cast<int>(found - tiles_.begin());
        tiles_.push_back(t);
        return static_cast<int>(tiles_.size()) - 1;
    }
    [[nodiscard]] json dump() const {
        json out = json::array();
        for (const OperandTile& t : tiles_) {
            json addresses = json::array();
            for (int mn = 0; mn < t.mn; ++mn)
                for (int k = 0; k < t.k; ++k) addresses.push_back(tile_address(t, 0, mn, k));
            out.push_back({{"type", name(t.type)},
                           {"major", name(t.major)},
                           {"swizzle", name(t.swizzle)},
                           {"mn", t.mn},
                           {"k", t.k},
                           {"bytes", t.size_bytes()},
                           {"layout", tile_notation(t)},
                           {"addresses", addresses}});
        }
        return out;
    }

private:
    std::vector<OperandTile> tiles_;
};

struct WgmmaCases {
    TileList tiles;
    json variants = json::array();
    json runs = json::array();
    std::vector<WgmmaInstruction> known;

    int variant(const WgmmaInstruction& w) {
        const auto found = std::find(known.begin(), known.end(), w);
        if (found != known.end()) return static_cast<int>(found - known.begin());
        known.push_back(w);
        variants.push_back({{"ptx", w.ptx_name()},
                            {"statement", w.ptx_statement()},
                            {"n", w.n},
                            {"k", w.k()},
                            {"a", name(w.a)},
                            {"b", name(w.b)},
                            {"d", name(w.d)},
                            {"a_in_registers", w.a_in_registers},
                            {"a_major", name(w.a_major)},
                            {"b_major", name(w.b_major)},
                            {"d_registers", w.d_registers()}});
        return static_cast<int>(known.size()) - 1;
    }

    // The tile of operand A lies at 0 and that of B at the next kilobyte boundary; the probe adds its base to both.
    void run(const WgmmaInstruction& w, const OperandTile& a, int a_mn0, const OperandTile& b, int b_mn0, int k0) {
        const std::uint32_t b_base = w.a_in_registers ? 0 : static_cast<std::uint32_t>((a.size_bytes() + 1023) / 1024 * 1024);
        json r = {{"variant", variant(w)},
                  {"b_tile", tiles.index(b)},
                  {"b_base", b_base},
                  {"b_mn0", b_mn0},
                  {"k0", k0},
                  {"b_descriptor", encode_descriptor(tile_descriptor(b, b_base, b_mn0, k0))}};
        if (!w.a_in_registers) {
            r["a_tile"] = tiles.index(a);
            r["a_mn0"] = a_mn0;
            r["a_descriptor"] = encode_descriptor(tile_descriptor(a, 0, a_mn0, k0));
        }
        runs.push_back(std::move(r));
    }
};

OperandTile smallest_tile(DType type, Major major, SwizzleMode swizzle, int mn, int k_steps) {
    const int step = wgmma_k_bytes / bytes(type);
    OperandTile t{type, major, swizzle, mn, step * k_steps};
    const int span = t.span_elements();
    if (major == Major::K) t.k = std::max(t.k, span);
    else t.mn = (t.mn + span - 1) / span * span;
    return t;
}

json wgmma_cases() {
    WgmmaCases c;
    const Arch& arch = *find_arch("sm_90a");
    struct Types {
        DType a, b, d;
    };
    constexpr Types all_types[] = {
        {DType::BF16, DType::BF16, DType::F32}, {DType::F16, DType::F16, DType::F32},   {DType::F16, DType::F16, DType::F16},
        {DType::TF32, DType::TF32, DType::F32}, {DType::E4M3, DType::E4M3, DType::F32}, {DType::E4M3, DType::E5M2, DType::F32},
        {DType::E5M2, DType::E4M3, DType::F32}, {DType::E5M2, DType::E5M2, DType::F32}, {DType::E4M3, DType::E4M3, DType::F16},
        {DType::I8, DType::I8, DType::I32},     {DType::I8, DType::U8, DType::I32},     {DType::U8, DType::I8, DType::I32},
        {DType::U8, DType::U8, DType::I32}};
    // Every type, major-ness, pair of swizzles, and each K step of a span. Different swizzles on the two operands, so that
    // a mistake common to both cannot cancel.
    for (const Types& t : all_types)
        for (const bool in_registers : {false, true})
            for (const Major a_major : {Major::K, Major::MN})
                for (const Major b_major : {Major::K, Major::MN}) {
                    const WgmmaInstruction w{
                        .n = 64, .a = t.a, .b = t.b, .d = t.d, .a_in_registers = in_registers, .a_major = a_major, .b_major = b_major};
                    if (!wgmma_legal(arch, w)) continue;
                    for (const SwizzleMode a_swizzle : all_swizzles) {
                        if (in_registers && a_swizzle != SwizzleMode::None) continue;
                        for (const SwizzleMode b_swizzle : all_swizzles) {
                            OperandTile a = smallest_tile(t.a, a_major, a_swizzle, 128, 4);
                            OperandTile b = smallest_tile(t.b, b_major, b_swizzle, 128, 4);
                            for (int step = 0; step < 4; ++step) c.run(w, a, step % 2 * 64, b, step / 2 * 64, step * w.k());
                        }
                    }
                }
    // Every legal N.
    for (const Types& t : {all_types[0], all_types[3], all_types[4], all_types[9]})
        for (const int n : wgmma_legal_n(t.a)) {
            const WgmmaInstruction w{
                .n = n, .a = t.a, .b = t.b, .d = t.d, .a_in_registers = false, .a_major = Major::K, .b_major = Major::K};
            const OperandTile a = smallest_tile(t.a, Major::K, SwizzleMode::B64, 64, 2);
            c.run(w, a, 0, smallest_tile(t.b, Major::K, SwizzleMode::B128, n, 4), 0, w.k());
            if (t.a != DType::BF16) continue;
            WgmmaInstruction transposed = w;
            transposed.b_major = Major::MN;
            c.run(transposed, a, 0, smallest_tile(t.b, Major::MN, SwizzleMode::B32, n, 2), 0, w.k());
        }
    json accumulators = json::object(), a_registers = json::object();
    for (const int n : wgmma_legal_n(DType::BF16)) accumulators[std::to_string(n)] = expanded(wgmma_accumulator_map(n));
    for (const DType t : {DType::BF16, DType::F16, DType::TF32, DType::E4M3, DType::E5M2, DType::I8, DType::U8})
        a_registers[std::string(name(t))] = expanded(wgmma_a_register_map(t));
    return {{"variants", c.variants},
            {"runs", c.runs},
            {"tiles", c.tiles.dump()},
            {"accumulators", accumulators},
            {"a_registers", a_registers}};
}

json matrix_move_cases() {
    json out = json::array();
    for (const bool store : {false, true})
        for (const int count : {1, 2, 4})
            for (const bool transpose : {false, true}) {
                const MatrixMove m{store, count, transpose};
                json rows = json::array();
                for (int lane = 0; lane < 32; ++lane) {
                    const auto row = matrix_move_row_of_lane(m, lane);
                    rows.push_back(row ? json{row->matrix, row->row} : json(nullptr));
                }
                out.push_back({{"ptx", m.ptx_name()},
                               {"store", store},
                               {"count", count},
                               {"transpose", transpose},
                               {"row_of_lane", rows},
                               {"map", expanded(matrix_move_stacked_map(m))}});
            }
    return out;
}

json shuffle_cases() {
    json out = json::array();
    for (const ShuffleMode mode : {ShuffleMode::Up, ShuffleMode::Down, ShuffleMode::Bfly, ShuffleMode::Idx})
        for (const int width : {1, 2, 4, 8, 16, 32}) {
            const std::uint32_t c = shuffle_clamp(mode, width);
            json sources = json::array(), predicates = json::array();
            for (std::uint32_t b = 0; b < 32; ++b)
                for (int lane = 0; lane < 32; ++lane) {
                    const ShuffleSource s = shuffle_source(mode, lane, b, c);
                    sources.push_back(s.lane);
                    predicates.push_back(s.in_range ? 1 : 0);
                }
            out.push_back({{"mode", name(mode)}, {"width", width}, {"c", c}, {"source", sources}, {"in_range", predicates}});
        }
    return out;
}

json tma_case(const std::string& what, const TensorMapSpec& t, const TmaCoord& start) {
    json addresses = json::array(), offsets = json::array(), store_offsets = json::array();
    for (std::int64_t flat = 0; flat < box_elements(t); ++flat) {
        TmaCoord c{};
        std::int64_t rest = flat;
        for (int d = 0; d < t.rank; ++d) {
            c[static_cast<std::size_t>(d)] = rest % box_extent(t, d);
            rest /= box_extent(t, d);
        }
        addresses.push_back(tma_shared_address(t, 0, c));
        const auto offset = tma_global_offset(t, start, c);
        offsets.push_back(offset ? *offset : -1);
        const auto stored = tma_store_offset(t, start, c);
        store_offsets.push_back(stored ? *stored : -1);
    }
    const auto head = [&t](const auto& list) { return json(std::vector<std::int64_t>(list.begin(), list.begin() + t.rank)); };
    return {{"what", what},
            {"type", name(t.type)},
            {"driver_type", tensor_map_data_type(t.type)},
            {"element_bytes", bytes(t.type)},
            {"rank", t.rank},
            {"dims", head(t.dims)},
            {"strides", head(t.strides)},
            {"box", head(t.box)},
            {"element_strides", head(t.element_strides)},
            {"swizzle", span_bytes(t.swizzle) * (t.swizzle == SwizzleMode::None ? 0 : 1)},
            {"nan", t.fill == TmaFill::Nan},
            {"fill_bits", tma_fill_bits(t)},
            {"start", head(start)},
            {"box_bytes", box_bytes(t)},
            {"footprint", box_footprint(t)},
            {"addresses", addresses},
            {"offsets", offsets},
            {"store_offsets", store_offsets},
            {"load_legal", tma_load_coordinate_legal(t, start).ok()},
            {"store_legal", tma_store_coordinate_legal(t, start).ok()}};
}

json tma_cases() {
    json out = json::array();
    const auto matrix = [](DType type, SwizzleMode swizzle, int inner_bytes) {
        TensorMapSpec t;
        t.type = type;
        t.rank = 2;
        const auto size = static_cast<std::uint64_t>(bytes(type));
        const auto inner = static_cast<std::uint32_t>(inner_bytes) / static_cast<std::uint32_t>(size);
        t.dims = {inner * 2 + inner / 2 + 1, 21};  // ragged in both directions
        t.strides = {0, (t.dims[0] * size + 15) / 16 * 16};
        t.box = {inner, 12};
        t.swizzle = swizzle;
        return t;
    };
    const auto positions = [](const TensorMapSpec& t) {
        const auto inner = static_cast<std::int64_t>(t.box[0]);
        return std::vector<std::pair<std::string, TmaCoord>>{{"inside", {inner / 2, 3}},
                                                             {"right edge", {2 * inner, 1}},
                                                             {"bottom edge", {0, 15}},
                                                             {"corner", {2 * inner, 15}},
                                                             {"negative", {-16 / bytes(t.type), -2}},
                                                             {"negative column", {-16 / bytes(t.type), 2}},
                                                             {"negative row", {0, -2}},
                                                             {"far negative", {-inner + 16 / bytes(t.type), -11}},
                                                             {"outside", {3 * inner, 40}}};
    };
    for (const DType type : {DType::BF16, DType::F16, DType::F32, DType::E4M3, DType::I32, DType::I64, DType::F64})
        for (const SwizzleMode swizzle : all_swizzles) {
            const int inner = swizzle == SwizzleMode::None ? 96 : span_bytes(swizzle);
            for (const auto& [where, start] : positions(matrix(type, swizzle, inner)))
                out.push_back(tma_case(where, matrix(type, swizzle, inner), start));
        }
    for (const DType type : {DType::BF16, DType::F16, DType::F32, DType::F64}) {
        TensorMapSpec t = matrix(type, SwizzleMode::B128, 128);
        t.fill = TmaFill::Nan;
        out.push_back(tma_case("nan fill, corner", t, {2 * static_cast<std::int64_t>(t.box[0]), 15}));
    }
    // Rows shorter than the swizzle span.
    for (const auto& [swizzle, inner] : {std::pair{SwizzleMode::B128, 64},
                                         {SwizzleMode::B128, 32},
                                         {SwizzleMode::B128, 16},
                                         {SwizzleMode::B128, 48},
                                         {SwizzleMode::B64, 32},
                                         {SwizzleMode::B64, 16},
                                         {SwizzleMode::B32, 16}})
        out.push_back(tma_case("row of " + std::to_string(inner) + " bytes", matrix(DType::BF16, swizzle, inner), {8, 2}));
    // Ranks.
    for (int rank = 1; rank <= 5; ++rank)
        for (const SwizzleMode swizzle : {SwizzleMode::None, SwizzleMode::B64}) {
            TensorMapSpec t;
            t.type = DType::BF16;
            t.rank = rank;
            t.swizzle = swizzle;
            t.dims = {40, 7, 5, 4, 3};
            std::uint64_t stride = 96;
            for (std::size_t d = 1; d < 5; ++d) {
                t.strides[d] = stride;
                stride *= t.dims[d];
            }
            t.box = {32, 3, 3, 2, 2};
            out.push_back(tma_case("rank " + std::to_string(rank), t, {8, 2, 1, 1, 1}));
            out.push_back(tma_case("rank " + std::to_string(rank) + ", ragged", t, {16, 5, 3, 3, 2}));
        }
    // Start coordinates off the 16-byte grid.
    for (const std::int64_t c : {1, 2, 4, -4})
        for (const SwizzleMode swizzle : {SwizzleMode::None, SwizzleMode::B128})
            out.push_back(tma_case("start " + std::to_string(c), matrix(DType::BF16, swizzle, 64), {c, 2}));
    // Traversal strides.
    for (const std::uint32_t step : {2u, 3u, 5u}) {
        TensorMapSpec t = matrix(DType::BF16, SwizzleMode::None, 64);
        t.dims[1] = 40;
        t.box[1] = 24;
        t.element_strides[1] = step;
        out.push_back(tma_case("element stride " + std::to_string(step), t, {8, 5}));
        out.push_back(tma_case("element stride " + std::to_string(step) + ", ragged", t, {8, 30}));
    }
    return out;
}

// Random legal histories of one mbarrier: operation codes and, for each test_wait, what it must answer.
json mbarrier_cases() {
    std::mt19937 random(99);
    json out = json::array();
    for (int c = 0; c < 64; ++c) {
        const int count = 1 + static_cast<int>(random() % 5);
        MbarrierState s = mbarrier_init(count);
        json operations = json::array(), expected = json::array();
        for (int i = 0; i < 60; ++i) {
            const int what = static_cast<int>(random() % 5);
            const auto bytes = static_cast<std::int64_t>(16 * (1 + random() % 8));
            MbarrierStep step;
            std::int64_t operand = 0;
            switch (what) {
                case 0: step = mbarrier_arrive(s); break;
                case 1: step = mbarrier_arrive_expect_tx(s, operand = bytes); break;
                case 2: step = mbarrier_expect_tx(s, operand = bytes); break;
                // Bytes that are owed land before anything else may end the phase in their place.
                default: step = mbarrier_complete_tx(s, operand = s.tx > 0 ? s.tx : bytes); break;
            }
            // The hardware's counts have no sign to spare for a phase that ends with arrivals missing; stay where a kernel stays.
            const bool sensible = step.legal && (s.pending > 0 || what > 2) && !(what == 3 && s.tx <= 0) && what != 4;
            if (!sensible) continue;
            s = step.state;
            operations.push_back({what, operand});
            expected.push_back({mbarrier_wait_parity(s, 0) ? 1 : 0, mbarrier_wait_parity(s, 1) ? 1 : 0});
        }
        out.push_back({{"count", count}, {"operations", operations}, {"expected", expected}});
    }
    return out;
}

json bank_cases() {
    const Arch& arch = *find_arch("sm_90a");
    std::mt19937 random(5);
    json out = json::array();
    const auto add = [&](const std::string& what, int width, const std::vector<std::uint32_t>& addresses) {
        const std::vector<std::optional<std::uint32_t>> lanes(addresses.begin(), addresses.end());
        out.push_back(
            {{"what", what}, {"bytes", width}, {"addresses", addresses}, {"wavefronts", shared_wavefronts(arch, lanes, width).wavefronts}});
    };
    for (const int width : {4, 8, 16}) {
        const auto w = static_cast<std::uint32_t>(width);
        for (const std::uint32_t stride : {0u, 1u, 2u, 3u, 4u, 8u, 16u, 17u, 32u}) {
            std::vector<std::uint32_t> a;
            for (std::uint32_t lane = 0; lane < 32; ++lane) a.push_back(lane * stride * w % 32768);
            add("stride " + std::to_string(stride), width, a);
        }
        for (const SwizzleMode m : {SwizzleMode::B32, SwizzleMode::B64, SwizzleMode::B128}) {
            std::vector<std::uint32_t> a;
            for (std::uint32_t lane = 0; lane < 32; ++lane) a.push_back(swizzled(m, lane * 128));
            add("column, " + std::string(name(m)), width, a);
        }
        for (int i = 0; i < 12; ++i) {
            std::vector<std::uint32_t> a;
            const std::uint32_t range = i % 3 == 0 ? 8192 : i % 3 == 1 ? 1024 : 256;
            for (int lane = 0; lane < 32; ++lane) a.push_back(static_cast<std::uint32_t>(random()) % (range / w) * w);
            add("random in " + std::to_string(range) + " bytes", width, a);
        }
        // Lanes that agree pairwise or by halves: what may be merged across groups of lanes.
        std::vector<std::uint32_t> halves, pairs, interleaved;
        for (std::uint32_t lane = 0; lane < 32; ++lane) {
            halves.push_back(lane % 16 * w);
            pairs.push_back(lane / 2 * w);
            interleaved.push_back((lane % 2 * 16 + lane / 2) * w);
        }
        // Neighbours that agree, with and without conflicts among the rest; and agreement in one half only.
        for (const std::uint32_t partner : {1u, 2u, 4u})
            for (int i = 0; i < 3; ++i) {
                std::vector<std::uint32_t> a(32), half(32);
                for (std::uint32_t lane = 0; lane < 32; ++lane) {
                    const std::uint32_t fresh = static_cast<std::uint32_t>(random()) % (4096 / w) * w;
                    a[lane] = lane & partner ? a[lane ^ partner] : fresh;
                    half[lane] = lane < 16 && (lane & partner) ? half[lane ^ partner] : fresh;
                }
                add("random, lane ^ " + std::to_string(partner) + " agrees", width, a);
                add("random, lane ^ " + std::to_string(partner) + " agrees in the first half", width, half);
            }
        add("halves agree", width, halves);
        add("pairs agree", width, pairs);
        add("even and odd lanes apart", width, interleaved);
    }
    return out;
}

}  // namespace

json dump_probe_cases() {
    return {{"mma", mma_cases()},          {"wgmma", wgmma_cases()}, {"matrix_moves", matrix_move_cases()},
            {"shuffles", shuffle_cases()}, {"tma", tma_cases()},     {"mbarriers", mbarrier_cases()},
            {"banks", bank_cases()}};
}

}  // namespace tw::target
