// The two C structs that cross addon borders: a thread pool and a memory region. Each travels as a type-tagged
// napi External, so that addons built apart (other compiler, other C++ runtime) agree on bytes alone.
#pragma once
#include <stddef.h>
#include <stdint.h>

enum { K3_ABI_VERSION = 1 };

// A task is called once per part, part 0 on the caller's thread; parts run at the same time and share `context`.
typedef void (*K3Task)(void* context, uint32_t part, uint32_t parts);

typedef struct K3Pool {
  uint32_t abi;      // K3_ABI_VERSION
  uint32_t threads;  // parts of every run, the calling thread included; 0 once the pool is closed (atomic)
  // Runs `task` on all threads and returns when every part has; 0 = done, 1 = the pool is closed, nothing ran.
  int (*run)(struct K3Pool* pool, K3Task task, void* context);
  void (*retain)(struct K3Pool* pool);
  void (*release)(struct K3Pool* pool);
} K3Pool;

typedef struct K3Region {
  uint32_t abi;       // K3_ABI_VERSION
  uint32_t writable;  // 0 for a read-only mapping
  uint8_t* data;
  uint64_t bytes;
  // The bytes stay mapped while anybody holds a reference, also after the owner in JavaScript closed the region.
  void (*retain)(struct K3Region* region);
  void (*release)(struct K3Region* region);
} K3Region;

#define K3_POOL_TAG {0x6b335f706f6f6c31ull, 0x9d2c4e7fa1b35867ull}
#define K3_REGION_TAG {0x6b335f7265676e31ull, 0x51f07b6ac8e49d23ull}
