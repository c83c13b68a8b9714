# Made by scripts/make_stubs.py; do not edit.
from typing import Any, Callable, overload
from . import ops as ops

class TilewrightError(RuntimeError):
    """What the library reported. `code` is one of the TW_ERROR_* numbers of runtime/capi.h."""
    code: int

class UnprovedKernelWarning(UserWarning):
    """A kernel is launched that no check has proved."""

class CheckResult:
    """What a check said. True where everything is proved."""
    verdict: str
    text: str
    json: dict[str, Any]
    def __bool__(self) -> bool: ...

class Kernel:
    """All variants of one name. Call it with the parameters in order (tensors and scalars) or by name."""
    name: str
    variants: list[dict[str, Any]]
    @property
    def computes(self) -> str: ...
    @property
    def verdict(self) -> str | None:
        """What the last check of this kernel with these constants said, or None when there was none."""
    def check(self, *, search: float | None = ..., audit: float | None = ..., timeout: float = ...) -> CheckResult:
        """Proves the kernel for all sizes, or gives a counterexample."""
    def choose(self, *given: Any, **named: Any) -> dict[str, Any]:
        """What a launch with these arguments would take; nothing runs."""
    def source(self, variant: int = ...) -> str:
        """The CUDA C++ of a variant."""
    def __call__(self, *given: Any, stream: Any = ..., **named: Any) -> None: ...

class Module:
    """The kernels of one file, as attributes."""
    file: str
    kernels: dict[str, Kernel]
    constants: dict[str, Any]
    def check(self, *, search: float | None = ..., audit: float | None = ..., timeout: float = ...) -> CheckResult: ...
    def __getattr__(self, name: str) -> Kernel: ...

class Tensor:
    """A parameter in global memory: dtype and dimensions; options are promises on strides and contents."""
    def __init__(self, dtype: Any, *dims: Any, **options: Any) -> None: ...

def loads(source: str, name: str = ..., **constants: Any) -> Module:
    """Kernels from text."""
def version() -> str: ...
def library_path() -> str: ...
def load(path: Any, *given: Any, **constants: Any) -> Any:
    """A kernel file as a Module, or one of the package's by its name: load("attention_sm90.py", D=256). In a kernel: reads a tile from memory."""
class Signature:
    """What the kernels of one name take and compute."""
    name: str

def signature(*, name: str = ..., computes: str = ..., **options: Any) -> Callable[[Callable[..., Any]], Signature]:
    """The parameters and `computes` that kernels share."""
@overload
def kernel(function: Callable[..., Any]) -> Kernel:
    """A function of the language, as a kernel that can be called with tensors."""
@overload
def kernel(signature: "Signature", *, target: str = ..., name: str = ..., threads: Any = ..., **options: Any) -> Callable[[Callable[..., Any]], Kernel]:
    """A variant of the kernel that a signature declares: parameters without annotations are the signature's."""
@overload
def kernel(*, target: str = ..., name: str = ..., computes: str = ..., threads: Any = ..., **options: Any) -> Callable[[Callable[..., Any]], Kernel]: ...
@overload
def program(function: Callable[..., Any]) -> Kernel:
    """Several launches as one call, with buffers between them."""
@overload
def program(signature: "Signature", *, name: str = ..., computes: str = ...) -> Callable[[Callable[..., Any]], Kernel]:
    """A program with the parameters of a signature."""
@overload
def program(*, name: str = ..., computes: str = ...) -> Callable[[Callable[..., Any]], Kernel]: ...
def inline(function: Callable[..., Any]) -> Any:
    """A function of the language that is written out where it is called."""
def grid(*blocks: Any, **options: Any) -> Any:
    """The block's coordinates on a grid of these extents: m, n = tw.grid(tw.cdiv(M, BM), tw.cdiv(N, BN))."""
def tiles(*extents: Any, group: int = ..., **options: Any) -> Any:
    """Tiles of a persistent kernel, in groups that share rows: for bm, bn in tw.tiles(M, N, BM, BN)."""
def persistent(count: Any, **options: Any) -> Any:
    """The work items of this block of a persistent kernel."""
def block(axis: int = ..., **options: Any) -> Any:
    """The block's coordinate along an axis of the grid."""
def num_blocks(axis: int = ..., **options: Any) -> Any:
    """The number of blocks along an axis of the grid."""
def cluster_rank(**options: Any) -> Any:
    """The block's number in its cluster."""
def range(*bounds: Any, **options: Any) -> Any:
    """A loop at run time."""
def unroll(*bounds: Any, **options: Any) -> Any:
    """A loop that is written out; its bounds are constants."""
def cdiv(a: Any, b: Any, **options: Any) -> Any:
    """a / b, rounded up."""
def assume(condition: Any, **options: Any) -> None:
    """A variant is taken only where this holds; the launcher checks it."""
def expect(*conditions: Any, **options: Any) -> None:
    """An invariant that the verifier must prove at this place."""
def tag(*parts: Any, **options: Any) -> Any:
    """In tw.expect: where a value comes from."""
def covers(*parts: Any, **options: Any) -> Any:
    """In tw.expect: parts that together are the whole."""
