// The host side: a function that checks what the kernel assumes, builds TMA descriptors and launches; and a CMake file.
#include "base/text.h"
#include "codegen/cute/printer.h"
#include "codegen/user_text.h"

namespace tw::codegen {

std::string cute_cmake(const std::string& project, const std::vector<CuteFile>& files) {
    std::string names, archs;
    for (const CuteFile& f : files) {
        names += " " + f.name;
        archs += fmt::format("set_source_files_properties({} PROPERTIES COMPILE_OPTIONS \"-gencode=arch=compute_{},code={}\")\n", f.name,
                             f.arch.substr(3), f.arch);
    }
    std::set<std::string> none;
    const std::string library = companion(identifier(project, none), "cute");
    return fmt::format(
        "# Kernels that tilewright wrote in CuTe, as one shared library.\n"
        "#   cmake -S . -B build -DCUTLASS_INCLUDE=<folder that holds cute/tensor.hpp>\n"
        "cmake_minimum_required(VERSION 3.24)\n"
        "set(CMAKE_CUDA_ARCHITECTURES OFF)  # each file names its own\n"
        "project({0} LANGUAGES CXX CUDA)\n"
        "if(NOT EXISTS \"${{CUTLASS_INCLUDE}}/cute/tensor.hpp\")\n"
        "  message(FATAL_ERROR \"CUTLASS_INCLUDE must be the folder that holds cute/tensor.hpp\")\n"
        "endif()\n"
        "add_library({0} SHARED{1})\n"
        "target_include_directories({0} SYSTEM PRIVATE ${{CUTLASS_INCLUDE}})\n"
        "target_compile_features({0} PRIVATE cuda_std_17)\n"
        "target_compile_options({0} PRIVATE --expt-relaxed-constexpr)\n"
        "target_link_libraries({0} PRIVATE cuda)\n"
        "{2}",
        library, names, archs);
}

}  // namespace tw::codegen

