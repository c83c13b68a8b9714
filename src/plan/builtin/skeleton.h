// One skeleton per workload class writes the kernel that a sketch describes.
#pragma once

#include <string>
#include <vector>

#include "base/expected.h"
#include "plan/builtin/sketch.h"
#include "tasks/task.h"

namespace tw::plan::builtin {

// What the rewrites may ask about a task; found once.
struct Facts {
    std::string skeleton;                               // that fits the task; empty: none does
    std::string problem;                                // why not
    int element_bits = 32;                              // of the widest traffic: the main input or output
    bool reduces = false, norm = false, scans = false;  // a reduction; one whose result goes back over the axis; a prefix
    bool squares = false;                               // a sum of products of what another reduction is taken away from: a variance
    bool exponentials = false;                          // sums of exponentials
    bool transposed = false;                            // an operand whose axes lie the other way round
    bool causal = false;
    bool tma_output = false;     // attention: an output tile fits the place of its queries
    bool scaled_scores = false;  // attention: the scores are a positive constant times the products
    bool matrix_unit = false;    // operand types that mma and wgmma take
    bool k_major_a = true, k_major_b = true;
    bool plain_sum = false;  // nothing but casts around the sum of products
    bool pointwise = false;  // what follows the sum of products reads nothing else
    bool grouped = false, batched = false, reduces_q = false;
    bool by_parts = false;                     // an f32 product that the matrix unit can take by f16 parts, and large enough for it
    int products = 1;                          // contractions of the same tiles in one kernel
    std::string p_extent, q_extent, k_extent;  // texts over sizes
    std::int64_t p = 1, q = 1, k = 1, batch = 1, groups = 1;  // their values in the task
};

// Rows of a turned tile that leave at a time: the largest part of up to 72 that divides it, in eights.
inline int turned_chunk(int bm) {
    int chunk = 72;
    while (bm % chunk) chunk -= 8;
    return chunk;
}

Facts facts_of(const tasks::Task& task);
Sketch first_sketch(const tasks::Task& task, const Facts& facts);
std::vector<Sketch> first_sketches(const tasks::Task& task, const Facts& facts);

// The kernel file, or why this sketch has none.
Expected<std::string, std::string> write_kernel(const tasks::Task& task, const Sketch& sketch);

// The kernel file as a candidate in CuTe, with its sketch, or why it has no such text.
Expected<std::string, std::string> cute_text(const tasks::Task& task, const Sketch& sketch, const std::string& kernel_file);

Expected<std::string, std::string> write_tile_kernel(const tasks::Task& task, const Sketch& sketch);
Expected<std::string, std::string> write_contraction_kernel(const tasks::Task& task, const Sketch& sketch);
Expected<std::string, std::string> write_attention_kernel(const tasks::Task& task, const Sketch& sketch);
Expected<std::string, std::string> write_loops_kernel(const tasks::Task& task, const Sketch& sketch);
Expected<std::string, std::string> write_stages_program(const tasks::Task& task, const Sketch& sketch);

// One kernel of a program that computes a task step by step (stages.cpp).
struct Stage {
    tasks::Task task;
    std::vector<std::string> arguments;  // of its launch
};
// The steps, or why the task has none: a buffer for every reduction that others use, or that has fewer indices than the output.
Expected<std::vector<Stage>, std::string> stages_of(const tasks::Task& task);
// Is a part of a reduced range left out by a condition? Such a fold is followed element by element, not tile by tile.
bool masked_reduction(const tasks::Task& task);
Sketch stage_sketch(const Sketch& whole, std::size_t stage);                   // its choices
Sketch with_stage(const Sketch& whole, std::size_t stage, const Sketch& one);  // the other way round
std::vector<Sketch> rewrite_a_stage(const std::string& technique, const Sketch& whole, const tasks::Task& task);
Sketch first_stages_sketch(const std::vector<Stage>& stages, bool loops);  // of all; loops: in the plainest form

void tile_facts(const tasks::Task& task, Facts& facts);
void contraction_facts(const tasks::Task& task, Facts& facts);
void attention_facts(const tasks::Task& task, Facts& facts);

}  // namespace tw::plan::builtin
