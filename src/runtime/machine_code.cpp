#include "runtime/machine_code.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <map>
#include <optional>
#include <set>

#include "base/text.h"

namespace tw::runtime {
namespace {

constexpr std::size_t most_hazards = 8;
constexpr int oldest = 64;  // an age beyond any number that a wait can name

bool is_digit(char c) { return std::isdigit(static_cast<unsigned char>(c)) != 0; }

struct Registers {
    int first = 0, count = 0;
    bool meets(const Registers& o) const { return first < o.first + o.count && o.first < first + count; }
    bool operator==(const Registers& o) const { return first == o.first && count == o.count; }
};

struct Instruction {
    std::string text;     // "/*2ae0*/ @P0 FADD R120, R4, R5"
    std::string address;  // "2ae0", without leading zeros
    std::string name;     // "FADD"
    std::vector<std::string> modifiers;
    std::vector<std::string> operands;
    bool predicated = false;

    bool has(std::string_view modifier) const { return std::find(modifiers.begin(), modifiers.end(), modifier) != modifiers.end(); }
    bool is_wgmma() const { return name.size() > 4 && name.compare(name.size() - 4, 4, "GMMA") == 0; }
    bool is_wait() const { return name == "WARPGROUP" && !modifiers.empty() && modifiers[0] == "DEPBAR"; }
};

struct Function {
    std::string name;
    std::vector<Instruction> code;
    std::map<std::string, std::size_t> labels;  // and addresses, to the instruction that follows
};

std::vector<std::string> split_at(std::string_view text, char separator) {
    std::vector<std::string> parts;
    int depth = 0;
    std::size_t begin = 0;
    for (std::size_t i = 0; i <= text.size(); ++i) {
        if (i < text.size() && (text[i] == '[' || text[i] == '(')) ++depth;
        if (i < text.size() && (text[i] == ']' || text[i] == ')')) --depth;
        if (i < text.size() && (text[i] != separator || depth > 0)) continue;
        if (const auto part = trim(text.substr(begin, i - begin)); !part.empty()) parts.emplace_back(part);
        begin = i + 1;
    }
    return parts;
}

std::string without_zeros(std::string_view digits) {
    while (digits.size() > 1 && digits.front() == '0') digits.remove_prefix(1);
    return std::string(digits);
}

// "        /*0010*/              @!P0 IMAD.MOV.U32 R1, RZ, RZ, c[0x0][0x28] ;   /* encoding */"; nothing on lines of another form.
std::optional<Instruction> parse_instruction(std::string_view line) {
    std::string_view text = trim(line);
    if (!text.starts_with("/*")) return std::nullopt;
    const auto close = text.find("*/"), end = text.find(';');
    if (close == std::string_view::npos || end == std::string_view::npos || end < close) return std::nullopt;
    const auto address = text.substr(2, close - 2);
    if (address.empty() || !std::all_of(address.begin(), address.end(), [](unsigned char c) { return std::isxdigit(c); }))
        return std::nullopt;
    Instruction in;
    in.address = without_zeros(address);
    std::string_view rest = trim(text.substr(close + 2, end - close - 2));
    in.text = fmt::format("/*{}*/ {}", address, rest);
    if (rest.starts_with("{")) rest = trim(rest.substr(1));
    if (rest.starts_with("@")) {
        in.predicated = true;
        rest = trim(rest.substr(std::min(rest.find(' '), rest.size())));
    }
    const auto space = std::min(rest.find(' '), rest.size());
    auto words = split_at(rest.substr(0, space), '.');
    if (words.empty()) return std::nullopt;
    in.name = words[0];
    in.modifiers.assign(words.begin() + 1, words.end());
    in.operands = split_at(rest.substr(space), ',');
    return in;
}

std::vector<Function> parse(std::string_view sass) {
    std::vector<Function> functions;
    for (const auto line : split_lines(sass)) {
        const std::string_view text = trim(line);
        // nvdisasm: ".text.NAME:"; cuobjdump: "Function : NAME".
        if (text.starts_with(".text.") && text.back() == ':') {
            functions.push_back({std::string(text.substr(6, text.size() - 7)), {}, {}});
        } else if (text.starts_with("Function : ")) {
            functions.push_back({std::string(trim(text.substr(11))), {}, {}});
        } else if (functions.empty()) {
            continue;
        } else if (!text.empty() && text.back() == ':' && text.find(' ') == std::string_view::npos) {
            functions.back().labels[std::string(text.substr(0, text.size() - 1))] = functions.back().code.size();
        } else if (auto in = parse_instruction(text)) {
            Function& f = functions.back();
            f.labels["0x" + in->address] = f.code.size();
            f.code.push_back(*std::move(in));
        }
    }
    return functions;
}

// The number of a plain register operand: "R120", "-R8.reuse", "|R3|"; -1 for RZ and everything else.
int register_of(std::string_view operand) {
    while (!operand.empty() && (operand.front() == '-' || operand.front() == '~' || operand.front() == '!' || operand.front() == '|'))
        operand.remove_prefix(1);
    if (operand.size() < 2 || operand[0] != 'R' || !is_digit(operand[1])) return -1;
    return std::atoi(std::string(operand.substr(1, 3)).c_str());
}

bool is_predicate(std::string_view operand) {
    while (!operand.empty() && operand.front() == '!') operand.remove_prefix(1);
    if (!operand.empty() && operand.front() == 'U') operand.remove_prefix(1);
    return operand == "PT" || (operand.size() == 2 && operand[0] == 'P' && is_digit(operand[1]));
}

bool is_one_of(std::string_view name, std::initializer_list<std::string_view> names) {
    return std::find(names.begin(), names.end(), name) != names.end();
}

// Registers of the accumulator of a wgmma: "64x128x16" and the type that the sum has.
std::optional<int> accumulator_registers(const Instruction& in) {
    for (std::size_t i = 0; i < in.modifiers.size(); ++i) {
        const auto parts = split_at(in.modifiers[i], 'x');
        if (parts.size() != 3 || parts[0] != "64") continue;
        const int n = std::atoi(parts[1].c_str());
        const bool half = i + 1 < in.modifiers.size() && in.modifiers[i + 1] == "F16" && in.name != "IGMMA";
        if (n >= 8 && n <= 256) return half ? std::max(1, n / 4) : n / 2;
    }
    return std::nullopt;
}

int by_suffix(const Instruction& in) { return in.has("128") ? 4 : in.has("64") ? 2 : 1; }

// How many registers the result and the operand at `index` have. Where a form is not known for certain, the larger number.
int result_registers(const Instruction& in) {
    const std::string& n = in.name;
    if (is_one_of(n, {"HMMA", "IMMA", "QMMA", "BMMA", "DMMA"})) return in.modifiers.size() > 1 && in.modifiers[1] == "F16" ? 2 : 4;
    if (n == "LDSM") return in.has("4") ? 4 : in.has("2") ? 2 : 1;
    if (n == "CS2R") return in.has("32") ? 1 : 2;
    if (in.has("WIDE")) return 2;
    if (n.size() > 3 && n[0] == 'D' && is_one_of(n, {"DADD", "DMUL", "DFMA", "DMNMX"})) return 2;
    if (is_one_of(n, {"FADD2", "FMUL2", "FFMA2"})) return 2;
    if (is_one_of(n, {"F2F", "F2I", "I2F", "I2I", "FRND"}) && (in.has("F64") || in.has("S64") || in.has("U64"))) return 2;
    if (n == "SYNCS") return 2;
    return by_suffix(in);
}

int source_registers(const Instruction& in, std::size_t index) {
    const std::string& n = in.name;
    if (is_one_of(n, {"HMMA", "IMMA", "QMMA", "BMMA", "DMMA"})) return index == 2 ? 2 : 4;
    if (n == "STSM") return in.has("4") ? 4 : in.has("2") ? 2 : 1;
    if (in.has("WIDE")) return index + 1 == in.operands.size() || index >= 3 ? 2 : 1;
    if (is_one_of(n, {"DADD", "DMUL", "DFMA", "DMNMX", "DSETP", "FADD2", "FMUL2", "FFMA2"})) return 2;
    if (is_one_of(n, {"F2F", "F2I", "I2F", "I2I", "FRND"})) return in.has("F64") || in.has("S64") || in.has("U64") ? 2 : 1;
    if (n == "LDSM" || n == "LDGSTS") return 1;
    return by_suffix(in);
}

// Registers inside brackets: an address, of two registers when it says .64.
void add_address(std::string_view operand, std::vector<Registers>& reads) {
    for (std::size_t i = 0; i + 1 < operand.size(); ++i) {
        const bool starts =
            operand[i] == 'R' && is_digit(operand[i + 1]) && (i == 0 || !std::isalnum(static_cast<unsigned char>(operand[i - 1])));
        if (!starts) continue;
        std::size_t end = i + 1;
        while (end < operand.size() && is_digit(operand[end])) ++end;
        reads.push_back(
            {std::atoi(std::string(operand.substr(i + 1, end - i - 1)).c_str()), operand.substr(end).starts_with(".64") ? 2 : 1});
    }
}

struct Effects {
    std::vector<Registers> reads, writes;
};

// Of an instruction that is no wgmma. The first register operand is the result, after any predicates that are results too, unless the
// instruction has none.
Effects effects_of(const Instruction& in) {
    Effects e;
    const bool no_result = in.name.find("SETP") != std::string::npos ||
                           is_one_of(in.name, {"BAR", "WARPSYNC", "NANOSLEEP", "BRX", "BRXU", "JMX", "JMXU", "CALL", "RET", "WARPGROUP",
                                               "FCHK", "PLOP3", "R2P", "BRA", "EXIT", "KILL", "BPT"});
    std::size_t first = 0;
    while (first < in.operands.size() && is_predicate(in.operands[first])) ++first;
    for (std::size_t i = 0; i < in.operands.size(); ++i) {
        const std::string& operand = in.operands[i];
        const int r = register_of(operand);
        if (r < 0) {
            if (operand.find('[') != std::string::npos || in.name == "BRX" || in.name == "RET" || in.name == "CALL")
                add_address(operand, e.reads);
        } else if (i == first && !no_result) {
            e.writes.push_back({r, result_registers(in)});
        } else {
            e.reads.push_back({r, source_registers(in, i)});
        }
    }
    return e;
}

struct Wgmma {
    Registers accumulator, operand;  // operand.count 0: A lies in shared memory
    bool closes_group = false;
};

std::optional<Wgmma> read_wgmma(const Instruction& in) {
    const auto count = accumulator_registers(in);
    if (!count || in.operands.size() < 3) return std::nullopt;
    Wgmma w;
    const int result = register_of(in.operands[0]);
    if (result < 0) return std::nullopt;
    w.accumulator = {result, *count};
    if (const int a = register_of(in.operands[1]); a >= 0) w.operand = {a, 4};
    else if (!in.operands[1].starts_with("gdesc")) return std::nullopt;
    w.closes_group = in.operands.back() == "gsb0";
    return w;
}

// What is in flight before an instruction: the wgmma by its place in the code, with its age: 0 while its group is open, then how many
// groups were closed since, its own among them. Where paths meet the younger age is taken: more waits are needed to complete it.
using Flight = std::map<std::size_t, int>;

struct State {
    Flight flight;
    std::map<std::string, std::set<std::size_t>>
        meeting;  // where a convergence barrier's threads go on after BSYNC: told by the BSSY before

