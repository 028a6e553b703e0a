/** A line of a chart; points from left to right. */
export interface ChartLine {
  readonly name: string
  readonly points: readonly { readonly x: number; readonly y: number }[]
}

/** What stands around the lines. */
export interface ChartLabels {
  readonly title: string
  readonly x: string
  readonly y: string
}

const WIDTH = 760
const HEIGHT = 460
const PLOT = { left: 64, right: 600, top: 48, bottom: 404 }
// Told apart also without colour vision (Okabe and Ito), and by their dashes.
const COLOURS = ['#0072b2', '#e69f00', '#009e73', '#cc79a7', '#d55e00', '#000000', '#56b4e9']
const DASHES = ['', '6 3', '2 3', '8 3 2 3', '10 4', '1 2', '4 4']
const TICKS = 6

const escaped = (text: string): string => text.replace(/[&<>"]/g, (sign) => `&#${sign.charCodeAt(0)};`)
const rounded = (value: number): string => String(Number(value.toFixed(2)))

/** Round numbers from 0 to at least `most`, about six of them. */
export const ticksUpTo = (most: number): number[] => {
  const rough = Math.max(most, Number.MIN_VALUE) / TICKS
  const power = 10 ** Math.floor(Math.log10(rough))
  const step = [1, 2, 5, 10].map((factor) => factor * power).find((size) => size >= rough)!
  return Array.from({ length: Math.ceil(most / step - 1e-9) + 1 }, (_, i) =>
    Number((i * step).toPrecision(12))
  )
}

/** A line chart as SVG text. Both axes begin at 0. */
export const lineChart = (lines: readonly ChartLine[], { title, x, y }: ChartLabels): string => {
  const all = lines.flatMap(({ points }) => points)
  const ticks = {
    x: ticksUpTo(Math.max(1, ...all.map((point) => point.x))),
    y: ticksUpTo(Math.max(1, ...all.map((point) => point.y)))
  }
  const across = (value: number): string =>
    rounded(PLOT.left + ((PLOT.right - PLOT.left) * value) / ticks.x.at(-1)!)
  const up = (value: number): string =>
    rounded(PLOT.bottom - ((PLOT.bottom - PLOT.top) * value) / ticks.y.at(-1)!)
  const grid = [
    ...ticks.y.map(
      (tick) =>
        `<path class="grid" d="M${PLOT.left} ${up(tick)}H${PLOT.right}"/>` +
        `<text x="${PLOT.left - 8}" y="${up(tick)}" text-anchor="end" dominant-baseline="middle">${tick}</text>`
    ),
    ...ticks.x.map(
      (tick) =>
        `<path class="axis" d="M${across(tick)} ${PLOT.bottom}v5"/>` +
        `<text x="${across(tick)}" y="${PLOT.bottom + 20}" text-anchor="middle">${tick}</text>`
    )
  ]
  const drawn = lines.map(({ name, points }, i) => {
    const colour = COLOURS[i % COLOURS.length]!
    const style = `stroke="${colour}" stroke-dasharray="${DASHES[i % DASHES.length]!}"`
    const path = points.map((point, j) => `${j === 0 ? 'M' : 'L'}${across(point.x)} ${up(point.y)}`).join('')
    const dots = points.map(
      (point) => `<circle cx="${across(point.x)}" cy="${up(point.y)}" r="3" fill="${colour}"/>`
    )
    const row = PLOT.top + 12 + 22 * i
    return [
      `<path class="line" ${style} d="${path}"/>`,
      ...dots,
      `<path class="line" ${style} d="M${PLOT.right + 16} ${row}h28"/>`,
      `<text x="${PLOT.right + 50}" y="${row}" dominant-baseline="middle">${escaped(name)}</text>`
    ].join('')
  })
  const middle = { x: (PLOT.left + PLOT.right) / 2, y: (PLOT.top + PLOT.bottom) / 2 }
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${HEIGHT}" font-family="sans-serif" font-size="13">
<title>${escaped(title)}</title>
<style>.line{fill:none;stroke-width:2}.grid{stroke:#ddd}.axis{stroke:#333;fill:none}</style>
<rect width="${WIDTH}" height="${HEIGHT}" fill="#fff"/>
<text x="${PLOT.left}" y="26" font-size="16">${escaped(title)}</text>
${grid.join('\n')}
<path class="axis" d="M${PLOT.left} ${PLOT.top}V${PLOT.bottom}H${PLOT.right}"/>
<text x="${middle.x}" y="${HEIGHT - 14}" text-anchor="middle">${escaped(x)}</text>
<text x="18" y="${middle.y}" text-anchor="middle" transform="rotate(-90 18 ${middle.y})">${escaped(y)}</text>
${drawn.join('\n')}
</svg>
`
}
