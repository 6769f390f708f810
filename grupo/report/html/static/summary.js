/* The summary of a run in tiles. */

function tile(label, value, note, lines) {
  const name = el("div", { class: "label" }, lines ? term(label, () => lines) : label);
  return el("div", { class: "tile" }, name, el("div", { class: "value" }, value), el("div", { class: "note" }, note || ""));
}

function ends(run, name) {
  const values = (RUNS[run].metrics[name] || []).filter(isNumber);
  const width = Math.max(1, Math.floor(values.length / 10));
  return values.length ? [mean(values.slice(0, width)), mean(values.slice(-width))] : [];
}

function heldOut(scores, name, label) {
  const [newest, newestScore] = Object.entries(scores).pop() || [];
  if (!newest) return null;
  if (!isNumber(newestScore[name])) return tile(label, "not scored", `${newest}; no rollout could be scored`);
  const evaluations = Object.entries(scores).filter(([, score]) => isNumber(score[name]));
  const [, first] = evaluations[0], [last, now] = evaluations[evaluations.length - 1];
  const interval = now.intervals?.[name];
  const within = interval ? `95 % interval ${interval.map((x) => Number((100 * x).toFixed(1))).join(" to ")} %` : "";
  const since = evaluations.length > 1 ? `from ${percent(first[name])}; ${within}` : `${last}; ${within}`;
  return tile(label, percent(now[name]), since,
    ["The fraction of held-out tasks solved, before training and now.", within && `Now: ${within}, by bootstrap over tasks.`].filter(Boolean));
}

function statusOf(run) {
  const { summary, recipe, last_written_at: written, metrics } = RUNS[run];
  const done = (metrics.step || []).length, all = recipe.max_steps;
  if (isNumber(summary.steps)) return `finished after ${plural(summary.steps, "step")}`;
  if (!done) return "no step yet";
  return `${all ? `${done} of ${all}` : done} steps; the last was written ${when(written)}`;
}

function summaryOf(run) {
  const { summary, held_out: scores, ledger, findings, recipe } = RUNS[run];
  const [first, last] = ends(run, "reward/mean");
  const seconds = isNumber(summary.seconds) ? summary.seconds : ledger["time/step"];
  const problems = findings.filter(({ severity }) => severity !== "note");
  const { failed, total, cause } = scoringOf(run);
  const tiles = [
    last === undefined ? null : tile("reward", number(last), `from ${number(first)}; mean of the last tenth of the steps`,
      ["The mean training reward over the first tenth of the steps and over the last."]),
    heldOut(scores, "sampled", "held-out, sampled"),
    heldOut(scores, "greedy", "held-out, greedy"),
    tile("steps", whole(stepsOf(run).length), statusOf(run)),
    seconds ? tile("time", clock(seconds), isNumber(summary.seconds) ? "including evaluation" : "without evaluation") : null,
    ledger["tokens/generated"] ? tile("tokens generated", whole(ledger["tokens/generated"]),
      `${number(ledger["tokens/generated"] / ledger["time/step"])} tokens/s`, ["Tokens (or denoising steps) that the policy generated in all steps."]) : null,
    tile("rollouts not scored", failed ? el("span", { class: "bad" }, `${whole(failed)} of ${whole(Math.max(failed, total))}`) : "0",
      failed ? el("span", { class: "bad" }, cause || "see the doctor's findings") : "every rollout was scored",
      ["Rollouts whose reward function raised, timed out or returned NaN. Groups can be filtered by “some not scored”."]),
    tile("doctor", problems.length ? plural(problems.length, "finding") : "healthy", problems.length ? problems[0].name : `${plural(findings.length, "note")}`),
  ];
  const line = el("p", { class: "soft" }, [recipe.model, RUNS[run].folder].filter(Boolean).join(" · "));
  return [...RUNS.map(({ stages }) => tableOfStages(stages)), RUNS.length > 1 ? tableOfRuns() : null, el("div", { class: "tiles" }, tiles.filter(Boolean)), line];
}

/* The stages of a pipeline, a row each; null for a run that shows none. */
function tableOfStages(stages) {
  if (!stages?.lines) return null;
  const header = el("tr", {}, stages.columns.map((name) => el("th", { scope: "col" }, name)));
  const row = (cells) => el("tr", {}, cells.map((cell, i) => el(i ? "td" : "th", { class: i > 2 ? "num" : false }, cell)));
  return el("div", { class: "wide runs-table stages-table" }, el("table", {},
    el("caption", {}, `Stages of ${stages.folder}`), el("thead", {}, header), el("tbody", {}, stages.lines.map(row))));
}

/* How many rollouts could not be scored, of how many, and the cause of the newest. */
function scoringOf(run) {
  const groups = Object.values(RUNS[run].groups_by_step).flat();
  const logged = (RUNS[run].metrics["rollouts/failed"] || []).filter(isNumber).reduce((a, b) => a + b, 0);
  return {
    failed: Math.max(logged, groups.reduce((sum, group) => sum + group.failed, 0)),
    total: groups.reduce((sum, group) => sum + group.rewards.length, 0),
    cause: groups.findLast((group) => group.error)?.error,
  };
}

const RUN_COLUMNS = ["run", "differs from GRPO in", "steps", "reward", "held-out, sampled", "tokens", "time", "not scored", "doctor"];

/* All runs of the page, a row each; a click selects the run. */
function tableOfRuns() {
  const header = el("tr", {}, RUN_COLUMNS.map((name) => el("th", { scope: "col" }, name)));
  const row = (cells, run) => el("tr", { "aria-current": run === CURRENT ? "true" : false }, cells.map((cell, i) => el(i ? "td" : "th", { class: "num" }, cell)));
  return el("div", { class: "wide runs-table" }, el("table", {}, el("thead", {}, header), el("tbody", {}, RUNS.map((_, run) => row(cellsOf(run), run)))));
}

function cellsOf(run) {
  const { name, recipe, ledger, summary, held_out: scores, findings } = RUNS[run], [first, last] = ends(run, "reward/mean");
  const solved = Object.values(scores).map(({ sampled }) => sampled).filter(isNumber), change = (ends, format) => (ends.length ? ends.map((x) => format(x)).join(" → ") : "–");
  const changed = (recipe.method || []).filter(([, grpo, own]) => grpo !== own).map(([slot]) => slot);
  const { failed, cause } = scoringOf(run), swatch = el("span", { class: "swatch" });
  swatch.style.background = `var(--run${run % 6})`;
  return [
    el("button", { class: "run", type: "button", onclick: () => selectRun(run) }, swatch, name),
    changed.join(", ") || "nothing", whole(stepsOf(run).length), change(last === undefined ? [] : [first, last], number),
    change(solved.length > 1 ? [solved[0], solved.at(-1)] : solved, percent), whole(ledger["tokens/generated"]),
    clock(isNumber(summary.seconds) ? summary.seconds : ledger["time/step"]),
    failed ? el("span", { class: "bad", title: cause || "" }, whole(failed)) : "0",
    findings.filter(({ severity }) => severity !== "note").map((finding) => finding.name).join(", ") || "healthy",
  ];
}

function showProblems() {
  fill($("#problems"), RUNS.flatMap(({ name, problems }) => problems.map((text) =>
    el("p", { class: "problem", role: "alert" }, el("b", {}, name), ` – ${text}`))));
}
