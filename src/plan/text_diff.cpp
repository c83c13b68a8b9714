#include "plan/text_diff.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "base/text.h"

namespace tw::plan {
namespace {

constexpr int kMaxEdits = 2000;  // the search keeps one row per edit: memory is quadratic in it

// Lines without their newline. A text that does not end in one gives the same lines; kernels always end in one.
std::vector<std::string_view> lines_of(std::string_view text) { return split_lines(text); }

// Myers' greedy search for the furthest reaching paths; marks of the shortest edit script, or nothing when it is too long.
bool shortest_script(const std::vector<std::string_view>& a, const std::vector<std::string_view>& b, std::string& marks) {
    const int n = static_cast<int>(a.size()), m = static_cast<int>(b.size());
    const int limit = std::min(n + m, kMaxEdits);
    std::vector<int> reach(static_cast<std::size_t>(2 * limit + 3), 0);
    const auto at = [&](int diagonal) -> int& { return reach[static_cast<std::size_t>(diagonal + limit + 1)]; };
    std::vector<std::vector<int>> history;  // history[d][k + d] is the reach on diagonal k before edit d
    for (int d = 0; d <= limit; ++d) {
        std::vector<int> before;
        for (int k = -d - 1; k <= d + 1; ++k) before.push_back(k >= -limit - 1 && k <= limit + 1 ? at(k) : 0);
        history.push_back(std::move(before));
        for (int k = -d; k <= d; k += 2) {
            int x = k == -d || (k != d && at(k - 1) < at(k + 1)) ? at(k + 1) : at(k - 1) + 1;
            while (x < n && x - k < m && a[static_cast<std::size_t>(x)] == b[static_cast<std::size_t>(x - k)]) ++x;
            at(k) = x;
            if (x < n || x - k < m) continue;
            // Walk back.
            int px = n, py = m;
            for (int e = d; e >= 0; --e) {
                const auto& row = history[static_cast<std::size_t>(e)];
                const auto was = [&](int diagonal) { return row[static_cast<std::size_t>(diagonal + e + 1)]; };
                const int diagonal = px - py;
                const int from = diagonal == -e || (diagonal != e && was(diagonal - 1) < was(diagonal + 1)) ? diagonal + 1 : diagonal - 1;
                const int fx = e == 0 ? 0 : was(from), fy = e == 0 ? 0 : fx - from;
                while (px > fx && py > fy) marks += ' ', --px, --py;
                if (e == 0) break;
                marks += from == diagonal + 1 ? '+' : '-';
                px = fx, py = fy;
            }
            std::reverse(marks.begin(), marks.end());
            return true;
        }
    }
    return false;
}

}  // namespace

std::vector<DiffLine> line_diff(std::string_view before, std::string_view after) {
    auto a = lines_of(before), b = lines_of(after);
    std::size_t head = 0, tail = 0;
    while (head < a.size() && head < b.size() && a[head] == b[head]) ++head;
    while (tail < a.size() - head && tail < b.size() - head && a[a.size() - 1 - tail] == b[b.size() - 1 - tail]) ++tail;
    const std::vector<std::string_view> am(a.begin() + static_cast<long>(head), a.end() - static_cast<long>(tail));
    const std::vector<std::string_view> bm(b.begin() + static_cast<long>(head), b.end() - static_cast<long>(tail));
    std::string marks(head, ' '), middle;
    if (shortest_script(am, bm, middle)) marks += middle;
    else marks += std::string(am.size(), '-') + std::string(bm.size(), '+');
    marks.append(tail, ' ');
    std::vector<DiffLine> out;
    std::size_t i = 0, j = 0;
    for (const char mark : marks) {
        DiffLine line;
        line.mark = mark;
        line.text = mark == '+' ? b[j] : a[i];
        if (mark != '+') line.old_line = static_cast<int>(++i);
        if (mark != '-') line.new_line = static_cast<int>(++j);
        out.push_back(line);
    }
    return out;
}

std::string unified_diff(std::string_view before, std::string_view after, int context) {
    const auto script = line_diff(before, after);
    const int size = static_cast<int>(script.size());
    std::string out;
    int old_done = 0, new_done = 0;  // lines of each text before script[at]
    for (int at = 0; at < size;) {
        if (script[static_cast<std::size_t>(at)].mark == ' ') {
            ++at, ++old_done, ++new_done;
            continue;
        }
        // A hunk ends where more than twice the context is unchanged.
        int end = at, last = at;
        while (end < size && end - last <= 2 * context) {
            if (script[static_cast<std::size_t>(end)].mark != ' ') last = end;
            ++end;
        }
        const int begin = std::max(at - context, 0), stop = std::min(last + 1 + context, size);
        const int lead = at - begin;
        int old_count = 0, new_count = 0;
        std::string body;
        for (int i = begin; i < stop; ++i) {
            const DiffLine& line = script[static_cast<std::size_t>(i)];
            old_count += line.mark != '+', new_count += line.mark != '-';
            body += line.mark, body += line.text, body += '\n';
        }
        const int old_first = old_done - lead, new_first = new_done - lead;
        out += fmt::format("@@ -{},{} +{},{} @@\n{}", old_first + (old_count > 0), old_count, new_first + (new_count > 0), new_count, body);
        old_done = old_first + old_count, new_done = new_first + new_count;
        at = stop;
    }
    return out;
}

bool apply_unified_diff(std::string_view before, std::string_view diff, std::string& after) {
    const auto old_lines = lines_of(before);
    std::size_t next = 0;
    after.clear();
    const auto put = [&](std::string_view line) { after += line, after += '\n'; };
    for (const std::string_view line : lines_of(diff)) {
        if (line.rfind("@@ -", 0) == 0) {
            std::size_t first = 0, count = 0;
            const char* end = line.data() + line.size();
            auto got = std::from_chars(line.data() + 4, end, first);
            if (got.ec != std::errc() || got.ptr == end || *got.ptr != ',') return false;
            got = std::from_chars(got.ptr + 1, end, count);
            if (got.ec != std::errc()) return false;
            const std::size_t start = count > 0 ? first - 1 : first;
            if (start < next || start > old_lines.size()) return false;
            while (next < start) put(old_lines[next++]);
            continue;
        }
        const char mark = line.empty() ? ' ' : line.front();
        const std::string_view text = line.empty() ? line : line.substr(1);
        if (mark == '+') {
            put(text);
        } else if (next < old_lines.size() && old_lines[next] == text && (mark == ' ' || mark == '-')) {
            if (mark == ' ') put(text);
            ++next;
        } else {
            return false;
        }
    }
    while (next < old_lines.size()) put(old_lines[next++]);
    return true;
}

}  // namespace tw::plan
