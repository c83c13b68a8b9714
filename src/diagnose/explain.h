// From a failing run with a history (emulate/history.h) to what a person needs: tags, the way of the wrong element, a picture of
// the tile, or who collides with whom and what order is missing. Everything here is told from the replayed run; no verdict depends
// on it.
#pragma once

#include "diagnose/counterexample.h"
#include "emulate/history.h"
#include "emulate/trial.h"

namespace tw::diagnose {

// What a value run needs to be told again.
struct Replay {
    const ir::Kernel& kernel;
    const std::vector<std::int64_t>& sizes;
    const std::vector<emulate::TensorData>& inputs;  // as the launch found them
    const std::vector<double>& scalars;
    const emulate::History& history;
};

// An output element is wrong, or was never stored. Fills tags, differences, trace, picture, hint.
void explain_value(Counterexample& c, const Replay& replay, int tensor, const std::vector<std::int64_t>& where, Suspects& suspects);

// The emulator stopped at a fault. Fills trace, missing, hint, and a message without IR where one is better.
void explain_fault(Counterexample& c, const Replay& replay, const emulate::Fault& fault, Suspects& suspects);

// Adds to the message which two sources of a scatter name one place, where some do.
void name_collision(Counterexample& c, const Replay& replay);

// "producer, thread 0, kt=1"; the engine's work says for whom it was done.
TraceStep step_of(const ir::Kernel& kernel, const emulate::Event& event, int thread, bool by_engine);
// "`sA` byte 64 (0, 1, 0)": with the coordinate in that buffer; -1: the first buffer that has the byte.
std::string arena_text(const ir::Kernel& kernel, std::int64_t address, int buffer = -1);
// Loop variables keep the name they have in the source.
std::string source_name(const ir::Kernel& kernel, int variable);

// The tile that a statement read or wrote in one event's iteration, as far as its cells hold plain elements; empty when every
// cell holds what a straight or transposed copy would hold. `tensor`: of two operands the one that comes from it; -1: the only one.
TilePicture tile_picture(const Replay& replay, std::uint32_t event, int tensor = -1);
// The buffer around the element that holds this byte: the byte and the bank at which each element lies. Empty when no element holds it.
TilePicture layout_picture(const ir::Kernel& kernel, std::int64_t address, int buffer);
// The output around an element: which input element each cell is, where outputs are copies; otherwise which cells are wrong.
TilePicture output_picture(const Replay& replay, int tensor, const std::vector<std::int64_t>& where,
                           const std::vector<std::vector<std::int64_t>>& wrong);

}  // namespace tw::diagnose
