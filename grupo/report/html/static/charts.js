/* A metric over steps, tokens or seconds, of one run or several, with the healthy range shaded. */

const CHARTS = new Map();  // by their card element
const UNSMOOTHED = 20;  // below this number of steps, curves are not smoothed

/* The choices of the x-axis, and the metric whose sum each of them is. */
const X_AXES = { steps: "", tokens: "tokens/generated", seconds: "time/step" };
let X_AXIS = "steps";

/* Where the steps of a run are on the x-axis: their numbers, or the tokens or seconds up to their ends. */
function positionsOf(run) {
  const { metrics } = RUNS[run], steps = metrics.step || [], amounts = metrics[X_AXES[X_AXIS]] || [];
  let sum = 0;
  return X_AXIS === "steps" ? steps : steps.map((_, i) => (sum += isNumber(amounts[i]) ? amounts[i] : 0));
}

/* Where a run is on the x-axis after this many steps. */
const positionAfter = (run, done) => (done ? positionsOf(run)[stepsOf(run).indexOf(done)] ?? positionsOf(run).at(-1) ?? done : 0);

const positionLabel = (x) => ({ steps: `step ${x}`, tokens: `${compact(x)} tokens`, seconds: clock(x) })[X_AXIS];

/* The step of the selected run that is nearest to a position. */
function stepAt({ lines }, x) {
  const line = lines.find(({ run }) => run === CURRENT) || lines[0];
  const distance = (i) => Math.abs(line.x[i] - x);
  return line.steps[line.x.reduce((nearest, _, i) => (distance(i) < distance(nearest) ? i : nearest), 0)];
}

/* Columns for uPlot: the positions of all runs, then each run's values and, for many steps, their moving average.
   A run has no value (undefined) at the positions of others, and a gap (null) where its metric is NaN. */
function columnsOf(spec) {
  const x = [...new Set(spec.lines.flatMap((line) => line.x))].sort((a, b) => a - b);
  const row = new Map(x.map((step, i) => [step, i]));
  const aligned = (xs, ys) => {
    const column = Array(x.length).fill(undefined);
    xs.forEach((step, i) => { column[row.get(step)] = isNumber(ys[i]) ? ys[i] : null; });
    return column;
  };
  const smooth = x.length >= UNSMOOTHED && !spec.points;
  return [x, ...spec.lines.flatMap((line) => {
    const raw = aligned(line.x, line.y);
    return smooth ? [raw, movingAverage(raw)] : [raw];
  })];
}

/* Trailing means over a tenth of the run. */
function movingAverage(values) {
  const width = Math.max(1, Math.floor(values.length / 10));
  return values.map((value, i) => {
    const near = values.slice(Math.max(0, i + 1 - width), i + 1).filter(isNumber);
    return isNumber(value) ? mean(near) : value;
  });
}

function seriesOf(spec, columns) {
  const smooth = columns.length - 1 > spec.lines.length;
  return [{}, ...spec.lines.flatMap((line) => {
    const stroke = () => (line.colour ? css(line.colour) : colourOf(line.run));
    const plain = { stroke, width: 2, spanGaps: Boolean(spec.points), points: { show: columns[0].length < 60, size: 5, fill: stroke } };
    return smooth ? [{ stroke, width: 1, alpha: .35, points: { show: false } }, { stroke, width: 2, points: { show: false } }]
      : [plain];
  })];
}

function shade(held) {
  return (u) => {
    const { spec } = held;
    if (spec.low === null && spec.high === null) return;
    const { left, top, width, height } = u.bbox, { min, max } = u.scales.y;
    const edge = (value, otherwise) => Math.min(top + height, Math.max(top,
      value === null ? otherwise : u.valToPos(Math.min(max, Math.max(min, value)), "y", true)));
    const above = edge(spec.high, top), below = edge(spec.low, top + height);
    u.ctx.save();
    u.ctx.fillStyle = css("--band");
    u.ctx.fillRect(left, above, width, Math.max(spec.low === spec.high ? 2 : 0, below - above));
    u.ctx.restore();
  };
}

/* Marks at the bottom where a metric is NaN. */
function markGaps(held) {
  return (u) => {
    const { spec } = held;
    const { top, height } = u.bbox, size = 5 * devicePixelRatio;
    u.ctx.save();
    u.ctx.fillStyle = css("--bad");
    for (const line of spec.lines) {
      line.x.forEach((step, i) => {
        if (typeof line.y[i] !== "string") return;
        const at = u.valToPos(step, "x", true);
        u.ctx.fillRect(at - size / 2, top + height - size, size, size);
      });
    }
    u.ctx.restore();
  };
}

/* Show the values at a step; with several runs, each with its colour. */
function showValues(at, spec, index, columns) {
  const smooth = columns.length - 1 > spec.lines.length, several = RUNS.length > 1;
  const hasInlineUnit = ["fraction", "s", "1", "reward"].includes(spec.unit);  // other units follow all values
  const values = spec.lines.map((line, i) => {
    const value = columns[1 + i * (smooth ? 2 : 1)][index] ?? null;
    const text = value === null ? "–" : withUnit(value, several && !hasInlineUnit ? "" : spec.unit);
    if (!several) return text;
    const swatch = el("span", { class: "swatch" });
    swatch.style.background = `var(--run${line.run % 6})`;
    return el("span", { class: "value", title: line.name }, swatch, text);
  });
  fill(at, `${positionLabel(columns[0][index])}: `, values, several && !hasInlineUnit ? ` ${spec.unit}` : "");
}

