#include "diagnose/random_writer.h"

namespace tw::diagnose {

Twin RandomWriter::elementwise(std::vector<Twin> operands, const std::string& dtype, int steps) {
    const bool integer = dtype == "i32";
    auto literal = [&](int v) { return integer ? std::to_string(v) : fmt::format("{}.0", v); };
    Twin x = operands[0];
    auto binary = [&](const Twin& a, const Twin& b) -> Twin {
        switch (below(6)) {
            case 0: return {fmt::format("({} + {})", a.code, b.code), fmt::format("({} + {})", a.spec, b.spec)};
            case 1: return {fmt::format("({} - {})", a.code, b.code), fmt::format("({} - {})", a.spec, b.spec)};
            case 2: return {fmt::format("({} * {})", a.code, b.code), fmt::format("({} * {})", a.spec, b.spec)};
            case 3: return {fmt::format("tw.maximum({}, {})", a.code, b.code), fmt::format("maximum({}, {})", a.spec, b.spec)};
            case 4: return {fmt::format("tw.minimum({}, {})", a.code, b.code), fmt::format("minimum({}, {})", a.spec, b.spec)};
            default: return {fmt::format("({} - {})", b.code, a.code), fmt::format("({} - {})", b.spec, a.spec)};
        }
    };
    for (std::size_t i = 1; i < operands.size(); ++i) x = binary(x, operands[i]);
    for (int s = 0; s < steps; ++s) {
        const Twin a = operands[static_cast<std::size_t>(below(static_cast<int>(operands.size())))];
        const std::string c = literal(1 + below(4));
        switch (below(exact_ || integer ? 6 : 12)) {
            case 0: x = {fmt::format("({} * {})", x.code, c), fmt::format("({} * {})", x.spec, c)}; break;
            case 1: x = {fmt::format("({} + {})", x.code, c), fmt::format("({} + {})", x.spec, c)}; break;
            case 2: x = {fmt::format("({} - {})", c, x.code), fmt::format("({} - {})", c, x.spec)}; break;
            case 3:
                x = {fmt::format("tw.where({} < {}, {}, {})", a.code, c, x.code, a.code),
                     fmt::format("where({} < {}, {}, {})", a.spec, c, x.spec, a.spec)};
                break;
            case 4: x = {fmt::format("(-{})", x.code), fmt::format("(-{})", x.spec)}; break;
            case 5: x = {fmt::format("tw.maximum({}, {})", x.code, literal(0)), fmt::format("maximum({}, {})", x.spec, literal(0))}; break;
            case 6: x = {fmt::format("tw.exp(tw.minimum({}, 4.0))", x.code), fmt::format("exp(minimum({}, 4.0))", x.spec)}; break;
            case 7: x = {fmt::format("tw.tanh({})", x.code), fmt::format("tanh({})", x.spec)}; break;
            case 8: x = {fmt::format("tw.abs({})", x.code), fmt::format("abs({})", x.spec)}; break;
            case 9: x = {fmt::format("tw.rsqrt(tw.abs({}) + 1.0)", x.code), fmt::format("rsqrt(abs({}) + 1.0)", x.spec)}; break;
            case 10: x = {fmt::format("tw.sigmoid({})", x.code), fmt::format("sigmoid({})", x.spec)}; break;
            default: x = {fmt::format("({} / {})", x.code, c), fmt::format("({} / {})", x.spec, c)}; break;
        }
    }
    return x;
}

std::string RandomWriter::buffer_options(const std::string& dtype, int rows, int columns, Filled filled) {
    const int row = columns * bytes(dtype);
    std::vector<std::string> choices = {""};
    if (filled == Filled::by_stores) choices.push_back(fmt::format(", pad={}", pick({1, 4, 16 / bytes(dtype)})));
    if (filled == Filled::by_copies) choices.push_back(fmt::format(", pad={}", pick({2, 4, 16 / bytes(dtype)})));
    if (rows % 8 == 0) {
        for (int span : {32, 64, 128}) {
            if (row % span == 0) choices.push_back(fmt::format(", swizzle={}", span));
        }
    }
    return choices[static_cast<std::size_t>(below(static_cast<int>(choices.size())))];
}

}  // namespace tw::diagnose
