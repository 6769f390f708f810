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
  const evaluations = Object.entries(scores).filter(([, score]) => isNumber(score[name]));
  if (!evaluations.length) return null;
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
  const failed = (RUNS[run].metrics["rollouts/failed"] || []).filter(isNumber).reduce((a, b) => a + b, 0);
  const tiles = [
    last === undefined ? null : tile("reward", number(last), `from ${number(first)}; mean of the last tenth of the steps`,
      ["The mean training reward over the first tenth of the steps and over the last."]),
    heldOut(scores, "sampled", "held-out, sampled"),
    heldOut(scores, "greedy", "held-out, greedy"),
    tile("steps", whole(stepsOf(run).length), statusOf(run)),
    seconds ? tile("time", clock(seconds), isNumber(summary.seconds) ? "including evaluation" : "without evaluation") : null,
    ledger["tokens/generated"] ? tile("tokens generated", whole(ledger["tokens/generated"]),
      `${number(ledger["tokens/generated"] / ledger["time/step"])} tokens/s`, ["Tokens (or denoising steps) that the policy generated in all steps."]) : null,
    tile("rollouts not scored", whole(failed), failed ? "left out; see Groups, filter “some not scored”" : "every rollout was scored",
      ["Rollouts whose reward function raised, timed out or returned NaN."]),
    tile("doctor", problems.length ? plural(problems.length, "finding") : "healthy", problems.length ? problems[0].name : `${plural(findings.length, "note")}`),
  ];
  const line = el("p", { class: "soft" }, [recipe.model, RUNS[run].folder].filter(Boolean).join(" · "));
  return [el("div", { class: "tiles" }, tiles.filter(Boolean)), line];
}

function showProblems() {
  fill($("#problems"), RUNS.flatMap(({ name, problems }) => problems.map((text) =>
    el("p", { class: "problem", role: "alert" }, el("b", {}, name), ` – ${text}`))));
}