    bool join(const State& o) {
        bool changed = false;
        for (const auto& [at, age] : o.flight) {
            auto [it, added] = flight.emplace(at, age);
            if (!added && it->second <= age) continue;
            it->second = age;
            changed = true;
        }
        for (const auto& [barrier, places] : o.meeting) {
            for (std::size_t p : places) changed |= meeting[barrier].insert(p).second;
        }
        return changed;
    }
};

class Checker {
public:
    Checker(const Function& f, MachineCodeCheck& out) : f_(f), out_(out) {}

    void run() {
        wgmma_.resize(f_.code.size());
        for (std::size_t i = 0; i < f_.code.size(); ++i) {
            const Instruction& in = f_.code[i];
            if (!in.is_wgmma()) continue;
            wgmma_[i] = read_wgmma(in);
            if (!wgmma_[i]) return problem("a wgmma of a form that is not known: " + in.text);
            ++out_.wgmma;
            out_.register_operands += wgmma_[i]->operand.count > 0;
            any_ = true;
        }
        if (!any_ || !find_edges()) return;
        spread();
        for (std::size_t i = 0; i < f_.code.size(); ++i) {
            if (before_[i]) look(i, before_[i]->flight);
        }
    }

private:
    void problem(const std::string& what) {
        if (out_.problem.empty()) out_.problem = f_.name + ": " + what;
    }

