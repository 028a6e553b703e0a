import fc from 'fast-check'

/**
 * One seed for every property of the suite, so that a test that fails has been broken by a change. Search further by
 * changing the number.
 */
fc.configureGlobal({ seed: 20261130 })
