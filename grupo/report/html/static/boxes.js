/* Boxes in answers, drawn on the first picture of the prompt. A box is "[left, top, right, bottom]" in pixels of that
   picture, as the rewards read it (grupo/core/boxes.py). */

const SVG = "http://www.w3.org/2000/svg";
const SIDE = "\\s*(-?\\d{1,9}(?:\\.\\d{1,9})?)\\s*";
const BOX = new RegExp(`[\\[(]${Array(4).fill(SIDE).join(",")}[\\])]`, "g");
const MAX_BOXES = 50;  // drawn on one picture

function boxesIn(value) {
  const text = typeof value === "string" ? value : JSON.stringify(value ?? "");
  return [...text.matchAll(BOX)].map(([, ...sides]) => sides.map(Number)).filter(([a, b, c, d]) => a < c && b < d);
}

/* The reference of the first picture of a prompt, or undefined. */
function pictureOf(prompt) {
  const all = (Array.isArray(prompt) ? prompt : []).flatMap(({ content }) => (Array.isArray(content) ? content : []));
  return all.filter((part) => part?.type === "image").map(referenceOfPart).find(Boolean);
}

function svgElement(tag, attributes) {
  const element = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  return element;
}

function rectangle([left, top, right, bottom], kind) {
  return svgElement("rect", { class: kind, x: left, y: top, width: right - left, height: bottom - top });
}

/* The picture with the boxes of an answer and those of the reference answer; null if the answer has no box. */
function boxedPicture(picture, text, reference) {
  const own = boxesIn(text).slice(0, MAX_BOXES), truth = boxesIn(reference).slice(0, MAX_BOXES);
  if (!picture || !own.length) return null;
  const label = `boxes: ${own.length} of the answer, ${truth.length} of the reference answer`;
  const drawing = svgElement("svg", { role: "img", "aria-label": label });
  drawing.append(...truth.map((box) => rectangle(box, "reference-box")), ...own.map((box) => rectangle(box, "answer-box")));
  const image = mediaOf(picture, "image");
  const fit = () => drawing.setAttribute("viewBox", `0 0 ${image.naturalWidth} ${image.naturalHeight}`);
  image.addEventListener("load", fit);
  return el("div", { class: "boxed" }, image, drawing);
}
