// A map kept as a sorted vector: for maps of a few entries that are made, copied and compared all the time.
#pragma once

#include <algorithm>
#include <utility>
#include <vector>

namespace tw {

template <class Key, class Value>
class FlatMap {
public:
    using Entry = std::pair<Key, Value>;
    using iterator = typename std::vector<Entry>::iterator;
    using const_iterator = typename std::vector<Entry>::const_iterator;

    iterator begin() { return entries_.begin(); }
    iterator end() { return entries_.end(); }
    const_iterator begin() const { return entries_.begin(); }
    const_iterator end() const { return entries_.end(); }
    const Entry& last() const { return entries_.back(); }  // pre: not empty
    std::size_t size() const { return entries_.size(); }
    bool empty() const { return entries_.empty(); }

    const_iterator find(const Key& key) const {
        const auto at = std::lower_bound(entries_.begin(), entries_.end(), key, before);
        return at != entries_.end() && at->first == key ? at : entries_.end();
    }
    // The entry of the key, and whether it is new; an old one keeps its value.
    std::pair<iterator, bool> emplace(Key key, Value value) {
        const auto at = std::lower_bound(entries_.begin(), entries_.end(), key, before);
        if (at != entries_.end() && at->first == key) return {at, false};
        return {entries_.emplace(at, std::move(key), std::move(value)), true};
    }
    Value& operator[](const Key& key) { return emplace(key, Value{}).first->second; }
    // Pre: the key is beyond all there are.
    void append(Key key, Value value) { entries_.emplace_back(std::move(key), std::move(value)); }
    void reserve(std::size_t entries) { entries_.reserve(entries); }
    void erase(iterator at) { entries_.erase(at); }

    friend bool operator==(const FlatMap&, const FlatMap&) = default;
    friend bool operator<(const FlatMap& a, const FlatMap& b) { return a.entries_ < b.entries_; }

private:
    static bool before(const Entry& e, const Key& key) { return e.first < key; }
    std::vector<Entry> entries_;
};

}  // namespace tw
