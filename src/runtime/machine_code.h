// Reads a cubin's machine code (SASS) and checks what the assembler did with the registers of wgmma that are in flight.
//
// A wgmma reads its A operand (where that lies in registers) and writes its accumulator at some time between its issue and the wait
// that completes its group. ptxas before 13.3 may give a register of such an operand to something else before that wait; no source
// shows it. So the text of the disassembler is read again: over all paths of a function, no instruction between a wgmma and the
// wait for its group writes a register of the operand or touches one of the accumulator.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace tw::runtime {

struct MachineHazard {
    std::string function;
    std::string instruction;  // "/*2ae0*/ FADD R120, R4, R5": what touches the register
    std::string wgmma;        // the one in flight, written likewise
    std::string what;         // "writes R120, an operand"
};

struct MachineCodeCheck {
    int wgmma = 0;                       // in the text, each once
    int register_operands = 0;           // of them with A in registers
    std::vector<MachineHazard> hazards;  // the first few
    std::string problem;                 // what could not be read; nothing is claimed then

    bool clean() const { return hazards.empty() && problem.empty(); }
    // "machine code: 24 wgmma, 16 with register operands, none overwritten in flight", or what is wrong.
    std::string sentence() const;
};

// `sass` is the output of nvdisasm -c or cuobjdump -sass (runtime::disassemble, profile.h).
MachineCodeCheck check_machine_code(std::string_view sass);

// A wgmma of this PTX takes its A operand from registers.
bool has_register_operands(std::string_view ptx);

// The first NVRTC whose assembler keeps the registers of such an operand alive until the wait.
bool keeps_register_operands(int major, int minor);

}  // namespace tw::runtime
