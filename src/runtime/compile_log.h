// What the assembler (ptxas -v) said about each kernel, read out of the compiler's log.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace tw::runtime {

// A remark that bears on speed or correctness of the emitted code.
enum class RemarkKind {
    wgmma_serialized,  // C7510..C7516: asynchronous matrix multiplies run one at a time
    wgmma_injected,    // C7517, C7519: ptxas added a wgmma wait or arrive that the source does not have
    setmaxnreg_ignored,
    register_limit,  // a launch bound or a register cap was not met
    other
};
const char* name_of(RemarkKind kind);

struct CompileRemark {
    RemarkKind kind = RemarkKind::other;
    std::string code;      // "C7510", or empty
    std::string function;  // when the line names one
    std::string text;      // the line without its "ptxas info :" head
};

struct KernelResources {
    std::string name;
    bool is_entry = false;  // false: a device function that was not inlined
    int registers = 0;      // per thread; 0 for a function that is not an entry
    int barriers = 0;
    int stack_bytes = 0;  // local memory per thread: arrays that were not kept in registers, and spills
    int spill_store_bytes = 0;
    int spill_load_bytes = 0;
    int static_shared_bytes = 0;
};

struct CompileReport {
    std::vector<KernelResources> kernels;
    std::vector<CompileRemark> remarks;

    const KernelResources* find(std::string_view name) const;
    bool has(RemarkKind kind) const;
};

CompileReport parse_compile_log(std::string_view log);

}  // namespace tw::runtime
