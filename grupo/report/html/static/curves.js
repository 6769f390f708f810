/* The curves: the main metrics first, then every metric by section. */

const MAIN_METRICS = ["reward/mean", "groups/nonzero_std_frac", "completions/length_mean", "completions/truncated_frac", "policy/entropy",
  "policy/kl_ref", "sampler_mismatch/logp_diff_mean", "grad_norm", "clip_frac/high", "time/step"];
const OPEN = new Set();  // sections that the user opened
let NUM_METRICS = 0;  // metrics that have a card

function metricSpec(name, go) {
  const lines = RUNS.map((run, i) => {
    const y = run.metrics[name] || [], known = (_, at) => y[at] !== null && y[at] !== undefined;
    return { name: run.name, run: i, steps: stepsOf(i).filter(known), x: positionsOf(i).filter(known), y: y.filter(known) };
  }).filter((line) => line.x.length);
  const metricDefinition = RUNS.map((run) => run.metric_definitions[name]).find(Boolean);
  return { title: name, unit: metricDefinition?.unit || "", definition: metricDefinition, low: metricDefinition?.low ?? null,
    high: metricDefinition?.high ?? null, lines, go };
}

/* The negative log-likelihood of held-out demonstrations, after each evaluated step. */
function heldOutNllSpec() {
  const { range, ...spec } = heldOutSpec("nll");
  return { ...spec, unit: "nats per token", note: "negative log-likelihood of held-out demonstrations" };
}

/* The fraction of held-out tasks solved, after each evaluated step. */
function heldOutSpec(name) {
  const done = (run, when) => (when === "before" ? 0 : when === "after"
    ? (RUNS[run].summary.steps ?? stepsOf(run).length) : Number(when.replace("step ", "")));
  const lines = RUNS.map((run, i) => {
    const points = Object.entries(run.held_out).filter(([, s]) => isNumber(s[name])).map(([w, s]) => [done(i, w), s[name]]);
    points.sort((a, b) => a[0] - b[0]);
    return { name: run.name, run: i, steps: points.map(([step]) => step), x: points.map(([step]) => positionAfter(i, step)), y: points.map(([, y]) => y) };
  }).filter((line) => line.x.length);
  return { title: `held-out, ${name}`, unit: "fraction", low: null, high: null, lines, points: true, range: () => [0, 1],
    note: "fraction of held-out tasks solved" };
}

/* Redraw the charts; lay them out again if there are new metrics. */
function renewCurves(go) {
  const names = [...new Set(RUNS.flatMap((run) => Object.keys(run.metrics)))].filter((name) => name !== "step");
  if (names.length && names.length === NUM_METRICS) return redrawAll();
  NUM_METRICS = names.length;
  return layCurves(names, go);
}

function layCurves(names, go) {
  const body = $("#curves .body");
  if (!names.length) return fill(body, el("p", { class: "soft" }, "No step has been written yet."));
  const sections = new Map();
  for (const name of names) {
    const section = RUNS.map((run) => run.metric_definitions[name]?.section).find(Boolean) || "Custom metrics";
    sections.set(section, [...(sections.get(section) || []), name]);
  }
  const scored = ["sampled", "greedy"].filter((name) => heldOutSpec(name).lines.length);
  const first = MAIN_METRICS.filter((name) => names.includes(name));
  const measured = [...new Set(RUNS.flatMap((run) => run.recipe.measured_terms || []))].map((term) => `reward/${term}`);
  const cards = [...[...first.slice(0, 1), ...measured.filter((name) => names.includes(name))].map((name) => chartCard(() => metricSpec(name, go))),
    ...scored.slice(0, 1).map((name) => chartCard(() => heldOutSpec(name))),
    ...heldOutNllSpec().lines.slice(0, 1).map(() => chartCard(heldOutNllSpec)),
    ...first.slice(1).map((name) => chartCard(() => metricSpec(name, go)))];
  const all = [...sections].map(([section, inside]) => lazyCharts(section, inside, go));
  return fill(body, axisChoice(go), el("div", { class: "charts" }, cards),
    el("p", { class: "soft small" }, `From ${UNSMOOTHED} steps on, the thin line shows each step and the thick line a moving average over a tenth of the run. Click a curve to see the groups of that step.`),
    all);
}

function axisChoice(go) {
  const select = el("select", { id: "x-axis", onchange: (event) => {
    X_AXIS = event.target.value;
    NUM_METRICS = 0;
    renewCurves(go);
    redrawAll();
  } });
  return el("div", { class: "tools" }, labelled("x-axis", options(select, Object.keys(X_AXES).map((name) => [name, name]), X_AXIS)));
}

function lazyCharts(section, names, go) {
  const place = el("div", { class: "charts" });
  const opened = () => {
    if (!place.childElementCount) fill(place, names.map((name) => chartCard(() => metricSpec(name, go))));
  };
  const details = el("details", { open: OPEN.has(section) }, el("summary", {}, `${section}: ${plural(names.length, "metric")}`), place);
  details.addEventListener("toggle", () => {
    if (details.open) opened();
    OPEN[details.open ? "add" : "delete"](section);
  });
  if (OPEN.has(section)) opened();
  return details;
}
