#include "cute/compile_errors.h"

#include <algorithm>
#include <regex>
#include <set>

#include "base/text.h"

namespace tw::cute {
namespace {

bool letter(char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; }

// Rewrites one type that begins at `at`; what it does not know stays as it is.
class Shortener {
public:
    explicit Shortener(std::string_view text) : text_(text) {}

    std::string all() {
        std::string out;
        while (at_ < text_.size())
            out += letter(text_[at_]) && (at_ == 0 || !letter(text_[at_ - 1])) ? type(0) : std::string(1, text_[at_++]);
        return out;
    }

private:
    void spaces() {
        while (at_ < text_.size() && text_[at_] == ' ') ++at_;
    }

    std::vector<std::string> arguments(int depth) {
        std::vector<std::string> out;
        ++at_;  // <
        while (at_ < text_.size()) {
            spaces();
            if (at_ < text_.size() && text_[at_] == '>') {
                ++at_;
                break;
            }
            std::string one;
            while (at_ < text_.size() && text_[at_] != ',' && text_[at_] != '>')
                one += letter(text_[at_]) ? type(depth + 1) : std::string(1, text_[at_++]);
            out.push_back(std::string(trim(one)));
            if (at_ < text_.size() && text_[at_] == ',') ++at_;
        }
        return out;
    }

    std::string type(int depth) {
        std::string name;
        while (at_ < text_.size() && (letter(text_[at_]) || text_.compare(at_, 2, "::") == 0)) {
            if (text_[at_] == ':') name += "::", at_ += 2;
            else name += text_[at_++];
        }
        const std::size_t colon = name.rfind("::");
        const std::string last = colon == std::string::npos ? name : name.substr(colon + 2);
        if (last.size() > 1 && last[0] == '_' && last.find_first_not_of("0123456789", 1) == std::string::npos) return last.substr(1);
        const bool ours = name.rfind("cute::", 0) == 0 || name.rfind("cutlass::", 0) == 0 || colon == std::string::npos;
        if (at_ >= text_.size() || text_[at_] != '<' || depth > 100) return ours ? last : name;
        const std::vector<std::string> args = arguments(depth);
        auto number = [](std::string a) {  // (int)8, 8
            if (a.rfind("(int)", 0) == 0) a = a.substr(5);
            return a;
        };
        if ((last == "C" || last == "Int") && args.size() == 1) return number(args[0]);
        if ((last == "constant" || last == "integral_constant") && args.size() == 2) return number(args[1]);
        if (last == "tuple" || last == "Shape" || last == "Stride") return "(" + join(args, ",") + ")";
        if (last == "Layout" && args.size() == 2) return args[0] + ":" + args[1];
        if (last == "Swizzle" && args.size() == 3) return "Sw<" + number(args[0]) + "," + number(args[1]) + "," + number(args[2]) + ">";
        if (last == "ComposedLayout" && args.size() == 3) return args[0] + " o " + args[1] + " o " + args[2];
        return (ours ? last : name) + "<" + join(args, ", ") + ">";
    }

