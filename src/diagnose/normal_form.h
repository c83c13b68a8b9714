// What an element is made of on one concrete instance, in a normal form: a sum of products of powers of atoms.
//
// The verifier's tags (verify/value.h) speak for all sizes and answer "equal or not known". Here sizes, masks and choices are
// decided, so sums are written out, and two forms can be subtracted: what is missing, what is there twice, what is foreign. The
// same identities hold: exp(a + b) = exp(a) * exp(b), so what an exponential is relative to (a running maximum) is a factor of
// its own and cancels or does not; maxima are sets; float casts are dropped.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "emulate/emulator.h"
#include "emulate/history.h"

namespace tw::diagnose {

using FormId = int;

struct FormAtom {
    enum class Kind : std::uint8_t { element, scalar, nothing, function, exponential, extremum, sum } kind = Kind::nothing;
    int id = 0;                // tensor, scalar
    std::int64_t offset = 0;   // element
    std::string name;          // function; "max" or "min"
    std::vector<FormId> args;  // function: arguments; exponential: what exp is taken of; extremum: the set; sum: the sum
    friend bool operator<(const FormAtom& a, const FormAtom& b) {
        return std::tie(a.kind, a.id, a.offset, a.name, a.args) < std::tie(b.kind, b.id, b.offset, b.name, b.args);
    }
};

using Monomial = std::vector<std::pair<int, double>>;  // (atom, power), sorted by atom; empty: a constant
using Form = std::map<Monomial, double>;               // coefficient of each; no zeros

class Forms {
public:
    Forms(const ir::Kernel& kernel, const std::vector<std::int64_t>& sizes, const std::vector<emulate::TensorData>& inputs,
          const std::vector<double>& scalars);

    const Form& form(FormId id) const { return forms_[static_cast<std::size_t>(id)]; }
    const FormAtom& atom(int id) const { return atoms_[static_cast<std::size_t>(id)]; }

    FormId number(double x);
    FormId element(int tensor, std::int64_t offset);
    FormId intern(Form f);
    int atom_of(FormAtom a);

    FormId add(FormId a, FormId b);
    FormId scaled(FormId a, double by);
    FormId multiply(FormId a, FormId b);
    FormId power(FormId a, double p);
    FormId exponential(FormId a);
    FormId logarithm(FormId a);
    FormId extremum(const std::string& op, const std::vector<FormId>& args);
    FormId apply(const std::string& name, const std::vector<FormId>& args);

    // What `computes` says of one element; what a value of a recorded run is.
    FormId expected(const ir::Equation& equation, const std::vector<std::int64_t>& where);
    FormId actual(const emulate::History& history, emulate::MadeId id);

    // A maximum or minimum, or a function of one (rounded up, scaled): what exponentials are made relative to.
    bool is_reference(int atom) const;

    // A product was too large to write out: differences between forms may be between two ways to write the same.
    bool folded() const { return folded_; }

    // In the language of `computes`: equal terms whose indices step evenly become one sum. Long texts are cut in the middle.
    std::string text(FormId id, std::size_t limit = 160);
    std::string text(const Form& f, std::size_t limit = 160);
    std::string element_text(int tensor, std::int64_t offset) const;
    std::vector<std::int64_t> index_of(int tensor, std::int64_t offset) const;

    // All elements below a form; of one term, until there are more than `most`.
    void elements(FormId id, std::set<std::pair<int, std::int64_t>>& out) const;
    void elements(const std::vector<Monomial>& terms, std::set<std::pair<int, std::int64_t>>& out) const;
    void elements(const Monomial& m, std::set<std::pair<int, std::int64_t>>& out, std::size_t most = std::string::npos) const;

private:
    // A text with its numbers apart, so that terms of one shape can be recognised.
    struct Shape {
        std::vector<std::string> text{""};
        std::vector<std::int64_t> numbers;
        void put(const std::string& s) { text.back() += s; }
        void put(std::int64_t n) { numbers.push_back(n), text.emplace_back(); }
        void put(const Shape& s);
        std::string str() const;
    };
    Shape shape(const Form& f, int depth);
    Shape shape(const Monomial& m, double coefficient, int depth, bool& negative);
    const Shape& shape_of_atom(int atom, int depth);
    Shape made_shape(int atom, int depth);
    std::map<std::pair<int, int>, Shape> shapes_;  // by atom and depth
    double parts(const Form& f);
    std::map<int, double> parts_;  // by atom
    Shape folded_list(const std::string& op, std::vector<Shape> items, int depth, bool prefix_sum);
    void collect(const Monomial& m, std::set<std::pair<int, std::int64_t>>& out, std::set<int>& seen, std::size_t most) const;
    double snapped(double x);
    double value(const ir::Term& t);
    FormId of_term(const ir::Term& t);
    FormId of_one(const ir::Term& t);
    const std::set<int>& variables_of(const ir::Term& t);
    std::int64_t integer(const ir::Expr& e);

    const ir::Kernel& k_;
    const std::vector<std::int64_t>& sizes_;
    const std::vector<emulate::TensorData>& inputs_;
    const std::vector<double>& scalars_;
    std::vector<Form> forms_;
    std::map<Form, FormId> ids_;
    std::vector<FormAtom> atoms_;
    std::map<FormAtom, int> atom_ids_;
    std::set<double> coefficients_;
    std::map<emulate::MadeId, FormId> made_;
    std::map<int, std::int64_t> bound_;  // index variables of `computes`
    std::map<const ir::TermNode*, std::set<int>> variables_;
    std::map<std::pair<const ir::TermNode*, std::vector<std::int64_t>>, FormId>
        folds_;                       // of the present equation, by the indices around them
    std::vector<std::string> names_;  // of the reduction variables, outermost first
    bool folded_ = false;
};

}  // namespace tw::diagnose
