// A vector of plain numbers of which the first few need no memory of their own: for keys that are made, copied and compared all the time.
#pragma once

#include <algorithm>
#include <compare>
#include <cstdint>
#include <initializer_list>
#include <type_traits>

namespace tw {

template <class T, std::uint32_t Inline>
class SmallVector {
    static_assert(std::is_trivially_copyable_v<T>);

public:
    using value_type = T;
    using iterator = T*;
    using const_iterator = const T*;

    SmallVector() {}
    SmallVector(std::initializer_list<T> values) { append(values.begin(), values.end()); }
    SmallVector(const SmallVector& other) { append(other.begin(), other.end()); }
    SmallVector(SmallVector&& other) noexcept { take(other); }
    SmallVector& operator=(const SmallVector& other) {
        if (this != &other) {
            size_ = 0;
            append(other.begin(), other.end());
        }
        return *this;
    }
    SmallVector& operator=(SmallVector&& other) noexcept {
        if (this != &other) {
            if (capacity_ > Inline) delete[] heap_;
            take(other);
        }
        return *this;
    }
    ~SmallVector() {
        if (capacity_ > Inline) delete[] heap_;
    }

    T* begin() { return capacity_ > Inline ? heap_ : inline_; }
    T* end() { return begin() + size_; }
    const T* begin() const { return capacity_ > Inline ? heap_ : inline_; }
    const T* end() const { return begin() + size_; }
    std::size_t size() const { return size_; }
    bool empty() const { return size_ == 0; }
    const T& operator[](std::size_t i) const { return begin()[i]; }

    void push_back(T value) { append(&value, &value + 1); }
    void append(const T* first, const T* last) {  // of another vector
        const auto more = static_cast<std::uint32_t>(last - first);
        if (size_ + more > capacity_) grow(size_ + more);
        std::copy(first, last, end());
        size_ += more;
    }
    void erase(const T* where) {
        T* gap = begin() + (where - begin());
        std::copy(gap + 1, end(), gap);
        --size_;
    }

    friend bool operator==(const SmallVector& a, const SmallVector& b) { return std::equal(a.begin(), a.end(), b.begin(), b.end()); }
    friend auto operator<=>(const SmallVector& a, const SmallVector& b) {
        return std::lexicographical_compare_three_way(a.begin(), a.end(), b.begin(), b.end());
    }

private:
    void grow(std::uint32_t least) {
        const std::uint32_t capacity = std::max(least, 2 * capacity_);
        T* larger = new T[capacity];
        std::copy(begin(), end(), larger);
        if (capacity_ > Inline) delete[] heap_;
        heap_ = larger;
        capacity_ = capacity;
    }
    void take(SmallVector& other) {  // pre: nothing on the heap here
        size_ = other.size_;
        capacity_ = other.capacity_;
        if (capacity_ > Inline) heap_ = other.heap_;
        else std::copy(other.inline_, other.inline_ + size_, inline_);
        other.size_ = 0;
        other.capacity_ = Inline;
    }

    std::uint32_t size_ = 0, capacity_ = Inline;
    union {
        T inline_[Inline];
        T* heap_;
    };
};

}  // namespace tw
