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
        {"opaque", {}, R"(// The same number, which the compiler cannot know to be.
CUTE_DEVICE int opaque(int x) {
  asm volatile("" : "+r"(x));
  return x;
}
)"},
        {"streaming_copies",
         {},
         R"(// Vectors that are touched once: loads leave nothing in L1, stores are the first to leave L2. Nobody writes what is loaded.
template <class Word>
struct StreamingLoad {
  using SRegisters = Word[1];
  using DRegisters = Word[1];
  CUTE_DEVICE static void copy(Word const& src, Word& dst) {
    uint32_t* r = reinterpret_cast<uint32_t*>(&dst);
    if constexpr (sizeof(Word) == 16)
      asm volatile("ld.global.nc.L1::no_allocate.v4.u32 {%0,%1,%2,%3}, [%4];" : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "l"(&src));
    else if constexpr (sizeof(Word) == 8) asm volatile("ld.global.nc.L1::no_allocate.v2.u32 {%0,%1}, [%2];" : "=r"(r[0]), "=r"(r[1]) : "l"(&src));
    else asm volatile("ld.global.nc.L1::no_allocate.u32 %0, [%1];" : "=r"(r[0]) : "l"(&src));
  }
};
template <class Word>
struct StreamingStore {
  using SRegisters = Word[1];
  using DRegisters = Word[1];
  CUTE_DEVICE static void copy(Word const& src, Word& dst) {
    uint32_t const* r = reinterpret_cast<uint32_t const*>(&src);
    if constexpr (sizeof(Word) == 16)
      asm volatile("st.global.cs.v4.u32 [%0], {%1,%2,%3,%4};" ::"l"(&dst), "r"(r[0]), "r"(r[1]), "r"(r[2]), "r"(r[3]) : "memory");
    else if constexpr (sizeof(Word) == 8) asm volatile("st.global.cs.v2.u32 [%0], {%1,%2};" ::"l"(&dst), "r"(r[0]), "r"(r[1]) : "memory");
    else asm volatile("st.global.cs.u32 [%0], %1;" ::"l"(&dst), "r"(r[0]) : "memory");
  }
};

}  // namespace tw

template <class Word> struct cute::Copy_Traits<tw::StreamingLoad<Word>> : cute::Copy_Traits<cute::UniversalCopy<Word>> {};
template <class Word> struct cute::Copy_Traits<tw::StreamingStore<Word>> : cute::Copy_Traits<cute::UniversalCopy<Word>> {};

namespace tw {
)"},
        {"policy_copies", {}, R"(// Vectors that shall leave L2 before others (First) or after them. Nobody writes what is loaded.
template <bool First>
CUTE_DEVICE uint64_t l2_policy() {
  uint64_t policy;
  if constexpr (First) asm volatile("createpolicy.fractional.L2::evict_first.b64 %0, 1.0;" : "=l"(policy));
  else asm volatile("createpolicy.fractional.L2::evict_last.b64 %0, 1.0;" : "=l"(policy));
  return policy;
}
template <class Word, bool First>
struct PolicyLoad {
  using SRegisters = Word[1];
  using DRegisters = Word[1];
  CUTE_DEVICE static void copy(Word const& src, Word& dst) {
    uint32_t* r = reinterpret_cast<uint32_t*>(&dst);
    uint64_t const policy = l2_policy<First>();
    if constexpr (sizeof(Word) == 16)
      asm volatile("ld.global.nc.L2::cache_hint.v4.u32 {%0,%1,%2,%3}, [%4], %5;" : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "l"(&src), "l"(policy));
    else if constexpr (sizeof(Word) == 8) asm volatile("ld.global.nc.L2::cache_hint.v2.u32 {%0,%1}, [%2], %3;" : "=r"(r[0]), "=r"(r[1]) : "l"(&src), "l"(policy));
    else asm volatile("ld.global.nc.L2::cache_hint.u32 %0, [%1], %2;" : "=r"(r[0]) : "l"(&src), "l"(policy));
  }
};
template <class Word, bool First>
struct PolicyStore {
  using SRegisters = Word[1];
  using DRegisters = Word[1];
  CUTE_DEVICE static void copy(Word const& src, Word& dst) {
    uint32_t const* r = reinterpret_cast<uint32_t const*>(&src);
    uint64_t const policy = l2_policy<First>();
    if constexpr (sizeof(Word) == 16)
      asm volatile("st.global.L2::cache_hint.v4.u32 [%0], {%1,%2,%3,%4}, %5;" ::"l"(&dst), "r"(r[0]), "r"(r[1]), "r"(r[2]), "r"(r[3]), "l"(policy) : "memory");
    else if constexpr (sizeof(Word) == 8) asm volatile("st.global.L2::cache_hint.v2.u32 [%0], {%1,%2}, %3;" ::"l"(&dst), "r"(r[0]), "r"(r[1]), "l"(policy) : "memory");
    else asm volatile("st.global.L2::cache_hint.u32 [%0], %1, %2;" ::"l"(&dst), "r"(r[0]), "l"(policy) : "memory");
  }
};

}  // namespace tw

