/* Where the runs come from: what is embedded in the page, or the server that the page came from. */

const DATA = JSON.parse($("#data").textContent);
const RUNS = [];
const KEPT = new Map();  // groups of the steps looked at last
const KEEP = 24;

const stepsOf = (run) => (RUNS[run].metrics.step || []);
const sampledSteps = (run) => Object.keys(RUNS[run].groups_by_step).map(Number).sort((a, b) => a - b);

async function unpacked(text) {
  const letters = atob(text), bytes = new Uint8Array(letters.length);
  for (let i = 0; i < letters.length; i += 1) bytes[i] = letters.charCodeAt(i);
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return new Response(stream).json();
}

async function asked(path) {
  const answer = await fetch(path, { cache: "no-store" });
  if (!answer.ok) throw new Error(`${answer.status} ${answer.statusText}`);
  return answer.json();
}

async function loaded(run, step) {
  if (DATA.live) return asked(`run/${run}/step/${step}`);
  const held = document.getElementById(`step-${run}-${step}`);
  return held ? unpacked(held.textContent) : [];
}

/* The groups of a step; those looked at last are kept. */
function groupsOf(run, step) {
  const size = (RUNS[run].groups_by_step[step] || []).reduce((sum, group) => sum + group.rewards.length, 0);
  const key = `${RUNS[run].epoch} ${run} ${step} ${size}`;  // of a step half written there will be more
  if (!KEPT.has(key)) KEPT.set(key, loaded(run, step));
  const found = KEPT.get(key);
  KEPT.delete(key);
  KEPT.set(key, found);
  for (const old of KEPT.keys()) {
    if (KEPT.size <= KEEP) break;
    KEPT.delete(old);
  }
  found.catch(() => KEPT.delete(key));
  return found;
}

/* Take in what is new of a run; `since` steps of it were known. Says whether anything is. */
function merge(run, told) {
  const known = RUNS[run];
  if (!known || told.epoch !== known.epoch || told.since === 0) {
    RUNS[run] = told;
    return !known || known.metrics.step?.length !== told.metrics.step?.length
      || told.last_written_at !== known.last_written_at || told.epoch !== known.epoch;
  }
  const before = known.metrics.step?.length || 0, more = told.metrics.step?.length || 0;
  const columns = {};
  for (const name of new Set([...Object.keys(known.metrics), ...Object.keys(told.metrics)])) {
    const old = known.metrics[name] || Array(before).fill(null);
    columns[name] = [...old, ...(told.metrics[name] || Array(more).fill(null))];
  }
  const changed = more > 0 || JSON.stringify(known.problems) !== JSON.stringify(told.problems)
    || JSON.stringify(known.held_out) !== JSON.stringify(told.held_out)
    || JSON.stringify(known.summary) !== JSON.stringify(told.summary);
  RUNS[run] = {
    ...told, metrics: columns,
    groups_by_step: { ...known.groups_by_step, ...told.groups_by_step }, prompts: { ...known.prompts, ...told.prompts },
  };
  return changed;
}

async function begun() {
  if (!DATA.live) DATA.runs.forEach((told, run) => merge(run, told));
  else for (let run = 0; run < DATA.count; run += 1) merge(run, await asked(`run/${run}`));
}

async function renewed() {
  let changed = false;
  for (let run = 0; run < RUNS.length; run += 1) {
    const { epoch } = RUNS[run], since = stepsOf(run).length;
    changed = merge(run, await asked(`run/${run}?since=${since}&epoch=${epoch}`)) || changed;
  }
  return changed;
}
