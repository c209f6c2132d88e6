// SPDX-License-Identifier: Apache-2.0
#include "native/device/grid_table.h"

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <tuple>

#include "native/core/launch/kernels.h"
#include "native/core/names.h"

namespace windlass {
namespace {

constexpr std::string_view kTitle = "windlass-cuda-grids ";
constexpr std::string_view kVersion = "1";
constexpr std::string_view kEnd = "end";
constexpr std::string_view kBlanks = " \t";
constexpr uint64_t kMostMultiprocessors = 100'000;

auto kindOf(const DeviceKind& device) {
  return std::make_tuple(device.major, device.minor, device.multiprocessors);
}

// Key of a case: everything except the bytes.
auto keyOf(const GridTable::Case& of) {
  return std::make_tuple(kindOf(of.device), of.operation, of.ranks, of.sharers);
}

bool isBefore(const GridTable::Case& one, const GridTable::Case& other) {
  return std::make_tuple(keyOf(one), one.bytes) < std::make_tuple(keyOf(other), other.bytes);
}

// A move of a link counts as a transfer, on both sides.
int32_t inTable(int32_t operation) {
  return operation == WL_OP_LINK_MOVE ? WL_OP_TRANSFER : operation;
}

// True if a rank's device runs the operation under that name.
bool isOfDevices(int32_t operation) {
  if (operation == WL_OP_BARRIER) return false;
  return collectiveOf(operation) != nullptr || operation == WL_OP_TRANSFER ||
         operation == WL_OP_EXPERT_DISPATCH || operation == WL_OP_EXPERT_COMBINE;
}

// Parses all of `text` as a number from `least` to `most`.
template <class T>
bool isNumber(std::string_view text, uint64_t least, uint64_t most, T* number) {
  const char* const end = text.data() + text.size();
  const auto [at, wrong] = std::from_chars(text.data(), end, *number);
  return wrong == std::errc() && at == end && *number >= least && *number <= most;
}

}  // namespace

// Reads the lines of a text in order.
class GridTable::Reader {
 public:
  Reader(std::string_view text, wl_error_t* error) : left_(text), error_(error) {}

  Code all(std::vector<Row>* rows) {
    if (Code code = title(); code != WL_OK) return code;
    for (;;) {
      Code code = next("it lacks its last line, end and the number of rows: it was cut");
      if (code != WL_OK) return code;
      const std::string_view first = word();
      if (first.empty() || first[0] == '#') continue;
      if (first == kEnd) return end(rows->size());
      Row row = {};
      if (code = read(first, &row); code != WL_OK) return code;
      rows->push_back(row);
    }
  }

 private:
  static constexpr int kMostShown = 40;

  Code wrong(const char* what) const {
    return fail(error_, WL_INVALID_ARGUMENT, "line %u: %s", line_, what);
  }
  // Reports an error in a part of the current line.
  Code wrong(std::string_view part, const char* what) const {
    const int length = static_cast<int>(std::min<size_t>(part.size(), kMostShown));
    return fail(error_, WL_INVALID_ARGUMENT, "line %u: '%.*s' %s", line_, length, part.data(),
                what);
  }

  Code title() {
    if (Code code = next("it is empty"); code != WL_OK) return code;
    if (rest_.substr(0, kTitle.size()) != kTitle)
      return wrong(rest_, "is not how a table begins, windlass-cuda-grids 1");
    const std::string_view version = rest_.substr(kTitle.size());
    if (version == kVersion) return WL_OK;
    return wrong(version, "is its version, and this library reads 1: write it anew");
  }

  // Goes to the next line. Refuses control characters other than tabs.
  Code next(const char* lacking) {
    ++line_;
    if (left_.empty()) return wrong(lacking);
    const size_t at = left_.find('\n');
    rest_ = left_.substr(0, at);
    left_.remove_prefix(at == std::string_view::npos ? left_.size() : at + 1);
    for (const char each : rest_) {
      const auto byte = static_cast<unsigned char>(each);
      if ((byte >= ' ' && byte < 0x7f) || byte == '\t') continue;
      char hex[8];
      std::snprintf(hex, sizeof hex, "0x%02x", byte);
      return wrong(hex, "is a byte that a table has none of");
    }
    return WL_OK;
  }

  // Returns the next word of the line; empty if there is none.
  std::string_view word() {
    rest_.remove_prefix(std::min(rest_.find_first_not_of(kBlanks), rest_.size()));
    const std::string_view found = rest_.substr(0, rest_.find_first_of(kBlanks));
    rest_.remove_prefix(found.size());
    return found;
  }

