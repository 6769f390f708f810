/* Rollouts that share actions, as a tree. */

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

/* Nodes of actions, each with the rollouts that contain it. */
function treeNodes(rollouts, depth = 0) {
  const nodes = new Map();
  for (const rollout of rollouts) {
    const action = rollout.actions[depth];
    if (!action) continue;
    if (!nodes.has(action.action_id)) nodes.set(action.action_id, []);
    nodes.get(action.action_id).push(rollout);
  }
  return [...nodes.values()].map((through) => extendNode(through, depth));
}

/* Extend a node while all its rollouts share the next action. */
function extendNode(through, depth) {
  const actions = [depth];
  let next = depth + 1;
  const isShared = (i) => through.every(({ actions: a }) => a[i] && a[i].action_id === through[0].actions[i]?.action_id);
  while (isShared(next)) actions.push(next++);
  return { through, depths: actions, children: through.length > 1 ? treeNodes(through, next) : [] };
}

/* An action that several rollouts share, with the mean of each measure over the rollouts. */
function averagedAction(through, depth) {
  const actions = through.map((rollout) => rollout.actions[depth]), [first] = actions;
  const average = (name) => first.items.map((_, i) => {
    const values = actions.map((action) => at(action[name], i)).filter(isNumber);
    return values.length ? mean(values) : null;
  });
  return { ...first, advantage: average("advantage"), ratio: average("ratio"), entropy: average("entropy") };
}

function treeOf(rollouts, look) {
  const draw = ({ through, depths, children }) => {
    const content = depths.flatMap((depth) => actionOf(averagedAction(through, depth), depth, look));
    const label = through.length > 1 ? `${through.length} rollouts, mean reward ${number(mean(rewardsOf(through)))}`
      : `#${through[0].index} · reward ${number(through[0].reward)}`;
    return el("li", {}, el("div", { class: "node" }, el("div", { class: "rollout-text" }, content), el("span", { class: "num soft small" }, label)),
      children.length ? el("ul", {}, children.map(draw)) : null);
  };
  return el("ul", { class: "tree" }, treeNodes(rollouts).map(draw));
}
