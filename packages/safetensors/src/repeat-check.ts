/**
 * Finds a repeated name. Headers and indexes are sorted, or consist of a few sorted runs, and within an ascending run
 * nothing can repeat: only the names of finished runs go into a set.
 */
export class RepeatCheck {
  private readonly finished = new Set<string>()
  private run: string[] = []
  private last = ''

  /** True when `name` was given before. */
  isRepeat(name: string): boolean {
    if (this.run.length > 0 && name <= this.last) {
      for (const earlier of this.run) this.finished.add(earlier)
      this.run = []
    }
    this.run.push(name)
    this.last = name
    return this.finished.has(name)
  }
}
