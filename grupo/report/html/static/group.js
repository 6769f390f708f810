/* One group: its prompt, its rollouts, and the same task at other steps. */

const SORT_KEYS = {
  sampled: (r) => r.index, reward: (r) => -(isNumber(r.reward) ? r.reward : -Infinity),
  worst: (r) => (isNumber(r.reward) ? r.reward : Infinity),
  advantage: (r) => -(r.advantage ?? -Infinity), length: (r) => -r.length,
};
const AT_FIRST = 64;  // rollouts shown before "show more"
let SHOWN = 0;  // the number of the last request to show a group

async function showGroup() {
  const request = (SHOWN += 1), { run, step, place, beside } = VIEW;
  const show = (kind, text) => fill($("#group"), el("p", { class: kind }, text));
  try {
    const group = step === null ? null : await groupAt(run, step, place);
    const other = group && beside && await groupAt(run, Number(beside), placeOf(run, beside, group.task));
    if (request !== SHOWN) return;
    if (group) fill($("#group"), groupOf(group, other));
    else show("soft", step === null ? "No group has been written yet." : "This group does not exist.");
  } catch (error) {  // also of a file whose values are of another type
    if (request === SHOWN) show("problem", `Step ${step} cannot be loaded: ${error.message}`);
  }
}

const placeOf = (run, step, task) => RUNS[run].groups_by_step[step].findIndex((group) => group.task === task);
const rewardsOf = (rollouts) => rollouts.map(({ reward }) => reward).filter(isNumber);

/* The rollouts of a group with their indices; each response has the number of items before it. */
function withIndices({ rollouts }) {
  return rollouts.map((rollout, index) => {
    let count = 0;
    const responses = rollout.responses.map((response) => ({ ...response, before: (count += response.items.length) - response.items.length }));
    return { ...rollout, index, responses };
  });
}

/* The first observation, if all rollouts have the same one. */
function sharedObservation(rollouts) {
  const [first, ...others] = rollouts.map(({ responses }) => responses[0]?.observation);
  return others.every((observation) => JSON.stringify(observation) === JSON.stringify(first)) ? first : undefined;
}

/* A group, and below it the same task at another step if there is one, in the same colours. */
function groupOf(group, other) {
  const own = withIndices(group), others = other ? withIndices(other) : [], rewards = rewardsOf(own);
  const boxes = [el("div", { class: "shown" }), el("div", { class: "shown" })], scale = el("span", { class: "scale" });
  const picture = pictureOf(sharedObservation(own) ?? group.prompt);
  const lay = () => {
    const look = { ...lookAt([...own, ...others]), picture, reference: group.reference_answer };
    fill(scale, scaleOf([...own, ...others], look));
    [own, others].forEach((rollouts, i) => fill(boxes[i], laidOut(rollouts, look)));
  };
  lay();
  const flat = new Set(rewards).size > 1 ? "" : " · equal rewards: every advantage is 0";
  return [
    el("h3", {}, `Step ${VIEW.step}, task ${group.task.slice(0, 12)}`),
    el("p", { class: "soft small num" }, `${plural(own.length, "rollout")} · mean reward ${number(mean(rewards))}, standard deviation ${number(spread(rewards))}${flat}`),
    otherSteps(group.task),
    el("div", { class: "prompt", tabindex: "0", "aria-label": "prompt" }, promptOf(sharedObservation(own) ?? group.prompt)),
    referenceOf(group),
    controlsOf(own, scale, lay),
    boxes[0],
    other ? [el("h3", {}, `The same task at step ${VIEW.beside}: mean reward ${number(mean(rewardsOf(others)))}`), boxes[1]] : null,
    el("div", { class: "facts-line num", id: "facts", role: "status" }, RUNS[VIEW.run].has_responses
      ? "Hover over a token, or move through the tokens with ← and →, to see its measures."
      : "This run has no responses.jsonl: it was written by an older version, or logged_groups is 0. Only the texts are shown, without tokens."),
  ];
}

function referenceOf({ reference_answer: answer }) {
  return answer ? el("p", { class: "reference" }, el("span", { class: "role" }, "reference answer"), answer) : null;
}

function promptOf(prompt) {
  return typeof prompt === "string" ? markMatch(prompt, VIEW.query) : messages(prompt);
}

