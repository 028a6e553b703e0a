/**
 * Times of cases that take turns, so that a slow moment of the machine hits them all: one row for each case with the
 * median and the best of `rounds` runs, in milliseconds. A case is { name, run }, its first run is not counted.
 */
export const interleaved = (cases, rounds) => {
  const times = cases.map(({ run }) => {
    run()
    return []
  })
  for (let round = 0; round < rounds; round++) {
    for (const [i, { run }] of cases.entries()) {
      const start = process.hrtime.bigint()
      run()
      times[i].push(Number(process.hrtime.bigint() - start) / 1e6)
    }
  }
  return cases.map(({ name }, i) => {
    const sorted = times[i].sort((a, b) => a - b)
    return { name, median: sorted[rounds >> 1], best: sorted[0] }
  })
}