template <class Word, bool First> struct cute::Copy_Traits<tw::PolicyLoad<Word, First>> : cute::Copy_Traits<cute::UniversalCopy<Word>> {};
template <class Word, bool First> struct cute::Copy_Traits<tw::PolicyStore<Word, First>> : cute::Copy_Traits<cute::UniversalCopy<Word>> {};

namespace tw {
)"},
        {"load_inside",
         {},
         R"(// A thread's values of a tile that a bound cuts, in vectors of V that are there or not: `at` is below `left` where they are.
template <class Op, int V, class Src, class At, class Left, class Fill, class Dst>
CUTE_DEVICE void load_inside(Src const& src, At const& at, Left const& left, Fill fill, Dst&& dst) {
  using T = typename remove_cvref_t<Dst>::value_type;
  using Word = uint_bit_t<V * sizeof(T) * 8>;
  CUTE_UNROLL
  for (int i = 0; i < size(dst); i += V) {
    if (elem_less(at(i), left)) {
      Op::copy(reinterpret_cast<Word const&>(src(i)), reinterpret_cast<Word&>(dst(i)));
    } else {
      CUTE_UNROLL
      for (int j = i; j < i + V; ++j) dst(j) = fill;
    }
  }
}
)"},
        {"load_each", {}, R"(// The same value by value.
template <class Src, class At, class Left, class Fill, class Dst>
CUTE_DEVICE void load_each(Src const& src, At const& at, Left const& left, Fill fill, Dst&& dst) {
  using T = typename remove_cvref_t<Dst>::value_type;
  CUTE_UNROLL
  for (int i = 0; i < size(dst); ++i) dst(i) = elem_less(at(i), left) ? T(src(i)) : fill;
}
)"},
        {"values_inside",
         {},
         R"(// How many values of a vector that begins at `at` are there: the bound may lie inside it, along the last dimension.
template <class At, class Left>
CUTE_DEVICE int values_inside(At const& at, Left const& left) {
  constexpr int last = tuple_size<Left>::value - 1;
  int const along = get<last>(left) - get<last>(at);
  if constexpr (last == 0) return along;
  else return elem_less(take<0, last>(at), take<0, last>(left)) ? along : 0;
}
)"},
        {"load_some", {"values_inside"}, R"(// The same where the bound may lie inside a vector.
template <int V, class Src, class At, class Left, class Fill, class Dst>
CUTE_DEVICE void load_some(Src const& src, At const& at, Left const& left, Fill fill, Dst&& dst) {
  using T = typename remove_cvref_t<Dst>::value_type;
  CUTE_UNROLL
  for (int i = 0; i < size(dst); i += V) {
    int const count = values_inside(at(i), left);
    CUTE_UNROLL
    for (int j = 0; j < V; ++j) dst(i + j) = j < count ? T(src(i + j)) : fill;
  }
}
)"},
        {"store_inside", {}, R"(// Stores a thread's vectors of a tile that a bound cuts; what is beyond the bound is not written.
template <class Op, int V, class Src, class At, class Left, class Dst>
CUTE_DEVICE void store_inside(Src const& src, At const& at, Left const& left, Dst&& dst) {
  using Word = uint_bit_t<V * sizeof(typename Src::value_type) * 8>;
  CUTE_UNROLL
  for (int i = 0; i < size(src); i += V) {
    if (elem_less(at(i), left)) Op::copy(reinterpret_cast<Word const&>(src(i)), reinterpret_cast<Word&>(dst(i)));
  }
}
)"},
        {"store_some", {"values_inside"}, R"(// The same where the bound may lie inside a vector.
template <int V, class Src, class At, class Left, class Dst>
CUTE_DEVICE void store_some(Src const& src, At const& at, Left const& left, Dst&& dst) {
  CUTE_UNROLL
  for (int i = 0; i < size(src); i += V) {
    int const count = values_inside(at(i), left);
    CUTE_UNROLL
    for (int j = 0; j < V; ++j) {
      if (j < count) dst(i + j) = src(i + j);
    }
  }
}
)"},
        {"load_between",
         {},
         R"(// The same where the tile may begin before the tensor: coordinates below `first` are outside too. Whole vectors first, then
// those that lie across an end, when the others are on their way.
template <class Op, int V, class Src, class At, class First, class Left, class Fill, class Dst>
CUTE_DEVICE void load_between(Src const& src, At const& at, First const& first, Left const& left, Fill fill, Dst&& dst) {
  using T = typename remove_cvref_t<Dst>::value_type;
  using Word = uint_bit_t<V * sizeof(T) * 8>;
  auto whole = [&](int i) { return elem_leq(first, at(i)) && elem_less(at(i + V - 1), left); };
  CUTE_UNROLL
  for (int i = 0; i < size(dst); i += V) {
    if (whole(i)) Op::copy(reinterpret_cast<Word const&>(src(i)), reinterpret_cast<Word&>(dst(i)));
  }
  CUTE_UNROLL
  for (int i = 0; i < size(dst); i += V) {
    if (whole(i)) continue;
    CUTE_UNROLL
    for (int j = i; j < i + V; ++j) dst(j) = elem_leq(first, at(j)) && elem_less(at(j), left) ? T(src(j)) : fill;
  }
}
)"},
        {"store_between", {}, R"(template <class Op, int V, class Src, class At, class First, class Left, class Dst>
CUTE_DEVICE void store_between(Src const& src, At const& at, First const& first, Left const& left, Dst&& dst) {
  using Word = uint_bit_t<V * sizeof(typename Src::value_type) * 8>;
  CUTE_UNROLL
  for (int i = 0; i < size(src); i += V) {
    if (elem_leq(first, at(i)) && elem_less(at(i + V - 1), left)) {
      Op::copy(reinterpret_cast<Word const&>(src(i)), reinterpret_cast<Word&>(dst(i)));
    } else {
      CUTE_UNROLL
      for (int j = i; j < i + V; ++j) {
        if (elem_leq(first, at(j)) && elem_less(at(j), left)) dst(j) = src(j);
      }
    }
  }
}
)"},
        {"gathered",
         {},
         R"(// Tiles whose rows a list of indices names. A tensor with all its rows in the place of the first one; the values of a tile of that, each
// moved to row rows(v); and the place of a value with the named row in it (then the tile's own row too, where that is limited).
template <int Mode, class Tensor_>
CUTE_DEVICE auto at_one_row(Tensor_ const& t) {
  return make_tensor(t.data(), make_layout(shape(t), replace<Mode>(stride(t), _0{})));
}
template <class Values, class Rows>
struct Gathered {
  Values values;
  Rows rows;
  int64_t pitch;
  CUTE_DEVICE auto& operator()(int v) const { return *(&values(v) + rows(v) * pitch); }
};
template <class Values, class Rows>
CUTE_DEVICE Gathered<Values, Rows> gathered(Values const& values, Rows const& rows, int64_t pitch) { return {values, rows, pitch}; }
template <int Mode, bool Limited, class Place>
CUTE_DEVICE auto place_in_row(Place const& place, int row) {
  auto const named = replace<Mode>(place, uint32_t(row));
  if constexpr (Limited) return append(named, get<Mode>(place));
  else return named;
}
)"},
        {"copy_inside", {}, R"(// Asynchronous copies of a thread's vectors; zeros for what is outside.
template <class Op, int V, class Src, class At, class Left, class Dst>
CUTE_DEVICE void copy_inside(Src const& src, At const& at, Left const& left, Dst&& dst) {
  using Word = uint_bit_t<V * sizeof(typename remove_cvref_t<Dst>::value_type) * 8>;
  CUTE_UNROLL
  for (int i = 0; i < size(dst); i += V) {
    bool const inside = elem_less(at(i), left);
    auto const& from = *(inside ? &src(i) : &src.values(i));
    Op::copy(reinterpret_cast<Word const&>(from), reinterpret_cast<Word&>(dst(i)), inside);
  }
}
)"},
        {"copy_between", {}, R"(// The same where the tile may begin before the tensor; the vectors across an end go element by element.
template <class Op, int V, class Src, class At, class First, class Left, class Dst>
CUTE_DEVICE void copy_between(Src const& src, At const& at, First const& first, Left const& left, Dst&& dst) {
  using T = typename remove_cvref_t<Dst>::value_type;
  using Word = uint_bit_t<V * sizeof(T) * 8>;
  CUTE_UNROLL
  for (int i = 0; i < size(dst); i += V) {
    if (elem_leq(first, at(i)) && elem_less(at(i + V - 1), left)) {
      Op::copy(reinterpret_cast<Word const&>(src(i)), reinterpret_cast<Word&>(dst(i)), true);
    } else {
      CUTE_UNROLL
      for (int j = i; j < i + V; ++j) dst(j) = elem_leq(first, at(j)) && elem_less(at(j), left) ? T(src(j)) : T(0);
    }
  }
}
)"},
        {"copy_some", {}, R"(// The same where the bound may lie inside a vector.
template <class Op, int V, class Src, class At, class Left, class Dst>
CUTE_DEVICE void copy_some(Src const& src, At const& at, Left const& left, Dst&& dst) {
  using T = typename remove_cvref_t<Dst>::value_type;
  using Word = uint_bit_t<V * sizeof(T) * 8>;
  CUTE_UNROLL
  for (int i = 0; i < size(dst); i += V) {
    if (elem_less(at(i + V - 1), left)) {
      Op::copy(reinterpret_cast<Word const&>(src(i)), reinterpret_cast<Word&>(dst(i)), true);
    } else {
      CUTE_UNROLL
      for (int j = i; j < i + V; ++j) dst(j) = elem_less(at(j), left) ? T(src(j)) : T(0);
    }
  }
}
)"},
        {"fold", {}, R"(// Folds a thread's values in chains, and the chains in pairs.
template <int Chains, class Values, class Op>
CUTE_DEVICE auto fold(Values const& x, Op op) {
  typename Values::value_type part[Chains];
  CUTE_UNROLL
  for (int i = 0; i < Chains; ++i) part[i] = x(i);
  CUTE_UNROLL
  for (int i = Chains; i < size(x); ++i) part[i % Chains] = op(part[i % Chains], x(i));
  CUTE_UNROLL
  for (int step = 1; step < Chains; step *= 2) {
    CUTE_UNROLL
    for (int i = 0; i < Chains; i += 2 * step) part[i] = op(part[i], part[i + step]);
  }
  return part[0];
}
)"},
        {"words", {}, R"(// Words of two 16-bit values: as fmaxf and fminf, a NaN is dropped.
CUTE_DEVICE uint32_t max_bf16x2(uint32_t a, uint32_t b) { asm("max.bf16x2 %0, %0, %1;" : "+r"(a) : "r"(b)); return a; }
CUTE_DEVICE uint32_t min_bf16x2(uint32_t a, uint32_t b) { asm("min.bf16x2 %0, %0, %1;" : "+r"(a) : "r"(b)); return a; }
CUTE_DEVICE uint32_t max_f16x2(uint32_t a, uint32_t b) { asm("max.f16x2 %0, %0, %1;" : "+r"(a) : "r"(b)); return a; }
CUTE_DEVICE uint32_t min_f16x2(uint32_t a, uint32_t b) { asm("min.f16x2 %0, %0, %1;" : "+r"(a) : "r"(b)); return a; }
template <class T> struct MaxWords {
  CUTE_DEVICE uint32_t operator()(uint32_t a, uint32_t b) const { return is_same_v<T, half_t> ? max_f16x2(a, b) : max_bf16x2(a, b); }
};
template <class T> struct MinWords {
  CUTE_DEVICE uint32_t operator()(uint32_t a, uint32_t b) const { return is_same_v<T, half_t> ? min_f16x2(a, b) : min_bf16x2(a, b); }
};
CUTE_DEVICE uint32_t halves_swapped(uint32_t word) { return word >> 16 | word << 16; }
template <class T> CUTE_DEVICE uint32_t twice(T x) { return uint32_t(x.raw()) | uint32_t(x.raw()) << 16; }
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
  CUTE_DEVICE float operator()(float a, float b) const { return fmaxf(a, b); }
  CUTE_DEVICE int operator()(int a, int b) const { return a > b ? a : b; }
};
)"},
        {"min", {}, R"(struct Min {
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
        {"wait_barrier_cluster", {}, R"(// wait_barrier for what other blocks of the cluster have written into shared memory.
CUTE_DEVICE void wait_barrier_cluster(uint64_t& barrier, int phase) {
  uint32_t done = 0;
  while (!done)
    asm volatile("{\n.reg .pred p;\nmbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 p, [%1], %2;\nselp.u32 %0, 1, 0, p;\n}"
                 : "=r"(done) : "r"(cast_smem_ptr_to_uint(&barrier)), "r"(phase) : "memory");
}
)"},
        {"arrive_barrier_cluster", {}, R"(// An arrival at the same barrier of another block, which then sees what this thread has written.
CUTE_DEVICE void arrive_barrier_cluster(uint64_t& barrier, int rank) {
  asm volatile("{\n.reg .b32 remote;\nmapa.shared::cluster.u32 remote, %0, %1;\nmbarrier.arrive.release.cluster.shared::cluster.b64 _, [remote];\n}"
               ::"r"(cast_smem_ptr_to_uint(&barrier)), "r"(rank) : "memory");
}
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
        {"bf16_at", {}, R"(// Value v of a register tensor of bf16 as a float, from the word that it shares with its neighbour.
template <class X>
CUTE_DEVICE float bf16_at(X const& x, int v) {
  uint32_t const word = reinterpret_cast<uint32_t const&>(x(v / 2 * 2));
  return __uint_as_float(v % 2 ? word & 0xffff0000u : word << 16);
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
        {"mulhi", {}, "CUTE_DEVICE uint32_t mulhi(uint32_t a, uint32_t b) { return uint32_t(uint64_t(a) * b >> 32); }\n"},
        {"philox", {}, R"(// One word of Philox4x32-10.
CUTE_DEVICE uint32_t philox(uint32_t k0, uint32_t k1, uint32_t c0, uint32_t c1, uint32_t c2, uint32_t c3, uint32_t word) {
  CUTE_UNROLL
  for (int round = 0; round < 10; ++round) {
    uint64_t const a = uint64_t(0xd2511f53u) * c0, b = uint64_t(0xcd9e8d57u) * c2;
    c0 = uint32_t(b >> 32) ^ c1 ^ k0, c1 = uint32_t(b);
    c2 = uint32_t(a >> 32) ^ c3 ^ k1, c3 = uint32_t(a);
    k0 += 0x9e3779b9u, k1 += 0xbb67ae85u;
  }
  return word % 4 == 0 ? c0 : word % 4 == 1 ? c1 : word % 4 == 2 ? c2 : c3;
}
)"},
        {"mod_floor", {}, "CUTE_DEVICE float mod_floor(float a, float b) { return a - b * floorf(a / b); }\n"},
    };
    return list;
}

}  // namespace

std::string include_text(const std::string& arch, const std::set<std::string>& names) {
    std::string text = names.count(all_wgmma_widths) ? "#define CUTE_SM90_EXTENDED_MMA_SHAPES_ENABLED\n" : "";
    text += "#include <cute/tensor.hpp>\n";
    if (arch == "sm_90a") text += "#include <cutlass/arch/barrier.h>\n#include <cutlass/arch/reg_reconfig.h>\n";
    return text;
}

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
