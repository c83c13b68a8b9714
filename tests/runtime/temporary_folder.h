#pragma once

#include <stdlib.h>

#include <filesystem>
#include <string>

namespace tw::testing {

// A folder that is gone when the test ends.
class TemporaryFolder {
public:
    TemporaryFolder() {
        std::string name = (std::filesystem::temp_directory_path() / "tilewright-test-XXXXXX").string();
        if (const char* made = ::mkdtemp(name.data())) path_ = made;
    }
    ~TemporaryFolder() {
        std::error_code ignored;
        if (!path_.empty()) std::filesystem::remove_all(path_, ignored);
    }
    TemporaryFolder(const TemporaryFolder&) = delete;
    TemporaryFolder& operator=(const TemporaryFolder&) = delete;
    const std::filesystem::path& path() const { return path_; }

private:
    std::filesystem::path path_;
};

}  // namespace tw::testing
