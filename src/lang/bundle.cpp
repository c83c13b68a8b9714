#include "lang/bundle.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "base/identifier.h"
#include "lang/extract.h"
#include "lang/parse.h"

namespace tw::lang {
namespace {

constexpr std::string_view kOwn = "# ---- tilewright file ", kLibrary = "# ---- tilewright library file ", kEnd = ".py ----";

std::filesystem::path& library_folder() {
    static std::filesystem::path folder;
    return folder;
}

// The part that a line opens; nothing for any other line.
std::optional<BundlePart> opened_by(std::string_view line) {
    if (line.ends_with('\r')) line.remove_suffix(1);
    for (const std::string_view head : {kOwn, kLibrary}) {
        if (!line.starts_with(head) || !line.ends_with(kEnd) || line.size() < head.size() + kEnd.size()) continue;
        const std::string_view name = line.substr(head.size(), line.size() - head.size() - kEnd.size());
        if (is_identifier(name)) return BundlePart{std::string(name), head == kLibrary, {}};
    }
    return std::nullopt;
}

bool is_python_only(const std::string& module) { return module == "tilewright" || module == "__future__"; }

bool is_kernel_file(std::string_view text) {
    const std::vector<std::string> imports = imported_modules(text);
    return std::find(imports.begin(), imports.end(), "tilewright") != imports.end();
}

struct FoundFile {
    std::string text;
    bool library = false;
};

// NAME.py of the folder, or of the library, where it is a kernel file.
std::optional<FoundFile> find_kernel_file(const std::filesystem::path& own, const std::string& module) {
    if (!is_identifier(module)) return std::nullopt;
    for (const bool library : {false, true}) {
        if (library && !module.ends_with("_parts")) continue;  // a user's own module may have the name of a kernel file
        const std::filesystem::path& folder = library ? library_folder() : own;
        std::error_code error;
        const std::filesystem::path file = folder.empty() ? folder : std::filesystem::canonical(folder / (module + ".py"), error);
        if (file.empty() || error || file.parent_path() != folder) continue;
        auto text = read_input(file, kMaxFileBytes);
        if (!text) continue;
        if (is_kernel_file(*text)) return FoundFile{*std::move(text), library};
    }
    return std::nullopt;
}

// Parses parts in the order of their imports.
class BundleParser {
public:
    BundleParser(SourceMap& sources, const std::string& name, std::string_view bundle, DiagnosticSink& sink)
        : sources_(sources), name_(name), sink_(sink) {
        for (BundlePart& p : parts_of(bundle)) {
            if (p.module.empty()) main_ = p.text;
            else if (known_.insert(p.module).second) parts_.emplace(p.module, std::move(p));
        }
    }

    Module run() {
        const FileId file = add(name_, main_);
        if (parts_.size() > kMaxImportedFiles) {
            sink_.error(Code::bad_import, {file, 0, 0},
                        fmt::format("a kernel file imports at most {} others, here are {}", kMaxImportedFiles, parts_.size()));
            parts_.clear();
        }
        Module module = parse_module(sources_, file, sink_);
        const std::vector<StmtId> body = module.body;
        const ExprId docstring = module.docstring;
        for (const StmtId id : body) need(module, id);
        module.file = file;
        module.body = body;
        module.docstring = docstring;
        module.foreign = std::move(foreign_);
        return module;
    }

private:
    // The part's text in the language: what stands beside it in other Python is left out, at the same lines.
    FileId add(const std::string& name, std::string_view text) {
        const FileId whole = sources_.add(name, std::string(text));
        auto kernels = kernels_beside_python(text, known_, &foreign_);
        return kernels ? sources_.add(name, *std::move(kernels)) : whole;
    }

