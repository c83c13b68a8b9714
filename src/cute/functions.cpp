// Functions of a CuTe file and lambdas: where their bodies are, and what their parameters stand for.
#include <algorithm>

#include "cute/evaluate.h"

namespace tw::cute {

const Function* Evaluator::function(const std::string& name) const {
    const auto it = functions_.find(name);
    return it == functions_.end() ? nullptr : &it->second;
}

void Evaluator::find_functions() {
    static const std::set<std::string> words = {"if",      "for", "while", "switch", "else", "return", "alignas", "__launch_bounds__",
                                                "operator"};
    bool kernel = false;  // since the last body or `;`
    for (std::size_t i = 1; i + 3 < t_.size() && functions_.size() < kMaxDefinitions; ++i) {
        if (t_[i].text == "__global__") kernel = true;
        if (t_[i].is(";")) kernel = false;
        const bool lambda = t_[i].is("[") && t_[i - 1].is("=") && i > 1 && t_[i - 2].kind == Token::Kind::name;
        std::size_t open = i + 1;
        if (lambda) open = matching(i) + 1;
        else if (t_[i].kind != Token::Kind::name || words.count(t_[i].text) ||
                 !(t_[i - 1].kind == Token::Kind::name || t_[i - 1].is(">") || t_[i - 1].is("*") || t_[i - 1].is("&")))
            continue;
        if (open >= t_.size() || !t_[open].is("(")) continue;
        std::size_t body = matching(open) + 1;
        if (lambda && body < t_.size() && t_[body].text == "mutable") ++body;
        if (body >= t_.size() || !t_[body].is("{") || words.count(t_[i - 1].text)) continue;
        if (kernel && !lambda) {
            kernel = false;
            continue;
        }
        Function f;
        for (const Range& r : arguments(open)) {
            std::size_t last = r.end;
            for (std::size_t j = r.begin; j < r.end; ++j)
                if (t_[j].is("=")) last = std::min(last, j);
            bool reference = false, constant = false;
            for (std::size_t j = r.begin; j < last; ++j) reference |= t_[j].is("&"), constant |= t_[j].text == "const";
            f.references.push_back(reference && !constant);
            f.parameters.push_back(last > r.begin && t_[last - 1].kind == Token::Kind::name ? t_[last - 1].text : "");
        }
        f.at = body + 1, f.end = matching(body);
        for (std::size_t j = f.at; j < f.end; ++j) {
            if (t_[j].text == "asm" || t_[j].text == "__asm__") {
                for (std::size_t k = j; k < f.end && !t_[k].is(";"); ++k)
                    if (t_[k].kind == Token::Kind::text) f.ptx += t_[k].text;
            }
            f.loops |= t_[j].text == "while" || t_[j].text == "for" || t_[j].text == "do";
        }
        f.loops |= f.ptx.find("bra") != std::string::npos;
        const auto [it, fresh] = functions_.emplace(lambda ? t_[i - 2].text : t_[i].text, f);
        if (!fresh) it->second.several = true;
    }
    for (const auto& [name, f] : functions_)
        if (!f.several) find_arguments(name, f);
}

// A parameter that gets the same text at every call stands for it.
void Evaluator::find_arguments(const std::string& name, const Function& f) {
    std::vector<std::vector<Range>> calls;
    for (std::size_t i = 0; i + 1 < t_.size() && calls.size() < 100; ++i) {
        if (t_[i].text != name || !t_[i + 1].is("(") || matching(i + 1) + 1 >= t_.size() || t_[matching(i + 1) + 1].is("{")) continue;
        if (i < f.at || i > f.end) calls.push_back(arguments(i + 1));
    }
    for (std::size_t p = 0; p < f.parameters.size() && !calls.empty(); ++p) {
        if (f.parameters[p].empty() || calls[0].size() <= p || calls[0][p].empty()) continue;
        const std::string first = text(calls[0][p]);
        const bool same = std::all_of(calls.begin(), calls.end(), [&](const auto& c) { return c.size() > p && text(c[p]) == first; });
        if (!same) continue;
        Definition d{calls[0][p], {}, f.at};
        if (f.at < t_.size()) definitions_.emplace(f.parameters[p] + "@" + std::to_string(f.at - 1), d);
    }
}

}  // namespace tw::cute
