// What the views are made of: elements, and numbers as the page prints them.

const get = (id) => document.getElementById(id);

function el(tag, attributes = {}, ...children) {
  const one = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === true) one.setAttribute(name, "");
    else if (value !== false && value != null) one.setAttribute(name, value);
  }
  one.append(...children.filter((child) => child != null));
  return one;
}

// A name of an experiment, which may break after its separators.
function broken(name) {
  const one = el("span");
  for (const part of name.split(/(?<=[_.:|/])/)) one.append(part, el("wbr"));
  return one;
}

const signed = (x) => (Number.isNaN(x) ? "" : `${x < 0 ? "−" : "+"}${Math.abs(x).toPrecision(3)}`);
const two = (x) => (Number.isNaN(x) ? "" : String(Number(x.toPrecision(2))));
const number = (n) => n.toLocaleString("en");
const side = (x) => (x > 0 ? "up" : "down");
const fold = (x) => `${(2 ** x).toPrecision(2)} times the reads`;

// Cells of the tables, of an answer or of an experiment.
const cell = (label, text, kind) => el("td", { "data-label": label, class: kind }, text);
const group = (one) => [one.biosample, one.assay].filter(Boolean).join(" · ");

function effect(logfc, largest) {
  const width = `${Math.min(100, (100 * Math.abs(logfc)) / largest).toFixed(1)}%`;
  const bar = el("span", { class: `bar ${side(logfc)}`, style: `width: ${width}` });
  const text = el("span", { class: `effect ${side(logfc)}` }, signed(logfc));
  return el("td", { class: "number", "data-label": "log2 FC", title: fold(logfc) }, text, bar);
}