def disjoint(*parts: Any, **options: Any) -> Any:
    """In tw.expect: parts that do not meet."""
def fresh(*parts: Any, **options: Any) -> Any:
    """In tw.expect: a barrier's phase that nobody has waited for."""
def shared(dtype: Any, shape: Any, pad: Any = ..., swizzle: Any = ..., **options: Any) -> Any:
    """A buffer in the block's shared memory."""
def overlay(*buffers: Any, **options: Any) -> Any:
    """Shared buffers that take the same place, one after another."""
def store(where: Any, tile: Any, **options: Any) -> None:
    """Writes a tile to global or shared memory; elements beyond the edge are left out."""
def atomic_add(where: Any, tile: Any, **options: Any) -> None:
    """Adds a tile to global memory, element by element."""
def zeros(shape: Any, dtype: Any = ..., layout: Any = ..., **options: Any) -> Any:
    """A register tile of zeros."""
def full(shape: Any, value: Any, dtype: Any = ..., layout: Any = ..., **options: Any) -> Any:
    """A register tile of one value."""
def arange(count: Any, **options: Any) -> Any:
    """A register tile of 0, 1, 2, ..."""
def coord(tile: Any, axis: int = ..., **options: Any) -> Any:
    """The coordinates of a tile's elements along an axis."""
def relayout(tile: Any, layout: Any, **options: Any) -> Any:
    """The same tile, held by threads in another way."""
def sum(tile: Any, axis: Any = ..., **options: Any) -> Any:
    """The sum over an axis."""
def prod(tile: Any, axis: Any = ..., **options: Any) -> Any:
    """The product over an axis."""
def min(*values: Any, axis: Any = ..., **options: Any) -> Any:
    """The least value over an axis of a tile, or of constants."""
def max(*values: Any, axis: Any = ..., **options: Any) -> Any:
    """The greatest value over an axis of a tile, or of constants."""
def argmax(tile: Any, axis: Any = ..., **options: Any) -> Any:
    """Where the greatest value over an axis is."""
def argmin(tile: Any, axis: Any = ..., **options: Any) -> Any:
    """Where the least value over an axis is."""
def any(condition: Any, **options: Any) -> Any:
    """Is it true of an element that this warp holds? For a branch that changes nothing."""
def minimum(a: Any, b: Any, **options: Any) -> Any:
    """The smaller of each pair."""
def maximum(a: Any, b: Any, **options: Any) -> Any:
    """The greater of each pair."""
def cumsum(tile: Any, axis: Any = ..., **options: Any) -> Any:
    """Sums up to each element along an axis."""
def cumprod(tile: Any, axis: Any = ..., **options: Any) -> Any:
    """Products up to each element along an axis."""
def shuffle(tile: Any, **options: Any) -> Any:
    """Values of other lanes of the warp."""
def exp(x: Any, **options: Any) -> Any:
    """e to the power of x."""
def exp2(x: Any, **options: Any) -> Any:
    """2 to the power of x."""
def log(x: Any, **options: Any) -> Any:
    """The natural logarithm."""
def log2(x: Any, **options: Any) -> Any:
    """The logarithm to base 2."""
def sqrt(x: Any, **options: Any) -> Any:
    """The square root."""
def rsqrt(x: Any, **options: Any) -> Any:
    """1 / sqrt(x)."""
def rcp(x: Any, **options: Any) -> Any:
    """1 / x."""
def sin(x: Any, **options: Any) -> Any:
    """The sine."""
def cos(x: Any, **options: Any) -> Any:
    """The cosine."""
def tanh(x: Any, **options: Any) -> Any:
    """The hyperbolic tangent."""
def erf(x: Any, **options: Any) -> Any:
    """The error function."""
def sigmoid(x: Any, **options: Any) -> Any:
    """1 / (1 + exp(-x))."""
def abs(x: Any, **options: Any) -> Any:
    """The absolute value."""
def floor(x: Any, **options: Any) -> Any:
    """Rounded down."""
def ceil(x: Any, **options: Any) -> Any:
    """Rounded up."""
def pow(x: Any, y: Any, **options: Any) -> Any:
    """x to the power of y."""
def fma(a: Any, b: Any, c: Any, **options: Any) -> Any:
    """a * b + c, rounded once."""
def mulhi(a: Any, b: Any, **options: Any) -> Any:
    """The upper half of the 64-bit product of two u32."""
def philox(key0: Any, key1: Any, counter0: Any, counter1: Any, counter2: Any, counter3: Any, word: Any, **options: Any) -> Any:
    """A word of Philox4x32-10 of this counter under this key, as u32."""
def uniform(x: Any, **options: Any) -> Any:
    """The upper 24 bits of a u32 as f32, from 0 to 1 (not 1 itself)."""
def where(condition: Any, a: Any, b: Any, **options: Any) -> Any:
    """a where the condition holds, b elsewhere."""
def blocked(**options: Any) -> Any:
    """A layout: each thread holds vectors of neighbours."""
def rows(**options: Any) -> Any:
    """A layout: rows are held by whole warps or lanes."""
