#include "target/copy.h"

#include <array>

namespace tw::target {

namespace {
bool power_of_two(int v) { return v > 0 && (v & (v - 1)) == 0; }
std::string text(std::uint64_t v) { return std::to_string(v); }
}  // namespace

std::string_view name(Space s) {
    constexpr std::array<std::string_view, 5> names = {"none", "register", "shared::cta", "shared::cluster", "global"};
    return names[static_cast<std::size_t>(s)];
}

Legality vector_access_legal(const Arch& arch, VectorAccess a) {
    if (!power_of_two(a.element_bytes) || a.element_bytes > 8)
        return Legality::no("elements of " + std::to_string(a.element_bytes) + " bytes cannot be loaded or stored; 1, 2, 4 or 8");
    if (a.count != 1 && a.count != 2 && a.count != 4)
        return Legality::no("a vector access has 1, 2 or 4 elements, not " + std::to_string(a.count));
    if (a.bytes() > arch.max_vector_bytes)
        return Legality::no("an access of " + std::to_string(a.bytes()) + " bytes per thread is wider than the " +
                            std::to_string(arch.max_vector_bytes) + " bytes of " + std::string(arch.name));
    return Legality::yes();
}

Legality vector_access_aligned(VectorAccess a, std::uint64_t address) {
    if (address % static_cast<std::uint64_t>(a.bytes()) != 0)
        return Legality::no("address " + text(address) + " is not a multiple of the access width of " + std::to_string(a.bytes()) +
                            " bytes");
    return Legality::yes();
}

std::string CpAsync::ptx_name() const { return std::string("cp.async.") + (cache == CpAsyncCache::Cg ? "cg" : "ca") + ".shared.global"; }

Legality cp_async_legal(const Arch& arch, CpAsync c) {
    if (!arch.has(Feature::CpAsync)) return Legality::no("cp.async does not exist on " + std::string(arch.name));
    if (c.bytes != 4 && c.bytes != 8 && c.bytes != 16)
        return Legality::no("cp.async copies 4, 8 or 16 bytes per thread, not " + std::to_string(c.bytes));
    if (c.cache == CpAsyncCache::Cg && c.bytes != 16)
        return Legality::no("cp.async.cg copies 16 bytes only; use .ca for " + std::to_string(c.bytes));
    return Legality::yes();
}

Legality cp_async_operands_legal(CpAsync c, std::uint64_t shared_address, std::uint64_t global_address, int source_bytes) {
    const auto size = static_cast<std::uint64_t>(c.bytes);
    if (shared_address % size != 0)
        return Legality::no("cp.async destination " + text(shared_address) + " is not aligned to " + text(size) + " bytes");
    if (global_address % size != 0)
        return Legality::no("cp.async source " + text(global_address) + " is not aligned to " + text(size) + " bytes");
    if (source_bytes < 0 || source_bytes > c.bytes)
        return Legality::no("cp.async src-size is " + std::to_string(source_bytes) + "; it must be 0 to " + std::to_string(c.bytes));
    return Legality::yes();
}

int cp_async_mbarrier_pending_change(bool noinc) { return noinc ? -1 : 0; }

Legality bulk_copy_legal(const Arch& arch, BulkDirection d, std::uint64_t destination, std::uint64_t source, std::uint64_t size) {
    if (!arch.has(Feature::Bulk)) return Legality::no("cp.async.bulk does not exist on " + std::string(arch.name));
    if (size == 0 || size % 16 != 0)
        return Legality::no("cp.async.bulk of " + text(size) + " bytes; the size must be a positive multiple of 16");
    if (source % 16 != 0) return Legality::no("cp.async.bulk source " + text(source) + " is not aligned to 16 bytes");
    if (d != BulkDirection::GlobalPrefetchL2 && destination % 16 != 0)
        return Legality::no("cp.async.bulk destination " + text(destination) + " is not aligned to 16 bytes");
    const bool counted = d == BulkDirection::GlobalToShared || d == BulkDirection::SharedToCluster;
    if (counted && size >= (1u << 20))
        return Legality::no("cp.async.bulk of " + text(size) + " bytes passes the mbarrier's transaction limit of 2^20 - 1");
    return Legality::yes();
}

}  // namespace tw::target
