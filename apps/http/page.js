/* SPDX-License-Identifier: Apache-2.0 */
"use strict";
/* The status page: asks status.json once a second and draws what pipectl top shows. Texts of the server become text nodes,
 * never markup. */
const PERIOD_MS = 1000, SECONDS = 60;
const models = new Map(); /* name: the last counters, rates, and frames/s of the last minute */
const open = new Set(); /* models whose units are shown */
let paused = false, timer = 0, units = new Map();

/* What shown_text.h hides: marks that turn or hide a text. */
const shown = (text) => String(text).replace(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu, "?");
const id = (name) => document.getElementById(name);
const known = (x) => typeof x === "number" && isFinite(x);
const figure = (x, digits = 1) => known(x) ? x.toFixed(digits) : "–";
const short = (x) => !known(x) ? "–" : x >= 100 ? x.toFixed(0) : x.toPrecision(3);

function make(tag, attributes, ...children) {
  const e = document.createElement(tag);
  for (const [k, v] of Object.entries(attributes || {})) {
    if (v !== undefined) {
      e.setAttribute(k, v);
    }
  }
  e.append(...children.filter((c) => c !== undefined && c !== null).map((c) => c instanceof Node ? c : shown(c)));
  return e;
}

function table(heads, rows) {
  if (!rows.length) {
    return null;
  }
  const cell = (tag, head, x) => make(tag, {class: head[1]}, x instanceof Node ? x : String(x));
  return make("div", {class: "wide", tabindex: "0"}, make("table", {},
    make("thead", {}, make("tr", {}, ...heads.map((h) => cell("th", h, h[0])))),
    make("tbody", {}, ...rows.map((r) => make("tr", {}, ...r.map((x, i) => cell("td", heads[i], x)))))));
}

/* From 70 % on a stage is worth a look; from 95 % on it decides the speed. */
function bar(share, name) {
  return known(share) ? make("span", {class: "bar"}, make("meter", {min: 0, max: 1, low: 0.7, high: 0.95, optimum: 0,
    value: Math.min(1, share), "aria-label": name}), " " + figure(share * 100, 0) + " %") : "–";
}

function curve(values) {
  const ns = "http://www.w3.org/2000/svg";
  const top = most(values) > 0 ? most(values) : 1;
  const svg = document.createElementNS(ns, "svg");
  const at = (v, i) => (i * 600 / (SECONDS - 1)).toFixed(1) + "," + (54 - 50 * v / top).toFixed(1);
  const runs = [];
  values.forEach((v, i) => {
    if (known(v)) {
      if (!i || !known(values[i - 1])) {
        runs.push([]);
      }
      runs[runs.length - 1].push([i, at(v, i)]);
    }
  });
  svg.setAttribute("viewBox", "0 0 600 56");
  svg.setAttribute("preserveAspectRatio", "none");
  svg.setAttribute("role", "img");
  svg.setAttribute("aria-label", "frames a second in the last minute, at most " + figure(most(values)));
  for (const run of runs) {
    const points = run.map((p) => p[1]).join(" "), x = (i) => (i * 600 / (SECONDS - 1)).toFixed(1);
    for (const [kind, text] of [["polygon", x(run[0][0]) + ",56 " + points + " " + x(run[run.length - 1][0]) + ",56"],
      ["polyline", points]]) {
      const shape = document.createElementNS(ns, kind);
      shape.setAttribute("points", text);
      shape.setAttribute("class", kind === "polygon" ? "area" : "line");
      svg.append(shape);
    }
  }
  return svg;
}

/* Rates by the daemon's clock. One that began again, as after a restart, is unknown. */
function take(status) {
  for (const m of status.models) {
    const old = models.get(m.name), rate = {};
    const span = old ? status.uptime_s - old.at : NaN;
    for (const key of ["admitted", "answered", "dropped", "failed"]) {
      const by = old ? m.frames[key] - old.frames[key] : NaN;
      rate[key] = span > 0 && by >= 0 ? by / span : NaN;
    }
    const again = old && span === 0;
    const series = old ? old.series : new Array(SECONDS).fill(NaN);
    if (!again) {
      series.push(rate.answered);
      series.shift();
    }
    models.set(m.name, {at: status.uptime_s, frames: m.frames, rate: again ? old.rate : rate, series});
  }
  for (const name of models.keys()) {
    if (!status.models.some((m) => m.name === name)) {
      models.delete(name);
    }
  }
}

