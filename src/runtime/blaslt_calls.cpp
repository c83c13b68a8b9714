#include "runtime/blaslt_calls.h"

#include "runtime/shared_library.h"

namespace tw::runtime::blaslt {
namespace {

template <class Call>
bool resolve(const SharedLibrary& library, const char* symbol, Call*& into) {
    into = reinterpret_cast<Call*>(find_symbol(library, symbol));
    return into != nullptr;
}

Result<Library> open_library() {
    auto file = open_cuda_library(CudaLibrary::cublaslt);
    if (!file) return std::move(file).propagate();
    Library opened;
    opened.path = file->path;
    auto& call = opened.call;
    const bool complete =
        resolve(*file, "cublasLtGetVersion", call.version) && resolve(*file, "cublasLtCreate", call.create) &&
        resolve(*file, "cublasLtDestroy", call.destroy) && resolve(*file, "cublasLtMatmulDescCreate", call.description_create) &&
        resolve(*file, "cublasLtMatmulDescDestroy", call.description_destroy) &&
        resolve(*file, "cublasLtMatmulDescSetAttribute", call.description_set) &&
        resolve(*file, "cublasLtMatrixLayoutCreate", call.layout_create) &&
        resolve(*file, "cublasLtMatrixLayoutDestroy", call.layout_destroy) &&
        resolve(*file, "cublasLtMatmulPreferenceCreate", call.preference_create) &&
        resolve(*file, "cublasLtMatmulPreferenceDestroy", call.preference_destroy) &&
        resolve(*file, "cublasLtMatmulPreferenceSetAttribute", call.preference_set) &&
        resolve(*file, "cublasLtMatmulAlgoGetHeuristic", call.heuristic) &&
        resolve(*file, "cublasLtMatmulAlgoConfigGetAttribute", call.algorithm_get) && resolve(*file, "cublasLtMatmul", call.matmul);
    if (!complete)
        return fail(FailureKind::missing_library, file->path + " lacks calls that cuBLASLt 12 has", "install cuBLAS 12.0 or newer");
    return opened;
}

}  // namespace

Result<const Library*> library() {
    static const Result<Library> opened = open_library();
    if (!opened) return Unexpected{opened.error()};
    return &*opened;
}

}  // namespace tw::runtime::blaslt
