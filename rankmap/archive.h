// SPDX-License-Identifier: Apache-2.0
// Checkpoints as bytes: numbers and lists in little endian, a checksum at the end.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace sekisho::rankmap {

static_assert(std::endian::native == std::endian::little);

inline uint64_t Checksum(std::string_view bytes) {
  uint64_t hash = 0xcbf29ce484222325;
  while (bytes.size() >= 8) {
    uint64_t word;
    std::memcpy(&word, bytes.data(), 8);
    hash = (hash ^ word) * 0x100000001b3;
    hash ^= hash >> 29;
    bytes.remove_prefix(8);
  }
  for (const char c : bytes) {
    hash = (hash ^ static_cast<uint8_t>(c)) * 0x100000001b3;
  }
  return hash;
}

class ArchiveWriter {
 public:
  template <typename T>
  void Put(const T& value) {
    static_assert(std::is_trivially_copyable_v<T>);
    bytes_.append(reinterpret_cast<const char*>(&value), sizeof(value));
  }
  template <typename T>
  void PutList(const std::vector<T>& list) {
    static_assert(std::is_trivially_copyable_v<T>);
    Put<uint64_t>(list.size());
    bytes_.append(reinterpret_cast<const char*>(list.data()), list.size() * sizeof(T));
  }
  std::string Finish() && {
    Put(Checksum(bytes_));
    return std::move(bytes_);
  }

 private:
  std::string bytes_;
};

class ArchiveReader {
 public:
  explicit ArchiveReader(std::string_view bytes) : bytes_(bytes) {
    uint64_t sum = 0;
    is_good_ = bytes.size() >= 8;
    if (is_good_) {
      bytes_ = bytes.substr(0, bytes.size() - 8);
      std::memcpy(&sum, bytes.data() + bytes_.size(), 8);
      is_good_ = sum == Checksum(bytes_);
    }
  }

  // False from the first read that does not fit; what was read then means nothing.
  bool is_good() const { return is_good_; }
  bool is_finished() const { return is_good_ && bytes_.empty(); }

  template <typename T>
  T Get() {
    T value{};
    if (!is_good_ || bytes_.size() < sizeof(T)) {
      is_good_ = false;
      return value;
    }
    std::memcpy(&value, bytes_.data(), sizeof(T));
    bytes_.remove_prefix(sizeof(T));
    return value;
  }
  template <typename T>
  std::vector<T> GetList() {
    const uint64_t size = Get<uint64_t>();
    std::vector<T> list;
    if (!is_good_ || size > bytes_.size() / sizeof(T)) {
      is_good_ = false;
      return list;
    }
    list.resize(size);
    if (size > 0) {
      std::memcpy(list.data(), bytes_.data(), size * sizeof(T));
    }
    bytes_.remove_prefix(size * sizeof(T));
    return list;
  }

 private:
  std::string_view bytes_;
  bool is_good_;
};

}  // namespace sekisho::rankmap
