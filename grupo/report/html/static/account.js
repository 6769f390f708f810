/* What was chosen, what it cost, and what is wrong with it: recipe, ledger, doctor. */

function recipeOf(run) {
  const { recipe } = RUNS[run];
  if (!recipe.fields) return el("p", { class: "soft" }, "recipe.json is not there, or cannot be read.");
  const row = ([slot, usual, own]) => el("tr", { class: own === usual ? "same" : "other" },
    el("th", { scope: "row" }, slot), el("td", {}, el("code", {}, usual)), el("td", {}, el("code", {}, own)));
  const other = recipe.method.filter(([, usual, own]) => usual !== own);
  const head = el("tr", {}, ["slot", "GRPO", "this run"].map((name) => el("th", { scope: "col" }, name)));
  const table = (rows) => el("div", { class: "wide" }, el("table", {}, el("thead", {}, head.cloneNode(true)), el("tbody", {}, rows.map(row))));
  const fields = recipe.fields.map(([name, value]) => el("tr", {}, el("th", { scope: "row" }, name), el("td", {}, el("code", {}, value))));
  return [
    el("p", {}, other.length ? `The method differs from GRPO in ${plural(other.length, "slot")} of ${recipe.method.length}.`
      : "The method is GRPO as grupo has it: nothing is changed."),
    other.length ? table(other) : null,
    el("details", {}, el("summary", {}, "The whole recipe"), table(recipe.method),
      el("div", { class: "wide" }, el("table", {}, el("tbody", {}, fields)))),
  ];
}

const TOKENS = [["tokens/generated", "sampled"], ["tokens/trained", "in the batch"], ["tokens/nonzero_advantage", "with an advantage"],
  ["tokens/backpropagated", "trained"], ["tokens/unused", "never trained"]];
const TIMES = [["time/generate", "sampling"], ["time/score", "waiting for judges"], ["time/logprobs", "measuring"],
  ["time/update", "updating"], ["time/other", "the rest"]];

function ledgerOf(run) {
  const { ledger, metric_definitions: definitions } = RUNS[run];
  const total = ledger["time/step"], sampled = ledger["tokens/generated"];
  if (!total) return el("p", { class: "soft" }, "No step has been written yet.");
  const shares = TIMES.map(([name, label], i) => ({ name, label, colour: `--run${i}`, x: ledger[name] || 0 }));
  const bar = el("div", { class: "stack", role: "img", "aria-label": shares.map((s) => `${s.label} ${percent(s.x / total)}`).join(", ") },
    shares.map((s) => {
      const part = tipped(el("div"), () => [`${s.label}: ${clock(s.x)}, ${percent(s.x / total)}`]);
      part.style.flexGrow = s.x / total;
      part.style.background = `var(${s.colour})`;
      return part;
    }));
  const legend = el("ul", { class: "legend" }, shares.map((s) => {
    const swatch = el("span", { class: "swatch" });
    swatch.style.background = `var(${s.colour})`;
    return el("li", {}, swatch, `${s.label} `, el("span", { class: "num soft" }, `${clock(s.x)} · ${percent(s.x / total)}`));
  }));
  const rows = TOKENS.filter(([name]) => isNumber(ledger[name])).map(([name, label]) => el("tr", {},
    el("th", { scope: "row" }, term(label, () => definition({ title: name, defined: definitions[name] }))),
    el("td", { class: "num" }, `${whole(ledger[name])} actions`),
    el("td", { class: "num soft" }, name === "tokens/generated" ? `${number(sampled / total)} a second` : `${percent(ledger[name] / sampled)} of sampled`)));
  return el("div", { class: "pair" },
    el("div", {}, el("h3", {}, `Time of the steps: ${clock(total)}`), bar, legend),
    el("div", {}, el("h3", {}, "Actions"), el("table", {}, el("tbody", {}, rows))));
}

/* Where a finding is to be seen: a step, a group of it, a rollout of that. */
function placeOf(place, go) {
  const named = [["step", place.step], ["task", place.task.slice(0, 12)], ["rollout", place.rollout ?? ""],
    ["action", place.action ?? ""]].filter(([, x]) => x !== "");
  return el("button", { class: "chip", type: "button", onclick: () => go(place) }, named.map(([name, x]) => `${name} ${x}`).join(", "));
}

function doctorOf(run, go) {
  const { findings } = RUNS[run];
  const wrong = findings.some(({ severity }) => severity !== "note");
  const list = (label, lines) => (lines.length ? el("div", {}, el("span", { class: "soft small" }, label),
    el("ul", {}, lines.map((line) => el("li", {}, line.replaceAll("`", ""))))) : null);
  return [
    wrong ? null : el("p", { class: "good" }, "Healthy: no check found anything wrong."),
    findings.map((f) => el("article", { class: `finding ${f.severity}` },
      el("h3", { class: f.severity === "error" ? "bad" : f.severity === "warning" ? "warn" : "" }, `${f.severity}: ${f.name}`),
      el("p", {}, f.details.replaceAll("`", "")),
      f.locations.length ? el("div", { class: "row small" }, el("span", { class: "soft" }, "Look at"), f.locations.map((place) => placeOf(place, go))) : null,
      el("div", { class: "pair" }, list("As a rule because", f.causes), list("Try", f.suggestions)))),
  ];
}
