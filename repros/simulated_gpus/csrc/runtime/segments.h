// The segments that CUDA's caching allocator took from a device's driver, and the blocks in them.
//
// Contract held: c10/cuda/CUDACachingAllocator.cpp with its default settings, for one stream. Only the bookkeeping is
// done: a block's bytes are the host's, and its place is an offset.
#pragma once

#include <array>
#include <cstdint>
#include <set>

namespace sim::segments {

struct Count {
  uint64_t current = 0;    // in use
  uint64_t peak = 0;       // most in use at once since the last `reset_peak`
  uint64_t allocated = 0;  // allocated since the start or the last `reset_accumulated`
  uint64_t freed = 0;      // freed since then

  void increase(uint64_t amount);
  void decrease(uint64_t amount);
};

// A statistic of all blocks, of the small and of the large ones.
using Figures = std::array<Count, 3>;

struct Usage {
  Figures bytes, requested, blocks;  // in use; as the allocator counts them, and as they were asked for
  Figures reserved, segments;        // taken from the driver
  Figures inactive_bytes, inactive;  // free parts of segments that have other parts
  uint64_t taken = 0, given = 0;     // calls of cudaMalloc and of cudaFree

  void reset_peak();
  void reset_accumulated();

 private:
  template <class Change>
  void each(Change change);
};

// A block's part of a segment.
struct Piece {
  uint64_t bytes;
  uint64_t place;  // where it begins; the segments' order
  uint64_t requested = 0;
  bool is_small;
  bool is_free = false;
  bool is_new = false;  // whether its segment was taken for it
  Piece* before = nullptr;
  Piece* after = nullptr;

  bool is_split() const {
    return before != nullptr || after != nullptr;
  }
};

// The size of the segment that the allocator requests for a block; its error message has this size.
uint64_t size_of_segment(uint64_t bytes);
// A request's size, rounded up to blocks.
uint64_t size_of_block(uint64_t bytes);

class Segments {
 public:
  // Returns a block of free memory, or null if there is none large enough.
  Piece* take(uint64_t bytes);
  // Returns a block of a new segment.
  Piece* take_new(uint64_t bytes);
  void give_back(Piece* piece);
  // Returns the unused segments to the driver.
  void release();

  uint64_t reserved() const {
    return usage.reserved[0].current;
  }

  Usage usage;

 private:
  struct BySize {
    bool operator()(const Piece* one, const Piece* other) const {
      return one->bytes != other->bytes ? one->bytes < other->bytes : one->place < other->place;
    }
  };
  using Pool = std::set<Piece*, BySize>;

  Pool& pool_of(const Piece& piece) {
    return piece.is_small ? small_ : large_;
  }
  Piece* use(Piece* piece, uint64_t bytes, uint64_t requested);
  void add_free(Piece* piece);
  void remove_free(Piece* piece);
  void merge(Piece* piece, Piece* neighbour);

  Pool small_, large_;
  uint64_t next_place_ = 0;
};

}  // namespace sim::segments

namespace sim {

using segments::Count, segments::Figures, segments::Piece, segments::Segments, segments::size_of_block,
    segments::size_of_segment, segments::Usage;

}  // namespace sim
