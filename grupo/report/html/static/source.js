/* Access to the runs: data embedded in the page, or the server of the page. */

const DATA = JSON.parse($("#data").textContent);
const RUNS = [];
const CACHE = new Map();  // recently shown groups
const MAX_CACHED_GROUPS = 24;

const stepsOf = (run) => (RUNS[run].metrics.step || []);
const sampledSteps = (run) => Object.keys(RUNS[run].groups_by_step).map(Number).sort((a, b) => a - b);

async function unpacked(text) {
  const letters = atob(text), bytes = new Uint8Array(letters.length);
  for (let i = 0; i < letters.length; i += 1) bytes[i] = letters.charCodeAt(i);
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return new Response(stream).json();
}

async function fetchJson(path) {
  const response = await fetch(path, { cache: "no-store" });
  if (!response.ok) throw new Error(`${response.status} ${response.statusText}`);
  return response.json();
}

/* An element after this script, once the page has loaded it. */
async function loadedElement(id) {
  for (;;) {
    const element = document.getElementById(id);
    if (element?.nextSibling || document.readyState !== "loading") return element;
    await new Promise((resolve) => { setTimeout(resolve, 10); });
  }
}

async function loadGroup(run, step, place) {
  if (DATA.live) return fetchJson(`run/${run}/step/${step}/group/${place}`);
  const element = await loadedElement(`group-${run}-${step}-${place}`);
  return unpacked(element.textContent);
}

/* A group with its rollouts, cached; undefined if there is none. */
function groupAt(run, step, place) {
  const summary = RUNS[run].groups_by_step[step]?.[place];
  if (!summary) return Promise.resolve(undefined);
  const key = `${RUNS[run].epoch} ${run} ${step} ${place} ${summary.rewards.length}`;  // changes while the step is being written
  if (!CACHE.has(key)) CACHE.set(key, loadGroup(run, step, place));
  const group = CACHE.get(key);
  CACHE.delete(key);
  CACHE.set(key, group);
  for (const old of CACHE.keys()) {
    if (CACHE.size <= MAX_CACHED_GROUPS) break;
    CACHE.delete(old);
  }
  group.catch(() => CACHE.delete(key));
  return group;
}

/* Merge an update of a run, which begins at step `since`; returns whether anything changed. */
function merge(run, update) {
  const current = RUNS[run];
  if (!current || update.epoch !== current.epoch || update.since === 0) {
    RUNS[run] = update;
    return !current || current.metrics.step?.length !== update.metrics.step?.length
      || update.last_written_at !== current.last_written_at || update.epoch !== current.epoch;
  }
  const before = current.metrics.step?.length || 0, more = update.metrics.step?.length || 0;
  const columns = {};
  for (const name of new Set([...Object.keys(current.metrics), ...Object.keys(update.metrics)])) {
    const old = current.metrics[name] || Array(before).fill(null);
    columns[name] = [...old, ...(update.metrics[name] || Array(more).fill(null))];
  }
  const changed = more > 0 || JSON.stringify(current.problems) !== JSON.stringify(update.problems)
    || JSON.stringify(current.held_out) !== JSON.stringify(update.held_out)
    || JSON.stringify(current.summary) !== JSON.stringify(update.summary);
  RUNS[run] = {
    ...update, metrics: columns,
    groups_by_step: { ...current.groups_by_step, ...update.groups_by_step }, prompts: { ...current.prompts, ...update.prompts },
  };
  return changed;
}

async function loadRuns() {
  if (!DATA.live) DATA.runs.forEach((payload, run) => merge(run, payload));
  else for (let run = 0; run < DATA.count; run += 1) merge(run, await fetchJson(`run/${run}`));
}

async function fetchUpdates() {
  let changed = false;
  for (let run = 0; run < RUNS.length; run += 1) {
    const { epoch } = RUNS[run], since = stepsOf(run).length;
    changed = merge(run, await fetchJson(`run/${run}?since=${since}&epoch=${epoch}`)) || changed;
  }
  return changed;
}
