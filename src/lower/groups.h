// The executing group while a step walks over the statements, and the barrier that belongs to it.
#pragma once

#include "lower/draft.h"

namespace tw::lower {

struct ExecutingGroup {
    int threads = 0;
    int first_warp = 0, warps_per_instance = 0, instances = 1, instance_var = -1;  // of the role; the block: first_warp 0
    bool role = false;
    bool elected = false;
    bool in_loop = false;
};

// A step that replaces statements: called for every statement with its group, after the regions inside it were rewritten;
// appends what takes its place to `out`. Instances of a role come back to a statement, so a role counts as no loop itself.
using Rewriter = std::function<void(ir::Stmt stmt, const ExecutingGroup& group, ir::Region& out)>;
void rewrite(ir::Region& region, const ExecutingGroup& group, const Rewriter& rewriter);
ExecutingGroup whole_block(const Draft& draft);

// The statement that makes all threads of the group wait for one another: BlockSync, WarpSync, or NamedSync on an id that the
// compiler takes from 15 downwards, one per instance. Reports when no id is left.
ir::Stmt group_sync(Draft& draft, const Context& context, const ExecutingGroup& group, const ir::Loc& loc, std::string note);

}  // namespace tw::lower
