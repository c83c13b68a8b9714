// Copies between memories other than matrix moves and TMA: vector access, cp.async (non-bulk), cp.async.bulk (1D).
#pragma once

#include <cstdint>
#include <string>

#include "target/arch.h"
#include "target/legality.h"

namespace tw::target {

enum class Space : std::uint8_t { None, Register, SharedCta, SharedCluster, Global };
std::string_view name(Space s);

// ---- ld/st, .v1 .v2 .v4 of elements of 1, 2, 4 or 8 bytes ----
struct VectorAccess {
    int element_bytes;
    int count;  // 1, 2, 4
    [[nodiscard]] int bytes() const { return element_bytes * count; }
};
// The access is naturally aligned: byte_address must be a multiple of bytes().
Legality vector_access_legal(const Arch& arch, VectorAccess a);
Legality vector_access_aligned(VectorAccess a, std::uint64_t byte_address);

// ---- cp.async: 4, 8 or 16 bytes global -> shared per thread, without passing through registers ----
enum class CpAsyncCache : std::uint8_t { Ca, Cg };  // Cg keeps the line out of L1 and is only for 16 bytes
struct CpAsync {
    int bytes;  // cp-size: 4, 8, 16
    CpAsyncCache cache;
    [[nodiscard]] std::string ptx_name() const;  // "cp.async.cg.shared.global"
};
Legality cp_async_legal(const Arch& arch, CpAsync c);
// source_bytes (src-size) of the copy are read, the rest of the `bytes` written to shared memory is zero.
Legality cp_async_operands_legal(CpAsync c, std::uint64_t shared_address, std::uint64_t global_address, int source_bytes);

// cp.async.mbarrier.arrive: the thread's arrive on an mbarrier happens when all its earlier cp.async have landed.
// Plain: pending count is first incremented by one, so the arrive is neutral and the barrier's count excludes it.
// .noinc: the arrive counts, so the barrier's count must include it.
int cp_async_mbarrier_pending_change(bool noinc);  // net change of the pending count once landed: 0 or -1

// ---- cp.async.bulk: 1D, any direction among global, shared::cta and shared::cluster ----
enum class BulkDirection : std::uint8_t { GlobalToShared, SharedToGlobal, SharedToCluster, GlobalPrefetchL2 };
Legality bulk_copy_legal(const Arch& arch, BulkDirection d, std::uint64_t destination, std::uint64_t source, std::uint64_t size_bytes);

}  // namespace tw::target
