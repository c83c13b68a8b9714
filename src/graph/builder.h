// Writes primitives, one call each; shapes are worked out here.
#pragma once

#include <optional>

#include "graph/primitive.h"

namespace tw::graph {

class Builder {
public:
    Primitives out;
    std::string from;  // the node that is being written

    const Primitive& at(int id) const { return out.list[static_cast<std::size_t>(id)]; }
    const Shape& shape(int id) const { return at(id).shape; }
    int add(Primitive p);
    int number(double value);
    // Operands of any ranks that broadcast; a number is one of them.
    int call(const std::string& fn, std::vector<int> in);
    int call(const std::string& fn, int a) { return call(fn, std::vector<int>{a}); }
    int call(const std::string& fn, int a, int b) { return call(fn, std::vector<int>{a, b}); }
    int call(const std::string& fn, int a, double b) { return call(fn, a, number(b)); }
    int call(const std::string& fn, double a, int b) { return call(fn, number(a), b); }
    int where(int c, int a, int b) { return call("where", std::vector<int>{c, a, b}); }
    int call_as(const std::string& fn, std::vector<int> in, const std::string& dtype);
    int cast(int a, const std::string& dtype);
    int reshape(int a, Shape shape);
    int permute(int a, Shape order);
    int slice(int a, Shape starts, Shape shape);
    int broadcast(int a, const Shape& shape);              // the shape, by a pointwise copy where needed
    int reduce(const std::string& fn, int a, Shape axes);  // extents become 1
    int drop(int a, const Shape& axes);                    // removes dimensions of extent 1

    std::optional<Shape> broadcast_shape(const std::vector<int>& in) const;
    std::string broken;  // set by a call whose operands do not fit
};

}  // namespace tw::graph