function most(series) {
  const seen = series.filter(known);
  return seen.length ? Math.max(...seen) : NaN;
}

function figures(list) {
  return make("div", {class: "figures"}, ...list.map(([name, value, look]) =>
    make("div", {}, make("b", {class: look}, value), make("span", {}, name))));
}

/* "0-2,5" */
function cpus(list) {
  const runs = [];
  for (const c of list || []) {
    if (runs.length && runs[runs.length - 1][1] === c - 1) {
      runs[runs.length - 1][1] = c;
    } else {
      runs.push([c, c]);
    }
  }
  return runs.map(([a, b]) => a === b ? String(a) : a + "-" + b).join(",") || "–";
}

function off(measured, expected) {
  const share = measured / expected - 1;
  return known(share) && measured > 0 ? make("span", {class: share >= 0.5 ? "bad" : share >= 0.2 ? "warn" : undefined},
    (share >= 0 ? "+" : "") + figure(share * 100, 0) + " %") : "–";
}

function stages(m) {
  return table([["stage", "n less"], ["units"], ["cores"], ["busy"], ["queue", "n"], ["service ms", "n"],
    ["expected", "n less"], ["off", "n less"]],
    (m.stages || []).map((s) => [s.stage, s.units, s.ep + (s.width > 1 ? "×" + s.width : "") +
      (s.replicas > 1 ? "*" + s.replicas : "") + ": " + cpus(s.cpus), bar(s.busy, "busy"),
      s.queue, figure(s.service_ms, 3), figure(s.expected_ms, 3), s.busy > 0 ? off(s.service_ms, s.expected_ms) : "–"]));
}

function route(r) {
  if (!r) {
    return null;
  }
  const hops = (r.hops || []).flatMap((h) => {
    const all = (h.boards || []).reduce((sum, b) => sum + (b.share || 0), 0);
    return (h.boards || []).map((b) => [h.units || "–", b.name || "–", b.up ? "there" : make("span", {class: "bad"}, "away"),
      bar(all > 0 ? b.share / all : NaN, "share"), figure(h.service_ms, 3)]);
  });
  return make("div", {}, make("h3", {}, "Route over boards"),
    make("p", {}, r.route ? make("code", {}, r.route) : "this board alone", " " + (r.phase || r.why || "")),
    make("p", {class: "quiet"}, short(r.answered) + " answered by boards, " + short(r.resent) + " sent again, " +
      short(r.here) + " wholly here"),
    table([["units"], ["board"], ["state"], ["share"], ["service ms", "n"]], hops),
    ...(r.segments || []).map((m) => make("p", {class: "quiet"}, "computed here: units " + m.segment.first_unit + "-" +
      m.segment.last_unit + ", plan ", make("code", {}, m.plan))));
}

/* Of a model of another board. */
function segment(m) {
  return make("p", {class: "quiet"}, "computed here: " + m.segment.of + ", units " + m.segment.first_unit + "-" +
    m.segment.last_unit + " for board " + m.segment.board + ", plan ", make("code", {}, m.plan));
}

function unit_list(name) {
  const list = units.get(name) || [];
  const time = (u) => known(u.ewma_ms) ? u.ewma_ms : known(u.time_ms) ? u.time_ms : NaN;
  const all = list.reduce((sum, u) => sum + (time(u) || 0), 0);
  const details = make("details", {}, make("summary", {}, "Units"),
    table([["unit", "n"], ["name", "name"], ["operator", "less"], ["primitive", "less"], ["ms", "n"], ["share"]],
      list.map((u) => [u.unit, u.name, u.kind || "–", u.primitive || "–", figure(time(u), 3),
        bar(all > 0 ? time(u) / all : NaN, "share")])));
  details.open = open.has(name);
  details.addEventListener("toggle", () => {
    if (details.isConnected && details.open !== open.has(name)) {
      open[details.open ? "add" : "delete"](name);
      ask();
    }
  });
  return details;
}

