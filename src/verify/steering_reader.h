// The reader of steering_of (private to verify/steering*.cpp).
//
//   steering.cpp             the whole reading, one question after the other
//   steering_collect.cpp     what steers, statement by statement
//   steering_shapes.cpp      the shapes of the variables
//   steering_loops.cpp       where loops start, how their trip counts change, after how many iterations they repeat
//   steering_trips.cpp       do the instances show all that trip counts can be together?
//   steering_conditions.cpp  where along a loop the truth of a condition may change
//   steering_arrivals.cpp    how long the phases of mbarriers take to come round
//   steering_flight.cpp      register work on fragments that a wgmma may own
#pragma once

#include <algorithm>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "verify/shapes.h"
#include "verify/steering.h"

namespace tw::verify {

class SteeringReader {
public:
    explicit SteeringReader(const ir::Kernel& k);
    Steering read();

private:
    using Expr = ir::Expr;
    using ExprKind = ir::ExprKind;
    using Stmt = ir::Stmt;

    static constexpr std::int64_t longest_period = 512;  // beyond it the instances would take too long
    static constexpr std::int64_t farthest_reach = 96;   // iterations from an end of a loop at which a condition may change

    // sum of coefficient * atom + constant; atoms by their printed form.
    struct Affine {
        std::map<std::string, std::pair<Expr, std::int64_t>> terms;
        std::int64_t constant = 0;
    };
    // What a variable gains in one execution of a region.
    struct Gain {
        std::int64_t net = 0;
        bool touched = false, exact = true;
        bool in_loops = false;    // in a loop of its own, whose trip count is no constant
        std::int64_t slower = 1;  // by conditions around it
    };

    std::string text(const Expr& e) const { return ir::to_string(e, names_); }
    std::string form_text(const Expr& e) const;
    void complain(std::string why) {
        if (result_.obstacle.empty()) result_.obstacle = std::move(why);
    }
    void add_tensor(int t) {
        if (std::find(result_.tensors.begin(), result_.tensors.end(), t) == result_.tensors.end()) result_.tensors.push_back(t);
    }
    static void visit(const Expr& e, const std::function<void(const Expr&)>& f) {
        f(e);
        for (const Expr& a : e->args) visit(a, f);
    }
    static bool mentions(const Expr& e, int var) { return ir::mentions_var(e, var); }
    void demand(const Expr& e, const std::string& what, const std::string& line, bool in_memory);

    // steering_collect.cpp
    void collect(const ir::Region& region);
    void message(const Expr& e, const std::string& line);
    void note_calm(const Stmt& s, const std::string& line);
    bool take_calm(const std::set<int>& steering, std::vector<Expr>& queue);
    void add_fixed(const Expr& condition);
    static void add_once(std::vector<Expr>& list, const Expr& condition);
    std::optional<std::int64_t> trip_threshold(const Expr& c);

    bool neutral(const Stmt& s) const;
    bool neutral(const ir::Region& region) const;

    // steering_trips.cpp
    using Followed = std::pair<ExprKind, int>;
    struct CountedLoop {
        Expr trips, step;
        bool over_tiles;  // of all blocks
        bool inside;      // of a loop over tiles
        std::string line, key = {};
    };
    struct Slope {
        double least, most;
    };
    struct TripForm {
        bool over_tiles = false;
        std::map<Followed, std::set<std::int64_t>> widths;
        std::map<int, std::set<std::string>> cuts;  // by tensor: how its contents are divided
        std::int64_t turn = 0;
        std::string obstacle = {};
    };
    std::set<Followed> followed_by(const CountedLoop& c);
    bool differs_inside(const Expr& e);
    bool follows_block(const Expr& e) const;
    bool of_few_values(const Expr& e);
    static std::int64_t content(const Expr& e);
    void examine_divided(const Expr& e, std::int64_t by, std::int64_t scale, TripForm& form, const Expr& whole);
    Slope slope(const Expr& e, const Followed& of);
    std::set<Followed> falls_with(const CountedLoop& c);
    void examine_beside(const Expr& e, std::int64_t scale, std::int64_t factor, bool turns, TripForm& form);
    void compare_trips();
    void others_follow_tiles();
    bool over_tiles(const ir::For& f) const;

    // steering_flight.cpp
    void find_touched_in_flight();

