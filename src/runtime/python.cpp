#include "runtime/python.h"

#include <filesystem>

#include "base/text.h"
#include "runtime/shared_library.h"

namespace tw::runtime {

std::string python_program() {
    const std::string named = environment("TILEWRIGHT_PYTHON");
    return named.empty() ? "python3" : named;
}

std::string python_path_variable() {
    const std::string path = environment("PYTHONPATH");
    std::error_code ignored;
    std::filesystem::path above = own_folder();
    for (int level = 0; level < 4 && !above.empty(); ++level, above = above.parent_path())
        if (std::filesystem::exists(above / "python/tilewright/cluster.py", ignored))
            return "PYTHONPATH=" + (above / "python").string() + (path.empty() ? "" : ":" + path);
    return "PYTHONPATH=" + path;
}

}  // namespace tw::runtime