namespace tw::codegen::cute {

std::string Printer::launcher() {
    std::string text;
    auto add = [&](const std::string& l) { text += "  " + l + "\n"; };
    std::vector<std::string> arguments;
    for (std::size_t i = 0; i < k_.tensor_maps.size(); ++i) arguments.push_back(fmt::format("tma{}", i));
    for (const std::string& t : names_.tensors) arguments.push_back(companion(t, "ptr"));
    for (const std::string& s : names_.sizes) arguments.push_back(s);
    for (const std::string& s : names_.scalars) arguments.push_back(s);
    text += "// Pointers to device memory, aligned to 16 bytes. What the kernel assumes of its sizes is checked.\n";
    text += fmt::format("extern \"C\" cudaError_t {}({}) {{\n", launcher_, parameters(true));
    for (const ir::Assumption& a : k_.assumptions) add(fmt::format("if (!({})) return cudaErrorInvalidValue;", expr(a.condition)));
    for (std::size_t i = 0; i < k_.scalars.size(); ++i) {
        if (k_.scalars[i].positive) add(fmt::format("if (!({} > 0)) return cudaErrorInvalidValue;", names_.scalars[i]));
    }
    std::vector<std::string> grid;
    for (const ir::Expr& g : k_.grid) grid.push_back(expr(g));
    add(fmt::format("int const grid_x = {}, grid_y = {}, grid_z = {};", grid[0], grid[1], grid[2]));
    add("if (grid_x <= 0 || grid_y <= 0 || grid_z <= 0) return cudaSuccess;   // nothing to do");
    for (std::size_t i = 0; i < k_.tensors.size(); ++i) {
        const ir::Tensor& t = k_.tensors[i];
        if (!t.zero_initialised) continue;
        ir::Expr below = 1;
        bool compact = true;
        for (std::size_t d = t.dims.size(); d-- > 0;) {
            compact &= ir::same(t.strides[d], below);
            below = below.is_constant(1) ? t.dims[d] : below * t.dims[d];
        }
        if (!compact) return fail(fmt::format("an output with gaps that the launcher zeroes first (`{}`)", t.name)), "";
        std::string elements = "size_t(1)";
        for (const ir::Expr& d : t.dims) elements += " * " + expr(d);
        add(fmt::format("cudaError_t const zeroed{} = cudaMemsetAsync({}, 0, {} * {}, stream);   // the kernel adds to it", i,
                        companion(names_.tensors[i], "ptr"), elements, target::bytes(t.dtype)));
        add(fmt::format("if (zeroed{0} != cudaSuccess) return zeroed{0};", i));
    }
    std::string blocks = "grid_x";
    if (k_.persistent) {
        blocks = "blocks";
        add("int device = 0, processors = 0;");
        add("cudaGetDevice(&device);");
        add("cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, device);");
        const int cluster = std::max(1, k_.cluster[0]), resident = std::max(1, k_.min_blocks_per_sm);
        if (cluster == 1) add(fmt::format("int const blocks = cute::min(grid_x, processors * {});", resident));
        else
            add(fmt::format("int const blocks = cute::min(grid_x, cute::max(processors * {0} / {1} * {1}, {1}));   // whole clusters",
                            resident, cluster));
    }
    if (!k_.tensor_maps.empty()) text += global_tensors();
    for (std::size_t i = 0; i < k_.tensor_maps.size(); ++i)
        add(fmt::format("auto tma{} = {};", i, map_tensor(i, names_.tensors[static_cast<std::size_t>(k_.tensor_maps[i].tensor)])));
    std::string entry = entry_;
    if (!k_.tensor_maps.empty()) {
        std::vector<std::string> types;
        for (std::size_t i = 0; i < k_.tensor_maps.size(); ++i) types.push_back(fmt::format("decltype(tma{})", i));
        add(fmt::format("auto* kernel = &{}<{}>;", entry_, join(types, ", ")));
        entry = "kernel";
    }
    if (k_.shared_bytes > 48 * 1024) {
        add(fmt::format("cudaError_t const allowed = cudaFuncSetAttribute({}, cudaFuncAttributeMaxDynamicSharedMemorySize, {});",
                        entry == "kernel" ? "reinterpret_cast<void const*>(kernel)" : entry, k_.shared_bytes));
        add("if (allowed != cudaSuccess) return allowed;");
    }
    if (k_.cluster[0] * k_.cluster[1] * k_.cluster[2] > 1 || k_.dependent_launch) {
        int count = 0;
        add("cudaLaunchAttribute attributes[2];");
        if (k_.cluster[0] * k_.cluster[1] * k_.cluster[2] > 1) {
            add(fmt::format("attributes[{}].id = cudaLaunchAttributeClusterDimension;", count));
            for (int axis = 0; axis < 3; ++axis)
                add(fmt::format("attributes[{}].val.clusterDim.{} = {};", count, "xyz"[axis], k_.cluster[axis]));
            ++count;
        }
        if (k_.dependent_launch) {
            add(fmt::format("attributes[{}].id = cudaLaunchAttributeProgrammaticStreamSerialization;", count));
            add(fmt::format("attributes[{}].val.programmaticStreamSerializationAllowed = 1;", count++));
        }
        add("cudaLaunchConfig_t config = {};");
        add(fmt::format("config.gridDim = dim3({}, grid_y, grid_z), config.blockDim = dim3({}), config.dynamicSmemBytes = {};", blocks,
                        32 * k_.warps, k_.shared_bytes));
        add(fmt::format("config.stream = stream, config.attrs = attributes, config.numAttrs = {};", count));
        add(fmt::format("return cudaLaunchKernelEx(&config, {}, {});", entry, join(arguments, ", ")));
        return text + "}\n";
    }
    add(fmt::format("{}<<<dim3({}, grid_y, grid_z), {}, {}, stream>>>({});", entry, blocks, 32 * k_.warps, k_.shared_bytes,
                    join(arguments, ", ")));
    add("return cudaGetLastError();");
    return text + "}\n";
}

}  // namespace tw::codegen::cute
