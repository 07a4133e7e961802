/* SPDX-License-Identifier: Apache-2.0 */
/* Draws the charts of the page by Chart.js, in the colours of the reader's theme, on paper in light ones. Each figure has its
   chart as JSON (apps/page/page.h). */
(function () {
  "use strict";

  const COLOURS = 12, PAPER_WIDTH = 680, NAME_MOST = 44, drawn = [];
  const phone = () => window.innerWidth < 600;
  const theme = name => getComputedStyle(document.documentElement).getPropertyValue("--" + name).trim();
  const cut = (text, most) => text.length > most ? text.slice(0, most - 1) + "\u2026" : text;
  const short = v => Number(v.toPrecision(5)).toString();

  /* Lines of a tooltip. */
  function wrap(text) {
    const lines = [""], most = phone() ? 34 : 64;
    for (const word of text.split(/(?<=[ |])/)) {
      if (lines[lines.length - 1].length + word.length > most && lines[lines.length - 1]) {
        lines.push("");
      }
      lines[lines.length - 1] += word;
    }
    return lines.map(line => cut(line.trimEnd(), most + 16));
  }

  function line_set(s, i, spec) {
    return {
      type: "line", label: cut(s.name || "", NAME_MOST), points: s.points, data: s.points.map(p => ({x: p[0], y: spec.y.names ? spec.y.names[p[1]] : p[1]})),
      colour: s.colour ?? i, showLine: !s.marks, stepped: !!s.steps, borderWidth: 2, tension: 0,
      borderDash: s.dashed || (s.colour ?? i) >= COLOURS / 2 ? [6, 3] : [], clip: 10,
      pointRadius: s.marks ? s.points.map((p, k) => k === s.large ? 8 : 4) : s.points.length > 40 ? 0 : 2.5, pointHitRadius: 8,
      pointStyle: s.marks ? ["circle", "rectRot", "triangle", "rect"][(s.colour ?? i) % 4] : "circle",
    };
  }

  /* As Chart.js makes them, but dashed where their line is. */
  function labels(chart) {
    const items = Chart.defaults.plugins.legend.labels.generateLabels(chart);
    for (const item of items) {
      item.lineDash = chart.data.datasets[item.datasetIndex].borderDash;
    }
    return items;
  }

  function bar_set(s, i, spec) {
    return {type: "bar", label: cut(s.name || "", NAME_MOST), data: s.values, colour: s.colour ?? i, borderWidth: 0, maxBarThickness: 44,
            categoryPercentage: spec.x.names.length * spec.series.length < 9 && !spec.across ? 0.4 : 0.8,
            stack: spec.stacked ? "all" : undefined};
  }

  function span_set(s, i) {
    return {type: "bar", label: cut(s.name || "", NAME_MOST), points: s.points, data: s.points.map(p => ({x: [p[0], p[1]], y: p[2]})), colour: s.colour ?? i,
            borderWidth: 0, grouped: false, minBarLength: 3, maxBarThickness: 30};
  }

  /* The scale of one direction. Names lie along x, or along y where bars lie. */
  function scale(axis, names, upright) {
    const s = {title: {display: !!axis.label && !(phone() && upright && names), text: axis.label}, grid: {}, ticks: {}};
    if (names) {
      Object.assign(s, {type: "category", labels: names, offset: true});
      s.ticks = {autoSkip: names.length > 40, maxRotation: 60,
                 callback: (v, i) => cut(String(names[i]), phone() ? 14 : upright ? 28 : 18)};
      s.grid.display = upright;
    } else {
      s.type = axis.log ? "logarithmic" : "linear";
      s.min = axis.min;
      s.max = axis.max;
      s.grace = axis.min === undefined && axis.max === undefined ? "5%" : 0;
      s.ticks.maxRotation = 0;
      s.ticks.includeBounds = false;
      if (axis.whole) {
        s.ticks.precision = 0;
      }
      if (axis.log) {
        s.afterBuildTicks = a => { a.ticks = a.ticks.filter(t => Math.abs(Math.log10(t.value) % 1) < 1e-9); };
        s.ticks.callback = short;
        s.ticks.autoSkip = false;
      }
    }
    return s;
  }

  function note(item, spec) {
    const name = item.dataset.label ? item.dataset.label + ": " : "";
    if (!item.dataset.points) {
      return name + short(item.raw) + (spec.y.label ? " (" + spec.y.label + ")" : "");
    }
    const p = item.dataset.points[item.dataIndex], text = p[spec.kind === "spans" ? 3 : 2];
    return wrap(text ? name + text : name + short(p[0]) + ", " + short(p[1]));
  }

  function configuration(spec) {
    const across = spec.across || spec.kind === "spans";
    const set = {lines: line_set, bars: bar_set, spans: span_set}[spec.kind];
    const named = {x: spec.x.names, y: spec.y.names};
    const marks = spec.series.some(s => s.marks), lines = spec.kind === "lines" && !marks;
    const scales = across ? {x: scale(spec.kind === "bars" ? spec.y : spec.x), y: scale(spec.kind === "bars" ? spec.x : spec.y,
                                                                                      named.x || named.y, true)}
                          : {x: scale(spec.x, named.x, false), y: scale(spec.y, named.y, true)};
    if (spec.stacked) {
      scales.x.stacked = scales.y.stacked = true;
    }
    return {
      data: {labels: spec.kind === "bars" ? named.x : undefined, datasets: spec.series.map((s, i) => set(s, i, spec))},
      options: {
        indexAxis: across ? "y" : "x", scales, animation: false, responsive: true, maintainAspectRatio: false,
        devicePixelRatio: Math.max(2, window.devicePixelRatio),
        interaction: {mode: spec.kind === "bars" ? "index" : "nearest", axis: across ? "y" : spec.kind === "bars" ? "x" : "xy",
                      intersect: spec.kind !== "bars"},
        plugins: {
          legend: {display: spec.series.filter(s => s.name).length > 1, position: "bottom", align: "start",
                   labels: {padding: 10, filter: l => !!l.text, ...(lines ? {generateLabels: labels, usePointStyle: true, pointStyle: "line", pointStyleWidth: 28, boxHeight: 6}
                                                                   : {usePointStyle: marks, boxWidth: 12, boxHeight: marks ? 7 : 12})}},
          tooltip: {callbacks: {label: item => note(item, spec), title: items => spec.kind === "bars" ? items[0].label : ""}},
        },
      },
    };
  }

  /* Everything that has a colour. */
  function paint(config) {
    for (const d of config.data.datasets) {
      d.borderColor = d.backgroundColor = d.pointBackgroundColor = theme("c" + d.colour % COLOURS);
    }
    for (const s of Object.values(config.options.scales)) {
      s.grid.color = s.grid.borderColor = theme("grid");
      s.ticks.color = s.title.color = theme("quiet");
    }
    config.options.plugins.legend.labels.color = theme("text");
  }

  function repaint() {
    for (const c of drawn) {
      paint(c.config);
      c.update("none");
    }
  }

  function height(spec) {
    const rows = spec.y.names ? spec.y.names.length : spec.across ? spec.x.names.length : 0;
    return rows ? 110 + rows * (spec.stacked || spec.y.names ? 40 : 24 * spec.series.length) : phone() ? 280 : 320;
  }

  function draw(figure) {
    const spec = JSON.parse(document.getElementById(figure.id + "-data").textContent);
    const box = figure.querySelector(".canvas"), config = configuration(spec);
    box.style.height = height(spec) + 20 * Math.max(0, spec.series.filter(s => s.name).length - (phone() ? 2 : 6)) / (phone() ? 2 : 5) + "px";
    paint(config);
    drawn.push(new Chart(box.firstElementChild, config));
  }

  Chart.defaults.font.family = "system-ui, sans-serif";
  Chart.defaults.font.size = 12;
  document.querySelectorAll("figure").forEach(draw);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", repaint);

  /* A chart has no size while its section is folded: Chart.js draws it again when it is not. */
  function unfold() {
    const section = document.getElementById(location.hash.slice(1));
    if (section && section.matches("details")) {
      section.open = true;
    }
  }

  let folded = [];
  unfold();
  addEventListener("hashchange", unfold);
  document.querySelectorAll("nav a").forEach(a => a.addEventListener("click", () => setTimeout(unfold)));
  addEventListener("beforeprint", () => {
    folded = [...document.querySelectorAll("details.fold:not([open])")];
    folded.forEach(d => { d.open = true; });
    document.documentElement.classList.add("paper");
    repaint();
    for (const c of drawn) {
      const box = c.canvas.parentNode;
      c.resize(Math.min(PAPER_WIDTH, box.clientWidth), box.clientHeight);
    }
  });
  addEventListener("afterprint", () => {
    document.documentElement.classList.remove("paper");
    repaint();
    drawn.forEach(c => c.resize());
    folded.forEach(d => { d.open = false; });
  });
  document.documentElement.dataset.drawn = drawn.length;
})();