    // Labels that an instruction names: "`(.L_x_9)", an address, a list of branch targets.
    std::vector<std::size_t> targets(const Instruction& in) {
        std::vector<std::size_t> found;
        for (const std::string& operand : in.operands) {
            std::string word;
            for (char c : operand + " ") {
                if (std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '.' || c == '$') {
                    word += c;
                } else {
                    std::string key = word.rfind("0x", 0) == 0 ? "0x" + without_zeros(word.substr(2)) : word;
                    if (auto it = f_.labels.find(key); it != f_.labels.end()) found.push_back(it->second);
                    word.clear();
                }
            }
        }
        return found;
    }

    // A call comes back to the instruction after it: the code before has put that address into a register. What is called holds no wgmma
    // and no wait, so it leaves what is in flight as it was.
    bool returns_to_next(std::size_t call) const {
        if (call + 1 >= f_.code.size()) return false;
        const std::string address = "0x" + f_.code[call + 1].address;
        for (std::size_t i = call; i-- > 0 && call - i < 24;) {
            const Instruction& in = f_.code[i];
            if (in.name == "CALL") break;
            if (is_one_of(in.name, {"MOV", "IMAD", "HFMA2", "LEPC"}) && !in.operands.empty() && in.operands.back() == address) return true;
        }
        return false;
    }
    bool called_text_is_plain(std::size_t from) const {
        for (std::size_t i = from; i < f_.code.size(); ++i) {
            if (f_.code[i].is_wgmma() || f_.code[i].is_wait()) return false;
            if (f_.code[i].name == "RET" && !f_.code[i].predicated) return true;
        }
        return false;
    }

