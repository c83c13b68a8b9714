// Kernel files that import others, as one text.
//
// A kernel file is read together with the files that it imports: a bundle is its own text and after it those of the others, each under a
// line that names it. Whatever comes after reading has this one text and opens no file: compilation, digests, caches, journals, workers on
// other machines. A file that imports none is a bundle of one part, its text as it is.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "base/diagnostic.h"
#include "base/expected.h"
#include "base/source.h"
#include "base/text.h"
#include "lang/ast.h"

namespace tw::lang {

inline constexpr std::size_t kMaxImportedFiles = 32;

struct BundlePart {
    std::string module;  // empty: the file itself
    bool library = false;
    std::string_view text;
};
std::vector<BundlePart> parts_of(std::string_view bundle);

// The folder of the kernel files that come with the program, where imports are looked for after the file's own folder; empty: there is
// none. Set before the first file is read.
void set_kernel_library(std::filesystem::path folder);

// A file with those that it imports, directly or not: NAME.py in the folder of the file, where it is a kernel file (it imports tilewright), then
// NAME_parts.py in the library. No other folder is read, and no link that leads out of these. Bounded in files and bytes.
Expected<std::string, ReadFailure> read_kernel_file(const std::filesystem::path& path);

Expected<std::string, std::string> kernel_text(const std::filesystem::path& path);  // the same, with the sentence alone

// Whether a part imports what is no kernel file of the bundle.
bool beside_python(std::string_view bundle);

// Parses every part that the first one needs. An import of what the bundle has no part for is left to Python (lang/extract.h). Files that
// import each other are reported.
Module parse_bundle(SourceMap& sources, const std::string& name, std::string_view bundle, DiagnosticSink& sink);

}  // namespace tw::lang
