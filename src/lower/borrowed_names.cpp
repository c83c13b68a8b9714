// Names that people bring along from Triton, PyTorch, NumPy and CUDA, and what the language has in their place. A name that is near to one
// of ours by its letters alone ("dot" and "log") would be a worse answer.
#include <string_view>

#include "lower/names.h"

namespace tw::lower {
namespace {

struct Borrowed {
    std::string_view names;  // with a space before and after each
    std::string_view hint;
};

constexpr Borrowed kFunctions[] = {
    {" program_id block_idx blockIdx ", "the grid is part of the kernel: i = tw.grid(tw.cdiv(N, BLOCK)) gives the block's index"},
    {" num_programs grid_dim gridDim ", "it is tw.num_blocks(axis)"},
    {" thread_idx threadIdx thread_id lane_id warp_id ",
     "threads have no numbers: tiles are spread over them, tw.arange(n) and tw.coord(x, axis) number elements"},
    {" dot matmul mm bmm gemm mma_sync ",
     "products are tw.mma(acc, a, b) on sm_80 and tw.wgmma(acc, a, b) on sm_90a; of vectors, tw.sum(a * b, axis=0)"},
    {" constexpr ", "it is tw.const: BLOCK: tw.const(256, 512) = 256"},
    {" mean average ", "it is tw.sum(x, axis=...) / n, with the number of elements that the tensor has"},
    {" var std ",
     "write it: the mean first, then the mean of the squared differences, with tw.where(tw.arange(n) < N, x - mean, 0.0) at the edge"},
    {" softmax ", "write it: e = tw.exp(x - tw.max(x, axis=0)), then e / tw.sum(e, axis=0)"},
    {" logsumexp ", "write it: m = tw.max(x, axis=0), then m + tw.log(tw.sum(tw.exp(x - m), axis=0))"},
    {" relu ", "it is tw.maximum(x, 0.0)"},
    {" silu swish ", "it is x * tw.sigmoid(x)"},
    {" gelu ", "it is 0.5 * x * (1.0 + tw.erf(x * 0.7071067811865476)), or the form by tw.tanh"},
    {" clamp clip ", "it is tw.minimum(tw.maximum(x, low), high)"},
    {" square ", "it is x * x"},
    {" ones ", "it is tw.full(dtype, shape, 1.0)"},
    {" zeros_like empty_like ones_like full_like ", "it is tw.zeros(x.dtype, x.shape), or tw.full"},
    {" empty allocate alloc smem shared_memory ", "shared memory is tw.shared(dtype, shape), a register tile tw.zeros(dtype, shape)"},
    {" trans transpose permute swapaxes ", "registers are transposed through shared memory: tw.store(s, x), a barrier, tw.load(s.T)"},
    {" reshape view expand_dims broadcast broadcast_to ravel flatten squeeze unsqueeze ",
     "v[:, None] and v[None, :] spread a vector; a tile has the shape it was loaded with"},
    {" cat concat concatenate stack join split ", "tiles are stored side by side: tw.store each of them where it belongs"},
    {" syncthreads barrier debug_barrier __syncthreads ", "it is tw.sync()"},
    {" static_range constexpr_range ", "it is tw.unroll(n)"},
    {" static_assert device_assert ", "constants: assert; at the launch: tw.assume(...); to be proved: tw.expect(...)"},
    {" print device_print static_print printf ",
     "kernels print nothing: tilewright run shows outputs, tilewright check what an element is made of"},
    {" atomic_max atomic_min atomic_cas atomic_xchg atomic_and atomic_or ", "tw.atomic_add is the only atomic operation"},
    {" async_copy memcpy_async ", "it is tw.cp_async(s, X[...]), or tw.tma_load on sm_90a"},
    {" make_block_ptr make_tensor_descriptor advance ", "a tensor is indexed: tw.load(X[i : i + BM, j : j + BN], fill=0.0)"},
    {" jit ", "it is @tw.kernel(target=..., computes=...)"},
    {" autotune Config heuristics ", "values to try stand in tw.const(256, 512), and `tilewright tune` measures them"},
    {" float32 float ", "it is f32"},
    {" float16 half ", "it is f16"},
    {" bfloat16 ", "it is bf16"},
    {" float64 double ", "it is f64"},
    {" int32 int ", "it is i32"},
    {" int64 long ", "it is i64"},
    {" int8 ", "it is i8"},
    {" uint8 ", "it is u8"},
    {" float8e4nv float8_e4m3fn float8e5 float8_e5m2 ", "they are e4m3 and e5m2"},
};

constexpr Borrowed kTileMethods[] = {
    {" astype type cast float half bfloat16 double int long ", "a conversion is x.to(f32)"},
    {" T t mT transpose permute ", "registers are transposed through shared memory: tw.store(s, x), a barrier, tw.load(s.T)"},
    {" reshape view flatten ravel squeeze unsqueeze expand broadcast_to ",
     "x[:, None] and x[None, :] spread a vector; a tile has the shape it was loaded with"},
    {" mean ", "it is tw.sum(x, axis=...) / n, with the number of elements that the tensor has"},
    {" item numpy cpu ", "a tile's values stay in the registers of its threads; tw.store writes them"},
    {" size numel ", "x.shape has the extents"},
};

constexpr Borrowed kTensorMethods[] = {
    {" T t mT transpose permute ", "index it the other way round, or give the parameter strides=(...)"},
    {" size numel dim ndim stride strides ", "X.shape has the dimensions; sizes can be named: M, N = tw.sizes(\"M N\")"},
    {" data_ptr ptr ", "tensors are indexed, not addressed: tw.load(X[i : i + 128])"},
};

constexpr Borrowed kKeywords[] = {
    {" mask ", "what lies outside a tensor is masked by itself: fill= says what a load gives there, limit= masks earlier"},
    {" other ", "it is fill="},
    {" eviction_policy cache_modifier volatile ", "it is hint=\"evict_first\", \"evict_last\" or \"streaming\""},
    {" boundary_check padding_option ", "what lies outside a tensor is masked by itself; fill= says what a load gives there"},
    {" num_warps ", "it is threads=, 32 times as many"},
    {" num_stages ", "stages are explicit: tw.pipeline(STAGES)"},
    {" num_ctas ", "it is cluster=(n, 1, 1)"},
    {" grid ", "the grid is set in the kernel: i = tw.grid(tw.cdiv(N, BLOCK))"},
    {" dim ", "it is axis="},
    {" keepdim keepdims keep_dims ", "the axis goes; x[:, None] puts it back"},
    {" input_precision allow_tf32 out_dtype ", "the types of operands and accumulator say it"},
    {" smem shared_bytes ", "tw.shared buffers add up by themselves"},
};

constexpr Borrowed kNames[] = {
    {" tl triton ", "the language's functions are tw.load, tw.store ...; docs/from-triton.md has the table"},
    {" np numpy torch math cp jnp ", "other modules are not in the language: tw. has the functions of tiles, constants are written out"},
    {" print ", "kernels print nothing: tilewright run shows outputs, tilewright check what an element is made of"},
    {" sum pow ", "of tiles it is tw.sum and tw.pow"},
    {" enumerate zip map list tuple dict set sorted reversed any all isinstance str bool ",
     "this function of Python is not in the language; loops are tw.range, tw.unroll, or over a tuple"},
    {" threadIdx blockIdx blockDim gridDim ", "i = tw.grid(...) gives the block's index; threads have no numbers"},
};

template <std::size_t N>
std::string found(const Borrowed (&table)[N], const std::string& name) {
    const std::string wanted = " " + name + " ";
    for (const Borrowed& b : table) {
        if (b.names.find(wanted) != std::string_view::npos) return std::string(b.hint);
    }
    return "";
}

}  // namespace

std::string borrowed_function(const std::string& name) { return found(kFunctions, name); }

std::string borrowed_name(const std::string& name) {
    std::string hint = found(kNames, name);
    return hint.empty() ? found(kFunctions, name) : hint;
}

std::string borrowed_method(const Value& receiver, const std::string& name) {
    if (receiver.is(Value::Kind::tensor) || receiver.is(Value::Kind::global)) return found(kTensorMethods, name);
    if (!receiver.is(Value::Kind::tile)) return "";
    std::string hint = found(kTileMethods, name);
    if (hint.empty() && is_builtin(name)) hint = "it is a function: tw." + name + "(x)";
    return hint.empty() ? found(kFunctions, name) : hint;
}

std::string keyword_hint(const std::string& name, const std::string& otherwise) {
    std::string hint = found(kKeywords, name);
    return hint.empty() ? otherwise : hint;
}

}  // namespace tw::lower
