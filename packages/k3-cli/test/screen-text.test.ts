import { expect, test } from 'vitest'
import { screenText } from '../src/chat/screen-text.js'

test('text for a screen keeps line feeds and tabs and shows other control characters', () => {
  expect(screenText('a\n\tb é 😀')).toBe('a\n\tb é 😀')
  expect(screenText('\u001b[2J\r\u0000\u007f\u009b')).toBe('\u241b[2J\u240d\u2400\u2421\ufffd')
})
