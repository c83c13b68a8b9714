// Small pieces of memory for the program: a proof makes and drops millions of them, and glibc's per-thread cache keeps seven of a size.
// This one keeps more (a fifth of a proof's time, docs/verifier.md). The pieces are malloc's own, so either may free what the other made.
// Not in the library: a process that loads it has its own operator new.
#include <malloc.h>

#include <array>
#include <cstddef>
#include <cstdlib>
#include <new>

#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(memory_sanitizer) || __has_feature(thread_sanitizer)
#define TW_SANITIZED 1
#endif
#endif
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define TW_SANITIZED 1
#endif

#if !defined(TW_SANITIZED)  // those must see every allocation

namespace {

constexpr std::size_t step = 16, largest = 1024, most_kept = 4096;

struct Piece {
    Piece* next;
};

// By size / step. Plain data, so that it can be used before the first and after the last constructor of a thread has run.
struct Kept {
    std::array<Piece*, largest / step + 1> first;
    std::array<std::size_t, largest / step + 1> count;
    bool watched, closed;
};
thread_local Kept kept;

struct FreeAtThreadEnd {
    ~FreeAtThreadEnd() {
        kept.closed = true;
        for (Piece*& list : kept.first) {
            while (list) {
                Piece* const next = list->next;
                std::free(list);
                list = next;
            }
        }
    }
};

void watch_thread_end() {
    static thread_local FreeAtThreadEnd at_end;
    static_cast<void>(at_end);
    kept.watched = true;
}

void* allocate(std::size_t size) {
    const std::size_t of = size ? (size + step - 1) / step : 1;
    if (of >= kept.first.size()) return std::malloc(size);
    if (Piece* const p = kept.first[of]) {
        kept.first[of] = p->next;
        --kept.count[of];
        return p;
    }
    return std::malloc(of * step);
}

void release(void* p) noexcept {
    if (!p) return;
    const std::size_t of = malloc_usable_size(p) / step;
    if (of == 0 || of >= kept.first.size() || kept.count[of] >= most_kept || kept.closed) return std::free(p);
    if (!kept.watched) watch_thread_end();
    auto* const piece = static_cast<Piece*>(p);
    piece->next = kept.first[of];
    kept.first[of] = piece;
    ++kept.count[of];
}

void* allocate_or_throw(std::size_t size) {
    for (;;) {
        if (void* const p = allocate(size)) return p;
        const std::new_handler handler = std::get_new_handler();
        if (!handler) throw std::bad_alloc();
        handler();
    }
}

}  // namespace

void* operator new(std::size_t size) { return allocate_or_throw(size); }
void* operator new[](std::size_t size) { return allocate_or_throw(size); }
void* operator new(std::size_t size, const std::nothrow_t&) noexcept { return allocate(size); }
void* operator new[](std::size_t size, const std::nothrow_t&) noexcept { return allocate(size); }
void operator delete(void* p) noexcept { release(p); }
void operator delete[](void* p) noexcept { release(p); }
void operator delete(void* p, std::size_t) noexcept { release(p); }
void operator delete[](void* p, std::size_t) noexcept { release(p); }
void operator delete(void* p, const std::nothrow_t&) noexcept { release(p); }
void operator delete[](void* p, const std::nothrow_t&) noexcept { release(p); }

#endif