  Code end(uint64_t rows) {
    uint64_t number = 0;
    const std::string_view said = word();
    if (!isNumber(said, rows, rows, &number))
      return wrong(said, "is not how many rows stand before: it was cut, or changed by hand");
    if (const std::string_view more = word(); !more.empty())
      return wrong(more, "stands after the number of rows");
    if (left_.find_first_not_of(" \t\n") == std::string_view::npos) return WL_OK;
    ++line_;
    return wrong("something stands after the last one");
  }

  // Reads the next word as a number, unless an earlier word of the row is wrong.
  template <class T>
  void number(const char* what, uint64_t least, uint64_t most, T* value) {
    const std::string_view text = word();
    if (code_ == WL_OK && !isNumber(text, least, most, value)) code_ = wrong(text, what);
  }

  Code read(std::string_view capability, Row* row) {
    row->line = line_;
    const size_t point = std::min(capability.find('.'), capability.size());
    Case& of = row->of;
    if (!isNumber(capability.substr(0, point), 1, 99, &of.device.major) ||
        !isNumber(capability.substr(std::min(point + 1, capability.size())), 0, 99,
                  &of.device.minor)) {
      return wrong(capability, "is no compute capability such as 9.0");
    }
    number("is no number of multiprocessors, 1 to 100000", 1, kMostMultiprocessors,
           &of.device.multiprocessors);
    if (code_ != WL_OK) return code_;
    const std::string_view name = word();
    of.operation = operationNamed(name);
    if (!isOfDevices(of.operation)) return wrong(name, "is no operation that GPUs run");
    number("is no number of ranks, 1 to 64", 1, kMostDeviceRanks, &of.ranks);
    number("is no number of ranks on a GPU, 1 to all", 1, of.ranks, &of.sharers);
    number("is not from how many bytes on, 0 to 2^46", 0, kMostBytes, &of.bytes);
    number("is not up to how many bytes, no fewer than from which on, to 2^46", of.bytes,
           kMostBytes, &row->to);
    number("is no number of cores, 1 to 1024", 1, kMostCores, &row->cores);
    if (code_ != WL_OK) return code_;
    const std::string_view more = word();
    return more.empty() ? WL_OK : wrong(more, "stands after the number of cores");
  }

  std::string_view left_;  // lines that were not read yet
  std::string_view rest_;  // rest of the current line
  wl_error_t* const error_;
  uint32_t line_ = 0;
  Code code_ = WL_OK;  // of the numbers of a row
};

Code GridTable::read(std::string_view text, wl_error_t* error) {
  if (text.size() > kMostTextBytes) {
    return fail(error, WL_INVALID_ARGUMENT, "%llu bytes: a table of grids has %llu at most",
                static_cast<unsigned long long>(text.size()),
                static_cast<unsigned long long>(kMostTextBytes));
  }
  std::vector<Row> rows;
  if (Code code = Reader(text, error).all(&rows); code != WL_OK) return code;
  std::sort(rows.begin(), rows.end(),
            [](const Row& one, const Row& other) { return isBefore(one.of, other.of); });
  for (size_t i = 1; i < rows.size(); ++i) {
    const Row& before = rows[i - 1];
    if (keyOf(before.of) != keyOf(rows[i].of) || before.to < rows[i].of.bytes) continue;
    return fail(error, WL_INVALID_ARGUMENT, "lines %u and %u are of the same bytes",
                std::min(before.line, rows[i].line), std::max(before.line, rows[i].line));
  }
  rows_ = std::move(rows);
  return WL_OK;
}

uint32_t GridTable::cores(const Case& of) const {
  Case asked = of;
  asked.operation = inTable(of.operation);
  const auto after = std::upper_bound(
      rows_.begin(), rows_.end(), asked,
      [](const Case& one, const Row& row) { return isBefore(one, row.of); });
  if (after == rows_.begin()) return 0;
  const Row& row = *std::prev(after);
  return keyOf(row.of) == keyOf(asked) && asked.bytes <= row.to ? row.cores : 0;
}

uint32_t GridTable::rowsOf(const DeviceKind& device) const {
  return static_cast<uint32_t>(std::count_if(rows_.begin(), rows_.end(), [&](const Row& row) {
    return kindOf(row.of.device) == kindOf(device);
  }));
}

}  // namespace windlass
