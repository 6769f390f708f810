/* A rollout: its turns, with every token coloured by a measure. */

const PNG = "data:image/png;base64,";
const MEASURES = {
  advantage: { label: "advantage", unit: "", sided: true, of: (a, i) => at(a.advantage, i) },
  ratio: { label: "log-ratio", unit: "nats", sided: true, of: (a, i) => at(a.ratio, i) },
  entropy: { label: "entropy", unit: "nats", sided: false, of: (a, i) => at(a.entropy, i) },
  surprise: { label: "surprisal, −log p", unit: "nats", sided: false, of: (a, i) => negated(at(a.logp, i)) },
  plain: { label: "none", unit: "", sided: false, of: () => null },
};
const DESCRIPTIONS = {
  advantage: "The advantage of each token: blue is positive, orange negative.",
  ratio: "log π − log π_old at the last update on the token: how far the policy has moved from the one that generated it.",
  entropy: "The entropy of the distribution that the token was sampled from, in nats.",
  surprise: "−log of the probability that the token was sampled with.",
};

/* The value of a token; a single value stands for all tokens of the response. */
const at = (values, i) => (Array.isArray(values) ? values[i] : values) ?? null;
const negated = (x) => (isNumber(x) ? -x : null);

function largest(rollouts, measure) {
  let maximum = 0;
  for (const { responses } of rollouts) {
    for (const response of responses) {
      response.items.forEach((_, i) => {
        const x = MEASURES[measure].of(response, i);
        if (isNumber(x)) maximum = Math.max(maximum, Math.abs(x));
      });
    }
  }
  return maximum;
}

function shadeOf(x, maximum, sided) {
  if (!isNumber(x) || !maximum || !x) return "";
  const colour = !sided ? "--much" : x > 0 ? "--plus" : "--minus";
  return `rgba(var(${colour}), ${(0.08 + 0.5 * Math.min(1, Math.abs(x) / maximum)).toFixed(3)})`;
}

/* The measures of a token in one line. */
function factsOf(response, i) {
  const logp = at(response.logp, i), facts = [];
  const text = response.items[i];
  const isPartial = response.partial?.includes(i);
  facts.push(isPartial ? "part of a character" : text === "" ? `item ${response.before + i + 1}` : JSON.stringify(text));
  if (isNumber(logp)) facts.push(`log p ${number(logp)} nats (p ${percent(Math.exp(logp))})`);
  for (const name of ["advantage", "ratio", "entropy"]) {
    const x = MEASURES[name].of(response, i);
    const { label, unit } = MEASURES[name];
    facts.push(isNumber(x) ? `${label} ${name === "entropy" ? number(x) : signed(x)}${unit && ` ${unit}`}` : `${label} not measured`);
  }
  if (response.clipped?.includes(i)) facts.push("clipped: no gradient");
  if (response.sampled === false) facts.push("not sampled");
  if (response.in_loss === false) facts.push("not trained on");
  if (response.off_context) facts.push("generated in another context");
  return facts.join(" · ");
}

/* A text with the first match of the search marked. */
function markMatch(text, query) {
  const begin = query ? text.toLowerCase().indexOf(query) : -1;
  if (begin < 0) return [text];
  return [text.slice(0, begin), el("mark", {}, text.slice(begin, begin + query.length)), text.slice(begin + query.length)];
}

/* An element for each item; tokens that are parts of one character share the element of the last, and the others have none. */
function tokensOf(response, look) {
  const partial = new Set(response.partial), clipped = new Set(response.clipped), last = response.items.length - 1;
  let parts = [];
  return response.items.map((_, i) => {
    parts.push(i);
    if (partial.has(i) && i < last) return null;
    const token = tokenOf(response, parts, look, clipped);
    parts = [];
    return token;
  });
}

function tokenOf(response, parts, { measure, maximum, query }, clipped) {
  const { sided, of } = MEASURES[measure], i = parts[parts.length - 1], text = response.items[i];
  const isFixed = response.sampled === false || response.in_loss === false;
  const kind = (text ? "" : " blank") + (parts.some((part) => clipped.has(part)) ? " clipped" : "") + (isFixed ? " given" : "");
  const token = el("span", { class: `token${kind}` }, text ? markMatch(text, query) : String(response.before + i + 1));
  const values = parts.map((part) => of(response, part)).filter(isNumber).sort((a, b) => Math.abs(b) - Math.abs(a));
  const shade = shadeOf(values[0], maximum, sided);
  if (shade) token.style.backgroundColor = shade;
  token.facts = () => parts.map((part) => factsOf(response, part)).join(" | ");
  return token;
}

/* Chat messages with their roles, or a text; `render` formats texts. */
function messages(content, render = (text) => text) {
  if (typeof content === "string") return [el("span", {}, render(content))];
  return (Array.isArray(content) ? content : [content]).flatMap((message) => {
    const parts = Array.isArray(message.content) ? message.content : [message.content];
    const role = message.role ? el("span", { class: "role" }, String(message.role)) : null;
    return [role, ...parts.map((part) => contentOf(part, render))];
  });
}

