import { XtmlError } from './errors.js'
import type { JsonValue } from './json.js'
import type { SegmentList } from './segments.js'

/** Stands for one image wherever blocks are given; it is no token and encodes to ordinary ids. */
const PLACEHOLDER = '<|kimi_image_placeholder|>'
const BLOCK = /^<\|media_begin\|>image \d+x\d+<\|media_content\|>(?:<\|media_pad\|>)+<\|media_end\|>$/

const PATCH = 14
/** Pixels a visual token covers along one side: two patches, merged. */
const TOKEN_SIDE = 28
/** Patches an image may have before it is scaled down. */
const MAX_PATCHES = 65536
const MAX_SIDE = 7168

const padded = (side: number, scale: number): number => {
  const scaled = Math.min(Math.max(1, Math.floor(side * scale)), MAX_SIDE)
  return Math.ceil(scaled / TOKEN_SIDE)
}

/**
 * The block of one image for `image_prompts`: its original size in pixels and one pad for each visual token.
 * Source: XTML.md §8.
 * @throws ERR_XTML_IMAGE_SIZE unless both sides are positive integers
 */
export const imageBlock = (width: number, height: number): string => {
  if (!(Number.isSafeInteger(width) && Number.isSafeInteger(height) && width > 0 && height > 0)) {
    throw new XtmlError(
      'ERR_XTML_IMAGE_SIZE',
      'imageBlock',
      `expected sides in pixels, found ${width}x${height}`
    )
  }
  const patches = Math.max(1, Math.floor(width / PATCH)) * Math.max(1, Math.floor(height / PATCH))
  const scale = Math.min(1, Math.sqrt(MAX_PATCHES / patches), MAX_SIDE / width, MAX_SIDE / height)
  const tokens = padded(width, scale) * padded(height, scale)
  return `<|media_begin|>image ${width}x${height}<|media_content|>${'<|media_pad|>'.repeat(tokens)}<|media_end|>`
}

const blocksOf = (value: JsonValue | undefined, path: string): readonly string[] | null => {
  if (value === undefined || value === null) return null
  if (!Array.isArray(value)) throw new XtmlError('ERR_XTML_OPTION', path, 'expected a list of image blocks')
  return value.map((block: unknown, i) => {
    if (typeof block === 'string' && BLOCK.test(block)) return block
    // a block is encoded with special tokens on, so any other text would be a way to inject structure
    const shape = '<|media_begin|>image WxH<|media_content|><|media_pad|>…<|media_end|>'
    throw new XtmlError(
      'ERR_XTML_IMAGE_BLOCK',
      `${path}[${i}]`,
      `expected ${shape}; build it with imageBlock`
    )
  })
}

/** The image blocks of a request, consumed in rendering order. Without blocks a placeholder in text stays text. */
export class ImageQueue {
  private readonly blocks: readonly string[] | null
  private readonly path: string
  private used = 0

  constructor(value: JsonValue | undefined, path: string) {
    this.blocks = blocksOf(value, path)
    this.path = path
  }

  /** Renders one image. */
  image(out: SegmentList): void {
    if (this.blocks === null) {
      out.special(PLACEHOLDER)
      return
    }
    const block = this.blocks[this.used++]
    if (block === undefined) {
      const text = `the messages hold more images and placeholders than the ${this.blocks.length} blocks given`
      throw new XtmlError('ERR_XTML_IMAGE_COUNT', this.path, text)
    }
    out.special(block)
  }

  /** Renders text, an image for each placeholder in it. */
  text(out: SegmentList, text: string): void {
    if (this.blocks === null) {
      out.text(text)
      return
    }
    text.split(PLACEHOLDER).forEach((part, i) => {
      if (i > 0) this.image(out)
      out.text(part)
    })
  }

  requireEmpty(): void {
    if (this.blocks === null || this.used === this.blocks.length) return
    const text = `${this.blocks.length} image blocks given, ${this.used} images and placeholders in the messages`
    throw new XtmlError('ERR_XTML_IMAGE_COUNT', this.path, text)
  }
}
