import { readFileSync } from 'node:fs'
import { getSystemErrorName } from 'node:util'

/** What C++ reports: the system call that refused, and its error number. */
export interface Refusal {
  readonly stage: string
  readonly error: number
}

/** The name of an errno value, such as EPERM. */
export const errorName = (error: number): string => getSystemErrorName(-error)

const lockedMemory = 'the limit on locked memory (RLIMIT_MEMLOCK, ulimit -l) is too small'

const hints: Readonly<Record<string, string>> = {
  'io_uring_setup EPERM': 'a sandbox (seccomp) forbids it',
  'io_uring_setup ENOSYS': 'this kernel has no io_uring, or a sandbox hides it',
  'io_uring_setup ENOMEM': lockedMemory,
  'IORING_OP_READ EINVAL': 'this kernel is older than Linux 5.6',
  'io_uring_register ENOMEM': lockedMemory,
  'io_uring_register EINVAL': 'this kernel is older than Linux 5.19',
  'O_DIRECT EINVAL': 'this file system does not read past the page cache'
}

/** A refusal in words: which call, which error, and the usual reason. */
export const explain = ({ stage, error }: Refusal): string => {
  const what = `${stage} ${errorName(error)}`
  const hint = what === 'io_uring_setup EPERM' ? whyForbidden() : hints[what]
  return hint === undefined ? `${stage}: ${errorName(error)}` : `${stage}: ${errorName(error)}, ${hint}`
}

const whyForbidden = () => {
  const setting = ioUringDisabled()
  return setting === '1' || setting === '2'
    ? `kernel.io_uring_disabled is ${setting}`
    : hints['io_uring_setup EPERM']
}

const ioUringDisabled = () => {
  try {
    return readFileSync('/proc/sys/kernel/io_uring_disabled', 'latin1').trim()
  } catch {
    return 'unknown' // kernels before 6.6 have no such setting
  }
}
