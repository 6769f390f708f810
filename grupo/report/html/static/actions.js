/* A rollout: what was said in turn, its parts coloured by what is known of each. */

const PNG = "data:image/png;base64,";
const MEASURES = {
  advantage: { label: "advantage", unit: "", sided: true, of: (a, i) => at(a.advantage, i) },
  ratio: { label: "log-ratio", unit: "nats", sided: true, of: (a, i) => at(a.ratio, i) },
  entropy: { label: "entropy", unit: "nats", sided: false, of: (a, i) => at(a.entropy, i) },
  surprise: { label: "surprise, −log p", unit: "nats", sided: false, of: (a, i) => negated(at(a.logp, i)) },
  plain: { label: "nothing", unit: "", sided: false, of: () => null },
};
const MEANS = {
  advantage: "What each action is credited with: blue was better than its group, orange worse.",
  ratio: "log π − log π_old at the last update that saw the action: how far the policy has moved from the one that drew it.",
  entropy: "How undecided the policy was before the action, in nats; 0 is certain.",
  surprise: "−log of the probability that the action was drawn with.",
};

/* A number for each part, or one that stands for all. */
const at = (numbers, i) => (Array.isArray(numbers) ? numbers[i] : numbers) ?? null;
const negated = (x) => (isNumber(x) ? -x : null);

function largest(rollouts, measure) {
  let most = 0;
  for (const { actions } of rollouts) {
    for (const action of actions) {
      action.items.forEach((_, i) => {
        const x = MEASURES[measure].of(action, i);
        if (isNumber(x)) most = Math.max(most, Math.abs(x));
      });
    }
  }
  return most;
}

function shadeOf(x, most, sided) {
  if (!isNumber(x) || !most || !x) return "";
  const colour = !sided ? "--much" : x > 0 ? "--plus" : "--minus";
  return `rgba(var(${colour}), ${(0.08 + 0.5 * Math.min(1, Math.abs(x) / most)).toFixed(3)})`;
}

/* What is known of a part, in a line. */
function factsOf(action, i) {
  const logp = at(action.logp, i), facts = [];
  const text = action.items[i];
  facts.push(text === "" ? `part ${action.before + i + 1}` : JSON.stringify(text));
  if (isNumber(logp)) facts.push(`log p ${number(logp)} nats (p ${percent(Math.exp(logp))})`);
  for (const name of ["advantage", "ratio", "entropy"]) {
    const x = MEASURES[name].of(action, i);
    const { label, unit } = MEASURES[name];
    facts.push(isNumber(x) ? `${label} ${name === "entropy" ? number(x) : signed(x)}${unit && ` ${unit}`}` : `${label} not measured`);
  }
  if (action.clipped?.includes(i)) facts.push("clipped: no gradient");
  if (action.sampled === false) facts.push("recited, not sampled");
  if (action.in_loss === false) facts.push("not trained on");
  if (action.off_context) facts.push("drawn in another context");
  return facts.join(" · ");
}

/* The text of a part, what is looked for in it marked. */
function shownText(text, query) {
  const place = query ? text.toLowerCase().indexOf(query) : -1;
  if (place < 0) return [text];
  return [text.slice(0, place), el("mark", {}, text.slice(place, place + query.length)), text.slice(place + query.length)];
}

function partsOf(action, look) {
  const { measure, most, query } = look, { sided, of } = MEASURES[measure];
  const given = action.sampled === false || action.in_loss === false;
  return action.items.map((text, i) => {
    const kind = (text ? "" : " blank") + (action.clipped?.includes(i) ? " clipped" : "") + (given ? " given" : "");
    const part = el("span", { class: `part${kind}` }, text ? shownText(text, query) : String(action.before + i + 1));
    const shade = shadeOf(of(action, i), most, sided);
    if (shade) part.style.backgroundColor = shade;
    part.facts = () => factsOf(action, i);
    return part;
  });
}

/* Messages of a chat, or a text: who says what; `shown` is how texts are shown. */
function messages(said, shown = (text) => text) {
  if (typeof said === "string") return [el("span", {}, shown(said))];
  return (Array.isArray(said) ? said : [said]).flatMap((message) => {
    const content = Array.isArray(message.content) ? message.content : [message.content];
    const role = message.role ? el("span", { class: "role" }, String(message.role)) : null;
    return [role, ...content.map((part) => contentOf(part, shown))];
  });
}

function contentOf(part, shown) {
  if (typeof part === "string") return el("span", {}, shown(part));
  const url = part?.url ?? part?.image ?? part?.image_url?.url;
  if (typeof url === "string" && url.startsWith(PNG)) return pictureOf(url, "a picture of the prompt");
  return el("span", {}, typeof part?.text === "string" ? shown(part.text) : JSON.stringify(part));
}

function pictureOf(url, alt) {
  return url.startsWith(PNG) ? el("img", { class: "picture", src: url, alt }) : null;
}

function spoken(action, turn, look) {
  const fresh = action.resets_context ? el("span", { class: "fresh" }, "its context begins anew") : null;
  return [fresh, worldOf(action, turn, look), ...boxed(action, partsOf(action, look), look),
    action.image ? pictureOf(action.image, "what the rollout made") : null];
}

function chips(rollout) {
  const given = rollout.reward_terms || {}, parts = Object.entries(given).map(([name, x]) => el("span", { class: "chip" }, `${name} ${number(x)}`));
  return [
    ...parts,
    el("span", { class: "chip" }, plural(rollout.length, "action")),
    turnsOf(rollout) > 1 && !("turns" in given) ? el("span", { class: "chip" }, plural(turnsOf(rollout), "turn")) : null,
    rollout.truncated ? el("span", { class: "chip warn" }, "cut off") : null,
    rollout.error ? el("span", { class: "chip bad" }, "not judged") : null,
  ];
}

const turnsOf = ({ actions }) => 1 + actions.slice(1).filter(({ observation }) => observation !== undefined).length;

/* A rollout as a card; its parts are looked through with the arrow keys. */
function cardOf(rollout, place, look) {
  const advantage = isNumber(rollout.advantage) ? `advantage ${signed(rollout.advantage)}` : "not learned from";
  const said = rollout.actions.length ? rollout.actions.flatMap((action, turn) => spoken(action, turn, look))
    : shownText(rollout.text || "", look.query);
  const text = el("div", { class: "said", tabindex: "0", role: "group", "aria-label": `rollout ${place}: what it said` }, said);
  text.addEventListener("keydown", (event) => stepped(event, text));
  return el("article", { class: place === look.rollout ? "card named" : "card" },
    el("header", {}, el("span", { class: "soft" }, `#${place}`),
      el("span", { class: "reward num" }, `reward ${number(rollout.reward)}`),
      el("span", { class: "num soft" }, advantage), chips(rollout)),
    rollout.error ? el("p", { class: "said bad" }, rollout.error) : null, text);
}

function stepped(event, text) {
  const by = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
  const parts = [...text.querySelectorAll(".part")];
  if (!by || !parts.length) return;
  event.preventDefault();
  const now = parts.findIndex((part) => part.classList.contains("at"));
  const next = Math.min(parts.length - 1, Math.max(0, now < 0 ? 0 : now + by));
  parts[now]?.classList.remove("at");
  parts[next].classList.add("at");
  parts[next].closest("details")?.setAttribute("open", "");
  parts[next].scrollIntoView({ block: "nearest" });
  factsShown(parts[next]);
}

function factsShown(part) {
  $("#facts").textContent = part.facts();
}