function lookAt(rollouts) {
  const { measure, query, rollout } = VIEW, tokens = rollouts.reduce((sum, { length }) => sum + length, 0);
  return { measure, query, rollout, maximum: largest(rollouts, measure), shared: sharedObservation(rollouts), isLong: tokens > LONG_GROUP };
}

function laidOut(rollouts, look) {
  if (VIEW.as === "tree" && isTree(rollouts)) return treeOf(rollouts, look);
  const ordered = rollouts.toSorted((a, b) => SORT_KEYS[VIEW.order](a) - SORT_KEYS[VIEW.order](b));
  const cards = (list) => list.map((rollout) => cardOf(rollout, rollout.index, look));
  const box = el("div", { class: "cards" }, cards(ordered.slice(0, AT_FIRST))), rest = ordered.slice(AT_FIRST);
  if (!rest.length) return box;
  const more = el("button", { type: "button", onclick: () => { more.remove(); box.append(...cards(rest)); } },
    `Show ${plural(rest.length, "more rollout")}`);
  return [box, more];
}

/* Controls of the view; `lay` lays the rollouts out again. */
function controlsOf(rollouts, scale, lay) {
  const chosen = (name, choices, more) => options(el("select", { ...more, onchange: (e) => { VIEW[name] = e.target.value; lay(); } }), choices, VIEW[name]);
  const measures = Object.entries(MEASURES).map(([name, { label }]) => [name, label]);
  return el("div", { class: "tools" }, labelled("Colour by", chosen("measure", measures, { id: "measure" })), scale,
    labelled("Sort rollouts", chosen("order", ORDERS)),
    isTree(rollouts) ? labelled("Layout", chosen("as", [["cards", "side by side"], ["tree", "tree"]])) : null);
}

function scaleOf(rollouts, { measure, maximum }) {
  const { label, unit, sided } = MEASURES[measure];
  if (measure === "plain") return null;
  if (!maximum) return el("span", {}, `${label}: ${reasonForNoColour(rollouts, measure)}`);
  const ramp = tipped(el("span", { class: "ramp", tabindex: "0" }), () => [DESCRIPTIONS[measure],
    "Tokens with red lines above and below are clipped; tokens in italics were not sampled or are not trained on."]);
  ramp.style.background = sided
    ? `linear-gradient(90deg, ${shadeOf(-1, 1, true)}, rgba(var(--plus), 0), ${shadeOf(1, 1, true)})`
    : `linear-gradient(90deg, rgba(var(--much), 0), ${shadeOf(1, 1, false)})`;
  return [el("span", { class: "num" }, sided ? number(-maximum) : "0"), ramp, el("span", { class: "num" }, `${sided ? "+" : ""}${number(maximum)} ${unit}`)];
}

/* Why a measure colours nothing. */
function reasonForNoColour(rollouts, measure) {
  const responses = rollouts.flatMap((rollout) => rollout.responses), { of } = MEASURES[measure];
  if (!responses.length) return "not recorded";
  return responses.some((response) => response.items.some((_, i) => isNumber(of(response, i)))) ? "0 everywhere" : "not measured";
}

/* The steps with the same task, and their mean rewards. */
function otherSteps(task) {
  const { run, step } = VIEW, { groups_by_step: index } = RUNS[run];
  const times = sampledSteps(run).flatMap((s) => index[s].flatMap((group, place) => (group.task === task ? [{ s, place, group }] : [])));
  if (times.length < 2) return el("p", { class: "soft small" }, "This task occurs at this step only.");
  const buttons = times.map(({ s, place, group }) => el("button", {
    type: "button", class: "chip num", "aria-current": s === step ? "true" : false, onclick: () => choose({ step: s, place, follow: false }),
  }, `step ${s}: ${number(mean(scoredRewards(group)))}`));
  const other = options(el("select", { onchange: (e) => { VIEW.beside = e.target.value; showGroup(); } }),
    [["", "none"], ...times.filter(({ s }) => s !== step).map(({ s }) => [String(s), `step ${s}`])], VIEW.beside);
  return el("div", { class: "row small" }, el("span", { class: "soft" }, "Mean reward of this task:"), ...buttons, labelled("Compare with", other));
}
