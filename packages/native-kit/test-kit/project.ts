/** x Wᵀ in double precision. x: [tokens, width]; weight: [rows, width]; returns [tokens, rows] */
export const project = (x: ArrayLike<number>, weight: Float32Array, width: number): Float64Array => {
  const rows = weight.length / width
  return Float64Array.from({ length: (x.length / width) * rows }, (_, i) => {
    const [t, r] = [Math.floor(i / rows), i % rows]
    let sum = 0
    for (let c = 0; c < width; c++) sum += x[t * width + c]! * weight[r * width + c]!
    return sum
  })
}
