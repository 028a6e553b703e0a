import { CodedError } from '@k3/native-kit'

/** A router met a logit or a bias that is NaN or infinite; `router` names it, `token` and `expert` say where first. */
export class VectorOpsError extends CodedError<'ERR_VECTOR_OPS_NONFINITE'> {
  readonly router: string
  readonly token: number
  readonly expert: number

  constructor(router: string, token: number, expert: number, logit: number, bias: number) {
    super(
      'ERR_VECTOR_OPS_NONFINITE',
      `${router}: token ${token}, expert ${expert}: finite numbers expected, found logit ${logit} and bias ${bias}; ` +
        'the hidden state before the router or its weights are broken, so nothing of this call can be used'
    )
    this.router = router
    this.token = token
    this.expert = expert
  }
}
