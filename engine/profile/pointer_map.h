// From nodes or values to what is known of them. Objects of a graph lie in memory in about the order in which
// they were made, and are walked in that order: this table keeps neighbours near each other, where one that
// mixes addresses would miss the cache at every step. Nothing is erased.
#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

namespace faultline::profile {

template <class Key, class T>
class PointerMap {
 public:
  void reserve(size_t count) {
    size_t wanted = 16;
    while (wanted < 2 * count) wanted *= 2;
    if (wanted > slots_.size()) rehash(wanted);
  }
  void clear() {
    slots_.clear();
    size_ = 0;
  }
  const T* find(const Key* key) const {
    if (slots_.empty()) return nullptr;
    for (size_t i = slotOf(key);; i = (i + 1) & (slots_.size() - 1)) {
      if (slots_[i].key == key) return &slots_[i].value;
      if (slots_[i].key == nullptr) return nullptr;
    }
  }
  // Replaces what was there. `key` is not nullptr.
  void set(const Key* key, const T& value) {
    if (2 * (size_ + 1) > slots_.size()) reserve(2 * (size_ + 8));
    Slot& slot = slots_[freeSlotOf(key)];
    if (slot.key == nullptr) ++size_;
    slot = {key, value};
  }

 private:
  struct Slot {
    const Key* key = nullptr;
    T value{};
  };
  // No two objects are in one cache line. Memory that is larger than the table is laid over it in turns, each
  // at an offset of its own.
  size_t slotOf(const Key* key) const {
    const uint64_t line = reinterpret_cast<uintptr_t>(key) >> 6;
    const uint64_t turn = line >> bits_;
    return static_cast<size_t>(line + ((turn * 0x9e3779b97f4a7c15ull) >> 32)) & (slots_.size() - 1);
  }
  size_t freeSlotOf(const Key* key) const {
    size_t i = slotOf(key);
    while (slots_[i].key != nullptr && slots_[i].key != key) i = (i + 1) & (slots_.size() - 1);
    return i;
  }
  void rehash(size_t size) {
    std::vector<Slot> old(size);
    old.swap(slots_);
    bits_ = 0;
    while ((size_t{1} << bits_) < size) ++bits_;
    for (const Slot& slot : old) {
      if (slot.key != nullptr) slots_[freeSlotOf(slot.key)] = slot;
    }
  }

  std::vector<Slot> slots_;  // a power of two, at most half of them taken
  size_t size_ = 0;
  int bits_ = 0;
};

}  // namespace faultline::profile
