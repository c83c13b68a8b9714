// A value or the reason why there is none.
//
// User-causable failure is a value in this code base (see HACKING.md): a function that can fail because of its input, the
// machine or the disk returns Expected<T, E>. g++ 12 has no std::expected; this is the small part of it that we use, with
// the same names, so that it can be replaced by the standard one later.
#pragma once

#include <cassert>
#include <type_traits>
#include <utility>
#include <variant>

namespace tw {

template <class E>
struct Unexpected {
    E error;
};
template <class E>
Unexpected(E) -> Unexpected<E>;

template <class T, class E>
class [[nodiscard]] Expected {
public:
    using value_type = T;
    using error_type = E;

    Expected(T value) : state_(std::in_place_index<0>, std::move(value)) {}
    template <class F, class = std::enable_if_t<std::is_convertible_v<F, E>>>
    Expected(Unexpected<F> failure) : state_(std::in_place_index<1>, std::move(failure.error)) {}

    bool has_value() const { return state_.index() == 0; }
    explicit operator bool() const { return has_value(); }

    T& value() & {
        assert(has_value());
        return *std::get_if<0>(&state_);
    }
    const T& value() const& {
        assert(has_value());
        return *std::get_if<0>(&state_);
    }
    T&& value() && {
        assert(has_value());
        return std::move(*std::get_if<0>(&state_));
    }
    T& operator*() & { return value(); }
    const T& operator*() const& { return value(); }
    T&& operator*() && { return std::move(*this).value(); }
    T* operator->() { return &value(); }
    const T* operator->() const { return &value(); }

    E& error() & {
        assert(!has_value());
        return *std::get_if<1>(&state_);
    }
    const E& error() const& {
        assert(!has_value());
        return *std::get_if<1>(&state_);
    }
    E&& error() && {
        assert(!has_value());
        return std::move(*std::get_if<1>(&state_));
    }

    // The failure, ready to be returned from a function with another value type.
    Unexpected<E> propagate() && { return Unexpected<E>{std::move(*this).error()}; }

private:
    std::variant<T, E> state_;
};

// Success carries no value.
template <class E>
class [[nodiscard]] Expected<void, E> {
public:
    using value_type = void;
    using error_type = E;

    Expected() = default;
    template <class F, class = std::enable_if_t<std::is_convertible_v<F, E>>>
    Expected(Unexpected<F> failure) : failed_(true), error_(std::move(failure.error)) {}

    bool has_value() const { return !failed_; }
    explicit operator bool() const { return has_value(); }
    E& error() & {
        assert(failed_);
        return error_;
    }
    const E& error() const& {
        assert(failed_);
        return error_;
    }
    E&& error() && {
        assert(failed_);
        return std::move(error_);
    }
    Unexpected<E> propagate() && { return Unexpected<E>{std::move(error_)}; }

private:
    bool failed_ = false;
    E error_{};
};

}  // namespace tw
