/* The page: startup, keyboard shortcuts, and updates of a run in progress. */

const POLL_MS = 2000;  // between two requests to the server
const KEYS = [["j  k", "next, previous group"], ["[  ]", "earlier, later step"], ["/", "search"], ["c", "colour by the next measure"],
  ["← →", "move through the tokens of the focused rollout"], ["t", "light or dark theme"], ["?", "show the keyboard shortcuts"]];
let CURRENT = 0;  // the index of the selected run

function showRuns() {
  fill($("#runs"), RUNS.map(({ name, folder }, run) => {
    const swatch = el("span", { class: "swatch" });
    swatch.style.background = `var(--run${run % 6})`;
    return el("button", { class: "run", type: "button", "aria-pressed": String(run === CURRENT), title: folder,
      onclick: () => selectRun(run) }, swatch, name);
  }));
  document.title = spelledOut(`${RUNS.map(({ name }) => name).join(", ")} – grupo`);
}

function selectRun(run) {
  CURRENT = run;
  HITLIST = null;
  showAll();
  choose({ run, step: null, place: null });
  showPicker();
}

function showAll() {
  showRuns();
  showProblems();
  fill($("#summary .body"), summaryOf(CURRENT));
  fill($("#recipe .body"), recipeOf(CURRENT));
  fill($("#ledger .body"), ledgerOf(CURRENT));
  fill($("#doctor .body"), doctorOf(CURRENT, goTo));
}

/* Show a step, and optionally a task and a rollout of it. */
async function goTo({ step, task = "", rollout = null }) {
  HITLIST = null;
  const groups = RUNS[CURRENT].groups_by_step[step] || [], place = groups.findIndex((group) => group.task === task);
  const shown = choose({ step, place: place < 0 ? null : place, rollout, follow: false });
  showPicker();
  await shown;
  ($(".card.selected") || $("#groups")).scrollIntoView();
}

function buildInspector() {
  fill($("#groups .body"), el("div", { class: "inspector" },
    el("aside", { class: "picker", "aria-label": "Group selection" }, el("div", { id: "picker-top", class: "picker-top" }),
      el("div", { id: "count", class: "soft small", role: "status" }), el("div", { id: "list", class: "list", onkeydown: inList })),
    el("div", { id: "group" })));
  $("#group").addEventListener("pointerover", (event) => {
    const token = event.target.closest(".token");
    if (token) showFacts(token);
  });
}

function inList(event) {
  const by = { ArrowDown: 1, ArrowUp: -1 }[event.key];
  if (!by) return;
  event.preventDefault();
  moveGroup(by);
}

function setTheme(name) {
  document.documentElement.dataset.theme = name;
  $("#theme").textContent = name === "dark" ? "Light" : "Dark";
  redrawAll();
}

function watchTheme() {
  const preference = matchMedia("(prefers-color-scheme: dark)");
  setTheme(preference.matches ? "dark" : "light");
  preference.addEventListener("change", () => setTheme(preference.matches ? "dark" : "light"));
  $("#theme").addEventListener("click", turnTheme);
}

const turnTheme = () => setTheme(document.documentElement.dataset.theme === "dark" ? "light" : "dark");

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

/* Mark the current section in the navigation. */
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

function locationFromHash() {
  const target = new URLSearchParams(location.hash.slice(1)), run = Number(target.get("run"));
  if (!target.has("step") || !RUNS[run]) return {};
  CURRENT = run;
  return { run, step: Number(target.get("step")), place: Number(target.get("group")), follow: false };
}

async function follow() {
  const live = $("#live");
  live.hidden = false;
  try {
    if (await fetchUpdates()) showUpdates();
    live.textContent = RUNS.every(({ summary }) => isNumber(summary.steps)) ? "finished" : "● live";
    live.classList.remove("lost");
  } catch (error) {
    live.textContent = "no connection";
    live.classList.add("lost");
  }
  setTimeout(follow, POLL_MS);
}

function showUpdates() {
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
    await loadRuns();
  } catch (error) {
    fill($("#problems"), el("p", { class: "problem", role: "alert" }, `The runs cannot be loaded: ${error.message}`));
    return;
  }
  buildInspector();
  const target = locationFromHash();
  showAll();
  renewCurves(goTo);
  showPicker();
  await choose(target);
  showPicker();
  watchTheme();
  watchSections();
  if (DATA.live) setTimeout(follow, POLL_MS);
  performance.mark("ready");
  document.documentElement.dataset.ready = "yes";
}

start();
