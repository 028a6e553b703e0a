import { K3Error } from '../errors.js'
import type { SequenceState } from '../states.js'
import { formatSessionHeader } from './format.js'
import type { SessionIdentity } from './identity.js'
import { sectionsOf } from './sections.js'
import { type FileCalls, writeAtomically } from './write-atomically.js'

/** Saves a state that nobody advances meanwhile. @throws as `Session.save` says */
export const writeSession = async (
  file: string,
  identity: SessionIdentity,
  state: SequenceState,
  calls?: FileCalls
): Promise<void> => {
  const sections = sectionsOf(state)
  const header = formatSessionHeader(identity, state.position, sections)
  const parts = [header, ...sections.map(({ bytes }) => bytes)]
  await writeAtomically(file, parts, calls).catch((cause: unknown) => {
    const message = `the session could not be saved as ${file}; what was there before is unchanged`
    throw new K3Error('ERR_K3_SESSION_WRITE', message, { file, cause })
  })
}
