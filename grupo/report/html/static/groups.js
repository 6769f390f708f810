/* The group inspector: any step, any task, every rollout. */

const VIEW = { run: 0, step: null, place: null, rollout: null, filter: "all", sort: "sampled", query: "", measure: "advantage",
  order: "sampled", as: "cards", beside: "", follow: DATA.live };
const FILTERS = [["all", "all groups"], ["differing", "different rewards"], ["flat", "equal rewards"],
  ["failed", "some not scored"], ["truncated", "some truncated"]];
const SORTS = [["sampled", "original order"], ["high", "highest reward first"], ["low", "lowest reward first"],
  ["spread", "largest standard deviation first"], ["long", "longest first"]];
const ORDERS = [["sampled", "original order"], ["reward", "highest reward first"], ["worst", "lowest reward first"],
  ["advantage", "highest advantage first"], ["length", "longest first"]];
const MAX_HITS = 200;
let HITLIST = null;  // the groups found by a search over all steps

const scoredRewards = (group) => group.rewards.filter(isNumber);
const differs = (group) => new Set(scoredRewards(group)).size > 1;

const KEEPS = {
  all: () => true, differing: differs, flat: (g) => !differs(g), failed: (g) => g.failed > 0, truncated: (g) => g.truncated > 0,
};
const RANKS = {
  sampled: () => 0, high: (g) => -(mean(scoredRewards(g)) || 0), low: (g) => mean(scoredRewards(g)) || 0,
  spread: (g) => -(spread(scoredRewards(g)) || 0), long: (g) => -mean(g.lengths),
};

/* The groups to choose from: those of the step, or the hits of a search. */
function listedGroups() {
  const { run, step } = VIEW;
  const groups = HITLIST || (RUNS[run].groups_by_step[step] || []).map((group, place) => ({ step, place, group }));
  const kept = groups.filter(({ group }) => KEEPS[VIEW.filter](group));
  return VIEW.sort === "sampled" ? kept : kept.toSorted((a, b) => RANKS[VIEW.sort](a.group) - RANKS[VIEW.sort](b.group));
}

function ticksOf(group) {
  const rewards = scoredRewards(group), low = Math.min(...rewards), high = Math.max(...rewards);
  return el("span", { class: "ticks", "aria-hidden": "true" }, group.rewards.slice(0, 32).map((reward) => {
    const tick = el("span", { class: isNumber(reward) ? "tick" : "tick failed" });
    const level = high > low ? (reward - low) / (high - low) : rewards[0] > 0 ? 1 : 0;
    if (isNumber(reward)) tick.style.backgroundColor = `rgba(var(--plus), ${(0.14 + 0.8 * level).toFixed(2)})`;
    return tick;
  }));
}

/* The length of the common prefix of all prompts in the list, which is hidden. */
function commonPrefix(groups) {
  const heads = [...new Set(groups.map(({ group }) => RUNS[VIEW.run].prompts[group.task] || ""))];
  if (heads.length < 2) return 0;
  let size = heads[0].length;
  for (const head of heads) {
    while (!head.startsWith(heads[0].slice(0, size))) size -= 1;
  }
  const whole = heads[0].slice(0, size).lastIndexOf(" ") + 1;
  return whole > 12 ? whole : 0;
}

function itemOf({ step, place, group }, prefix) {
  const current = step === VIEW.step && place === VIEW.place;
  const head = RUNS[VIEW.run].prompts[group.task] || group.task || "no prompt";
  const facts = `${HITLIST ? `step ${step} · ` : ""}${number(mean(scoredRewards(group)))}`;
  return el("button", {
    class: "item", type: "button", "aria-current": current ? "true" : false,
    "aria-label": `${head}, mean reward ${number(mean(scoredRewards(group)))}`,
    onclick: () => { choose({ step, place, follow: false }); if (DATA.live) showPicker(); },
  }, el("span", { class: "head" }, prefix ? `… ${head.slice(prefix)}` : head),
  el("span", { class: "facts" }, ticksOf(group), el("span", { class: "num" }, facts)),
  group.failed ? el("span", { class: "bad small cause" }, `${group.failed} of ${group.rewards.length} not scored: ${group.error}`) : null);
}

/* Go to another group; fields that are not given stay. */
function choose(changes) {
  Object.assign(VIEW, { beside: "", rollout: null }, changes);
  const known = sampledSteps(VIEW.run);
  if (!known.includes(VIEW.step)) VIEW.step = known[known.length - 1] ?? null;
  const groups = RUNS[VIEW.run].groups_by_step[VIEW.step] || [];
  if (!groups[VIEW.place]) VIEW.place = Math.max(0, groups.findIndex(differs));
  remember();
  showList();
  return showGroup();
}

