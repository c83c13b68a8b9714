// What kind of work a task is, how much of it there is, and how fast a machine could do it.
#pragma once

#include <string>
#include <vector>

#include "ir/ir.h"
#include "tasks/task.h"

namespace tw::tasks {

WorkloadClass classify(const ir::Kernel& spec);

struct Work {
    double bytes = 0;                         // every input read once, every output written once
    double flops = 0;                         // multiply-adds of contractions, counted as two
    double operations = 0;                    // all arithmetic of the equations, each part once (runtime/work_count.h)
    target::DType unit = target::DType::F32;  // the operand type of the contractions
    bool matrix = false;                      // a matrix unit may do them
};
Work work_of(const Task& task);

// Ceilings of one GPU as measured (docs/performance-notes.md), or as published where `measured` is false.
struct Machine {
    std::string name, target;
    bool measured = false;
    double bytes_per_second = 0;
    double bf16 = 0, fp8 = 0, i8 = 0, tf32 = 0, f32 = 0;  // FLOP/s; 0: no such unit

    // The most that products of numbers of this type can be done at. Products of f32 numbers count as three of their halves' on the matrix
    // unit where `matrix`.
    double peak(target::DType unit, bool matrix) const;
};
const Machine& machine_of(const std::string& target);
// By the name that the driver gives a GPU ("NVIDIA H200"); null: its ceilings are not known here.
const Machine* machine_named(const std::string& gpu);

struct Roofline {
    double seconds = 0;  // lower bound: the larger of the two below
    double memory_seconds = 0, compute_seconds = 0;
    bool memory_bound = true;
};
Roofline roofline(const Task& task, const Machine& machine);

}  // namespace tw::tasks
