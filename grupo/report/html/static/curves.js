/* The curves: what to look at first, then every number of a step. */

const FIRST = ["reward/mean", "groups/nonzero_std_frac", "completions/length_mean", "completions/truncated_frac", "policy/entropy",
  "policy/kl_ref", "sampler_mismatch/logp_diff_mean", "grad_norm", "clip_frac/high", "time/step"];
const OPEN = new Set();  // sections that somebody opened
let NAMED = 0;  // how many numbers the cards are of

function metricSpec(name, go) {
  const lines = RUNS.map((run, i) => ({ name: run.name, run: i, x: run.metrics.step || [], y: run.metrics[name] || [] }))
    .map((line) => ({ ...line, x: line.x.filter((_, i) => line.y[i] !== null && line.y[i] !== undefined),
      y: line.y.filter((y) => y !== null && y !== undefined) }))
    .filter((line) => line.x.length);
  const defined = RUNS.map((run) => run.metric_definitions[name]).find(Boolean);
  return { title: name, unit: defined?.unit || "", defined, low: defined?.low ?? null, high: defined?.high ?? null, lines, go };
}

/* The shares of held-out tasks solved, by how many steps were done. */
function heldOutSpec(name) {
  const done = (run, when) => (when === "before" ? 0 : when === "after"
    ? (RUNS[run].summary.steps ?? stepsOf(run).length) : Number(when.replace("step ", "")));
  const lines = RUNS.map((run, i) => {
    const points = Object.entries(run.held_out).filter(([, s]) => isNumber(s[name])).map(([w, s]) => [done(i, w), s[name]]);
    points.sort((a, b) => a[0] - b[0]);
    return { name: run.name, run: i, x: points.map(([x]) => x), y: points.map(([, y]) => y) };
  }).filter((line) => line.x.length);
  return { title: `held-out, ${name}`, unit: "share", low: null, high: null, lines, points: true, range: () => [0, 1],
    note: "share of held-out tasks solved, by steps done" };
}

/* Draw what is new; where there are other numbers than before, lay out all again. */
function renewCurves(go) {
  const names = [...new Set(RUNS.flatMap((run) => Object.keys(run.metrics)))].filter((name) => name !== "step");
  if (names.length && names.length === NAMED) return redrawAll();
  NAMED = names.length;
  return layCurves(names, go);
}

function layCurves(names, go) {
  const body = $("#curves .body");
  if (!names.length) return fill(body, el("p", { class: "soft" }, "No step has been written yet."));
  const sections = new Map();
  for (const name of names) {
    const section = RUNS.map((run) => run.metric_definitions[name]?.section).find(Boolean) || "Your own";
    sections.set(section, [...(sections.get(section) || []), name]);
  }
  const scored = ["sampled", "greedy"].filter((name) => heldOutSpec(name).lines.length);
  const first = FIRST.filter((name) => names.includes(name));
  const cards = [...first.slice(0, 1).map((name) => chartCard(() => metricSpec(name, go))),
    ...scored.slice(0, 1).map((name) => chartCard(() => heldOutSpec(name))),
    ...first.slice(1).map((name) => chartCard(() => metricSpec(name, go)))];
  const all = [...sections].map(([section, inside]) => lazyCharts(section, inside, go));
  return fill(body, el("div", { class: "charts" }, cards),
    el("p", { class: "soft small" }, `From ${UNSMOOTHED} steps on, thin is each step and thick the mean of the last tenth of the run. Click a curve to see the groups of that step.`),
    all);
}

function lazyCharts(section, names, go) {
  const place = el("div", { class: "charts" });
  const opened = () => {
    if (!place.childElementCount) fill(place, names.map((name) => chartCard(() => metricSpec(name, go))));
  };
  const details = el("details", { open: OPEN.has(section) }, el("summary", {}, `${section}: ${plural(names.length, "number")} of a step`), place);
  details.addEventListener("toggle", () => {
    if (details.open) opened();
    OPEN[details.open ? "add" : "delete"](section);
  });
  if (OPEN.has(section)) opened();
  return details;
}
