// SPDX-License-Identifier: Apache-2.0
// One frame of a model on ONNX Runtime, one thread, per line on stdin; prints its milliseconds.
// usage: node ort_serve.js MODULE_DIR MODEL.onnx INPUT.f32
'use strict';
const fs = require('fs');
const path = require('path');
const readline = require('readline');

async function main() {
  const [moduleDir, model, input] = process.argv.slice(2);
  const ort = require(path.join(moduleDir, 'node_modules', 'onnxruntime-node'));
  const session = await ort.InferenceSession.create(model, {
    executionProviders: ['cpu'], intraOpNumThreads: 1, interOpNumThreads: 1,
    executionMode: 'sequential', graphOptimizationLevel: 'all', logSeverityLevel: 3,
  });
  const shape = JSON.parse(fs.readFileSync(input.replace(/\.input\.f32$/, '.json'))).input;
  const bytes = fs.readFileSync(input);
  const data = new Float32Array(bytes.buffer, bytes.byteOffset, bytes.length / 4);
  const feeds = {[session.inputNames[0]]: new ort.Tensor('float32', data, shape)};
  const frame = async () => {
    const start = process.hrtime.bigint();
    await session.run(feeds);
    return Number(process.hrtime.bigint() - start) / 1e6;
  };
  for (let i = 0; i < 3; i++) {
    await frame();
  }
  console.log('ready');
  for await (const line of readline.createInterface({input: process.stdin})) {
    console.log((await frame()).toFixed(4));
  }
}

main().catch((e) => {
  console.error(String(e));
  process.exit(1);
});
