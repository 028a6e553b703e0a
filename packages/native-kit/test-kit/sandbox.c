// Runs a program in a sandbox that refuses what containers refuse:
//   sandbox seccomp <setup|enter|register> <errno> program…   the io_uring call fails with that error number
//   sandbox memlock <bytes> program…                          so much may be locked, also for root
#include <errno.h>
#include <linux/audit.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

static int refuse(int call, int error) {
  struct sock_filter filter[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)call, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | (unsigned)error),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  struct sock_fprog program = {sizeof filter / sizeof *filter, filter};
  return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
}

static int limit_locked(unsigned long bytes) {
  struct rlimit limit = {bytes, bytes};
  // root may lock what it likes unless the capability is gone before the program starts
  if (geteuid() == 0 && prctl(PR_CAPBSET_DROP, CAP_IPC_LOCK, 0, 0, 0)) return 1;
  return setrlimit(RLIMIT_MEMLOCK, &limit);
}

int main(int count, char** arguments) {
  int failed = 1, first = 3;
  if (count > 4 && strcmp(arguments[1], "seccomp") == 0) {
    const char* calls[] = {"setup", "enter", "register"};
    for (int i = 0; i < 3; ++i)
      if (strcmp(arguments[2], calls[i]) == 0) failed = refuse(425 + i, atoi(arguments[3]));
    first = 4;
  } else if (count > 3 && strcmp(arguments[1], "memlock") == 0) {
    failed = limit_locked(strtoul(arguments[2], NULL, 10));
  }
  if (failed) return perror("sandbox"), 100;
  execvp(arguments[first], arguments + first);
  return perror(arguments[first]), 101;
}
