#include "runtime/segments.h"

#include <algorithm>
#include <vector>

namespace sim::segments {

namespace {

constexpr uint64_t kMiB = uint64_t{1} << 20;
constexpr uint64_t kLeastBlock = 512;  // kMinBlockSize

uint64_t round_up(uint64_t bytes, uint64_t multiple) {
  return (bytes + multiple - 1) / multiple * multiple;
}

bool is_small(uint64_t block) {
  return block <= kMiB;  // kSmallSize
}

void increase(Figures& figures, bool small, uint64_t amount) {
  figures[0].increase(amount);
  figures[small ? 1 : 2].increase(amount);
}

void decrease(Figures& figures, bool small, uint64_t amount) {
  figures[0].decrease(amount);
  figures[small ? 1 : 2].decrease(amount);
}

}  // namespace

void Count::increase(uint64_t amount) {
  current += amount;
  allocated += amount;
  peak = std::max(peak, current);
}

void Count::decrease(uint64_t amount) {
  current -= amount;
  freed += amount;
}

template <class Change>
void Usage::each(Change change) {
  for (auto* figures : {&bytes, &requested, &blocks, &reserved, &segments, &inactive_bytes, &inactive}) {
    std::for_each(figures->begin(), figures->end(), change);
  }
}

void Usage::reset_peak() {
  each([](Count& count) { count.peak = count.current; });
}

void Usage::reset_accumulated() {
  each([](Count& count) { count.allocated = count.freed = 0; });
  taken = given = 0;
}

// get_allocation_size.
uint64_t size_of_segment(uint64_t bytes) {
  if (is_small(bytes)) {
    return 2 * kMiB;
  }
  return bytes < 10 * kMiB ? 20 * kMiB : round_up(bytes, 2 * kMiB);
}

uint64_t size_of_block(uint64_t bytes) {
  return std::max(round_up(bytes, kLeastBlock), kLeastBlock);
}

// get_free_block: the smallest that is large enough, and of these the first.
Piece* Segments::take(uint64_t bytes) {
  const auto block = size_of_block(bytes);
  Piece sought{block, 0, 0, is_small(block)};
  auto& pool = pool_of(sought);
  const auto found = pool.lower_bound(&sought);
  if (found == pool.end()) {
    return nullptr;
  }
  auto* piece = *found;
  remove_free(piece);
  piece->is_new = false;
  return use(piece, block, bytes);
}

Piece* Segments::take_new(uint64_t bytes) {
  const auto block = size_of_block(bytes), size = size_of_segment(block);
  auto* piece = new Piece{size, next_place_, 0, is_small(block)};
  piece->is_new = true;
  next_place_ += size;
  increase(usage.reserved, piece->is_small, size);
  increase(usage.segments, piece->is_small, 1);
  ++usage.taken;
  return use(piece, block, bytes);
}

// should_split: of a large block a small rest is not split off.
Piece* Segments::use(Piece* piece, uint64_t bytes, uint64_t requested) {
  const auto rest = piece->bytes - bytes;
  if (piece->is_small ? rest >= kLeastBlock : rest > kMiB) {
    auto* after = new Piece{rest, piece->place + bytes, 0, piece->is_small, false, false, piece, piece->after};
    if (after->after != nullptr) {
      after->after->before = after;
    }
    piece->after = after;
    piece->bytes = bytes;
    add_free(after);
  }
  piece->requested = requested;
  increase(usage.bytes, piece->is_small, piece->bytes);
  increase(usage.requested, piece->is_small, requested);
  increase(usage.blocks, piece->is_small, 1);
  return piece;
}

void Segments::give_back(Piece* piece) {
  decrease(usage.bytes, piece->is_small, piece->bytes);
  decrease(usage.requested, piece->is_small, piece->requested);
  decrease(usage.blocks, piece->is_small, 1);
  for (auto* neighbour : {piece->before, piece->after}) {
    if (neighbour != nullptr && neighbour->is_free) {
      merge(piece, neighbour);
    }
  }
  add_free(piece);
}

void Segments::merge(Piece* piece, Piece* neighbour) {
  remove_free(neighbour);
  piece->bytes += neighbour->bytes;
  piece->place = std::min(piece->place, neighbour->place);
  if (piece->before == neighbour) {
    piece->before = neighbour->before;
    if (piece->before != nullptr) {
      piece->before->after = piece;
    }
  } else {
    piece->after = neighbour->after;
    if (piece->after != nullptr) {
      piece->after->before = piece;
    }
  }
  delete neighbour;
}

void Segments::add_free(Piece* piece) {
  piece->is_free = true;
  pool_of(*piece).insert(piece);
  if (piece->is_split()) {
    increase(usage.inactive_bytes, piece->is_small, piece->bytes);
    increase(usage.inactive, piece->is_small, 1);
  }
}

void Segments::remove_free(Piece* piece) {
  piece->is_free = false;
  pool_of(*piece).erase(piece);
  if (piece->is_split()) {
    decrease(usage.inactive_bytes, piece->is_small, piece->bytes);
    decrease(usage.inactive, piece->is_small, 1);
  }
}

void Segments::release() {
  for (auto* pool : {&small_, &large_}) {
    const std::vector<Piece*> free(pool->begin(), pool->end());
    for (auto* piece : free) {
      if (!piece->is_split()) {
        remove_free(piece);
        decrease(usage.reserved, piece->is_small, piece->bytes);
        decrease(usage.segments, piece->is_small, 1);
        ++usage.given;
        delete piece;
      }
    }
  }
}

}  // namespace sim::segments