    void need(Module& module, StmtId id) {
        std::string wanted;
        if (const auto* i = module.get_if<ImportModule>(id)) wanted = i->module;
        if (const auto* i = module.get_if<ImportNames>(id)) wanted = i->module;
        const auto part = parts_.find(wanted);
        if (part == parts_.end() || done_.count(wanted)) return;
        if (const auto open = std::find(open_.begin(), open_.end(), wanted); open != open_.end()) {
            std::string way;
            for (auto m = open; m != open_.end(); ++m) way += *m + " imports ";
            sink_.error(Code::bad_import, module[id].span, fmt::format("kernel files import each other: {}{}", way, wanted))
                .with_hint("move what both use into a file that imports neither");
            return;
        }
        open_.push_back(wanted);
        const std::filesystem::path beside = std::filesystem::path(name_).parent_path();
        const std::string file = wanted + ".py";
        const FileId here = add(part->second.library ? "tilewright/kernels/" + file : (beside / file).string(), part->second.text);
        module = parse_module(sources_, here, sink_, std::move(module));
        const std::vector<StmtId> body = module.body;
        for (const StmtId inner : body) need(module, inner);
        module.imported.push_back({wanted, here, body});
        open_.pop_back();
        done_.insert(wanted);
    }

    SourceMap& sources_;
    const std::string& name_;
    DiagnosticSink& sink_;
    std::string_view main_;
    std::map<std::string, BundlePart> parts_;
    ModuleNames known_;
    std::map<std::string, std::string> foreign_;
    std::vector<std::string> open_;  // files whose imports are being read
    ModuleNames done_;
};

}  // namespace

void set_kernel_library(std::filesystem::path folder) {
    std::error_code error;
    library_folder() = folder.empty() ? folder : std::filesystem::canonical(folder, error);
    if (error) library_folder().clear();
}

std::vector<BundlePart> parts_of(std::string_view bundle) {
    std::vector<BundlePart> parts(1);
    std::size_t begin = 0;
    for (std::size_t at = 0; at < bundle.size();) {
        const std::size_t end = std::min(bundle.find('\n', at), bundle.size());
        const std::size_t next = std::min(end + 1, bundle.size());
        auto part = bundle[at] == '#' ? opened_by(bundle.substr(at, end - at)) : std::nullopt;
        if (part) {
            parts.back().text = bundle.substr(begin, at - begin);
            parts.push_back(*std::move(part));
            begin = next;
        }
        at = next;
    }
    parts.back().text = bundle.substr(begin);
    return parts;
}

Expected<std::string, ReadFailure> read_kernel_file(const std::filesystem::path& path) {
    auto read = read_input(path, kMaxFileBytes);
    if (!read) return std::move(read).propagate();
    std::string bundle = *std::move(read);
    std::error_code error;
    const std::filesystem::path own = std::filesystem::canonical(path, error).parent_path();
    ModuleNames seen;
    std::vector<std::string> waiting;
    const auto wait_for = [&](std::string_view text) {
        for (std::string& m : imported_modules(text))
            if (!is_python_only(m) && seen.insert(m).second) waiting.push_back(std::move(m));
    };
    for (const BundlePart& p : parts_of(bundle)) seen.insert(p.module);
    if (is_kernel_file(bundle)) wait_for(parts_of(bundle).front().text);
    std::size_t files = 0;
    for (std::size_t i = 0; i < waiting.size(); ++i) {
        const auto found = find_kernel_file(own, waiting[i]);
        if (!found) continue;
        if (++files > kMaxImportedFiles)
            return Unexpected{ReadFailure{fmt::format("'{}' imports more than {} kernel files", path.string(), kMaxImportedFiles), true}};
        if (!bundle.empty() && bundle.back() != '\n') bundle += '\n';
        bundle += fmt::format("{}{}{}\n{}", found->library ? kLibrary : kOwn, waiting[i], kEnd, found->text);
        if (bundle.size() > kMaxFileBytes)
            return Unexpected{ReadFailure{
                fmt::format("'{}' and the kernel files it imports are larger than {} bytes", path.string(), kMaxFileBytes), true}};
        wait_for(found->text);
    }
    return bundle;
}

Expected<std::string, std::string> kernel_text(const std::filesystem::path& path) {
    auto text = read_kernel_file(path);
    if (!text) return Unexpected{std::move(text.error().text)};
    return *std::move(text);
}

bool beside_python(std::string_view bundle) {
    const std::vector<BundlePart> parts = parts_of(bundle);
    ModuleNames names;
    for (const BundlePart& p : parts) names.insert(p.module);
    return std::any_of(parts.begin(), parts.end(), [&](const BundlePart& p) { return kernels_beside_python(p.text, names).has_value(); });
}

Module parse_bundle(SourceMap& sources, const std::string& name, std::string_view bundle, DiagnosticSink& sink) {
    return BundleParser(sources, name, bundle, sink).run();
}

}  // namespace tw::lang
