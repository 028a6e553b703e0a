/** Absolute path of the checkpoint folder: config.json, six shards, index, tokenizer files. */
export declare const modelDir: string
/** Absolute path of expected.json: 44 greedy outputs of the reference decoder with the margin of every token. */
export declare const expectedFile: string
/** Absolute path of eval.json: skill rates, and the definition and value of the perplexity. */
export declare const evaluationFile: string
/** Absolute path of perplexity.txt: the 59 lines the perplexity is measured on. */
export declare const perplexityFile: string
/** Absolute path of expert_trace.jsonl: the routing of about 2,100 tokens. */
export declare const traceFile: string
