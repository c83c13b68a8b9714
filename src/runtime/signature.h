// What can be called in a kernel file: the variants of one name, or a program. One shape for both, so that checks and
// measurements need not know which it is.
#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "ir/ir.h"
#include "runtime/failure.h"
#include "runtime/launch_plan.h"

namespace tw::runtime {

struct Signature {
    std::string name;
    std::vector<std::string> sizes;
    std::vector<ir::Tensor> tensors;  // parameters only
    std::vector<ir::ScalarParam> scalars;
    ir::Computes computes;                   // refers to the above by number
    std::vector<const ir::Kernel*> kernels;  // that may be launched
    bool is_program = false;
};

// The one named, or the file's only one (a program before its kernels) when `name` is empty. Pointers into `module`.
Result<Signature> find_signature(const ir::Module& module, const std::string& name);

// Values of its sizes in order; the error names the first that is missing or negative.
Result<std::vector<std::int64_t>> size_values(const Signature& signature, const std::map<std::string, std::int64_t>& given);

// Scalar values: those given by name, the others drawn from the seed (between 0.25 and 1.125, in eighths).
Result<std::vector<double>> scalar_values(const Signature& signature, const std::map<std::string, double>& given, std::uint64_t seed);

// The error a right kernel may have in this output, relative to max(|reference|, root mean square of the output): rounding of the
// output's and of every intermediate type. Integers: none.
double tolerance_of(const Signature& signature, int tensor);

// Bytes that must move at least once, and operations of the equations (a multiply-add counts two), for a roofline.
struct Work {
    double bytes = 0;
    double operations = 0;
    bool matrix = false;                             // a sum of products: tensor cores can do it
    target::DType matrix_type = target::DType::F32;  // in which; the narrowest one's where there are several
};

// What index tensors hold, by name, where it is known: weights of an expert that no row goes to are not read.
using IndexContents = std::map<std::string, std::vector<std::int64_t>>;
Work work_of(const Signature& signature, const std::vector<std::int64_t>& sizes, const IndexContents& contents = {});

// The lists of whole numbers among given inputs ({"expert": [0, 0, 1, ...]}).
IndexContents index_contents(const nlohmann::json& inputs);

// {"bytes", "operations", "matrix", "unit"}: the type that sets the arithmetic peak, "f32" where no matrix unit can help.
nlohmann::json to_json(const Work& work);

// Loop steps of the reference for one element of an equation, with sums that do not depend on inner variables counted once.
double reference_steps(const ir::Equation& equation, const std::vector<std::int64_t>& sizes);

// C[m, n] = sum over k of A * B with nothing around it but casts.
struct PlainGemm {
    int a = 0, b = 0, c = 0;  // tensors
    ir::Expr m, n, k;
    std::string layout;  // as in blaslt_gemm.h
};
std::optional<PlainGemm> as_plain_gemm(const Signature& signature);

}  // namespace tw::runtime
