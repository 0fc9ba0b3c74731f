// What every report's page is made of. The page's own script follows in the same scope.
const report = JSON.parse(document.getElementById('data').textContent);
const phone = matchMedia('(max-width: 600px)').matches;   // labels are larger there
const find = (id) => document.getElementById(id);

// Elements are made, never parsed: names come from the model.
function make(tag, attributes, ...children) {
  const drawn = ['svg', 'rect', 'circle', 'path', 'text', 'title', 'g'].includes(tag);
  const e = drawn ? document.createElementNS('http://www.w3.org/2000/svg', tag) : document.createElement(tag);
  for (const [name, value] of Object.entries(attributes || {}))
    if (name.startsWith('on')) e.addEventListener(name.slice(2), value);
    else e.setAttribute(name, value);
  e.append(...children);
  return e;
}
function bytes(n) {
  for (const [unit, size] of [['GB', 1e9], ['MB', 1e6], ['KB', 1e3]])
    if (n >= size) return (n / size).toPrecision(3) + ' ' + unit;
  return n + ' B';
}
const fixed = (digits) => (v) => Number.isFinite(v) ? v.toFixed(digits) : '';
const short = (v) => !Number.isFinite(v) ? '' : v !== 0 && (v < 1e-3 || v >= 1e6) ? v.toExponential(2) : String(Number(v.toPrecision(3)));

function heading(title, facts) {
  find('title').textContent = title;
  find('summary').textContent = facts.join(' · ');
}
// A part of the page with a title; what is drawn later goes into its `body`.
function section(id, title, ...children) {
  const made = make('section', {id, 'aria-labelledby': id + '-title'}, make('h2', {id: id + '-title'}, title), ...children);
  find('main').append(made);
  return made;
}
function scroll(label, ...children) {
  return make('div', {class: 'scroll', tabindex: 0, role: 'region', 'aria-label': label}, ...children);
}

// A table whose heads sort it. columns: {key, title, text, wide: not on a phone, words: sorts from a to z}.
// options: sorted, down, and choose(row) of a click on the first cell.
function sortable(id, columns, rows, options) {
  const table = make('table', {id});
  const state = {sorted: options.sorted, down: options.down, chosen: -1, words: ''};
  function draw() {
    const shown = rows.filter((r) => (r.name + ' ' + (r.kernel || '')).toLowerCase().includes(state.words));
    shown.sort((a, b) => {
      const x = a[state.sorted], y = b[state.sorted];
      const order = typeof x === 'string' ? (x < y ? -1 : x > y ? 1 : 0) : (x || 0) - (y || 0);
      return (state.down ? -order : order) || a.i - b.i;
    });
    const head = columns.map((c) => make('th', {scope: 'col', class: c.wide ? 'wide' : '',
      'aria-sort': c.key !== state.sorted ? 'none' : state.down ? 'descending' : 'ascending'},
      make('button', {'data-key': c.key, onclick: () => sort(c)},
           c.title + (c.key !== state.sorted ? '' : state.down ? ' ▾' : ' ▴'))));
    const first = (r) => options.choose && r.i >= 0 ? make('button', {onclick: () => options.choose(r.i)}, r.name) : r.name;
    const body = shown.map((r) => make('tr', {class: r.i >= 0 && r.i === state.chosen ? 'chosen' : ''},
      ...columns.map((c, n) => make('td', {class: c.wide ? 'wide' : '', title: n ? '' : r.name}, n ? c.text(r[c.key]) : first(r)))));
    table.replaceChildren(make('thead', {}, make('tr', {}, ...head)), make('tbody', {}, ...body));
  }
  function sort(column) {
    state.down = column.key === state.sorted ? !state.down : !column.words;
    state.sorted = column.key;
    draw();
    table.querySelector(`th button[data-key="${column.key}"]`).focus();
  }
  draw();
  return {table, choose(i) { state.chosen = i; draw(); }, filter(words) { state.words = words.toLowerCase(); draw(); }};
}

const W = 900, H = phone ? 600 : 340, L = phone ? 130 : 70, B = phone ? 60 : 40;
function figure(note, label, children) {
  return make('figure', {}, make('svg', {viewBox: `0 0 ${W} ${H}`, role: 'img', 'aria-label': label}, ...children),
              make('figcaption', {}, note));
}
const axes = () => make('path', {class: 'axis', d: `M${L} 10V${H - B}H${W - 10}`});
const below = (x, text, anchor = 'middle') => make('text', {x, y: H - 12, 'text-anchor': anchor}, text);
const beside = (y, text) => make('text', {x: L - 8, y: y + 4, 'text-anchor': 'end'}, text);
