"use strict";
/* Elements from data. Untrusted text only becomes text nodes. */

const $ = (selector, root = document) => root.querySelector(selector);

/* Control characters and marks of the reading order are spelled out; tabs and line ends stay. */
const ACTING = /[\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f-\u009f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]/g;
const escaped = (c) => `\\u${c.charCodeAt(0).toString(16).padStart(4, "0")}`;
const spelledOut = (value) => (typeof value === "string" ? value.replace(ACTING, escaped) : value);
const asNodes = (children) => children.flat(Infinity).filter((child) => child !== null && child !== undefined).map(spelledOut);

function el(tag, attributes, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes || {})) {
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name === "value" || name === "checked" || name === "disabled") element[name] = value;
    else if (value === true) element.setAttribute(name, "");
    else if (value !== false && value !== null && value !== undefined) element.setAttribute(name, spelledOut(value));
  }
  element.append(...asNodes(children));
  return element;
}

function fill(place, ...children) {
  place.replaceChildren(...asNodes(children));
  return place;
}

function options(select, choices, chosen) {
  fill(select, choices.map(([value, label]) => el("option", { value }, label)));
  select.value = chosen;
  return select;
}

function labelled(label, control) {
  return el("label", { class: "row" }, el("span", {}, label), control);
}

/* A colour of the style sheet, for the canvas. */
const css = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
const colourOf = (run) => css(`--run${run % 6}`);

/* Definitions on hover and on focus: `tipped(element, () => lines)`. */
const tips = new WeakMap();

function tipped(element, lines) {
  element.classList.add("has-tip");
  tips.set(element, lines);
  return element;
}

function term(name, lines) {
  return tipped(el("button", { class: "term", type: "button" }, name), lines);
}

function showTip(element) {
  const tip = $("#tip");
  fill(tip, tips.get(element)().map((line) => el("p", {}, line)));
  tip.hidden = false;
  const box = element.getBoundingClientRect();
  const below = box.bottom + tip.offsetHeight + 10 < innerHeight;
  tip.style.left = `${Math.max(8, Math.min(box.left, innerWidth - tip.offsetWidth - 8))}px`;
  tip.style.top = `${below ? box.bottom + 6 : Math.max(8, box.top - tip.offsetHeight - 6)}px`;
}

function hideTip() {
  $("#tip").hidden = true;
}

function watchTips() {
  const over = (event) => {
    const found = event.target.closest?.(".has-tip");
    if (found && tips.has(found)) showTip(found);
    else hideTip();
  };
  document.addEventListener("pointerover", over);
  document.addEventListener("focusin", over);
  document.addEventListener("focusout", hideTip);
  document.addEventListener("keydown", (event) => event.key === "Escape" && hideTip());
  addEventListener("scroll", hideTip, { passive: true });
}
