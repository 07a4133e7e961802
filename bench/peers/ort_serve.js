// SPDX-License-Identifier: Apache-2.0
// A model on ONNX Runtime, for a script that runs it in turns with other programs.
// usage: node ort_serve.js MODULE_DIR MODEL.onnx INPUT.f32 [THREADS [SESSIONS]]
// Prints "ready", then for every line on stdin runs one frame and prints its milliseconds or, when
// the line is a number of seconds, lets every session run frame after frame for so long and prints
// {"frames": [[start_ns, end_ns], ...]} on CLOCK_MONOTONIC. The inputs are the same memory in every
// run. Sessions of one thread compute on the thread that calls them (one of libuv's).
'use strict';
const fs = require('fs');
const path = require('path');
const readline = require('readline');

function inputs(session, input) {
  const shape = JSON.parse(fs.readFileSync(input.replace(/\.input\.f32$/, '.json'))).input;
  const bytes = fs.readFileSync(input);
  const data = new Float32Array(bytes.buffer, bytes.byteOffset, bytes.length / 4);
  const ort = inputs.ort;
  return {[session.inputNames[0]]: new ort.Tensor('float32', data, shape)};
}

async function slice(sessions, feeds, seconds) {
  const end = process.hrtime.bigint() + BigInt(Math.round(seconds * 1e9));
  const frames = [];
  const one = async (session) => {
    let start = process.hrtime.bigint();
    while (start < end) {
      await session.run(feeds);
      const done = process.hrtime.bigint();
      frames.push([start, done]);
      start = done;
    }
  };
  await Promise.all(sessions.map(one));
  return `{"frames": [${frames.map((f) => `[${f[0]}, ${f[1]}]`).join(', ')}]}`;
}

async function main() {
  const [moduleDir, model, input, threads, count] = process.argv.slice(2);
  const ort = inputs.ort = require(path.join(moduleDir, 'node_modules', 'onnxruntime-node'));
  const sessions = [];
  for (let i = 0; i < Number(count || 1); i++) {
    sessions.push(await ort.InferenceSession.create(model, {
      executionProviders: ['cpu'], intraOpNumThreads: Number(threads || 1), interOpNumThreads: 1,
      executionMode: 'sequential', graphOptimizationLevel: 'all', enableCpuMemArena: true,
      enableMemPattern: true, logSeverityLevel: 3,
    }));
  }
  const feeds = inputs(sessions[0], input);
  for (let i = 0; i < 3; i++) {
    await Promise.all(sessions.map((s) => s.run(feeds)));
  }
  console.log('ready');
  for await (const line of readline.createInterface({input: process.stdin})) {
    const seconds = Number.parseFloat(line);
    if (seconds > 0) {
      console.log(await slice(sessions, feeds, seconds));
    } else {
      const start = process.hrtime.bigint();
      await sessions[0].run(feeds);
      console.log((Number(process.hrtime.bigint() - start) / 1e6).toFixed(4));
    }
  }
}

main().catch((e) => {
  console.error(String(e));
  process.exit(1);
});