    bool find_edges() {
        const std::size_t n = f_.code.size();
        next_.resize(n);
        std::vector<std::size_t> returns;  // places after calls that are not as above
        for (std::size_t i = 0; i + 1 < n; ++i) {
            if (f_.code[i].name != "CALL") continue;
            const auto to = targets(f_.code[i]);
            if (!returns_to_next(i) || to.size() != 1 || !called_text_is_plain(to[0])) returns.push_back(i + 1);
        }
        for (std::size_t i = 0; i < n; ++i) {
            const Instruction& in = f_.code[i];
            const bool indirect = is_one_of(in.name, {"BRX", "BRXU", "JMX", "JMXU"});
            // A branch with operands besides its target depends on them.
            const bool leaves =
                in.name == "EXIT" || in.name == "RET" || indirect || (is_one_of(in.name, {"BRA", "JMP"}) && in.operands.size() == 1);
            if ((in.predicated || !leaves) && i + 1 < n) next_[i].push_back(i + 1);
            if (indirect || is_one_of(in.name, {"BRA", "JMP", "CALL", "WARPSYNC"})) {
                const auto to = targets(in);
                if (to.empty() && in.name != "WARPSYNC") return problem("a jump whose targets are not told: " + in.text), false;
                next_[i].insert(next_[i].end(), to.begin(), to.end());
            }
            if (in.name == "RET") next_[i].insert(next_[i].end(), returns.begin(), returns.end());
            if (in.name == "BMOV" && !in.operands.empty() && in.operands[0][0] == 'B')
                return problem("a convergence barrier that is restored: " + in.text), false;
        }
        return true;
    }

    State after(std::size_t i, State state) {
        const Instruction& in = f_.code[i];
        if (wgmma_[i]) {
            state.flight[i] = 0;
            if (wgmma_[i]->closes_group) {
                for (auto& [at, age] : state.flight) age = std::min(age + 1, oldest);
            }
        } else if (in.is_wait()) {
            const int pending = in.operands.size() > 1 ? static_cast<int>(std::strtol(in.operands[1].c_str(), nullptr, 0)) : 0;
            // Predicated: it may not take place.
            for (auto it = state.flight.begin(); !in.predicated && it != state.flight.end();)
                it = it->second > pending ? state.flight.erase(it) : std::next(it);
        } else if (in.name == "BSSY" && !in.operands.empty()) {
            const auto to = targets(in);
            if (!in.predicated) state.meeting[in.operands[0]].clear();
            state.meeting[in.operands[0]].insert(to.begin(), to.end());
        }
        return state;
    }

