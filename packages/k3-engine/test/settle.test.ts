import { UringError } from '@k3/uring'
import { describe, expect, it } from 'vitest'
import { waitFor } from '../src/settle.js'

const caught = (wait: () => void): Error => {
  try {
    wait()
  } catch (error) {
    return error as Error
  }
  throw new Error('nothing was thrown')
}

describe('a read that failed', () => {
  const fault = { file: '/model/shard', offset: 4096, needBytes: 100, haveBytes: 60 }
  const failure = new UringError('ERR_URING_READ', '/model/shard: EIO', fault)
  const reads = {
    wait: () => {
      throw failure
    }
  }
  const tensorAt = (position: number) => `tensor ${position}`

  it('says whose bytes are missing, to each who waits, and is left as it was', () => {
    for (let i = 0; i < 2; i++) {
      const error = caught(() => waitFor(reads, 0, tensorAt))
      expect(error).toBeInstanceOf(UringError)
      expect(error.message).toBe('/model/shard: EIO; it is of tensor 60')
      expect(error).toMatchObject({
        name: 'UringError',
        code: 'ERR_URING_READ',
        ...fault,
        tensor: 'tensor 60'
      })
      expect(error.cause).toBe(failure)
    }
    expect(failure.message).toBe('/model/shard: EIO')
    expect(failure).not.toHaveProperty('tensor')
  })

  it('is handed on as it is when it is no failure of a read', () => {
    const other = new TypeError('no index')
    const wait = () => {
      throw other
    }
    expect(caught(() => waitFor({ wait }, 0, tensorAt))).toBe(other)
  })
})
