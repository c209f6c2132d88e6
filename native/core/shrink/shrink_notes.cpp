// SPDX-License-Identifier: Apache-2.0
#include "native/core/shrink/shrink_notes.h"

#include <algorithm>
#include <cstddef>
#include <cstring>

namespace windlass {
namespace {

constexpr uint32_t kWordBits = 64;

// FNV-1a, one byte at a time.
uint64_t digestOf(const ShrinkNote& note) {
  const auto* const bytes = reinterpret_cast<const unsigned char*>(&note);
  uint64_t digest = 0xcbf29ce484222325u;
  for (size_t at = offsetof(ShrinkNote, round); at < offsetof(ShrinkNote, name) + note.nameBytes;
       ++at) {
    digest = (digest ^ bytes[at]) * 0x100000001b3u;
  }
  return digest;
}

}  // namespace

void writeNote(const Agreement& proposed, const std::vector<uint32_t>& members,
               const std::vector<unsigned char>& name, ShrinkNote* note) {
  ShrinkNote made = {};
  made.round = proposed.round;
  made.maker = proposed.maker;
  made.nameBytes = static_cast<uint32_t>(name.size());
  for (const uint32_t member : members)
    made.members[member / kWordBits] |= uint64_t{1} << member % kWordBits;
  std::copy(name.begin(), name.end(), made.name);
  made.digest = digestOf(made);
  std::memcpy(note, &made, sizeof made);
}

bool readNote(const ShrinkNote& note, const Agreement& proposed, uint32_t ranks,
              std::vector<uint32_t>* members, std::vector<unsigned char>* name) {
  ShrinkNote read;
  std::memcpy(&read, &note, sizeof read);
  if (read.round != proposed.round || read.maker != proposed.maker ||
      read.nameBytes > ShrinkNote::kMostNameBytes || read.digest != digestOf(read)) {
    return false;
  }
  members->clear();
  for (uint32_t rank = 0; rank < ranks; ++rank)
    if ((read.members[rank / kWordBits] >> rank % kWordBits & 1) != 0) members->push_back(rank);
  name->assign(read.name, read.name + read.nameBytes);
  return true;
}

}  // namespace windlass
