import { K3Error } from './errors.js'

type Finish<Result> = { readonly type: 'finish' } & Result

/** Async-iterable for the parts, awaitable for the result; leaving the loop early cancels the rest. */
export interface PartsWithResult<Part, Result> extends AsyncIterable<Part>, PromiseLike<Result> {}

/**
 * Parts that run once, when they are first iterated or awaited; awaited they are the last `finish` part without its type.
 * `what` names them in ERR_K3_GENERATION_CONSUMED, the rejection of an await after an iteration.
 */
export const partsWithResult = <Part extends { readonly type: string }, Result extends object>(
  parts: AsyncGenerator<Part | Finish<Result>>,
  what: string
): PartsWithResult<Part | Finish<Result>, Result> => {
  let result: Promise<Result> | undefined
  const drain = async (): Promise<Result> => {
    let finish: Result | null = null
    for await (const part of parts) if (isFinish<Result>(part)) finish = withoutType(part)
    if (finish !== null) return finish
    const message = `${what} was already iterated; await it or iterate it, not both`
    throw new K3Error('ERR_K3_GENERATION_CONSUMED', message)
  }
  return {
    [Symbol.asyncIterator]: () => parts,
    // biome-ignore lint/suspicious/noThenProperty: it is awaitable by contract
    then: (onFulfilled, onRejected) => {
      result ??= drain()
      return result.then(onFulfilled, onRejected)
    }
  }
}

const isFinish = <Result>(part: { readonly type: string }): part is Finish<Result> => part.type === 'finish'

const withoutType = <Result extends object>({ type: _, ...result }: Finish<Result>): Result =>
  result as unknown as Result