def warp_rows(**options: Any) -> Any:
    """A layout: each warp holds whole rows."""
def mma_a(**options: Any) -> Any:
    """The layout of mma.sync's first operand."""
def mma_b(**options: Any) -> Any:
    """The layout of mma.sync's second operand."""
def mma_c(**options: Any) -> Any:
    """The layout of mma.sync's accumulator."""
def wgmma_c(**options: Any) -> Any:
    """The layout of wgmma's accumulator."""
def like(tile: Any, **options: Any) -> Any:
    """The layout of another tile."""
def cp_async(to: Any, source: Any, **options: Any) -> None:
    """An asynchronous copy from global to shared memory."""
def cp_async_commit(**options: Any) -> None:
    """Ends a group of asynchronous copies."""
def cp_async_wait(left: int = ..., **options: Any) -> None:
    """Waits until at most so many groups are under way."""
def cp_async_arrive(barrier: Any, **options: Any) -> None:
    """Arrives on a barrier when this thread's copies are done."""
def mma(acc: Any, a: Any, b: Any, **options: Any) -> Any:
    """acc + a @ b by mma.sync."""
def sync(**options: Any) -> None:
    """A barrier of the block."""
def syncwarp(**options: Any) -> None:
    """A barrier of the warp."""
def mbarrier(count: Any = ..., **options: Any) -> Any:
    """Barriers in shared memory that count arrivals and bytes."""
def pipeline(stages: Any, consumers: Any = ..., producers: Any = ..., **options: Any) -> Any:
    """A ring of slots between roles."""
def tma_load(to: Any, source: Any, on: Any = ..., **options: Any) -> None:
    """A copy of a box from global to shared memory by TMA."""
def tma_store(to: Any, source: Any, **options: Any) -> None:
    """A copy of a box from shared to global memory by TMA."""
def tma_reduce_add(to: Any, source: Any, **options: Any) -> None:
    """Adds a box of shared memory to global memory by TMA."""
def tma_store_commit(**options: Any) -> None:
    """Ends a group of stores by TMA."""
def tma_store_wait(left: int = ..., **options: Any) -> None:
    """Waits until at most so many groups of stores still read shared memory."""
def fence_async(**options: Any) -> None:
    """What was written to shared memory is seen by TMA and wgmma afterwards."""
def wgmma(acc: Any, a: Any, b: Any, **options: Any) -> None:
    """acc += a @ b on the tensor cores, asynchronous."""
def wgmma_wait(left: int = ..., **options: Any) -> None:
    """Waits until at most so many wgmma are under way."""
def wgmma_batch(**options: Any) -> Any:
    """with tw.wgmma_batch(): the wgmma inside are one group."""
def warpgroups(*which: Any, regs: Any = ..., name: str = ..., **options: Any) -> Any:
    """with tw.warpgroups(1, 2) as w: what these warpgroups do; w is the number among them."""
def warps(*which: Any, name: str = ..., **options: Any) -> Any:
    """with tw.warps(0): what these warps do."""
def elected(**options: Any) -> Any:
    """with tw.elected(): one thread of the warp."""
def named_barrier(number: Any, threads: Any, **options: Any) -> Any:
    """A barrier of some of the block's warps."""
def cluster_sync(**options: Any) -> None:
    """A barrier of the cluster."""
def cluster_arrive(**options: Any) -> None:
    """The first half of a barrier of the cluster."""
def cluster_wait(**options: Any) -> None:
    """The second half of a barrier of the cluster."""
def team(*extents: Any, **options: Any) -> Any:
    """Blocks of the grid that hand values to each other."""
def sizes(names: str, **options: Any) -> Any:
    """Sizes that are known at launch: M, N = tw.sizes("M N")."""
def parameters(names: str, **options: Any) -> Any:
    """Names of const parameters, for Python's own tools: T, BN = tw.parameters("T BN"). Means nothing to the compiler."""
def scalar(dtype: Any, positive: bool = ..., **options: Any) -> Any:
    """A number that is passed to the kernel."""
def const(*choices: Any, **options: Any) -> Any:
    """A constant of the kernel: one of these values, chosen when it is compiled."""
def each(*choices: Any, **options: Any) -> Any:
    """A constant with a variant of the kernel for each of its values."""
def record(*base: Any, **fields: Any) -> Any:
    """Values by name: r = tw.record(rows=64, fold=plus), r.rows. Begins with the fields of other records."""
def table(entries: dict[Any, Any], **options: Any) -> Any:
    """Constants by key: t[BN, T], t.get(BN, 4)."""
def buffer(dtype: Any, *dims: Any, **options: Any) -> Any:
    """Memory of a program that its launches share."""
def view(tensor: Any, *dims: Any, strides: Any = ..., offset: int = ..., **options: Any) -> Any:
    """A tensor of a program with other extents and strides: what a launch is given of it."""
f64: Any
f32: Any
tf32: Any
bf16: Any
f16: Any
e4m3: Any
e5m2: Any
i64: Any
i32: Any
u32: Any
i16: Any
i8: Any
u8: Any
