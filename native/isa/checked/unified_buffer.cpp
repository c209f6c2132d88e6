// SPDX-License-Identifier: Apache-2.0
#include "native/isa/checked/unified_buffer.h"

#include <sys/mman.h>

#include <new>
#include <random>
#include <type_traits>

namespace windlass::checked {
namespace {

std::string against(const Origin& origin, Pipe pipe) {
  return describe(origin) + " on " + nameOf(pipe);
}

Clash race(const TileRef& tile, const Issue& issue, const char* what, const Origin& other,
           Pipe pipe, const char* may) {
  return {Rule::kTileRace, describe(tile) + " is " + what + " on " + nameOf(issue.pipe) +
                               " while " + against(other, pipe) + ", may still " + may + " it"};
}

}  // namespace

UnifiedBuffer::UnifiedBuffer(const Architecture& architecture, uint64_t seed)
    : bytes_(architecture.bufferBytes),
      blocks_(untouched(architecture.bufferBytes / kTileAlignment)) {
  std::mt19937_64 random(seed);
  for (size_t at = 0; at < bytes_.size(); at += sizeof(uint64_t)) {
    const uint64_t word = random();
    __builtin_memcpy(&bytes_[at], &word, sizeof word);
  }
}

// Maps zero-filled pages. Each operation makes buffers and touches few blocks, and Linux allocates
// only touched pages.
std::unique_ptr<UnifiedBuffer::Block[], UnifiedBuffer::Unmap> UnifiedBuffer::untouched(
    size_t count) {
  static_assert(std::is_trivially_copyable_v<Block> && std::is_trivially_destructible_v<Block>);
  static_assert(static_cast<int>(Pipe::kS) == 0);
  const Unmap unmap = {count * sizeof(Block)};
  void* const made = mmap(nullptr, unmap.bytes, PROT_READ | PROT_WRITE,
                          MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (made == MAP_FAILED) throw std::bad_alloc();
  return {static_cast<Block*>(made), unmap};
}

void UnifiedBuffer::Unmap::operator()(Block* blocks) const { munmap(blocks, bytes); }

// Calls look(block) for each block that the tile's valid part touches. Returns the first clash.
template <typename Look>
std::optional<Clash> UnifiedBuffer::each(const TileRef& tile, Look&& look) {
  std::optional<Clash> first;
  for (int64_t row = 0; row < tile.validRows; ++row) {
    const auto begin = static_cast<size_t>(tile.at.offset + row * tile.rowBytes());
    const size_t end = begin + static_cast<size_t>(tile.validRowBytes());
    for (size_t at = begin; at < end; at += kTileAlignment) {
      std::optional<Clash> clash = look(blocks_[at / kTileAlignment]);
      if (clash && !first) first = std::move(clash);
    }
  }
  return first;
}

std::optional<Clash> UnifiedBuffer::read(const TileRef& tile, const Issue& issue) {
  return each(tile, [&](Block& block) -> std::optional<Clash> {
    const Touch& written = block.written;
    block.read[static_cast<size_t>(issue.pipe)] = {issue.tick(issue.pipe), issue.origin};
    if (written.tick == 0) {
      return Clash{Rule::kTileUnwritten, describe(tile) + " is read where nothing was written"};
    }
    if (block.tile != tile.at.serial && written.origin.number > tile.at.placedAt) {
      return Clash{Rule::kTileOverlap,
                   describe(tile) + " is read where " + against(written.origin, block.writer) +
                       ", wrote another tile"};
    }
    if (block.writer != issue.pipe && written.tick > issue.tick(block.writer)) {
      return race(tile, issue, "read", written.origin, block.writer, "write");
    }
    return std::nullopt;
  });
}

std::optional<Clash> UnifiedBuffer::write(const TileRef& tile, const Issue& issue) {
  return each(tile, [&](Block& block) -> std::optional<Clash> {
    std::optional<Clash> clash;
    for (const Pipe pipe : kEveryPipe) {
      const Touch& read = block.read[static_cast<size_t>(pipe)];
      if (pipe != issue.pipe && read.tick > issue.tick(pipe)) {
        clash = race(tile, issue, "written", read.origin, pipe, "read");
      }
    }
    const Touch& written = block.written;
    if (block.writer != issue.pipe && written.tick > issue.tick(block.writer)) {
      clash = race(tile, issue, "written", written.origin, block.writer, "write");
    }
    block.written = {issue.tick(issue.pipe), issue.origin};
    block.writer = issue.pipe;
    block.tile = tile.at.serial;
    return clash;
  });
}

}  // namespace windlass::checked
