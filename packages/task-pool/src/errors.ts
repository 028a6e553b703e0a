import { CodedError } from '@k3/native-kit'

/** Thrown when the system refuses a thread; `threads` is what was asked for. */
export class TaskPoolError extends CodedError<'ERR_TASK_POOL_THREADS'> {
  readonly threads: number

  constructor(threads: number, errorNumber: number) {
    super(
      'ERR_TASK_POOL_THREADS',
      `the system refused to start a thread of a pool of ${threads} (errno ${errorNumber}); ` +
        'ask for fewer threads or raise the process limits on threads and address space'
    )
    this.threads = threads
  }
}
