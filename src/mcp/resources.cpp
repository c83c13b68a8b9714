#include "mcp/resources.h"

#include <algorithm>
#include <filesystem>

#include "base/text.h"
#include "runtime/shared_library.h"

namespace tw::mcp {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

struct Shelf {
    const char* folder;
    const char* extension;
    const char* type;
};
constexpr Shelf shelves[] = {{"docs", ".md", "text/markdown"}, {"kernels", ".py", "text/x-python"}, {"examples", ".py", "text/x-python"}};

std::string address(const Shelf& shelf, const std::string& name) { return std::string("tilewright://") + shelf.folder + "/" + name; }

// The first line that says something: a page's heading, a file's docstring.
std::string title_of(const std::string& text) {
    for (std::string_view line : split_lines(text)) {
        line = trim(line);
        while (!line.empty() && (line[0] == '#' || line[0] == '"' || line[0] == ' ')) line.remove_prefix(1);
        while (!line.empty() && line.back() == '"') line.remove_suffix(1);
        if (!line.empty()) return std::string(line.substr(0, 120));
    }
    return {};
}

}  // namespace

json list_resources() {
    json list = json::array();
    for (const Shelf& shelf : shelves) {
        std::vector<fs::path> files;
        std::error_code error;
        for (fs::directory_iterator entry(runtime::data_folder(shelf.folder), error), end; !error && entry != end; entry.increment(error))
            if (entry->path().extension() == shelf.extension) files.push_back(entry->path());
        std::sort(files.begin(), files.end());
        for (const fs::path& file : files) {
            const auto text = read_file(file);
            const std::string name = file.filename().string();
            list.push_back(
                {{"uri", address(shelf, name)}, {"name", name}, {"title", text ? title_of(*text) : name}, {"mimeType", shelf.type}});
        }
    }
    return {{"resources", list}};
}

std::optional<json> read_resource(const std::string& uri) {
    for (const Shelf& shelf : shelves) {
        std::error_code error;
        for (fs::directory_iterator entry(runtime::data_folder(shelf.folder), error), end; !error && entry != end; entry.increment(error)) {
            // Compared with what is there: an address never becomes a path.
            if (entry->path().extension() != shelf.extension || address(shelf, entry->path().filename().string()) != uri) continue;
            const auto text = read_file(entry->path());
            if (!text) return std::nullopt;
            return json{{"contents", json::array({{{"uri", uri}, {"mimeType", shelf.type}, {"text", *text}}})}};
        }
    }
    return std::nullopt;
}

}  // namespace tw::mcp