const axis = (more) => ({
  stroke: () => css("--soft"), font: "11px system-ui, sans-serif",
  grid: { stroke: () => css("--line"), width: 1 }, ticks: { show: false }, ...more,
});

/* The range of the y axis; fractions stay within 0 and 1, and a flat line is not magnified. */
function ranged(low, high, { unit, high: healthy }) {
  if (low === high) {
    const room = Math.abs(low) / 2 || healthy || 1;
    return low >= 0 ? [Math.max(0, low - room), low + room] : [low - room, Math.min(0, low + room)];
  }
  const [from, to] = uPlot.rangeNum(low, high, 0.1, true);
  return unit === "fraction" ? [Math.max(0, from), Math.min(1, to)] : [from, to];
}

function drawn(held, columns) {
  const { plot: place, spec } = held;
  const labels = (u, splits) => distinctLabels(splits, spec.unit === "fraction" ? percent : number);
  const width = (u, values) => Math.max(54, 14 + 6 * Math.max(0, ...(values || []).map((label) => label.length)));
  const wholeSteps = { incrs: [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10000, 100000] };
  const range = spec.range || ((u, low, high) => ranged(low ?? 0, high ?? 1, held.spec));
  const hooks = {
    drawClear: [shade(held)],
    draw: [markGaps(held)],
    setCursor: [(u) => showValues(held.at, held.spec, u.cursor.idx ?? u.data[0].length - 1, u.data)],
  };
  return new uPlot({
    width: Math.max(120, place.clientWidth), height: 170, hooks,
    legend: { show: false }, padding: [8, 12, 0, 0],
    cursor: { sync: { key: "steps" }, drag: { x: false, y: false }, y: false },
    scales: { x: { time: false }, y: { range } },
    axes: [
      axis({ size: 24, space: 50, values: (u, splits) => distinctLabels(splits, compact), ...(X_AXIS === "steps" ? wholeSteps : {}) }),
      axis({ size: width, space: 30, values: labels }),
    ],
    series: seriesOf(spec, columns),
  }, columns, place);
}

/* A card with a chart that is drawn once it is visible; `specOf` returns its current content. */
function chartCard(specOf) {
  const spec = specOf(), plot = el("div", { class: "plot" });
  const at = el("span", { class: "at", "aria-live": "off" }), under = el("div", { class: "under" });
  const card = el("article", { class: "chart" },
    el("header", {}, el("h3", {}, term(spec.title, () => definition(specOf()))), at), plot, under);
  CHARTS.set(card, { specOf, spec, plot, at, under, chart: null });
  explain(spec, under);
  plot.addEventListener("click", () => {
    const { chart } = CHARTS.get(card), now = specOf();
    if (chart && now.go && chart.cursor.idx !== null) now.go({ step: stepAt(now, chart.data[0][chart.cursor.idx]) });
  });
  seen.observe(card);
  sized.observe(plot);
  return card;
}

/* The healthy range in the unit of the axis: fractions in percent. */
const healthyLabel = ({ unit, healthy_range: healthy }) => (unit === "fraction" ? healthy.replace(/\d*\.?\d+/g, (x) => percent(Number(x))) : healthy);

function definition(spec) {
  const d = spec.definition;
  if (!d) return [spec.title, spec.note || "A custom metric: grupo has no definition of it."];
  return [
    d.meaning[0].toUpperCase() + d.meaning.slice(1) + ".",
    d.unit !== "1" ? `Unit: ${d.unit}.` : "No unit.",
    d.healthy_range ? `Healthy: ${healthyLabel(d)}.` : "",
    d.advice ? `Otherwise: ${d.advice}` : "",
  ].filter(Boolean);
}

function explain(spec, under) {
  const missing = spec.lines.flatMap((line) => line.steps.filter((_, i) => typeof line.y[i] === "string"));
  const values = [...new Set(spec.lines.flatMap((line) => line.y.filter((y) => typeof y === "string")))];
  const healthy = spec.low !== null || spec.high !== null;
  fill(under,
    healthy ? el("span", {}, el("span", { class: "key" }), `healthy: ${healthyLabel(spec.definition)}`) : (spec.note || ""),
    missing.length ? el("span", { class: "bad" }, ` ${values.join(", ")} at ${stepsLabel(missing)}`) : null);
}

const stepsLabel = (steps) => (steps.length > 4
  ? `${steps.length} steps from ${steps[0]} to ${steps[steps.length - 1]}` : `step ${steps.join(", ")}`);

function redraw(card) {
  const held = CHARTS.get(card);
  const spec = held.spec = held.specOf(), columns = columnsOf(spec);
  explain(spec, held.under);
  if (!columns[0].length) return;
  if (held.chart?.series.length === columns.length) held.chart.setData(columns);
  else {
    held.chart?.destroy();
    held.chart = drawn(held, columns);
  }
  showValues(held.at, spec, columns[0].length - 1, columns);
}

function redrawAll() {
  for (const [card, held] of CHARTS) {
    if (!card.isConnected) {
      held.chart?.destroy();
      CHARTS.delete(card);
    }
    else if (held.chart) redraw(card);
    else seen.observe(card);
  }
}

const seen = new IntersectionObserver((entries) => {
  for (const { isIntersecting, target } of entries) {
    if (!isIntersecting || !CHARTS.has(target)) continue;
    seen.unobserve(target);
    redraw(target);
  }
}, { rootMargin: "300px" });

const sized = new ResizeObserver((entries) => {
  for (const { target } of entries) {
    const held = [...CHARTS.values()].find(({ plot }) => plot === target);
    if (held?.chart && target.clientWidth) held.chart.setSize({ width: target.clientWidth, height: 170 });
  }
});
