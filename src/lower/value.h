// What a name or an expression of the language stands for while a kernel is being resolved.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "lang/ast.h"
#include "lower/draft.h"

namespace tw::lower {

// A register tile as an expression that has not been computed yet. Dimensions made by `None` have extent 1 and spread to
// the extent of whatever they meet.
struct Tile {
    ir::Element element;
    std::vector<int> shape;
    std::vector<char> spread;  // per dimension: made by None
    DType dtype = DType::F32;
    bool weak = false;     // a literal or an integer scalar: takes the dtype of the tile it meets
    bool fresh = false;    // the element is a fragment that this very expression made
    LayoutRequest layout;  // what the text asked for at this creation
};

// One index of a tensor or a shared buffer.
struct Index {
    enum class Kind : std::uint8_t { scalar, range, gather } kind = Kind::scalar;
    ir::Expr lo;
    int extent = 1;
    int fragment = -1;  // gather
    Span span;
};

struct GlobalRef {
    int tensor = 0;
    std::vector<Index> indices;  // one per tensor dimension
};

struct Value {
    enum class Kind : std::uint8_t {
        error,  // reported already
        none,
        integer,
        boolean,
        real,
        string,
        dtype,
        size,  // run-time size, by name
        expr,  // run-time integer
        tile,
        tensor,
        global,
        shared,
        barriers,
        barrier,
        ring,
        named_barrier,
        team,
        layout,
        vote,      // tw.any(tile), the condition of a branch; `integer` is the fragment
        sequence,  // tuple or list
        record,    // tw.record(...): items by `names`
        table,     // {key: value, ...} of constants: items are keys and values in turn
        builtin,   // tw.<text>, or a Python builtin
        function,  // @tw.inline
        kernel,
        program,
        signature,    // @tw.signature
        method,       // items[0].<text>
        module,       // `tw` itself
        kernel_file,  // an imported one; `integer` is its file
    };
    Kind kind = Kind::error;
    std::int64_t integer = 0;  // also boolean; entity number for tensor, barriers, ring
    double real = 0;
    std::string text;
    DType dtype = DType::F32;
    ir::Expr expr;
    int fresh_var = -1;  // expr: a variable that this very expression made
    std::shared_ptr<Tile> tile;
    std::shared_ptr<GlobalRef> global;
    std::shared_ptr<ir::SharedView> shared;
    std::shared_ptr<ir::BarrierRef> barrier;
    int threads = 0;  // named_barrier
    LayoutRequest layout;
    std::vector<Value> items;
    std::vector<std::string> names;                                // record: of the items
    std::shared_ptr<const std::vector<lang::StringPiece>> pieces;  // string: where it is written
    lang::StmtId function;

    bool is(Kind k) const { return kind == k; }
    bool has_parts() const { return kind == Kind::sequence || kind == Kind::record; }
    explicit operator bool() const { return kind != Kind::error; }

    static Value of(std::int64_t v) {
        Value x;
        x.kind = Kind::integer;
        x.integer = v;
        return x;
    }
    static Value of_bool(bool v) {
        Value x;
        x.kind = Kind::boolean;
        x.integer = v;
        return x;
    }
    static Value of_real(double v) {
        Value x;
        x.kind = Kind::real;
        x.real = v;
        return x;
    }
    static Value of_none() {
        Value x;
        x.kind = Kind::none;
        return x;
    }
    static Value of_expr(ir::Expr e) {
        if (auto c = e.as_constant()) return of(*c);
        Value x;
        x.kind = Kind::expr;
        x.expr = std::move(e);
        return x;
    }
    static Value of_tile(Tile t) {
        Value x;
        x.kind = Kind::tile;
        x.tile = std::make_shared<Tile>(std::move(t));
        return x;
    }
    static Value named(Kind k, std::string text) {
        Value x;
        x.kind = k;
        x.text = std::move(text);
        return x;
    }
    static Value entity(Kind k, int id) {
        Value x;
        x.kind = k;
        x.integer = id;
        return x;
    }
};

// The constants are equal: numbers, strings, dtypes, functions, tuples of them.
bool same_constant(const Value& a, const Value& b);
// What a constant is called where a name is wanted (in `computes`, in the list of a kernel's variants): a string as it is, the name of a
// function, the `name` of a record. Empty: it has none.
std::string word_of(const Value& v);

// "an integer", "a register tile", ...: for messages.
std::string describe(const Value& v);

}  // namespace tw::lower
