// tw.expect and tw.tag: relations between the fields of data, stated at a place and proved, never executed.
#pragma once

#include "lower/resolver.h"

namespace tw::lower {

// tw.expect(condition), where the condition may speak of fields (a.k == b.k, a[i, k].k == b[j, k].k, 0 <= a.k < K);
// tw.expect(tw.covers(acc.k, lo, hi)), tw.expect(tw.disjoint(a.k, b.k)), tw.expect(tw.fresh(acc));
// tw.expect(tile, "term", i, j, ...).
void resolve_expect(Resolver& resolver, const lang::Call& call, Span span);

// tw.tag(A[m, k], panel=k // 64): A gives its elements the fields m, k and panel. Makes no statement.
void resolve_tag(Resolver& resolver, const lang::Call& call, Span span);

}  // namespace tw::lower
