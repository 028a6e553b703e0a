import type { Tokenizer } from '@k3/tokenizer'
import { K3Error } from '../errors.js'
import type { TokenConstraint } from '../interfaces.js'
import { callPhases } from './call-phases.js'
import { declaredTools } from './declared-tools.js'
import { Markup } from './markup.js'
import { ChoicePhase, EitherPhase, type Phase, ProsePhase, ValuePhase } from './phases.js'
import { compileSchema } from './schema.js'
import type { ValueNode } from './value-nodes.js'
import { GrammarMasks } from './value-reader.js'
import { type Vocabulary, vocabularyOf } from './vocabulary.js'

/** The vocabulary of a model. */
export interface AnswerVocabulary {
  readonly tokenizer: Tokenizer
  readonly vocabSize: number
  /** Ids that end a generation. */
  readonly eos: readonly number[]
}

/** What an answer has to be like. */
export interface AnswerRules {
  /** Whether the prompt leaves `think` open; else it leaves `response` open. */
  readonly thinking: boolean
  /**
   * `schema`: the response is JSON that the schema accepts, or calls of `tools` if there are any; `calls`: calls and
   * nothing else, `only` one of them if it is named; `prose`: a response without calls.
   */
  readonly answer:
    | { readonly kind: 'schema'; readonly schema: unknown; readonly tools: readonly unknown[] }
    | { readonly kind: 'calls'; readonly tools: readonly unknown[]; readonly only: string | null }
    | { readonly kind: 'prose' }
}

/**
 * Holds an answer to its form, marker by marker: thinking is free and closes when the model closes it, everything after
 * it is constrained, and the end of the message follows when there is nothing else left to say. It serves one answer.
 * @throws ERR_K3_SCHEMA, ERR_K3_REQUEST
 */
export const createAnswerConstraint = (vocabulary: AnswerVocabulary, rules: AnswerRules): TokenConstraint => {
  const { tokenizer, vocabSize } = vocabulary
  const answer = new AnswerForm(vocabulary, vocabularyOf(tokenizer, vocabSize))
  const words = new Uint32Array(Math.ceil(vocabSize / 32))
  let phase = answer.begin(rules)
  return {
    mask() {
      words.fill(0)
      phase.allow(words)
      return words
    },
    accept(id) {
      const next = phase.accept(id)
      if (next === null) {
        const message = `token ${id} came where the constraint does not allow it`
        throw new K3Error('ERR_K3_TOKEN_ID', message, { have: id })
      }
      phase = next
    }
  }
}

class AnswerForm {
  readonly #markup: Markup
  readonly #masks: GrammarMasks
  readonly #prose: Uint32Array
  readonly #eos: readonly number[]

  constructor({ tokenizer, vocabSize, eos }: AnswerVocabulary, vocabulary: Vocabulary) {
    this.#markup = new Markup(tokenizer)
    this.#masks = new GrammarMasks(vocabulary)
    this.#eos = eos
    this.#prose = new Uint32Array(vocabulary.words)
    const known = Math.min(vocabSize, tokenizer.vocabSize)
    this.#prose.fill(0xffffffff, 0, known >>> 5)
    for (let id = known & ~31; id < known; id++) this.#prose[id >>> 5]! |= 1 << (id & 31)
    for (const id of [...this.#markup.markers, ...eos]) this.#prose[id >>> 5]! &= ~(1 << (id & 31))
  }

  begin({ thinking, answer }: AnswerRules): Phase {
    const ids = [...this.#markup.close('think'), ...this.#markup.open('response')]
    const respond = this.#response(answer)
    if (!thinking) return respond
    return new ProsePhase(this.#prose, new ChoicePhase([{ ids, next: () => respond }]))
  }

  #response(answer: AnswerRules['answer']): Phase {
    if (answer.kind === 'prose') return new ProsePhase(this.#prose, this.#finish())
    if (answer.kind === 'calls') return this.#calls(answer.tools, answer.only)
    const value = this.#value(compileSchema(answer.schema))
    return answer.tools.length === 0 ? value : new EitherPhase(value, this.#calls(answer.tools, null))
  }

  #value(node: ValueNode): Phase {
    return new ValuePhase(node, this.#masks, this.#finish())
  }

  #finish(): Phase {
    const ids = [...this.#markup.close('response'), ...this.#markup.end]
    return new ChoicePhase([{ ids, next: () => this.#ended() }])
  }

  #calls(tools: readonly unknown[], only: string | null): Phase {
    const declared = declaredTools(tools, only)
    const ids = [...this.#markup.close('response'), ...this.#markup.open('tools')]
    const next = () =>
      callPhases({
        tools: declared,
        single: only !== null,
        markup: this.#markup,
        masks: this.#masks,
        end: () => this.#ended()
      })
    return new ChoicePhase([{ ids, next }])
  }

  /** Whoever asks for more gets end tokens. */
  #ended(): Phase {
    return new ChoicePhase(this.#eos.map((id) => ({ ids: [id], next: () => this.#ended() })))
  }
}