    void spread() {
        before_.resize(f_.code.size());
        before_[0] = State{};
        std::vector<std::size_t> waiting = {0};
        while (!waiting.empty()) {
            const std::size_t i = waiting.back();
            waiting.pop_back();
            const Instruction& in = f_.code[i];
            std::vector<std::size_t> next = next_[i];
            if (in.name == "BSYNC" && !in.operands.empty()) {
                const auto& places = before_[i]->meeting[in.operands[0]];
                next.insert(next.end(), places.begin(), places.end());
            }
            const State leaving = after(i, *before_[i]);
            for (std::size_t to : next) {
                if (to >= f_.code.size()) continue;  // past the end: nothing runs there
                const bool first = !before_[to];
                if (first) before_[to] = State{};
                if (before_[to]->join(leaving) || first) waiting.push_back(to);
            }
        }
    }

    void hazard(std::size_t i, std::size_t at, const std::string& what) {
        if (out_.hazards.size() < most_hazards) out_.hazards.push_back({f_.name, f_.code[i].text, f_.code[at].text, what});
    }

    static std::string name(const Registers& r) {
        return r.count == 1 ? fmt::format("R{}", r.first) : fmt::format("R{}..R{}", r.first, r.first + r.count - 1);
    }

    void look(std::size_t i, const Flight& flight) {
        if (flight.empty()) return;
        Effects e;
        if (wgmma_[i]) {
            e.writes.push_back(wgmma_[i]->accumulator);
            if (wgmma_[i]->operand.count) e.reads.push_back(wgmma_[i]->operand);
        } else {
            e = effects_of(f_.code[i]);
        }
        for (const auto& [at, age] : flight) {
            const Wgmma& w = *wgmma_[at];
            for (const Registers& r : e.writes) {
                // wgmma on one accumulator follow one another.
                const bool same = wgmma_[i] && r == w.accumulator;
                if (w.operand.count && r.meets(w.operand))
                    return hazard(i, at, "writes " + name(r) + ", of the operand " + name(w.operand));
                if (!same && r.meets(w.accumulator))
                    return hazard(i, at, "writes " + name(r) + ", of the accumulator " + name(w.accumulator));
            }
            for (const Registers& r : e.reads) {
                if (r.meets(w.accumulator)) return hazard(i, at, "reads " + name(r) + ", of the accumulator " + name(w.accumulator));
            }
        }
    }

    const Function& f_;
    MachineCodeCheck& out_;
    bool any_ = false;
    std::vector<std::optional<Wgmma>> wgmma_;
    std::vector<std::vector<std::size_t>> next_;
    std::vector<std::optional<State>> before_;
};

}  // namespace

std::string MachineCodeCheck::sentence() const {
    if (!hazards.empty()) {
        const MachineHazard& h = hazards.front();
        return fmt::format("machine code: HAZARD in {}: {} {}; the wgmma {} is in flight there", h.function, h.instruction, h.what,
                           h.wgmma);
    }
    if (!problem.empty()) return "machine code: not checked: " + problem;
    if (wgmma == 0) return "machine code: no wgmma";
    return fmt::format("machine code: {} wgmma, {} with register operands, none overwritten in flight", wgmma, register_operands);
}

MachineCodeCheck check_machine_code(std::string_view sass) {
    MachineCodeCheck out;
    const auto functions = parse(sass);
    if (functions.empty()) out.problem = "the disassembler's text has no function";
    for (const Function& f : functions) {
        if (!f.code.empty()) Checker(f, out).run();
    }
    return out;
}

bool has_register_operands(std::string_view ptx) {
    for (auto at = ptx.find("wgmma.mma_async"); at != std::string_view::npos; at = ptx.find("wgmma.mma_async", at + 1)) {
        const auto text = ptx.substr(at, std::min(ptx.find(';', at), ptx.size()) - at);
        // "{accumulator}, {operand}, descriptor, ..." or "{accumulator}, descriptor, ..."
        if (std::count(text.begin(), text.end(), '{') >= 2) return true;
    }
    return false;
}

bool keeps_register_operands(int major, int minor) { return major > 13 || (major == 13 && minor >= 3); }

}  // namespace tw::runtime
