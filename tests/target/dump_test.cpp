// The JSON that people, the Python package and the probes read.
#include "target/dump.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <set>

#include "target/instruction.h"

namespace tw::target {
namespace dump_test {

TEST(Dump, TablesHoldEveryRow) {
    const nlohmann::json tables = dump_tables();
    EXPECT_EQ(tables["instructions"].size(), static_cast<std::size_t>(op_count));
    EXPECT_EQ(tables["architectures"].size(), all_archs().size());
    EXPECT_EQ(tables["ordering"].size(), all_ordering_rules().size());
    EXPECT_EQ(tables["wgmma"]["accumulators"].size(), 32u);
    EXPECT_EQ(nlohmann::json::parse(tables.dump()), tables);
}

TEST(Dump, ProbeCasesAreDeterministicAndCoverTheModes) {
    const nlohmann::json cases = dump_probe_cases();
    EXPECT_EQ(cases, dump_probe_cases());
    std::set<std::string> swizzle_pairs;
    for (const auto& run : cases["wgmma"]["runs"]) {
        if (!run.contains("a_tile")) continue;
        const auto& tiles = cases["wgmma"]["tiles"];
        const auto& a = tiles[run["a_tile"].get<std::size_t>()];
        const auto& b = tiles[run["b_tile"].get<std::size_t>()];
        swizzle_pairs.insert(a["swizzle"].get<std::string>() + "/" + b["swizzle"].get<std::string>());
    }
    EXPECT_EQ(swizzle_pairs.size(), 16u);
    std::set<int> ranks;
    bool outside = false, nan = false;
    for (const auto& c : cases["tma"]) {
        ranks.insert(c["rank"].get<int>());
        nan = nan || c["nan"].get<bool>();
        for (const auto& offset : c["offsets"]) outside = outside || offset.get<std::int64_t>() < 0;
    }
    EXPECT_EQ(ranks.size(), 5u);
    EXPECT_TRUE(outside);
    EXPECT_TRUE(nan);
    for (const auto& m : cases["mbarriers"]) EXPECT_EQ(m["operations"].size(), m["expected"].size());
}

TEST(Dump, ConversionNamesAreUnique) {
    std::set<std::string_view> names;
    for (const NamedConversion& c : named_conversions()) EXPECT_TRUE(names.insert(c.name).second) << c.name;
    EXPECT_GE(names.size(), 20u);
}

}  // namespace dump_test
}  // namespace tw::target
