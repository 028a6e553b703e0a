// A library for LD_PRELOAD that makes a drive of the process a bad one, as FAULT says:
//   short        every other pread of a shard in a thread brings half of what it could, as if it had been interrupted;
//                what follows is not what the file has
//   eio <n>      the n-th pread of more than a page by a thread named k3-pread fails, and no other
//   enospc <n>   from the n-th write of more than a page to a regular file on, each brings half and the next one fails
//   indirect     no file can be opened past the page cache
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>

enum { kPage = 4096 };

static __thread unsigned reads_of_thread = 0;
static atomic_int reads_left = 0, writes_left = 0;
static int is_short = 0, is_full = 0, is_indirect = 0;

__attribute__((constructor)) static void read_fault(void) {
  const char* fault = getenv("FAULT");
  if (!fault) return;
  is_short = strcmp(fault, "short") == 0;
  is_indirect = strcmp(fault, "indirect") == 0;
  if (strncmp(fault, "eio ", 4) == 0) reads_left = atoi(fault + 4);
  is_full = strncmp(fault, "enospc ", 7) == 0;
  if (is_full) writes_left = atoi(fault + 7);
}

static int is_reader(void) {
  char name[16] = "";
  prctl(PR_GET_NAME, name, 0, 0, 0);
  return strcmp(name, "k3-pread") == 0;
}

// Node.js itself does not survive a short read of a package.json.
static int is_shard(int file) {
  char link[40], path[4096];
  snprintf(link, sizeof link, "/proc/self/fd/%d", file);
  const ssize_t length = readlink(link, path, sizeof path);
  const char* end = ".safetensors";
  const ssize_t suffix = (ssize_t)strlen(end);
  return length >= suffix && memcmp(path + length - suffix, end, suffix) == 0;
}

static ssize_t faulty_read(const char* real, int file, void* to, size_t bytes, off_t offset) {
  ssize_t (*const read)(int, void*, size_t, off_t) = (ssize_t(*)(int, void*, size_t, off_t))dlsym(RTLD_NEXT, real);
  if (bytes > kPage && is_reader() && atomic_fetch_sub(&reads_left, 1) == 1) {
    errno = EIO;
    return -1;
  }
  const ssize_t got = read(file, to, bytes, offset);
  if (!is_short || got < 2 || !is_shard(file) || ++reads_of_thread % 2 == 0) return got;
  const ssize_t kept = (got + 1) / 2;
  memset((char*)to + kept, 0x5a, got - kept);
  return kept;
}

ssize_t pread(int file, void* to, size_t bytes, off_t offset) { return faulty_read("pread", file, to, bytes, offset); }
ssize_t pread64(int file, void* to, size_t bytes, off_t offset) {
  return faulty_read("pread64", file, to, bytes, offset);
}

ssize_t write(int file, const void* from, size_t bytes) {
  ssize_t (*const real)(int, const void*, size_t) = (ssize_t(*)(int, const void*, size_t))dlsym(RTLD_NEXT, "write");
  struct stat status;
  if (!is_full || bytes <= kPage || fstat(file, &status) != 0 || !S_ISREG(status.st_mode)) return real(file, from, bytes);
  const int left = atomic_fetch_sub(&writes_left, 1);
  if (left > 1) return real(file, from, bytes);
  if (left == 1) return real(file, from, bytes / 2);
  errno = ENOSPC;
  return -1;
}

static int faulty_open(const char* real, const char* path, int flags, int mode) {
  int (*const open)(const char*, int, ...) = (int (*)(const char*, int, ...))dlsym(RTLD_NEXT, real);
  if (!is_indirect || !(flags & O_DIRECT)) return open(path, flags, mode);
  errno = EINVAL;
  return -1;
}

#define OPEN(name)                              \
  int name(const char* path, int flags, ...) {  \
    va_list more;                               \
    va_start(more, flags);                      \
    const int mode = va_arg(more, int);         \
    va_end(more);                               \
    return faulty_open(#name, path, flags, mode); \
  }
OPEN(open)
OPEN(open64)
