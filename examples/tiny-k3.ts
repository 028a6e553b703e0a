// The whole library in a few lines: open a checkpoint folder, continue a prompt, print the text as it comes.
import { modelDir } from '@k3/demo-model'
import { openModel } from '@k3/engine'

export const tinyK3 = async (print: (text: string) => void): Promise<readonly number[]> => {
  const model = await openModel(modelDir)
  try {
    const generation = model.generate({ prompt: 'The capital of France is', maxTokens: 16 })
    for await (const part of generation) {
      if (part.type === 'text') print(part.text)
      if (part.type === 'finish') return part.ids
    }
    throw new Error('a generation ends with a finish part')
  } finally {
    await model[Symbol.asyncDispose]()
  }
}
