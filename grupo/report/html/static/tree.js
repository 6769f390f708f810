/* Rollouts that have a beginning in common, as the tree they are. */

function isTree(rollouts) {
  const seen = new Set();
  return rollouts.some(({ actions }) => {
    const first = actions[0]?.action_id;
    if (actions.length < 1 || first === undefined) return false;
    const again = seen.has(first);
    seen.add(first);
    return again;
  });
}

/* Nodes of actions, each with the rollouts that go through it. */
function grown(rollouts, depth = 0) {
  const nodes = new Map();
  for (const rollout of rollouts) {
    const action = rollout.actions[depth];
    if (!action) continue;
    if (!nodes.has(action.action_id)) nodes.set(action.action_id, []);
    nodes.get(action.action_id).push(rollout);
  }
  return [...nodes.values()].map((through) => stretched(through, depth));
}

/* A node goes on for as long as all its rollouts have the next action in common. */
function stretched(through, depth) {
  const actions = [depth];
  let next = depth + 1;
  const alike = (i) => through.every(({ actions: a }) => a[i] && a[i].action_id === through[0].actions[i]?.action_id);
  while (alike(next)) actions.push(next++);
  return { through, depths: actions, children: through.length > 1 ? grown(through, next) : [] };
}

/* Of an action that several rollouts share, what it means to all of them: the mean of each number. */
function shared(through, depth) {
  const actions = through.map((rollout) => rollout.actions[depth]), [first] = actions;
  const over = (name) => first.items.map((_, i) => {
    const known = actions.map((action) => at(action[name], i)).filter(isNumber);
    return known.length ? mean(known) : null;
  });
  return { ...first, advantage: over("advantage"), ratio: over("ratio"), entropy: over("entropy") };
}

function treeOf(rollouts, look) {
  const draw = ({ through, depths, children }) => {
    const said = depths.flatMap((depth) => spoken(shared(through, depth), depth, look));
    const worth = through.length > 1 ? `${through.length} rollouts, mean reward ${number(mean(rewardsOf(through)))}`
      : `#${through[0].place} · reward ${number(through[0].reward)}`;
    return el("li", {}, el("div", { class: "node" }, el("div", { class: "said" }, said), el("span", { class: "num soft small" }, worth)),
      children.length ? el("ul", {}, children.map(draw)) : null);
  };
  return el("ul", { class: "tree" }, grown(rollouts).map(draw));
}
