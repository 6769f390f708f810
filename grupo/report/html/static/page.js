/* The page as a whole: what it shows first, its keys, and how it follows a run. */

const EVERY = 2000;  // milliseconds between looks at a run under way
const KEYS = [["j  k", "next, previous group"], ["[  ]", "earlier, later step"], ["/", "search"], ["c", "colour by the next measure"],
  ["← →", "through the parts of a rollout that is focused"], ["t", "light or dark"], ["?", "these keys"]];
let LOOKED = 0;  // the run that is looked at

function showRuns() {
  fill($("#runs"), RUNS.map(({ name, folder }, run) => {
    const swatch = el("span", { class: "swatch" });
    swatch.style.background = `var(--run${run % 6})`;
    return el("button", { class: "run", type: "button", "aria-pressed": String(run === LOOKED), title: folder,
      onclick: () => { LOOKED = run; HITLIST = null; showAll(); choose({ run, step: null, place: null }); showPicker(); } }, swatch, name);
  }));
  document.title = `${RUNS.map(({ name }) => name).join(", ")} – grupo`;
}

function showAll() {
  showRuns();
  showProblems();
  fill($("#summary .body"), summaryOf(LOOKED));
  fill($("#recipe .body"), recipeOf(LOOKED));
  fill($("#ledger .body"), ledgerOf(LOOKED));
  fill($("#doctor .body"), doctorOf(LOOKED, goTo));
}

/* Show a step; of it a task, and of that a rollout, if they are named. */
async function goTo({ step, task = "", rollout = null }) {
  HITLIST = null;
  const groups = RUNS[LOOKED].groups_by_step[step] || [], place = groups.findIndex((group) => group.task === task);
  const shown = choose({ step, place: place < 0 ? null : place, rollout, follow: false });
  showPicker();
  await shown;
  ($(".card.named") || $("#groups")).scrollIntoView();
}

function layInspector() {
  fill($("#groups .body"), el("div", { class: "inspector" },
    el("aside", { class: "picker", "aria-label": "Which group" }, el("div", { id: "picker-top", class: "picker-top" }),
      el("div", { id: "count", class: "soft small", role: "status" }), el("div", { id: "list", class: "list", onkeydown: inList })),
    el("div", { id: "group" })));
  $("#group").addEventListener("pointerover", (event) => {
    const part = event.target.closest(".part");
    if (part) factsShown(part);
  });
}

function inList(event) {
  const by = { ArrowDown: 1, ArrowUp: -1 }[event.key];
  if (!by) return;
  event.preventDefault();
  moveGroup(by);
}

function themed(name) {
  document.documentElement.dataset.theme = name;
  $("#theme").textContent = name === "dark" ? "Light" : "Dark";
  redrawAll();
}

function watchTheme() {
  const wish = matchMedia("(prefers-color-scheme: dark)");
  themed(wish.matches ? "dark" : "light");
  wish.addEventListener("change", () => themed(wish.matches ? "dark" : "light"));
  $("#theme").addEventListener("click", turnTheme);
}

const turnTheme = () => themed(document.documentElement.dataset.theme === "dark" ? "light" : "dark");

function turnMeasure() {
  const names = Object.keys(MEASURES), select = $("#measure");
  VIEW.measure = names[(names.indexOf(VIEW.measure) + 1) % names.length];
  if (select) showGroup();
}

function watchKeys() {
  const acts = { j: () => moveGroup(1), k: () => moveGroup(-1), "[": () => moveStep(-1), "]": () => moveStep(1),
    "/": () => $("#picker-top input[type=search]").focus(), c: turnMeasure, t: turnTheme, "?": () => $("#help").showModal() };
  document.addEventListener("keydown", (event) => {
    const typing = event.target.closest?.("input, select, textarea, dialog");
    if (typing || event.ctrlKey || event.metaKey || event.altKey || !acts[event.key]) return;
    event.preventDefault();
    acts[event.key]();
  });
  fill($("#help dl"), KEYS.flatMap(([key, means]) => [el("dt", {}, key), el("dd", {}, means)]));
  $("#keys").addEventListener("click", () => $("#help").showModal());
}

/* Which section is read is marked above. */
function watchSections() {
  const links = new Map([...document.querySelectorAll("nav a")].map((link) => [link.hash.slice(1), link]));
  const mark = () => {
    const passed = [...links.keys()].filter((id) => document.getElementById(id).getBoundingClientRect().top < 140);
    const now = passed[passed.length - 1] || "summary";
    for (const [id, link] of links) link.toggleAttribute("aria-current", id === now);
  };
  addEventListener("scroll", mark, { passive: true });
  mark();
  for (const [id, link] of links) {
    link.addEventListener("click", (event) => { event.preventDefault(); document.getElementById(id).scrollIntoView(); });
  }
}

function lookedFor() {
  const wish = new URLSearchParams(location.hash.slice(1)), run = Number(wish.get("run"));
  if (!wish.has("step") || !RUNS[run]) return {};
  LOOKED = run;
  return { run, step: Number(wish.get("step")), place: Number(wish.get("group")), follow: false };
}

async function follow() {
  const live = $("#live");
  live.hidden = false;
  try {
    if (await renewed()) changed();
    live.textContent = RUNS.every(({ summary }) => isNumber(summary.steps)) ? "finished" : "● live";
    live.classList.remove("lost");
  } catch (error) {
    live.textContent = "no connection";
    live.classList.add("lost");
  }
  setTimeout(follow, EVERY);
}

function changed() {
  showAll();
  renewCurves(goTo);
  if (VIEW.follow && !HITLIST) choose({ step: null, place: null });
  if (!$("#picker-top").contains(document.activeElement)) showPicker();
  showList();
}

async function start() {
  watchTips();
  watchKeys();
  try {
    await begun();
  } catch (error) {
    fill($("#problems"), el("p", { class: "problem", role: "alert" }, `The runs cannot be had: ${error.message}`));
    return;
  }
  layInspector();
  const wish = lookedFor();
  showAll();
  renewCurves(goTo);
  showPicker();
  await choose(wish);
  showPicker();
  watchTheme();
  watchSections();
  if (DATA.live) setTimeout(follow, EVERY);
  performance.mark("ready");
  document.documentElement.dataset.ready = "yes";
}

start();
