/* One group: its prompt, its rollouts side by side, and the same task at other steps. */

const PLACES = {
  sampled: (r) => r.place, reward: (r) => -(isNumber(r.reward) ? r.reward : -Infinity),
  worst: (r) => (isNumber(r.reward) ? r.reward : Infinity),
  advantage: (r) => -(r.advantage ?? -Infinity), length: (r) => -r.length,
};
const AT_FIRST = 64;  // rollouts that are laid out before anybody asks for more
let SHOWN = 0;  // which of several that were asked for is shown: the last

async function showGroup() {
  const mine = (SHOWN += 1), { run, step, place, beside } = VIEW;
  const said = (kind, text) => [el("p", { class: kind }, text)];
  let found;
  try {
    const group = step === null ? null : (await groupsOf(run, step))[place];
    const other = group && beside && (await groupsOf(run, Number(beside))).find(({ task }) => task === group.task);
    found = group ? () => groupOf(group, other) : () => said("soft", step === null ? "No group has been written yet." : "This group is not there.");
  } catch (error) {
    found = () => said("problem", `Step ${step} cannot be had: ${error.message}`);
  }
  if (mine === SHOWN) fill($("#group"), found());
}

const rewardsOf = (rollouts) => rollouts.map(({ reward }) => reward).filter(isNumber);

/* The rollouts of a group with their numbers, their actions with how many parts come before. */
function placed({ rollouts }) {
  return rollouts.map((rollout, place) => {
    let count = 0;
    const actions = rollout.actions.map((action) => ({ ...action, before: (count += action.items.length) - action.items.length }));
    return { ...rollout, place, actions };
  });
}

/* What the world made of the prompt, where it told all rollouts the same. */
function toldToAll(rollouts) {
  const [first, ...others] = rollouts.map(({ actions }) => actions[0]?.observation);
  return others.every((world) => JSON.stringify(world) === JSON.stringify(first)) ? first : undefined;
}

/* A group, and below it the same task at another step if there is one, in the same colours. */
function groupOf(group, other) {
  const own = placed(group), others = other ? placed(other) : [], rewards = rewardsOf(own);
  const boxes = [el("div", { class: "shown" }), el("div", { class: "shown" })], scale = el("span", { class: "scale" });
  const lay = () => {
    const look = lookAt([...own, ...others]);
    fill(scale, scaleOf([...own, ...others], look));
    [own, others].forEach((rollouts, i) => fill(boxes[i], laidOut(rollouts, look)));
  };
  lay();
  const flat = new Set(rewards).size > 1 ? "" : " · all alike: nothing to compare";
  return [
    el("h3", {}, `Step ${VIEW.step}, task ${group.task.slice(0, 12)}`),
    el("p", { class: "soft small num" }, `${plural(own.length, "rollout")} · mean reward ${number(mean(rewards))}, standard deviation ${number(spread(rewards))}${flat}`),
    overTime(group.task),
    el("div", { class: "prompt", tabindex: "0", "aria-label": "prompt" }, promptOf(toldToAll(own) ?? group.prompt)),
    toolsOf(own, scale, lay),
    boxes[0],
    other ? [el("h3", {}, `The same task at step ${VIEW.beside}: mean reward ${number(mean(rewardsOf(others)))}`), boxes[1]] : null,
    el("div", { class: "facts-line num", id: "facts", role: "status" }, RUNS[VIEW.run].has_actions
      ? "Point at a part, or move through them with ← and →, to see what is known of it."
      : "This run has no actions.jsonl: it was written by an older version, or `logged_groups` is 0. Texts are shown whole."),
  ];
}

function promptOf(prompt) {
  return typeof prompt === "string" ? shownText(prompt, VIEW.query) : messages(prompt);
}

function lookAt(rollouts) {
  const { measure, query, rollout } = VIEW;
  return { measure, query, rollout, most: largest(rollouts, measure), told: toldToAll(rollouts) };
}

function laidOut(rollouts, look) {
  if (VIEW.as === "tree" && isTree(rollouts)) return treeOf(rollouts, look);
  const ordered = rollouts.toSorted((a, b) => PLACES[VIEW.order](a) - PLACES[VIEW.order](b));
  const cards = (some) => some.map((rollout) => cardOf(rollout, rollout.place, look));
  const box = el("div", { class: "cards" }, cards(ordered.slice(0, AT_FIRST))), rest = ordered.slice(AT_FIRST);
  if (!rest.length) return box;
  const more = el("button", { type: "button", onclick: () => { more.remove(); box.append(...cards(rest)); } },
    `Show ${plural(rest.length, "more rollout")}`);
  return [box, more];
}

/* How the rollouts are shown; `lay` lays them out again. */
function toolsOf(rollouts, scale, lay) {
  const chosen = (name, choices, more) => options(el("select", { ...more, onchange: (e) => { VIEW[name] = e.target.value; lay(); } }), choices, VIEW[name]);
  const measures = Object.entries(MEASURES).map(([name, { label }]) => [name, label]);
  return el("div", { class: "tools" }, labelled("Colour by", chosen("measure", measures, { id: "measure" })), scale,
    labelled("Order", chosen("order", ORDERS)),
    isTree(rollouts) ? labelled("Show", chosen("as", [["cards", "side by side"], ["tree", "as a tree"]])) : null);
}

function scaleOf(rollouts, { measure, most }) {
  const { label, unit, sided } = MEASURES[measure];
  if (measure === "plain") return null;
  if (!most) return el("span", {}, `${label}: ${nothing(rollouts, measure)}`);
  const ramp = tipped(el("span", { class: "ramp", tabindex: "0" }), () => [MEANS[measure],
    "Parts with red lines above and below are clipped; those in italics were given to the policy and are not trained on."]);
  ramp.style.background = sided
    ? `linear-gradient(90deg, ${shadeOf(-1, 1, true)}, rgba(var(--plus), 0), ${shadeOf(1, 1, true)})`
    : `linear-gradient(90deg, rgba(var(--much), 0), ${shadeOf(1, 1, false)})`;
  return [el("span", { class: "num" }, sided ? number(-most) : "0"), ramp, el("span", { class: "num" }, `${sided ? "+" : ""}${number(most)} ${unit}`)];
}

/* Why a measure colours nothing. */
function nothing(rollouts, measure) {
  const actions = rollouts.flatMap((rollout) => rollout.actions), { of } = MEASURES[measure];
  if (!actions.length) return "not written down";
  return actions.some((action) => action.items.some((_, i) => isNumber(of(action, i)))) ? "0 everywhere" : "not measured";
}

/* At which steps the task came, and what it earned there. */
function overTime(task) {
  const { run, step } = VIEW, { groups_by_step: index } = RUNS[run];
  const times = sampledSteps(run).flatMap((s) => index[s].flatMap((group, place) => (group.task === task ? [{ s, place, group }] : [])));
  if (times.length < 2) return el("p", { class: "soft small" }, "This task came at this step only.");
  const buttons = times.map(({ s, place, group }) => el("button", {
    type: "button", class: "chip num", "aria-current": s === step ? "true" : false, onclick: () => choose({ step: s, place, follow: false }),
  }, `step ${s}: ${number(mean(judgedOf(group)))}`));
  const other = options(el("select", { onchange: (e) => { VIEW.beside = e.target.value; showGroup(); } }),
    [["", "nothing"], ...times.filter(({ s }) => s !== step).map(({ s }) => [String(s), `step ${s}`])], VIEW.beside);
  return el("div", { class: "row small" }, el("span", { class: "soft" }, "This task, mean reward:"), ...buttons, labelled("Compare with", other));
}
