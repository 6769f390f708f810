/* One group: its prompt, its rollouts side by side, and the same task at other steps. */

const PLACES = {
  sampled: (r) => r.place, reward: (r) => -(isNumber(r.reward) ? r.reward : -Infinity),
  worst: (r) => (isNumber(r.reward) ? r.reward : Infinity),
  advantage: (r) => -(r.advantage ?? -Infinity), length: (r) => -r.length,
};
let SHOWN = 0;  // which of several that were asked for is shown: the last

async function showGroup() {
  const mine = (SHOWN += 1), { run, step, place } = VIEW, body = $("#group");
  if (step === null) return fill(body, el("p", { class: "soft" }, "No group has been written yet."));
  let groups;
  try {
    groups = await groupsOf(run, step);
  } catch (error) {
    return mine === SHOWN ? fill(body, el("p", { class: "problem" }, `Step ${step} cannot be had: ${error.message}`)) : undefined;
  }
  const group = groups[place];
  if (mine !== SHOWN) return undefined;
  if (!group) return fill(body, el("p", { class: "soft" }, "This group is not there."));
  const beside = VIEW.beside && await besideOf(run, VIEW.beside, group.task);
  if (mine === SHOWN) fill(body, ...groupOf(group), beside || null);
  return undefined;
}

function groupOf(group) {
  const rollouts = group.rollouts.map((rollout, place) => ({ ...rollout, place }));
  const rewards = rollouts.map(({ reward }) => reward).filter(isNumber);
  const kinds = new Set(rewards).size > 1 ? "" : " · all alike: nothing to compare";
  return [
    el("h3", {}, `Step ${VIEW.step}, task ${group.task.slice(0, 12)}`),
    el("p", { class: "soft small num" }, `${plural(rollouts.length, "rollout")} · mean reward ${number(mean(rewards))}, standard deviation ${number(spread(rewards))}${kinds}`),
    overTime(group.task),
    el("div", { class: "prompt", tabindex: "0", "aria-label": "prompt" }, promptOf(group.prompt)),
    toolsOf(rollouts),
    el("div", { class: "shown" }, laidOut(rollouts)),
    el("div", { class: "facts-line num", id: "facts", role: "status" }, RUNS[VIEW.run].traced
      ? "Point at a part, or move through them with ← and →, to see what is known of it."
      : "This run has no actions.jsonl: it was written by an older version, or inspected is 0. Texts are shown whole."),
  ];
}

function promptOf(prompt) {
  const query = VIEW.query;
  return typeof prompt === "string" ? shownText(prompt, query) : messages(prompt);
}

function lookAt(rollouts) {
  const { measure, query } = VIEW;
  return { measure, query, most: largest(rollouts, measure) };
}

function laidOut(rollouts) {
  const look = lookAt(rollouts);
  if (VIEW.as === "tree" && isTree(rollouts)) return treeOf(rollouts, look);
  const ordered = rollouts.toSorted((a, b) => PLACES[VIEW.order](a) - PLACES[VIEW.order](b));
  const cards = el("div", { class: "cards" }, ordered.slice(0, 64).map((rollout) => cardOf(rollout, rollout.place, look)));
  const rest = ordered.slice(64);
  if (!rest.length) return cards;
  const more = el("button", { type: "button", onclick: () => {
    more.remove();
    cards.append(...rest.map((rollout) => cardOf(rollout, rollout.place, look)));
  } }, `Show ${plural(rest.length, "more rollout")}`);
  return [cards, more].reduce((box, child) => (box.append(child), box), el("div"));
}

function toolsOf(rollouts) {
  const again = () => (VIEW.beside ? showGroup() : fill($(".shown"), laidOut(rollouts)));
  const scale = el("span", { class: "scale" });
  const measure = options(el("select", { id: "measure", onchange: (e) => { VIEW.measure = e.target.value; scaleOf(scale, rollouts); again(); } }),
    Object.entries(MEASURES).map(([name, { label }]) => [name, label]), VIEW.measure);
  const order = options(el("select", { onchange: (e) => { VIEW.order = e.target.value; again(); } }), ORDERS, VIEW.order);
  const as = options(el("select", { onchange: (e) => { VIEW.as = e.target.value; again(); } }), [["cards", "side by side"], ["tree", "as a tree"]], VIEW.as);
  scaleOf(scale, rollouts);
  return el("div", { class: "tools" }, labelled("Colour by", measure), scale, labelled("Order", order),
    isTree(rollouts) ? labelled("Show", as) : null);
}

function scaleOf(scale, rollouts) {
  const { label, unit, sided } = MEASURES[VIEW.measure], most = largest(rollouts, VIEW.measure);
  if (VIEW.measure === "plain") return fill(scale);
  if (!most) return fill(scale, el("span", {}, `${label}: ${nothing(rollouts)}`));
  const ramp = tipped(el("span", { class: "ramp", tabindex: "0" }), () => [MEANS[VIEW.measure],
    "Parts with red lines above and below are clipped; those in italics were given to the policy and are not trained on."]);
  ramp.style.background = sided
    ? `linear-gradient(90deg, ${shadeOf(-1, 1, true)}, rgba(var(--plus), 0), ${shadeOf(1, 1, true)})`
    : `linear-gradient(90deg, rgba(var(--much), 0), ${shadeOf(1, 1, false)})`;
  return fill(scale, el("span", { class: "num" }, sided ? number(-most) : "0"), ramp, el("span", { class: "num" }, `${sided ? "+" : ""}${number(most)} ${unit}`));
}

/* Why a measure colours nothing. */
function nothing(rollouts) {
  const actions = rollouts.flatMap((rollout) => rollout.actions), { of } = MEASURES[VIEW.measure];
  if (!actions.length) return "not written down";
  return actions.some((action) => action.parts.some((_, i) => isNumber(of(action, i)))) ? "0 everywhere" : "not measured";
}

/* At which steps the task came, and what it earned there. */
function overTime(task) {
  const { run, step } = VIEW, { index } = RUNS[run];
  const times = sampledSteps(run).flatMap((s) => index[s].flatMap((group, place) => (group.task === task ? [{ s, place, group }] : [])));
  if (times.length < 2) return el("p", { class: "soft small" }, "This task came at this step only.");
  const buttons = times.map(({ s, place, group }) => el("button", {
    type: "button", class: "chip num", "aria-current": s === step ? "true" : false, onclick: () => choose({ step: s, place, follow: false }),
  }, `step ${s}: ${number(mean(judgedOf(group)))}`));
  const other = options(el("select", { onchange: (e) => { VIEW.beside = e.target.value; showGroup(); } }),
    [["", "nothing"], ...times.filter(({ s }) => s !== step).map(({ s }) => [String(s), `step ${s}`])], VIEW.beside);
  return el("div", { class: "row small" }, el("span", { class: "soft" }, "This task, mean reward:"), ...buttons, labelled("Compare with", other));
}

/* The same task at another step, below. */
async function besideOf(run, step, task) {
  const groups = await groupsOf(run, Number(step));
  const group = groups.find((one) => one.task === task);
  if (!group) return null;
  const rollouts = group.rollouts.map((rollout, place) => ({ ...rollout, place }));
  const rewards = rollouts.map(({ reward }) => reward).filter(isNumber);
  return el("div", {}, el("h3", {}, `The same task at step ${step}: mean reward ${number(mean(rewards))}`), laidOut(rollouts));
}
