import { CodedError } from '@k3/native-kit'

/** A router met a logit or a bias that is NaN or infinite; `token` and `expert` are the first place where. */
export class VectorOpsError extends CodedError<'ERR_VECTOR_OPS_NONFINITE'> {
  readonly token: number
  readonly expert: number

  constructor(token: number, expert: number, logit: number, bias: number) {
    super(
      'ERR_VECTOR_OPS_NONFINITE',
      `router: token ${token}, expert ${expert}: finite numbers expected, found logit ${logit} and bias ${bias}; ` +
        'the hidden state before the router or its weights are broken, so nothing of this call can be used'
    )
    this.token = token
    this.expert = expert
  }
}
