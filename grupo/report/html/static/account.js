/* The sections "Recipe", "Time and tokens" and "Doctor". */

function recipeOf(run) {
  const { recipe } = RUNS[run];
  if (!recipe.fields) return el("p", { class: "soft" }, "recipe.json is missing or cannot be read.");
  const row = ([slot, grpo, own]) => el("tr", { class: own === grpo ? "same" : "other" },
    el("th", { scope: "row" }, slot), el("td", {}, el("code", {}, grpo)), el("td", {}, el("code", {}, own)));
  const changed = recipe.method.filter(([, grpo, own]) => grpo !== own);
  const header = el("tr", {}, ["slot", "GRPO", "this run"].map((name) => el("th", { scope: "col" }, name)));
  const table = (rows) => el("div", { class: "wide" }, el("table", {}, el("thead", {}, header.cloneNode(true)), el("tbody", {}, rows.map(row))));
  const fields = recipe.fields.map(([name, value]) => el("tr", {}, el("th", { scope: "row" }, name), el("td", {}, el("code", {}, value))));
  return [
    el("p", {}, changed.length ? `The method differs from GRPO in ${plural(changed.length, "slot")} of ${recipe.method.length}.`
      : "The method is GRPO with its default components."),
    changed.length ? table(changed) : null,
    el("details", {}, el("summary", {}, "Full recipe"), table(recipe.method),
      el("div", { class: "wide" }, el("table", {}, el("tbody", {}, fields)))),
  ];
}

const TOKENS = [["tokens/generated", "generated"], ["tokens/returned", "returned by the sampler"], ["tokens/trained", "trained on"],
  ["tokens/with_advantage", "with nonzero advantage"], ["tokens/backpropagated", "backpropagated"], ["tokens/unused", "unused"]];
const TIMES = [["time/generate", "generating"], ["time/score", "scoring"], ["time/logprobs", "log-probabilities"],
  ["time/update", "updating"], ["time/other", "other"]];

function ledgerOf(run) {
  const { ledger, metric_definitions: definitions } = RUNS[run];
  const total = ledger["time/step"], generated = ledger["tokens/generated"];
  if (!total) return el("p", { class: "soft" }, "No step has been written yet.");
  const phases = TIMES.map(([name, label], i) => ({ name, label, colour: `--run${i}`, x: ledger[name] || 0 }));
  const bar = el("div", { class: "stack", role: "img", "aria-label": phases.map((s) => `${s.label} ${percent(s.x / total)}`).join(", ") },
    phases.map((s) => {
      const segment = tipped(el("div"), () => [`${s.label}: ${clock(s.x)}, ${percent(s.x / total)}`]);
      segment.style.flexGrow = s.x / total;
      segment.style.background = `var(${s.colour})`;
      return segment;
    }));
  const legend = el("ul", { class: "legend" }, phases.map((s) => {
    const swatch = el("span", { class: "swatch" });
    swatch.style.background = `var(${s.colour})`;
    return el("li", {}, swatch, `${s.label} `, el("span", { class: "num soft" }, `${clock(s.x)} · ${percent(s.x / total)}`));
  }));
  const rows = TOKENS.filter(([name]) => isNumber(ledger[name])).map(([name, label]) => el("tr", {},
    el("th", { scope: "row" }, term(label, () => definition({ title: name, definition: definitions[name] }))),
    el("td", { class: "num" }, `${whole(ledger[name])} tokens`),
    el("td", { class: "num soft" }, name === "tokens/generated" ? `${number(generated / total)} tokens/s` : `${percent(ledger[name] / generated)} of generated`)));
  return el("div", { class: "pair" },
    el("div", {}, el("h3", {}, `Total time of the steps: ${clock(total)}`), bar, legend),
    el("div", {}, el("h3", {}, "Tokens"), el("table", {}, el("tbody", {}, rows))));
}

/* A link to the location of a finding: a step, a group, a rollout. */
function locationOf(location, go) {
  const indices = [["step", location.step], ["task", location.task.slice(0, 12)], ["rollout", location.rollout ?? ""],
    ["action", location.action ?? ""]].filter(([, x]) => x !== "");
  return el("button", { class: "chip", type: "button", onclick: () => go(location) }, indices.map(([name, x]) => `${name} ${x}`).join(", "));
}

function doctorOf(run, go) {
  const { findings } = RUNS[run];
  const isSick = findings.some(({ severity }) => severity !== "note");
  const list = (label, lines) => (lines.length ? el("div", {}, el("span", { class: "soft small" }, label),
    el("ul", {}, lines.map((line) => el("li", {}, line.replaceAll("`", ""))))) : null);
  return [
    isSick ? null : el("p", { class: "good" }, "Healthy: no check found a problem."),
    findings.map((f) => el("article", { class: `finding ${f.severity}` },
      el("h3", { class: f.severity === "error" ? "bad" : f.severity === "warning" ? "warn" : "" }, `${f.severity}: ${f.name}`),
      el("p", {}, f.details.replaceAll("`", "")),
      f.locations.length ? el("div", { class: "row small" }, el("span", { class: "soft" }, "Look at"), f.locations.map((location) => locationOf(location, go))) : null,
      el("div", { class: "pair" }, list("Probable causes", f.causes), list("Suggestions", f.suggestions)))),
  ];
}