function model(m) {
  const k = models.get(m.name), ms = m.frames.answered > 0 ? m.latency_ms : {};
  const now = known(k.rate.answered) ? k.rate.answered : m.fps;
  return make("section", {"data-model": m.name}, make("h2", {}, m.name),
    make("p", {class: "quiet"}, m.units + " units by ", make("code", {}, m.plan),
      " (" + m.algorithm + ", epoch " + m.epoch + ")" + (m.tuning ? ", searching" : "")),
    ...(m.warnings || []).map((w) => make("p", {class: "bad"}, "warning: " + w)),
    curve(k.series),
    figures([["frames/s", figure(now)], ["peak/s", figure(most(k.series))], ["p50 ms", short(ms.p50)],
      ["p95 ms", short(ms.p95)], ["p99 ms", short(ms.p99)], ["max ms", short(ms.max)],
      ["in flight", m.in_flight], ["waiting", m.waiting],
      ["dropped/s", figure(k.rate.dropped), k.rate.dropped > 0 ? "warn" : undefined],
      ["failed/s", figure(k.rate.failed), k.rate.failed > 0 ? "bad" : undefined]]),
    make("h3", {}, "Stages"), stages(m), route(m.route), unit_list(m.name));
}

const mhz = (khz) => known(khz) ? figure(khz / 1000, 0) : "–";

function facts_of(s) {
  const facts = [], sensors = s.sensors || {}, group = sensors.cgroup || {};
  for (const t of (sensors.thermal || []).filter((z) => known(z.temp_c))) {
    facts.push([t.type || "zone", figure(t.temp_c) + " °C", t.past_trip ? "bad" : undefined]);
  }
  if (sensors.throttled === true) {
    facts.push(["heat or firmware", "holds CPUs back", "bad"]);
  }
  if (sensors.psi && known(sensors.psi.cpu_some_avg10)) {
    facts.push(["tasks waited for a CPU", figure(sensors.psi.cpu_some_avg10) + " %",
      sensors.psi.cpu_some_avg10 >= 10 ? "warn" : undefined]);
  }
  if (known(group.quota_cpus)) {
    facts.push(["quota, CPUs", figure(group.quota_cpus, 2)], ["throttled, s", figure(group.throttled_us / 1e6)]);
  }
  if (s.memory) {
    facts.push(["memory", figure(s.memory.resident_bytes / 1048576, 0) + " MiB"]);
  }
  if (sensors.energy && known(sensors.energy.joules_per_frame)) {
    facts.push(["J a frame", short(sensors.energy.joules_per_frame)]);
  }
  facts.push(["clients", (s.clients || []).length]);
  return facts;
}

function machine(s) {
  const policies = (s.sensors && s.sensors.policies) || [];
  const clocks = (s.eps || []).map((e) => {
    const p = policies.find((x) => x.policy === e.policy) || {};
    const limited = p.limit_khz < e.max_freq_khz;
    return [e.name, cpus(e.cpus), e.kind, e.governor || "–", mhz(e.freq_khz), mhz(e.max_freq_khz),
      limited ? make("span", {class: p.by_heat ? "bad" : "warn"}, (p.by_heat ? "by heat: " : "") + mhz(p.limit_khz)) : "–",
      e.used ? "yes" : "no"];
  });
  return make("section", {id: "machine"}, make("h2", {}, "Machine"), figures(facts_of(s)), make("h3", {}, "Cores"),
    table([["place"], ["cpus"], ["kind", "less"], ["governor", "less"], ["MHz", "n"], ["max MHz", "n"], ["limited"], ["used"]],
      clocks));
}

function since(s) {
  return !known(s) ? "–" : s < 120 ? figure(s, 0) + " s" : s < 7200 ? figure(s / 60, 0) + " min" : figure(s / 3600, 0) + " h";
}