function remember() {
  const { run, step, place } = VIEW;
  if (step !== null) history.replaceState(null, "", `#run=${run}&step=${step}&group=${place}`);
}

function moveGroup(by) {
  const all = listedGroups(), now = all.findIndex(({ step, place }) => step === VIEW.step && place === VIEW.place);
  const next = all[Math.min(all.length - 1, Math.max(0, now + by))];
  if (next) choose({ step: next.step, place: next.place });
  $(".item[aria-current]")?.scrollIntoView({ block: "nearest" });
}

function moveStep(by) {
  const known = sampledSteps(VIEW.run), now = known.indexOf(VIEW.step);
  const next = known[Math.min(known.length - 1, Math.max(0, now + by))];
  HITLIST = null;
  VIEW.query = "";
  if (next !== undefined) choose({ step: next, place: null, follow: false });
  showPicker();
}

function showPicker() {
  const known = sampledSteps(VIEW.run), last = known.length - 1;
  const slide = el("input", { type: "range", class: "grow", min: 0, max: Math.max(0, last), step: 1, "aria-label": "step",
    value: Math.max(0, known.indexOf(VIEW.step)), oninput: (e) => { label.textContent = stepLabel(known[e.target.value]); },
    onchange: (e) => { HITLIST = null; VIEW.query = ""; choose({ step: known[e.target.value], place: null, follow: false }); showPicker(); } });
  const label = el("span", { class: "num small" }, stepLabel(VIEW.step));
  const follow = el("input", { type: "checkbox", checked: VIEW.follow, onchange: (e) => { VIEW.follow = e.target.checked; } });
  const search = el("input", { type: "search", placeholder: "Search prompts and texts", "aria-label": "Search", value: VIEW.query,
    onchange: (e) => searchGroups(e.target.value), onsearch: (e) => searchGroups(e.target.value) });
  const filter = options(el("select", { class: "grow", "aria-label": "Show", onchange: (e) => { VIEW.filter = e.target.value; showList(); } }), FILTERS, VIEW.filter);
  const sort = options(el("select", { class: "grow", "aria-label": "Sort groups", onchange: (e) => { VIEW.sort = e.target.value; showList(); } }), SORTS, VIEW.sort);
  fill($("#picker-top"), el("div", { class: "row" },
    el("button", { type: "button", "aria-label": "earlier step", onclick: () => moveStep(-1) }, "‹"), slide,
    el("button", { type: "button", "aria-label": "later step", onclick: () => moveStep(1) }, "›")),
  el("div", { class: "row" }, el("span", { class: "grow" }, label), DATA.live ? el("label", {}, follow, " follow the latest step") : null),
  search, el("div", { class: "row" }, filter, sort));
}

const stepLabel = (step) => {
  const known = sampledSteps(VIEW.run);
  return step === null ? "no step yet" : `step ${step} (${known[0]} to ${known[known.length - 1]})`;
};

function showList() {
  const groups = listedGroups(), { query } = VIEW, focused = $("#list").contains(document.activeElement);
  const head = HITLIST ? `${plural(groups.length, "group")} with “${query}”${HITLIST.more ? " so far" : ""}` : plural(groups.length, "group");
  fill($("#count"), head);
  const prefix = commonPrefix(groups);
  fill($("#list"), groups.slice(0, 400).map((entry) => itemOf(entry, prefix)));
  if (focused) $(".item[aria-current]")?.focus();
}

/* Search every prompt and generated text of the run, the newest step first. */
async function searchGroups(text) {
  const query = text.trim().toLowerCase(), { run } = VIEW;
  VIEW.query = query;
  HITLIST = query ? [] : null;
  const hits = HITLIST;
  if (!query) return choose({});
  hits.more = true;
  for (const step of sampledSteps(run).toReversed()) {
    const summaries = RUNS[run].groups_by_step[step];
    for (let place = 0; place < summaries.length; place += 1) {
      const found = await groupAt(run, step, place).then((group) => matches(group, query)).catch(() => false);  // it cannot be read
      if (HITLIST !== hits) return undefined;
      if (found) hits.push({ step, place, group: summaries[place] });
    }
    showList();
    if (hits.length >= MAX_HITS) break;
  }
  hits.more = false;
  showList();
  return hits.length ? choose({ step: hits[0].step, place: hits[0].place }) : undefined;
}

function matches({ prompt, rollouts }, query) {
  const texts = [typeof prompt === "string" ? prompt : JSON.stringify(prompt), ...rollouts.map(({ text }) => text || "")];
  return texts.some((text) => text.toLowerCase().includes(query));
}
