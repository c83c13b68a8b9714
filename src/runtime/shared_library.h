// Finding and opening the libraries that the machine may or may not have: the CUDA driver, NVRTC, cuBLASLt.
//
// Nothing here is linked: the same binary runs with no GPU and no CUDA at all, and says what is missing when it is asked
// for something that needs them. Order of the search, first hit wins:
//   1. the file named by TILEWRIGHT_DRIVER, TILEWRIGHT_NVRTC or TILEWRIGHT_CUBLASLT;
//   2. NVRTC alone: beside our own library or binary, and the project's own environment (.deps/venv) above it, so that the pinned
//      compiler is taken before another that the machine, or the process (torch), happens to have;
//   3. the loader's own search (also finds what the process, e.g. torch, has opened already);
//   4. the library folders of CUDA_HOME, CUDA_PATH and of the toolkit whose nvcc is in PATH;
//   5. nvidia/*/lib inside the Python package folders of VIRTUAL_ENV and TILEWRIGHT_PYTHON_PATH;
//   6. the others: the folders of 2.
// TILEWRIGHT_HIDE="driver,nvrtc,cublaslt,nvdisasm,cuobjdump" makes the named ones invisible, for tests and for honest failure messages.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "runtime/failure.h"

namespace tw::runtime {

enum class CudaLibrary { driver, nvrtc, cublaslt };

struct SharedLibrary {
    void* handle = nullptr;  // never closed: CUDA libraries do not survive being unloaded
    std::string path;        // of the file that was mapped, as the loader reports it
};

Result<SharedLibrary> open_cuda_library(CudaLibrary which);

// Address of `symbol`, or nullptr.
void* find_symbol(const SharedLibrary& library, const char* symbol);

// The toolkit's folder with cuda_fp16.h and the like, or an empty path. NVRTC itself needs none of them.
std::filesystem::path find_cuda_include_folder();
// Where cute/tensor.hpp lies: CUTLASS_INCLUDE, PyPI's nvidia-cutlass beside the program or among Python's packages; empty: nowhere.
std::filesystem::path find_cutlass_include_folder();

// A program of the CUDA toolkit (nvdisasm, cuobjdump): in the project's own environment, in PATH, in a toolkit's bin folder or in a Python
// environment's packages. Empty: none.
std::filesystem::path find_cuda_program(const std::string& name);

// The folder that holds libtilewright.so, or the binary when the core is linked into one.
std::filesystem::path own_folder();

// Where files lie that come with the program (docs, knowledge, prompts): the folder `name` below $TILEWRIGHT_DATA, else below the nearest
// folder above this program or library that has one (a checkout with its build folder, or an installed copy). Empty: none.
std::filesystem::path data_folder(const std::string& name);

}  // namespace tw::runtime