    std::string_view text_;
    std::size_t at_ = 0;
};

bool is_header(const std::string& file) { return file.find("cute/") != std::string::npos || file.find("cutlass/") != std::string::npos; }

std::string hint_of(const std::string& words) {
    static const std::vector<std::pair<std::regex, const char*>> known = {
        {std::regex("cannot open source file|No such file"), "the folder of the headers is not named: -I .../include of nvidia-cutlass"},
        {std::regex("is undefined|has no member|not a member of|undeclared|no template named"),
         "the name is not known here: its spelling, `using namespace cute`, or the header that declares it"},
        {std::regex("read-only|modifiable lvalue|const-qualified|pointer-to-const|discards qualifiers|type \"const"),
         "something that is const is written to: a tensor of const elements is only a source"},
        {std::regex("with\\(mbar|Use \\.with|\\.with\\("), "a TMA load needs its barrier: copy(tma.with(barrier), source, tile)"},
        {std::regex("too much shared data"),
         "static shared memory ends at 48 KiB: take the tiles from extern __shared__ memory, and ask for it at launch"},
        {std::regex("not supported on .target|cannot be compiled for architecture|requires .target|sm_90a"),
         "the instruction is not of the architecture that is compiled for: wgmma, TMA stores of it and setmaxnreg need sm_90a"},
        {std::regex("expt-relaxed-constexpr|__host__ function"),
         "CuTe needs --expt-relaxed-constexpr; functions that a kernel calls need CUTE_DEVICE or __device__"},
        {std::regex("make_fragment_like|requires a static|must be static|is_static|Dynamic owning"),
         "registers have no run-time extents: the tile must have a static shape (Int<N>{}, local_tile with a static tiler)"},
        {std::regex("vectoriz|recast|upcast|downcast", std::regex::icase),
         "the copy's word does not fit the layout: its values must be neighbours, and their number divide the thread's values"},
        {std::regex("divis|Shape Divisibility|Stride Divisibility|ceil_div", std::regex::icase),
         "extents do not divide: compare the tile, the tiled copy's or MMA's tile, and the tensor's shape"},
        {std::regex("rank", std::regex::icase),
         "the ranks differ: a coordinate, tile or layout has another number of modes than the tensor"},
        {std::regex("compatib|congruent|mismatch|same size", std::regex::icase),
         "shapes do not agree: print both with cute::print, or evaluate them with `tilewright layout`"},
        {std::regex("Copy_Traits|CopyAtom|copy_unpack|src.*dst", std::regex::icase),
         "the copy atom does not fit its operands: memory space, width or number of values"},
        {std::regex("MMA|gemm", std::regex::icase),
         "the operands do not fit the MMA atom: element types, K, or the number of values of a fragment"},
        {std::regex("dynamic|static|constexpr", std::regex::icase), "a static value is needed where a run-time one is given: use Int<N>{}"},
    };
    for (const auto& [pattern, text] : known) {
        if (std::regex_search(words, pattern)) return text;
    }
    return {};
}

// The layouts and atoms of a line, short, with the template parameter that they are bound to: `SrcLayout = (8,1):(128,0)`.
void add_types(std::string_view line, std::vector<std::string>& out) {
    static const std::regex type(R"(cute::(?:Layout|ComposedLayout|Copy_Atom|MMA_Atom|TiledCopy|TiledMMA)<)");
    const std::string text(line.substr(0, 20000));
    std::size_t from = 0;
    for (std::smatch m; out.size() < 6 && std::regex_search(text.begin() + static_cast<std::ptrdiff_t>(from), text.end(), m, type);) {
        const std::size_t at = from + static_cast<std::size_t>(m.position());
        std::size_t close = at;
        int depth = 0;
        for (; close < text.size(); ++close) {
            depth += text[close] == '<' ? 1 : text[close] == '>' ? -1 : 0;
            if (depth == 0 && text[close] == '>') break;
        }
        from = std::min(close + 1, text.size());
        if (close == text.size()) break;  // cut off: no type
        std::string brief = short_types(std::string_view(text).substr(at, close - at + 1));
        if (brief.find('[') != std::string::npos || brief.find("...") != std::string::npos ||
            !std::regex_search(brief, std::regex("[0-9]")))
            continue;  // a template's own parameters
        if (brief.size() > 160) brief = brief.substr(0, 157) + "...";
        std::size_t name = at;
        if (at > 0 && text[at - 1] == '=') {
            for (--name; name > 0 && letter(text[name - 1]);) --name;
            brief = text.substr(name, at - 1 - name) + " = " + brief;
        }
        if (std::find(out.begin(), out.end(), brief) == out.end()) out.push_back(brief);
    }
}

}  // namespace

std::string short_types(std::string_view text) { return Shortener(text).all(); }

std::vector<CompileError> compile_errors(std::string_view log, std::size_t limit) {
    static const std::regex error(
        R"(^(.{1,400}?)[(:](\d{1,7})(?:\)|:\d+)?: (?:fatal |catastrophic |internal )?error(?: #[\d-]+D?)?: ?(.*)$)");
    // ptxas has no lines of the source: its place in the PTX is of no use to anybody.
    static const std::regex assembler(R"(^(?:ptxas|nvlink)\b.{0,400}?(?:error|fatal)\s*: ?(.*)$)");
    static const std::regex from(R"(at line (\d{1,7}) of (.{1,400}?)\s*$)");
    std::vector<CompileError> out;
    std::set<std::pair<std::string, int>> seen;
    CompileError now;
    std::string words;
    bool open = false;
    auto finish = [&] {
        if (!open) return;
        open = false;
        if (now.hint.empty()) now.hint = hint_of(now.assertion + " " + now.message);
        if (now.hint.empty()) now.hint = hint_of(words);  // the way into the headers names much that is not at fault
        if (out.size() < limit && seen.emplace(now.file, now.line).second) out.push_back(now);
    };
    for (const std::string_view raw : split_lines(log)) {
        const std::string line(raw.substr(0, 20000));
        std::smatch m;
        const std::string head = line.substr(0, 2000);
        if (std::regex_search(head, m, error)) {
            finish();
            now = {}, words.clear();
            open = true;
            now.file = m[1], now.line = std::stoi(m[2]);
            now.message = short_types(std::string(m[3]));
            const std::size_t quote = now.message.find("static assertion failed");
            if (quote != std::string::npos) {
                const std::size_t first = now.message.find('"', quote), last = now.message.rfind('"');
                now.assertion = first != std::string::npos && last > first ? now.message.substr(first + 1, last - first - 1)
                                                                           : now.message.substr(quote);
            }
            if (now.message.size() > 300) now.message = now.message.substr(0, 297) + "...";
            add_types(line, now.types);
            continue;
        }
        if (std::regex_search(head, m, assembler)) {
            finish();
            now = {}, words.clear();
            open = true;
            now.file = "the assembler", now.message = std::string(m[1]);
            // Each instruction that it refuses is an error: one of a kind is enough.
            if (std::any_of(out.begin(), out.end(), [&](const CompileError& e) { return e.file == now.file; })) open = false;
            continue;
        }
        if (!open) continue;
        // The condition, where the assertion has no message.
        static const std::string assertion = "static_assert(";
        if (const std::size_t at = head.find(assertion); at != std::string::npos && now.assertion == "static assertion failed")
            now.assertion = head.substr(at);
        add_types(line, now.types);
        words += line.substr(0, 200) + " ";
        // The way into the headers: the last place outside of them is where the user's text began it.
        if (std::regex_search(head, m, from) && !is_header(m[2]) && is_header(now.file)) now.file = m[2], now.line = std::stoi(m[1]);
        else if (std::string tail = line.size() > 2000 ? line.substr(line.size() - 600) : "";
                 !tail.empty() && std::regex_search(tail, m, from) && !is_header(m[2]) && is_header(now.file))
            now.file = m[2], now.line = std::stoi(m[1]);
        while (!now.file.empty() && (now.file[0] == '"' || now.file[0] == ' ')) now.file.erase(0, 1);
        while (!now.file.empty() && now.file.back() == '"') now.file.pop_back();
    }
    finish();
    return out;
}

}  // namespace tw::cute
