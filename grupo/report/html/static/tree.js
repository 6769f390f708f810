/* Rollouts that share responses, as a tree. */

function isTree(rollouts) {
  const seen = new Set();
  return rollouts.some(({ responses }) => {
    const first = responses[0]?.response_id;
    if (responses.length < 1 || first === undefined) return false;
    const again = seen.has(first);
    seen.add(first);
    return again;
  });
}

/* Nodes of responses, each with the rollouts that contain it. */
function treeNodes(rollouts, depth = 0) {
  const nodes = new Map();
  for (const rollout of rollouts) {
    const response = rollout.responses[depth];
    if (!response) continue;
    if (!nodes.has(response.response_id)) nodes.set(response.response_id, []);
    nodes.get(response.response_id).push(rollout);
  }
  return [...nodes.values()].map((through) => extendNode(through, depth));
}

/* Extend a node while all its rollouts share the next response. */
function extendNode(through, depth) {
  const responses = [depth];
  let next = depth + 1;
  const isShared = (i) => through.every(({ responses: a }) => a[i] && a[i].response_id === through[0].responses[i]?.response_id);
  while (isShared(next)) responses.push(next++);
  return { through, depths: responses, children: through.length > 1 ? treeNodes(through, next) : [] };
}

/* A response that several rollouts share, with the mean of each measure over the rollouts. */
function averagedResponse(through, depth) {
  const responses = through.map((rollout) => rollout.responses[depth]), [first] = responses;
  const average = (name) => first.items.map((_, i) => {
    const values = responses.map((response) => at(response[name], i)).filter(isNumber);
    return values.length ? mean(values) : null;
  });
  return { ...first, advantage: average("advantage"), ratio: average("ratio"), entropy: average("entropy") };
}

function treeOf(rollouts, look) {
  const draw = ({ through, depths, children }) => {
    const content = depths.flatMap((depth) => responseOf(averagedResponse(through, depth), depth, look));
    const label = through.length > 1 ? `${through.length} rollouts, mean reward ${number(mean(rewardsOf(through)))}`
      : `#${through[0].index} · reward ${number(through[0].reward)}`;
    return el("li", {}, el("div", { class: "node" }, el("div", { class: "rollout-text" }, content), el("span", { class: "num soft small" }, label)),
      children.length ? el("ul", {}, children.map(draw)) : null);
  };
  return el("ul", { class: "tree" }, treeNodes(rollouts).map(draw));
}