function contentOf(part, render) {
  if (typeof part === "string") return el("span", {}, render(part));
  const reference = referenceOfPart(part);
  if (reference) return mediaOf(reference, part.type);
  const url = part?.url ?? part?.image ?? part?.image_url?.url;
  if (typeof url === "string" && url.startsWith(PNG)) return imageOf(url, "image of the prompt");
  return el("span", {}, typeof part?.text === "string" ? render(part.text) : JSON.stringify(part));
}

function imageOf(url, alt) {
  return url.startsWith(PNG) ? el("img", { class: "sample", src: url, alt }) : null;
}

function responseOf(response, turn, look) {
  const name = response.rewrites_history ? "fork: the chat template rewrote earlier answers" : "new context";
  const reset = response.resets_context ? el("span", { class: "reset" }, name) : null;
  const startsTurn = look.isDialogue && (!turn || response.observation !== undefined);
  return [reset, observationOf(response, turn, look), startsTurn ? policyLabel() : null, ...withCallBoxes(response, tokensOf(response, look), look),
    response.image ? imageOf(response.image, "image of the rollout") : null];
}

const policyLabel = () => el("span", { class: "role policy" }, "policy");

/* The turns of a rollout whose responses were not recorded. */
function textOf({ turns, text }, look) {
  if (!turns?.length) return markMatch(text || "", look.query);
  return turns.map((turn, i) => [observationOf(turn, i, look), policyLabel(), ...markMatch(turn.text, look.query)]);
}

function chips(rollout) {
  const rewardTerms = rollout.reward_terms || {}, terms = Object.entries(rewardTerms).map(([name, x]) => el("span", { class: "chip" }, `${name} ${number(x)}`));
  return [
    ...terms,
    el("span", { class: "chip" }, plural(rollout.length, "token")),
    turnsOf(rollout) > 1 && !("turns" in rewardTerms) ? el("span", { class: "chip" }, plural(turnsOf(rollout), "turn")) : null,
    rollout.truncated ? el("span", { class: "chip warn" }, "truncated") : null,
  ];
}

const turnsOf = ({ responses, turns = [] }) => Math.max(turns.length, 1 + responses.slice(1).filter(({ observation }) => observation !== undefined).length);

const LONG_GROUP = 20000;  // tokens of a group from which on each card is filled once it is visible
const FILLERS = new WeakMap();  // of cards that are not filled yet

const appearing = new IntersectionObserver((entries) => {
  for (const { isIntersecting, target } of entries) {
    if (!isIntersecting) continue;
    appearing.unobserve(target);
    FILLERS.get(target)();
  }
}, { rootMargin: "200px" });

/* A rollout as a card; the arrow keys move through its tokens. */
function cardOf(rollout, index, look) {
  const advantage = isNumber(rollout.advantage) ? `advantage ${signed(rollout.advantage)}` : "not trained on";
  const own = { ...look, isDialogue: turnsOf(rollout) > 1 };
  const turns = () => (rollout.responses.length ? rollout.responses.flatMap((response, turn) => responseOf(response, turn, own)) : textOf(rollout, own));
  const content = () => [...turns(), boxedPicture(look.picture, rollout.text, look.reference)];
  const text = el("div", { class: "rollout-text", tabindex: "0", role: "group", "aria-label": `text of rollout ${index}` });
  text.addEventListener("keydown", (event) => moveToken(event, text));
  const card = el("article", { class: `card${index === look.rollout ? " selected" : ""}${rollout.error ? " failed" : ""}` },
    el("header", {}, el("span", { class: "soft" }, `#${index}`),
      el("span", { class: `reward num${rollout.error ? " bad" : ""}` }, rollout.error ? "not scored" : `reward ${number(rollout.reward)}`),
      el("span", { class: "num soft" }, advantage), chips(rollout)),
    rollout.error ? el("p", { class: "rollout-text bad" }, rollout.error) : null, text);
  FILLERS.set(card, () => fill(text, content()));
  if (look.isLong) appearing.observe(card);
  else FILLERS.get(card)();
  return card;
}

function moveToken(event, text) {
  const offset = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
  const tokens = [...text.querySelectorAll(".token")];
  if (!offset || !tokens.length) return;
  event.preventDefault();
  const now = tokens.findIndex((token) => token.classList.contains("at"));
  const next = Math.min(tokens.length - 1, Math.max(0, now < 0 ? 0 : now + offset));
  tokens[now]?.classList.remove("at");
  tokens[next].classList.add("at");
  tokens[next].closest("details")?.setAttribute("open", "");
  tokens[next].scrollIntoView({ block: "nearest" });
  showFacts(tokens[next]);
}

function showFacts(token) {
  $("#facts").textContent = spelledOut(token.facts());
}
