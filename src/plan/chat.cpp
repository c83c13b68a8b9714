#include "plan/chat.h"

#include "base/text.h"

namespace tw::plan {
namespace {

constexpr std::size_t kMaxLine = 8u << 20;
constexpr std::size_t kMaxSource = 256u << 10;

bool is_kernel(std::string_view text) {
    const auto has = [&](const char* word) { return text.find(word) != std::string_view::npos; };
    return has("@tw.kernel") || has("tw.kernel(") || (has("__global__") && has("// launch "));
}

}  // namespace

std::unique_ptr<StreamDecoder> make_decoder(Wire wire) { return wire == Wire::openai ? make_openai_decoder() : make_anthropic_decoder(); }
nlohmann::json encode(Wire wire, const Chat& chat, const std::string& model) {
    return wire == Wire::openai ? encode_openai(chat, model) : encode_anthropic(chat, model);
}

bool EventSplitter::feed(std::string_view piece, const std::function<bool(const std::string&)>& take) {
    for (const char c : piece) {
        if (c != '\n') {
            if (c != '\r') line_ += c;
            if (line_.size() + data_.size() > kMaxLine) return false;
            continue;
        }
        if (line_.empty()) {
            if (!data_.empty() && !take(data_)) return false;
            data_.clear();
        } else if (line_.rfind("data:", 0) == 0) {
            if (!data_.empty()) data_ += '\n';
            data_ += line_.substr(line_.size() > 5 && line_[5] == ' ' ? 6 : 5);
        }
        line_.clear();
    }
    return true;
}

std::string kernel_source_in(const std::string& text) {
    std::string best, block;
    bool inside = false;
    for (const auto line : split_lines(text)) {
        if (trim(line).rfind("```", 0) == 0) {
            if (inside && is_kernel(block)) best = block;
            inside = !inside;
            block.clear();
        } else if (inside) {
            block += std::string(line) + "\n";
        }
    }
    // A block that is never closed was cut off: half a kernel is none.
    const bool fenced = text.find("```") != std::string::npos;
    if (best.empty() && !fenced && is_kernel(text)) {
        const auto begin = text.find("import tilewright");
        if (begin != std::string::npos && (begin == 0 || text[begin - 1] == '\n')) best = text.substr(begin);
        else if (begin == std::string::npos && text.find("__global__") != std::string::npos) best = text;  // CuTe
    }
    if (best.size() > kMaxSource || best.find('\0') != std::string::npos) return {};
    return best;
}

}  // namespace tw::plan
