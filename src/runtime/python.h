// The Python that parts of the work are written in: the front end of torch, suites, Ray.
#pragma once

#include <string>

namespace tw::runtime {

// TILEWRIGHT_PYTHON, else python3 in PATH.
std::string python_program();

// "PYTHONPATH=...": our package first where it lies beside the program (a source tree, `make dist`); a wheel's is found by Python itself.
std::string python_path_variable();

}  // namespace tw::runtime
