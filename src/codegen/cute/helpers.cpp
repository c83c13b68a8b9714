#include "codegen/cute/helpers.h"

#include <vector>

namespace tw::codegen::cute {
namespace {

struct Helper {
    const char* name;
    std::vector<const char*> uses;
    const char* text;
};

const std::vector<Helper>& helpers() {
    static const std::vector<Helper> list = {
        {"floor_div", {}, R"(// Division towards minus infinity, as the kernel's source means it.
CUTE_HOST_DEVICE constexpr int floor_div(int a, int b) { return a / b - ((a % b != 0) && ((a < 0) != (b < 0))); }
CUTE_HOST_DEVICE constexpr int floor_mod(int a, int b) { return a - floor_div(a, b) * b; }
)"},
        {"anchored", {}, R"(// The view with its address computed here: the compiler would compute it again under each test of a bound.
template <class Whole, class View>
CUTE_DEVICE auto anchored(Whole const& whole, View const& view) {
  int64_t offset = raw_pointer_cast(view.data()) - raw_pointer_cast(whole.data());
  asm("" : "+l"(offset));
  return make_tensor(whole.data() + offset, view.layout());
}
)"},
        {"load_inside", {}, R"(// A thread's values of a tile that a bound cuts, in vectors of V. Cuts: the bound may lie inside a vector.
template <int V, bool Cuts, class Src, class At, class Bound, class Fill, class Dst>
CUTE_DEVICE void load_inside(Src const& src, At const& at, Bound const& bound, Fill fill, Dst&& dst) {
  using T = typename remove_cvref_t<Dst>::value_type;
  using Word = uint_bit_t<V * sizeof(T) * 8>;
  CUTE_UNROLL
  for (int i = 0; i < size(dst); i += V) {
    if (elem_less(at(i + V - 1), bound)) {
      reinterpret_cast<Word&>(dst(i)) = reinterpret_cast<Word const&>(src(i));
    } else {
      CUTE_UNROLL
      for (int j = i; j < i + V; ++j) dst(j) = Cuts && elem_less(at(j), bound) ? T(src(j)) : T(fill);
    }
  }
}
)"},
        {"store_inside", {}, R"(// Stores a thread's values of a tile that a bound cuts; what is beyond the bound is not written.
template <int V, bool Cuts, class Src, class At, class Bound, class Dst>
CUTE_DEVICE void store_inside(Src const& src, At const& at, Bound const& bound, Dst&& dst) {
  using T = typename remove_cvref_t<Dst>::value_type;
  using Word = uint_bit_t<V * sizeof(T) * 8>;
  CUTE_UNROLL
  for (int i = 0; i < size(dst); i += V) {
    if (elem_less(at(i + V - 1), bound)) {
      reinterpret_cast<Word&>(dst(i)) = reinterpret_cast<Word const&>(src(i));
    } else if (Cuts) {
      CUTE_UNROLL
      for (int j = i; j < i + V; ++j) {
        if (elem_less(at(j), bound)) dst(j) = src(j);
      }
    }
  }
}
)"},
        {"load_between", {}, R"(// The same where the tile may begin before the tensor: coordinates below `first` are outside too.
template <int V, class Src, class At, class First, class Bound, class Fill, class Dst>
CUTE_DEVICE void load_between(Src const& src, At const& at, First const& first, Bound const& bound, Fill fill, Dst&& dst) {
  using T = typename remove_cvref_t<Dst>::value_type;
  using Word = uint_bit_t<V * sizeof(T) * 8>;
  CUTE_UNROLL
  for (int i = 0; i < size(dst); i += V) {
    if (elem_leq(first, at(i)) && elem_less(at(i + V - 1), bound)) {
      reinterpret_cast<Word&>(dst(i)) = reinterpret_cast<Word const&>(src(i));
    } else {
      CUTE_UNROLL
      for (int j = i; j < i + V; ++j) dst(j) = elem_leq(first, at(j)) && elem_less(at(j), bound) ? T(src(j)) : T(fill);
    }
  }
}
)"},
        {"store_between", {}, R"(template <int V, class Src, class At, class First, class Bound, class Dst>
CUTE_DEVICE void store_between(Src const& src, At const& at, First const& first, Bound const& bound, Dst&& dst) {
  using T = typename remove_cvref_t<Dst>::value_type;
  using Word = uint_bit_t<V * sizeof(T) * 8>;
  CUTE_UNROLL
  for (int i = 0; i < size(dst); i += V) {
    if (elem_leq(first, at(i)) && elem_less(at(i + V - 1), bound)) {
      reinterpret_cast<Word&>(dst(i)) = reinterpret_cast<Word const&>(src(i));
    } else {
      CUTE_UNROLL
      for (int j = i; j < i + V; ++j) {
        if (elem_leq(first, at(j)) && elem_less(at(j), bound)) dst(j) = src(j);
      }
    }
  }
}
)"},
        {"cp_async_inside",
         {},
         R"(// cp.async of vectors of V values; what lies beyond the bound is filled with zeros. No bound lies inside a vector.
template <class Op, int V, class Src, class At, class Bound, class Dst>
CUTE_DEVICE void cp_async_inside(Src const& src, At const& at, Bound const& bound, Dst&& dst) {
  using Word = CUTE_STL_NAMESPACE::remove_extent_t<typename Op::SRegisters>;
  CUTE_UNROLL
  for (int i = 0; i < size(dst); i += V) {
    Op::copy(reinterpret_cast<Word const&>(src(i)), reinterpret_cast<Word&>(dst(i)), elem_less(at(i), bound));
  }
}
)"},
        {"fold", {}, R"(// Folds a thread's values, in four chains where there are many.
template <class Values, class Op>
CUTE_DEVICE auto fold(Values const& x, Op op) {
  constexpr int n = decltype(size(x))::value, chains = n >= 8 && n % 4 == 0 ? 4 : 1;
  typename Values::value_type part[chains];
  CUTE_UNROLL
  for (int i = 0; i < chains; ++i) part[i] = x(i);
  CUTE_UNROLL
  for (int i = chains; i < n; ++i) part[i % chains] = op(part[i % chains], x(i));
  CUTE_UNROLL
  for (int i = 1; i < chains; ++i) part[0] = op(part[0], part[i]);
  return part[0];
}
)"},
        {"fold_lanes", {}, R"(// Folds over the lanes whose numbers differ in the given bits.
template <int... Masks, class T, class Op>
CUTE_DEVICE T fold_lanes(T x, Op op) {
  ((x = op(x, __shfl_xor_sync(0xffffffffu, x, Masks))), ...);
  return x;
}
)"},
        {"sum", {}, "struct Sum { template <class T> CUTE_DEVICE T operator()(T a, T b) const { return a + b; } };\n"},
        {"prod", {}, "struct Prod { template <class T> CUTE_DEVICE T operator()(T a, T b) const { return a * b; } };\n"},
        {"any", {}, "struct Any { CUTE_DEVICE bool operator()(bool a, bool b) const { return a || b; } };\n"},
        {"max", {}, R"(struct Max {
  template <class T> CUTE_DEVICE T operator()(T a, T b) const { return T(fmaxf(float(a), float(b))); }   // 16 bits
  CUTE_DEVICE float operator()(float a, float b) const { return fmaxf(a, b); }
  CUTE_DEVICE int operator()(int a, int b) const { return a > b ? a : b; }
};
)"},
        {"min", {}, R"(struct Min {
  template <class T> CUTE_DEVICE T operator()(T a, T b) const { return T(fminf(float(a), float(b))); }   // 16 bits
  CUTE_DEVICE float operator()(float a, float b) const { return fminf(a, b); }
  CUTE_DEVICE int operator()(int a, int b) const { return a < b ? a : b; }
};
)"},
        {"scan_run",
         {},
         R"(// One run of a prefix fold: a thread's values V in their order, then Lanes lanes that are Low apart, after what `carry` holds of the runs before.
template <int Lanes, int Low, bool Reverse, bool First, int... V, class X, class Y, class T, class Op>
CUTE_DEVICE void scan_run(X const& x, Y&& y, T& carry, T identity, int thread, Op op) {
  constexpr int n = sizeof...(V), v[] = {V...};
  y(v[0]) = x(v[0]);
  CUTE_UNROLL
  for (int i = 1; i < n; ++i) y(v[i]) = op(y(v[i - 1]), x(v[i]));
  T total = y(v[n - 1]), before = identity;
  int const at = thread / Low % Lanes;
  CUTE_UNROLL
  for (int s = 1; s < Lanes; s *= 2) {
    T const other = Reverse ? __shfl_down_sync(0xffffffffu, total, s * Low) : __shfl_up_sync(0xffffffffu, total, s * Low);
    if (Reverse ? at < Lanes - s : at >= s) total = op(other, total);
  }
  if constexpr (Lanes > 1) {
    before = Reverse ? __shfl_down_sync(0xffffffffu, total, Low) : __shfl_up_sync(0xffffffffu, total, Low);
    if (at == (Reverse ? Lanes - 1 : 0)) before = identity;
  }
  if constexpr (!First) before = op(carry, before);
  CUTE_UNROLL
  for (int i = 0; i < n; ++i) y(v[i]) = op(before, y(v[i]));
  T const last = Lanes > 1 ? __shfl_sync(0xffffffffu, total, thread % 32 - at * Low + (Reverse ? 0 : (Lanes - 1) * Low)) : total;
  carry = First ? last : op(carry, last);
}
)"},
        {"of_block", {}, R"(// The same place in the shared memory of another block of the cluster.
template <class T>
CUTE_DEVICE T* of_block(T* p, int rank) {
  uint64_t there;
  asm("mapa.u64 %0, %1, %2;" : "=l"(there) : "l"(p), "r"(rank));
  return reinterpret_cast<T*>(there);
}
)"},
        {"cluster_barrier", {}, R"(// CuTe's own do not tell the compiler that memory changes: accesses could be moved across them.
CUTE_DEVICE void cluster_arrive() { asm volatile("barrier.cluster.arrive.release.aligned;" ::: "memory"); }
CUTE_DEVICE void cluster_arrive_relaxed() { asm volatile("barrier.cluster.arrive.relaxed.aligned;" ::: "memory"); }
CUTE_DEVICE void cluster_wait() { asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory"); }
)"},
        {"proxy_fence", {}, R"(// Between ordinary accesses of shared memory and the copy engine's; the compiler moves no access across it.
CUTE_DEVICE void proxy_fence() { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }
)"},
        {"bulk_wait", {}, R"(// Until at most N groups of stores are not visible yet (tma_store_wait: not read yet).
template <int N>
CUTE_DEVICE void bulk_wait() {
  asm volatile("cp.async.bulk.wait_group %0;" ::"n"(N) : "memory");
}
)"},
        {"named_sync", {}, R"(// Barrier `id` of the block's sixteen, by its hardware number.
CUTE_DEVICE void named_sync(int id, int threads) { asm volatile("bar.sync %0, %1;" ::"r"(id), "r"(threads) : "memory"); }
)"},
        {"swizzled",
         {},
         R"(// An address in shared memory after its swizzle of 16-byte chunks. What is added to it later must leave the bits of the swizzle alone.
// It is reached by an offset, so that the compiler goes on to see an address in shared memory, of 32 bits.
template <int Bits, class T>
CUTE_DEVICE T* swizzled(T* p) {
  uint32_t const at = cast_smem_ptr_to_uint(p), to = at ^ ((at >> 3) & (((1u << Bits) - 1) << 4));
  return reinterpret_cast<T*>(reinterpret_cast<char*>(p) + (int(to) - int(at)));
}
)"},
        {"quads_gathered",
         {},
         R"(// Lane t of four has word t of every run of 16 bytes; they exchange, and lane t gets every fourth run whole. Apart: words between neighbouring runs.
template <int Apart, class Src, class Dst>
CUTE_DEVICE void quads_gathered(Src const& src, Dst&& dst, int t) {
  bool const odd = t % 2 != 0, high = t / 2 % 2 != 0;
  CUTE_UNROLL
  for (int u = 0; u < size(dst) / 8; ++u) {
    uint32_t x[4];
    CUTE_UNROLL
    for (int q = 0; q < 4; ++q) x[q] = reinterpret_cast<uint32_t const&>(src(2 * (u % Apart + (u / Apart * 4 + q) * Apart)));
    uint32_t const a = __shfl_xor_sync(0xffffffffu, odd ? x[0] : x[1], 1), b = __shfl_xor_sync(0xffffffffu, odd ? x[2] : x[3], 1);
    uint32_t const w[4] = {odd ? a : x[0], odd ? x[1] : a, odd ? b : x[2], odd ? x[3] : b};
    uint32_t const c = __shfl_xor_sync(0xffffffffu, high ? w[0] : w[2], 2), d = __shfl_xor_sync(0xffffffffu, high ? w[1] : w[3], 2);
    uint32_t const run[4] = {high ? c : w[0], high ? d : w[1], high ? w[2] : c, high ? w[3] : d};
    CUTE_UNROLL
    for (int q = 0; q < 4; ++q) reinterpret_cast<uint32_t&>(dst(8 * u + 2 * q)) = run[q];
  }
}
)"},
        {"put_pair", {}, R"(// Two neighbours of a register tensor, rounded to 16 bits by one instruction.
template <class Dst>
CUTE_DEVICE void put_pair(Dst&& dst, int v, float a, float b) {
  uint32_t pair;
  if constexpr (is_same_v<typename remove_cvref_t<Dst>::value_type, half_t>) asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(b), "f"(a));
  else asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(b), "f"(a));
  reinterpret_cast<uint32_t&>(dst(v)) = pair;
}
)"},
        {"named_arrive",
         {},
         R"(CUTE_DEVICE void named_arrive(int id, int threads) { asm volatile("bar.arrive %0, %1;" ::"r"(id), "r"(threads) : "memory"); }
)"},
        {"arrive_many", {}, R"(// Several arrivals at an mbarrier at once.
CUTE_DEVICE void arrive_many(uint64_t* barrier, int count) {
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0], %1;" ::"r"(cast_smem_ptr_to_uint(barrier)), "r"(count) : "memory");
}
)"},
        {"grid_wait", {}, R"(// Until the grids before this one have ended and their writes are visible.
CUTE_DEVICE void grid_wait() { asm volatile("griddepcontrol.wait;" ::: "memory"); }
)"},
        {"grid_launch", {}, R"(// The grid after this one may begin.
CUTE_DEVICE void grid_launch() { asm volatile("griddepcontrol.launch_dependents;" ::: "memory"); }
)"},
        {"exp2_approx", {}, R"(CUTE_DEVICE float exp2_approx(float x) {
  float r;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(r) : "f"(x));
  return r;
}
)"},
        {"rcp_approx", {}, R"(CUTE_DEVICE float rcp_approx(float x) {
  float r;
  asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(r) : "f"(x));
  return r;
}
)"},
        {"div_full", {}, R"(CUTE_DEVICE float div_full(float a, float b) {
  float r;
  asm("div.full.f32 %0, %1, %2;" : "=f"(r) : "f"(a), "f"(b));
  return r;
}
)"},
        {"tanh_approx", {}, R"(CUTE_DEVICE float tanh_approx(float x) {
  float r;
  asm("tanh.approx.f32 %0, %1;" : "=f"(r) : "f"(x));
  return r;
}
)"},
        {"sigmoid", {"div_full"}, "CUTE_DEVICE float sigmoid(float x) { return div_full(1.0f, 1.0f + expf(-x)); }\n"},
        {"sigmoid_approx",
         {"tanh_approx"},
         "CUTE_DEVICE float sigmoid_approx(float x) { return fmaf(0.5f, tanh_approx(0.5f * x), 0.5f); }\n"},
        {"erf_approx", {"rcp_approx", "exp2_approx"}, R"(// Absolute error below 2e-7 (Abramowitz and Stegun 7.1.26).
CUTE_DEVICE float erf_approx(float x) {
  float a = fabsf(x), t = rcp_approx(fmaf(0.3275911f, a, 1.0f));
  float p = fmaf(1.061405429f, t, -1.453152027f);
  p = fmaf(p, t, 1.421413741f);
  p = fmaf(p, t, -0.284496736f);
  p = fmaf(p, t, 0.254829592f);
  return copysignf(fmaf(-p * t, exp2_approx(a * a * -1.44269504f), 1.0f), x);
}
)"},
        {"gelu_approx",
         {"rcp_approx", "exp2_approx"},
         R"(// x * Phi(x) by the same polynomial, with its constants folded in.
CUTE_DEVICE float gelu_approx(float x) {
  float a = fabsf(x), t = rcp_approx(fmaf(0.231641888f, a, 1.0f));
  float p = fmaf(0.5307027145f, t, -0.7265760135f);
  p = fmaf(p, t, 0.7107068705f);
  p = fmaf(p, t, -0.142248368f);
  p = fmaf(p, t, 0.127414796f);
  return fmaf(a, fmaf(-p * t, exp2_approx(a * (a * -0.72134752f)), 0.5f), 0.5f * x);
}
)"},
        {"mod_floor", {}, "CUTE_DEVICE float mod_floor(float a, float b) { return a - b * floorf(a / b); }\n"},
    };
    return list;
}

}  // namespace

std::string helper_text(const std::set<std::string>& names) {
    std::set<std::string> wanted = names;
    for (const Helper& h : helpers()) {
        if (!names.count(h.name)) continue;
        for (const char* used : h.uses) wanted.insert(used);
    }
    std::string text;
    for (const Helper& h : helpers()) {
        if (wanted.count(h.name)) text += (text.empty() ? "" : "\n") + std::string(h.text);
    }
    return text.empty() ? text : "namespace tw {\nusing namespace cute;\n\n" + text + "\n}  // namespace tw\n\n";
}

}  // namespace tw::codegen::cute
