/// <reference path="./node-gyp-build.d.ts" />
import nodeGypBuild from 'node-gyp-build'
import { CodedError } from './coded-error.js'

/**
 * A function that loads the addon under `root` on its first call and returns the same object ever after.
 * @throws ERR_NATIVE_LOAD when no binary fits this platform or the dynamic loader refuses it; `cause` has its words
 */
export const loadAddon = <Native>(root: string, packageName: string): (() => Native) => {
  let native: Native | undefined
  return () => {
    native ??= load<Native>(root, packageName)
    return native
  }
}

const load = <Native>(root: string, packageName: string): Native => {
  try {
    return nodeGypBuild(root) as Native
  } catch (cause) {
    const platform = `${process.platform}-${process.arch}, Node ${process.versions.node}`
    const reason = cause instanceof Error ? cause.message : String(cause)
    throw new CodedError(
      'ERR_NATIVE_LOAD',
      `${packageName} has no usable binary for ${platform}: ${reason}`,
      { cause }
    )
  }
}