function boards(list) {
  return list && list.length ? make("section", {}, make("h2", {}, "Boards"),
    table([["board"], ["state"], ["for"], ["message µs", "n"], ["Mbit/s", "n"], ["memory MiB", "n less"], ["places", "less"]],
      list.map((b) => [b.name, b.up ? "there" : make("span", {class: "bad"}, "away"), since(b.for_s),
        figure(b.link && b.link.message_us, 0), figure(b.link && 8000 / b.link.kilobyte_us, 0),
        b.memory_bytes > 0 ? figure(b.memory_bytes / 1048576, 0) : "–",
        (b.eps || []).map((e) => e.name + " x" + e.cores).join(", ") || "–"]))) : null;
}

function decisions(events) {
  const newest = (events || []).slice().reverse();
  return make("section", {id: "decisions"}, make("h2", {}, "Last decisions"), make("ol", {}, ...newest.map((e) =>
    make("li", {}, make("span", {class: "quiet"}, String(e.at || "").slice(11, 19) + " UTC "), make("b", {}, e.model || ""),
      " " + e.cause + ": " + e.outcome + (e.algorithm ? " by " + e.algorithm : "") +
      (known(e.fps_before) && known(e.fps_after) ? ", " + figure(e.fps_before) + " to " + figure(e.fps_after) + " frames/s" : "") +
      (e.detail ? ". " + e.detail : ""), e.plan_after ? make("div", {}, make("code", {}, e.plan_after)) : null))));
}

function draw(all) {
  const s = all.status, up = Math.floor(s.uptime_s);
  const scrolled = [...document.querySelectorAll(".wide")].map((e) => e.scrollLeft);
  take(s);
  id("version").textContent = s.version;
  id("state").textContent = s.state;
  id("state").className = "pill " + (s.state === "serving" ? "good" : "bad");
  id("uptime").textContent = "up " + Math.floor(up / 3600) + " h " + Math.floor(up / 60) % 60 + " min " + up % 60 + " s";
  id("main").replaceChildren(...[
    ...(s.failed_models || []).map((m) => make("section", {}, make("h2", {}, m.name),
      make("p", {class: "bad"}, "could not be loaded: " + m.error))),
    ...s.models.map(model), ...(s.segments || []).map(segment), s.models.length ? null : make("section", {}, make("p", {}, "No model is served.")),
    boards(s.boards), machine(s), decisions(all.events)].filter((x) => x));
  document.querySelectorAll(".wide").forEach((e, i) => { e.scrollLeft = scrolled[i] || 0; });
}

function tell(text) {
  id("notice").hidden = !text;
  id("notice").textContent = shown(text);
  if (text) {
    id("state").textContent = "not reachable";
    id("state").className = "pill bad";
  }
}

async function get(query) {
  const token = sessionStorage.getItem("token");
  const r = await fetch("status.json" + query, {headers: token ? {Authorization: "Bearer " + token} : {}, cache: "no-store",
    signal: AbortSignal.timeout(8000)});
  id("token").hidden = r.status !== 401;
  if (!r.ok) {
    throw new Error((await r.json().catch(() => ({}))).error || "answer " + r.status);
  }
  return r.json();
}

async function ask() {
  clearTimeout(timer);
  try {
    for (const name of open) {
      units.set(name, (await get("?units=" + encodeURIComponent(name))).units || []);
    }
    draw(await get(""));
    tell("");
  } catch (e) {
    tell(e.name === "TypeError" ? "This server does not answer." : e.message);
  }
  clearTimeout(timer);
  if (!paused && !document.hidden) {
    timer = setTimeout(ask, PERIOD_MS);
  }
}

id("pause").addEventListener("click", () => {
  paused = !paused;
  id("pause").setAttribute("aria-pressed", paused);
  id("pause").textContent = paused ? "Go on" : "Pause";
  ask();
});
id("token").addEventListener("submit", (e) => {
  e.preventDefault();
  sessionStorage.setItem("token", id("secret").value);
  id("secret").value = "";
  ask();
});
document.addEventListener("visibilitychange", ask);
ask();
