#include "codegen/digit_text.h"

namespace tw::codegen {

std::string digit_text(const ir::DigitSum& sum, const std::string& x) {
    std::string out;
    const bool name = x.find_first_of(" +-*/%^&|?") == std::string::npos;
    for (const ir::DigitSum::Term& t : sum.terms) {
        std::string s = name ? x : "(" + x + ")";
        if (t.divisor > 1) s += " / " + std::to_string(t.divisor);
        if (t.divisor * t.extent < sum.domain) s += " % " + std::to_string(t.extent);
        if (t.step != 1) s += " * " + std::to_string(t.step);
        out += (out.empty() ? "" : " + ") + s;
    }
    return out.empty() ? "0" : out;
}

}  // namespace tw::codegen