    // steering_arrivals.cpp
    struct ArrivalContext {
        const ir::Region* region = nullptr;
        const Stmt* role = nullptr;
        std::int64_t threads = 32, instances = 1;
        bool some_instances = false;
        std::vector<const ir::For*> loops;
    };
    struct Arrival {
        int array;
        Expr slot;
        std::int64_t amount;
        const ir::Region* region;
        const Stmt* role;
        std::vector<const ir::For*> loops;  // around it, from the outermost
    };
    bool now_and_again(const Expr& condition);
    bool by_instance(const Expr& e);
    void find_arrivals(const ir::Region& region, ArrivalContext at_home);
    bool counts(int v, const Arrival& arrival);
    int counter_of(const Arrival& arrival);
    std::int64_t with_other_roles(const Arrival& arrival);
    void periods_of_arrivals();

    // steering_shapes.cpp
    Shape leaf_shape(const Expr& e);
    Shape variable_shape(int id);
    Shape finite_shape(int id);
    bool grows(int id);
    bool counter(int id);

    // steering_loops.cpp
    void starts_of_loops();
    void loops_over_tiles();
    bool reads_data(const Expr& e);
    Expr written_out(const Expr& e);
    bool of_sizes_or_data(const Expr& e);
    void examine_trips(const Expr& e, std::int64_t scale, const std::string& line);
    void compare_divisors(const Expr& trips, const std::string& line);
    void bounds_of_loops(const ir::Region& region, std::vector<const ir::For*> around);
    void count_of(const Expr& trips, const Expr& step, const std::string& line);
    void bounds_of(const Stmt& s, const ir::For& f, const std::vector<const ir::For*>& around);
    Gain gain(const ir::Region& region, int variable);
    void caps(const ir::Region& region);
    SteeringLoop cap_of(const ir::For& f);

    // steering_conditions.cpp
    static void accumulate(Affine& a, const Affine& b, std::int64_t factor);
    Affine affine(const Expr& e);
    bool in_a_table(int tensor) const;
    bool decided_by_data(const Expr& c);
    struct Counting {
        std::int64_t farthest_start = 0, step = 0;
        bool upwards = true;
    };
    std::optional<Counting> counting(int id, int partner);
    bool follows_difference(const Expr& condition, int a, int b);
    bool threshold_at_an_end(const Expr& c);
    bool edge_of_a_size(const Affine& d);
    void residue_points(const Affine& rest, std::int64_t factor);
    bool is_rank(const Expr& e) const;
    bool alike_in_a_cluster(const Expr& e) const;
    bool fixed(const Expr& e);

    const ir::Kernel& k_;
    ir::ExprNames names_;
    std::map<int, std::vector<Expr>> assigned_;
    std::map<int, std::vector<const ir::For*>> loops_;
    std::map<int, int> instances_;  // how many of its role there are, by the variable that numbers them
    ShapeReader shapes_;
    std::map<int, Shape> variables_;
    std::map<ShapeAtom, std::int64_t> period_, places_period_;  // of all that steers; of slots and places in memory
    std::map<int, std::int64_t> reach_,
        end_reach_;  // by variable: iterations from the start, and from the end of its loop, at which a condition may change
    std::int64_t trip_reach_ = 0;
    std::map<const ir::For*, std::pair<int, Shape::Step>> growing_;  // loops whose trip count grows with the variable of one around
    std::vector<std::tuple<Expr, std::string, std::string, bool>> places_;
    std::vector<std::tuple<Expr, const Stmt*, std::string>> conditions_;
    std::vector<std::tuple<Expr, const Stmt*, std::int64_t>> trip_conditions_;  // with the constant they compare with
    // Branches and loops around mere register work, with the variables that they set: where one of those steers, they do too.
    struct Calm {
        const Stmt* stmt;
        std::set<int> sets;
        std::string line;
        bool taken = false;
    };
    std::vector<Calm> calm_;
    std::set<const Stmt*> touching_;  // register work on fragments that a wgmma in flight may own
    std::vector<CountedLoop> counted_;
    bool inside_tiles_ = false;  // the loop that is looked at is inside of one over tiles
    std::vector<Arrival> arrivals_;
    std::set<int> set_in_loops_;                                     // variables that a loop sets to something that is not made of them
    std::map<int, std::set<const ir::Region*>> advances_;            // by variable: the regions in which it is updated from itself
    std::map<const ir::For*, std::int64_t> phases_, phases_anyhow_;  // iterations after which phases come round; factors of all the rest
    std::map<int, std::vector<Expr>> now_and_then_;                  // variables that are updated under conditions, and those
    std::map<int, std::set<std::int64_t>> divisors_;                 // of the sizes in one trip count
    std::int64_t least_cap_ = 0;                                     // trip counts have thresholds up to here
    std::map<int, std::int64_t> trips_period_;  // by loop variable: after how many iterations trip counts inside it repeat
    int depth_ = 0;
    Steering result_;
};

}  // namespace tw::verify
