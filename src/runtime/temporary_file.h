// A file for a program that we start, gone with the object.
#pragma once

#include <stdlib.h>
#include <unistd.h>

#include <filesystem>
#include <string>
#include <system_error>

namespace tw::runtime {

struct TemporaryFile {
    explicit TemporaryFile(const char* purpose)
        : path((std::filesystem::temp_directory_path() / (std::string("tilewright-") + purpose + "-XXXXXX")).string()) {
        const int file = ::mkstemp(path.data());
        if (file >= 0) ::close(file);
        else path.clear();
    }
    ~TemporaryFile() {
        std::error_code ignored;
        if (!path.empty()) std::filesystem::remove(path, ignored);
    }
    TemporaryFile(const TemporaryFile&) = delete;
    TemporaryFile& operator=(const TemporaryFile&) = delete;
    std::string path;  // empty: none could be made
};

}  // namespace tw::runtime
