/** Rows of cells as lines: columns as wide as their widest cell, two spaces between, numbers to the right. */
export const table = (head: readonly string[], rows: readonly (readonly (string | number)[])[]): string => {
  const cells = [head, ...rows.map((row) => row.map((cell) => cellText(cell)))]
  const widths = head.map((_, column) => Math.max(...cells.map((row) => row[column]!.length)))
  const isNumber = head.map((_, column) => rows.every((row) => typeof row[column] === 'number'))
  const line = (row: readonly string[]) =>
    row.map((cell, i) => (isNumber[i] ? cell.padStart(widths[i]!) : cell.padEnd(widths[i]!))).join('  ')
  return cells.map((row) => `${line(row).trimEnd()}\n`).join('')
}

const cellText = (cell: string | number): string => (typeof cell === 'number' ? grouped(cell) : cell)

/** 1,560,860,324,864 */
export const grouped = (value: number): string => value.toLocaleString('en-US')
