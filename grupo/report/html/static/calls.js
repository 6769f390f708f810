/* Tool calls, formatted above the tokens they were written with, and their results. */

function callOf({ name, arguments: args, error }) {
  if (error !== undefined) return el("div", { class: "bad" }, error);
  return el("div", {}, el("b", {}, name), args.length
    ? el("dl", {}, args.map(([key, text]) => [el("dt", {}, key), el("dd", {}, text)])) : null);
}

function callsLabel(count, malformed) {
  if (count > 1) return `${count} calls${malformed ? `, ${malformed} malformed` : ""}`;
  return count ? `${malformed ? "malformed " : ""}call` : "call, continued";
}

function callBox(calls, tokens, { measure }) {
  const malformed = calls.filter((call) => call.error !== undefined).length;
  return el("div", { class: malformed ? "call malformed" : "call" }, el("span", { class: "role" }, callsLabel(calls.length, malformed)), calls.map(callOf),
    el("details", { open: malformed > 0 || measure !== "plain" }, el("summary", {}, "raw tokens"), el("div", { class: "written" }, tokens)));
}

/* The tokens of a response in order, those of tool calls in boxes. */
function withCallBoxes({ call_spans: spans = [] }, tokens, look) {
  const elements = [];
  let done = 0;
  for (const { item_range: [begin, end], calls } of spans) {
    elements.push(...tokens.slice(done, begin), callBox(calls, tokens.slice(begin, end), look));
    done = end;
  }
  return [...elements, ...tokens.slice(done)];
}

/* The observation before a response; after tool calls, their results. */
function observationOf({ observation, answered_calls: answered }, turn, { shared }) {
  if (observation === undefined || (!turn && shared !== undefined)) return null;  // shown once above the rollouts
  const label = answered ? `tool result${answered > 1 ? "s" : ""}` : turn ? "environment" : "prompt";
  return el("div", { class: answered ? "observation answer" : "observation" }, el("span", { class: "role" }, label),
    answered ? messages(withoutToolRole(observation), markErrors) : messages(observation));
}

const withoutToolRole = (observation) => (typeof observation === "string" ? observation : [observation].flat().map((m) => (m.role === "tool" ? { ...m, role: "" } : m)));

/* The tool environment reports the error of a call in a line of its own. */
const markErrors = (text) => text.split(/(?<=\n)/).map((line) => (line.startsWith("error:") ? el("span", { class: "bad" }, line) : line));
