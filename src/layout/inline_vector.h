// A vector of plain values whose first N elements live inside the object. Layouts are small (a handful of modes) and are
// made and thrown away by the thousand in the verifier, so the common case must not touch the heap.
#pragma once

#include <algorithm>
#include <cassert>
#include <cstddef>
#include <cstring>
#include <type_traits>

namespace tw::layout {

template <class T, std::size_t N>
class InlineVector {
    static_assert(std::is_trivially_copyable_v<T>);

public:
    InlineVector() = default;
    InlineVector(const InlineVector& other) { append(other.begin(), other.end()); }
    InlineVector(InlineVector&& other) noexcept { steal(other); }
    InlineVector& operator=(const InlineVector& other) {
        if (this != &other) {
            size_ = 0;
            append(other.begin(), other.end());
        }
        return *this;
    }
    InlineVector& operator=(InlineVector&& other) noexcept {
        if (this != &other) {
            delete[] heap_;
            heap_ = nullptr;
            capacity_ = N;
            size_ = 0;
            steal(other);
        }
        return *this;
    }
    ~InlineVector() { delete[] heap_; }

    std::size_t size() const { return size_; }
    bool empty() const { return size_ == 0; }
    T* data() { return heap_ ? heap_ : inline_; }
    const T* data() const { return heap_ ? heap_ : inline_; }
    T* begin() { return data(); }
    T* end() { return data() + size_; }
    const T* begin() const { return data(); }
    const T* end() const { return data() + size_; }
    T& operator[](std::size_t i) {
        assert(i < size_);
        return data()[i];
    }
    const T& operator[](std::size_t i) const {
        assert(i < size_);
        return data()[i];
    }
    T& back() { return (*this)[size_ - 1]; }
    const T& back() const { return (*this)[size_ - 1]; }

    void clear() { size_ = 0; }
    void pop_back() {
        assert(size_ > 0);
        --size_;
    }
    void push_back(T value) {
        reserve(size_ + 1);
        data()[size_++] = value;
    }
    // Pre-condition: [first, last) does not point into this vector.
    void append(const T* first, const T* last) {
        const auto count = static_cast<std::size_t>(last - first);
        reserve(size_ + count);
        std::copy(first, last, data() + size_);
        size_ += count;
    }
    void reserve(std::size_t wanted) {
        if (wanted <= capacity_) return;
        const std::size_t grown = std::max(wanted, capacity_ * 2);
        T* bigger = new T[grown];
        std::copy(begin(), end(), bigger);
        delete[] heap_;
        heap_ = bigger;
        capacity_ = grown;
    }

private:
    void steal(InlineVector& other) {
        if (other.heap_) {
            heap_ = other.heap_;
            capacity_ = other.capacity_;
            size_ = other.size_;
            other.heap_ = nullptr;
            other.capacity_ = N;
        } else {
            std::copy(other.begin(), other.end(), inline_);
            size_ = other.size_;
        }
        other.size_ = 0;
    }

    T* heap_ = nullptr;
    std::size_t size_ = 0;
    std::size_t capacity_ = N;
    T inline_[N];
};

}  // namespace tw::layout
