// SPDX-License-Identifier: Apache-2.0
// A model on ONNX Runtime, for a script that runs it in turns with other programs.
// usage: node ort_serve.js MODULE_DIR MODEL.onnx INPUT.f32 [THREADS [SESSIONS [batched]]]
// Prints "ready", then for every line on stdin runs one frame and prints its milliseconds or, when
// the line is a number of seconds, lets every session run frame after frame for so long and prints
// {"frames": [[start_ns, end_ns], ...]} on CLOCK_MONOTONIC. A second number is how many frames each
// run takes; that needs "batched". The inputs are the same memory in every run. Sessions of one
// thread compute on the thread that calls them (one of libuv's).
'use strict';
const fs = require('fs');
const path = require('path');
const readline = require('readline');

// Fields of ONNX on the way to the first dimension of the graph's inputs (11) and outputs (12):
// ModelProto.graph, GraphProto, ValueInfoProto.type, .tensor_type, .shape, .dim
const TO_BATCH = [[7, 11, 2, 1, 2, 1], [7, 12, 2, 1, 2, 1]];
const FIXED_1 = [0x08, 0x01], ANY = [0x12, 0x00]; // dim_value: 1, and dim_param: "" in as many bytes

function varint(bytes, at) {
  let value = 0, scale = 1, b;
  do {
    b = bytes[at++];
    value += (b & 0x7f) * scale;
    scale *= 128;
  } while (b & 0x80);
  return [value, at];
}

// [from, to] of each length-delimited field of a message.
function* fields(bytes, from, to, wanted) {
  while (from < to) {
    let key, size;
    [key, from] = varint(bytes, from);
    const kind = key % 8;
    if (kind === 2) {
      [size, from] = varint(bytes, from);
      if (Math.floor(key / 8) === wanted) {
        yield [from, from + size];
      }
      from += size;
    } else {
      from = kind === 0 ? varint(bytes, from)[1] : from + (kind === 1 ? 8 : 4);
    }
  }
}

// Makes the first dimension of inputs and outputs any number, where the file says 1.
function open_batch(bytes, way, from = 0, to = bytes.length) {
  for (const [begin, end] of fields(bytes, from, to, way[0])) {
    if (way.length > 1) {
      open_batch(bytes, way.slice(1), begin, end);
      continue;
    }
    if (end - begin === 2 && FIXED_1.every((b, i) => bytes[begin + i] === b)) {
      bytes.set(ANY, begin);
    }
    return; // the other dimensions stay
  }
}

function inputs(session, input, batch) {
  const shape = JSON.parse(fs.readFileSync(input.replace(/\.input\.f32$/, '.json'))).input;
  const bytes = fs.readFileSync(input);
  const one = new Float32Array(bytes.buffer, bytes.byteOffset, bytes.length / 4);
  const data = new Float32Array(one.length * batch);
  for (let i = 0; i < batch; i++) {
    data.set(one, i * one.length);
  }
  const ort = inputs.ort;
  return {[session.inputNames[0]]: new ort.Tensor('float32', data, [shape[0] * batch, ...shape.slice(1)])};
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
  const [moduleDir, file, input, threads, count, batched] = process.argv.slice(2);
  const ort = inputs.ort = require(path.join(moduleDir, 'node_modules', 'onnxruntime-node'));
  let model = file;
  if (batched) {
    model = new Uint8Array(fs.readFileSync(file));
    TO_BATCH.forEach((way) => open_batch(model, way));
  }
  const sessions = [];
  for (let i = 0; i < Number(count || 1); i++) {
    sessions.push(await ort.InferenceSession.create(model, {
      executionProviders: ['cpu'], intraOpNumThreads: Number(threads || 1), interOpNumThreads: 1,
      executionMode: 'sequential', graphOptimizationLevel: 'all', enableCpuMemArena: true,
      enableMemPattern: true, logSeverityLevel: 3,
    }));
  }
  model = null;
  const feeds = {1: inputs(sessions[0], input, 1)};
  for (let i = 0; i < 3; i++) {
    await Promise.all(sessions.map((s) => s.run(feeds[1])));
  }
  console.log('ready');
  for await (const line of readline.createInterface({input: process.stdin})) {
    const [seconds, batch = 1] = line.split(' ').map(Number);
    if (seconds > 0) {
      if (!feeds[batch]) {
        feeds[batch] = inputs(sessions[0], input, batch);
        await Promise.all(sessions.map((s) => s.run(feeds[batch])));
      }
      console.log(await slice(sessions, feeds[batch], seconds));
    } else {
      const start = process.hrtime.bigint();
      await sessions[0].run(feeds[1]);
      console.log((Number(process.hrtime.bigint() - start) / 1e6).toFixed(4));
    }
  }
}

main().catch((e) => {
  console.error(String(e));
  process.exit(1);
});
