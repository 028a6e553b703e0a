const path = require('node:path')

exports.modelDir = path.join(__dirname, 'model')
exports.expectedFile = path.join(__dirname, 'expected.json')
exports.evaluationFile = path.join(__dirname, 'eval.json')
exports.perplexityFile = path.join(__dirname, 'perplexity.txt')
exports.traceFile = path.join(__dirname, 'expert_trace.jsonl')
