'use strict';
(() => {
  const report = JSON.parse(document.getElementById('data').textContent);
  const calls = report.calls, timed = report.times.length > 0;
  const find = (id) => document.getElementById(id);

  // Elements are made, never parsed: names come from the model.
  function make(tag, attributes, ...children) {
    const drawn = ['svg', 'rect', 'circle', 'path', 'text', 'title', 'g'].includes(tag);
    const e = drawn ? document.createElementNS('http://www.w3.org/2000/svg', tag)
                    : document.createElement(tag);
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

  const total = report.times.reduce((sum, t) => sum + t.ms, 0);
  const rows = calls.map((call, i) => {
    const t = report.times[i] || {};
    const moved = call.arguments.reduce((sum, a) => sum + a.bytes, 0);
    return {i, name: call.name || call.kernel, kernel: call.kernel, ms: t.ms, share: 100 * t.ms / total,
            gflops: t.flops / t.ms * 1e-6, roof: 100 * t.roof_ms / t.ms, bound: t.bound || '',
            source: call.source || 'library', moved, flops: t.flops, bytes: t.bytes};
  });
  const fixed = (digits) => (v) => Number.isFinite(v) ? v.toFixed(digits) : '';
  const columns = [
    {key: 'name', title: 'call', text: String}, {key: 'i', title: '#', text: String, wide: true},
    ...(timed ? [{key: 'ms', title: 'ms', text: fixed(4)}, {key: 'share', title: '%', text: fixed(1)},
                 {key: 'gflops', title: 'GFLOP/s', text: fixed(1), wide: true},
                 {key: 'roof', title: 'roof %', text: fixed(0)},
                 {key: 'bound', title: 'bound by', text: String, wide: true}] : []),
    {key: 'source', title: 'schedule', text: String, wide: timed},
    {key: 'moved', title: 'operands', text: bytes, wide: timed}];
  let sorted = timed ? 'ms' : 'i', down = timed, chosen = -1;

  function drawTable() {
    const words = find('filter').value.toLowerCase();
    const shown = rows.filter((r) => (r.name + ' ' + r.kernel).toLowerCase().includes(words));
    shown.sort((a, b) => {
      const x = a[sorted], y = b[sorted];
      const order = typeof x === 'string' ? (x < y ? -1 : x > y ? 1 : 0) : (x || 0) - (y || 0);
      return (down ? -order : order) || a.i - b.i;
    });
    const head = columns.map((c) => make('th', {scope: 'col', class: c.wide ? 'wide' : '',
      'aria-sort': c.key !== sorted ? 'none' : down ? 'descending' : 'ascending'},
      make('button', {'data-key': c.key, onclick: () => sort(c.key)},
           c.title + (c.key !== sorted ? '' : down ? ' ▾' : ' ▴'))));
    const body = shown.map((r) => make('tr', {class: r.i === chosen ? 'chosen' : ''},
      ...columns.map((c, n) => make('td', {class: c.wide ? 'wide' : '', title: n ? '' : r.name},
        n ? c.text(r[c.key]) : make('button', {onclick: () => choose(r.i)}, r.name)))));
    find('kernels').replaceChildren(make('thead', {}, make('tr', {}, ...head)),
                                    make('tbody', {}, ...body));
  }
  function sort(key) {
    down = key === sorted ? !down : !['name', 'i', 'bound', 'source'].includes(key);
    sorted = key;
    drawTable();
    document.querySelector(`th button[data-key="${key}"]`).focus();
  }

  function links(title, list) {
    const items = list.map((i) => make('li', {}, make('button', {onclick: () => choose(i)}, rows[i].name)));
    return [make('h3', {}, title), items.length ? make('ul', {}, ...items) : make('p', {class: 'note'}, 'none')];
  }
  function choose(i) {
    chosen = i;
    const call = calls[i], r = rows[i];
    const readers = calls.flatMap((c, k) => c.after.includes(i) ? [k] : []);
    const facts = ['kernel ' + call.kernel, bytes(call.code_bytes) + ' of code',
                   call.spills + ' spills in innermost loops'];
    if (timed) facts.unshift(fixed(4)(r.ms) + ' ms', fixed(1)(r.share) + '% of the sum',
                             fixed(0)(r.roof) + '% of the roof (' + r.bound + ')');
    const origin = call.source ? 'From: ' + call.source + (call.tuned ? ', ' + call.tuned : '') +
      (call.algorithm ? '; algorithm ' + call.algorithm : '') : 'A function of the runtime library.';
    const cells = call.arguments.map((a) => make('tr', {},
      ...[a.name, a.place, a.offset, bytes(a.bytes)].map((v) => make('td', {}, String(v)))));
    const heads = ['operand', 'place', 'offset or number', 'size'];
    find('detail').replaceChildren(
      make('h2', {}, r.name), make('p', {}, facts.join(' · ')),
      make('h3', {}, 'Schedule'), make('p', {}, origin), make('pre', {tabindex: 0}, call.schedule || '(none)'),
      make('h3', {}, 'Memory'),
      make('div', {class: 'scroll', tabindex: 0}, make('table', {},
        make('thead', {}, make('tr', {}, ...heads.map((t) => make('th', {scope: 'col'}, t)))),
        make('tbody', {}, ...cells))),
      ...links('Reads results of', call.after), ...links('Is read by', readers));
    drawTable();
    drawRoofline();
    drawMemory();
    find('detail').focus();
  }

  const phone = matchMedia('(max-width: 600px)').matches;  // labels are larger there
  const W = 900, H = phone ? 600 : 340, L = phone ? 130 : 70, B = 40;
  function frame(title, note, label, children) {
    return [make('h2', {}, title), make('figure', {},
      make('svg', {viewBox: `0 0 ${W} ${H}`, role: 'img', 'aria-label': label}, ...children),
      make('figcaption', {}, note))];
  }
  function drawRoofline() {
    const points = rows.filter((r) => r.ms > 0 && r.flops > 0 && r.bytes > 0);
    if (!points.length || !(report.gflops > 0)) return;
    const intensity = (r) => Math.log10(r.flops / r.bytes);
    const rate = (r) => Math.log10(r.gflops);
    const ridge = Math.log10(report.gflops / report.dram_gbs), top = Math.log10(report.gflops);
    const left = Math.min(...points.map(intensity), ridge) - .2;
    const right = Math.max(...points.map(intensity), ridge) + .2;
    const low = Math.min(...points.map(rate), top - 1) - .1;
    const high = Math.max(...points.map(rate), top) + .15;
    const x = (v) => L + (v - left) / (right - left) * (W - L - 20);
    const y = (v) => H - B - (v - low) / (high - low) * (H - B - 20);
    const start = Math.max(left, low - Math.log10(report.dram_gbs));
    const list = [make('path', {class: 'roof', d: `M${x(start)} ${y(start + Math.log10(report.dram_gbs))}` +
                                `L${x(ridge)} ${y(top)}L${x(right)} ${y(top)}`})];
    for (const r of points)
      list.push(make('circle', {class: 'mark' + (r.i === chosen ? ' chosen' : ''), cx: x(intensity(r)), cy: y(rate(r)),
        r: 3 + 14 * Math.sqrt(r.share / 100), onclick: () => choose(r.i)},
        make('title', {}, `${r.name}: ${fixed(4)(r.ms)} ms, ${fixed(1)(r.gflops)} GFLOP/s`)));
    for (let t = Math.ceil(left); t <= right; ++t)
      list.push(make('text', {x: x(t), y: H - 12, 'text-anchor': 'middle'}, String(Number((10 ** t).toPrecision(1)))));
    for (let t = Math.ceil(low); t <= high; ++t)
      list.push(make('text', {x: L - 8, y: y(t) + 4, 'text-anchor': 'end'}, String(Number((10 ** t).toPrecision(1)))));
    list.push(make('path', {class: 'axis', d: `M${L} 10V${H - B}H${W - 10}`}));
    find('roofline').replaceChildren(...frame('Roofline',
      'GFLOP/s by FLOP per byte of operands, both logarithmic. The line is what arithmetic and DRAM allow; ' +
      'what caches serve may lie above its slope. A larger circle takes more of the time. Peaks: ' + report.peaks,
      'Roofline', list));
  }
  function drawMemory() {
    if (!report.buffers.length) return;
    const x = (call) => L + call / calls.length * (W - L - 10);
    const y = (at) => H - B - at / report.arena_bytes * (H - B - 15);
    const list = report.buffers.map((b) => make('rect', {
      class: 'mark' + (chosen >= b.first && chosen <= b.last ? ' chosen' : ''), x: x(b.first), y: y(b.offset + b.bytes),
      width: x(b.last + 1) - x(b.first), height: Math.max(.5, y(b.offset) - y(b.offset + b.bytes)),
      onclick: () => choose(Math.min(b.first, calls.length - 1))},
      make('title', {}, `${bytes(b.bytes)} at ${b.offset}, calls ${b.first} to ${b.last}`)));
    for (const part of [0, .5, 1])
      list.push(make('text', {x: L - 6, y: y(part * report.arena_bytes) + 4, 'text-anchor': 'end'},
                     bytes(Math.round(part * report.arena_bytes))));
    list.push(make('path', {class: 'axis', d: `M${L} 10V${H - B}H${W - 10}`}),
              make('text', {x: W / 2, y: H - 12, 'text-anchor': 'middle'}, 'calls, in their order'));
    find('memory').replaceChildren(...frame('Memory over time',
      `The arena: ${bytes(report.arena_bytes)}; without sharing ${bytes(report.naive_arena_bytes)}. ` +
      'A rectangle is a buffer. With a chosen call, those alive then are marked.', 'Memory over time', list));
  }

  find('title').textContent = report.model;
  find('summary').textContent = [
    'for ' + report.target, calls.length + ' calls', 'weights ' + bytes(report.weight_bytes),
    'library ' + bytes(report.artifact_bytes), ...(report.sizes ? ['at ' + report.sizes] : []),
    ...(timed ? ['calls take ' + fixed(3)(total) + ' ms in sum'] : [])].join(' · ');
  find('times-note').textContent = timed ? 'Medians of the runs of about a second on this machine, on one thread.'
                                         : 'No times: ' + report.no_times + '.';
  find('filter').addEventListener('input', drawTable);
  drawTable();
  drawRoofline();
  drawMemory();
})();
