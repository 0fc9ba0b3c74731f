// The page of compile --report.
const calls = report.calls, timed = report.times.length > 0, estimated = report.estimates.length > 0;
const cycles = report.estimates.reduce((sum, e) => sum + e.cycles, 0);
const percent = (part, whole) => whole > 0 ? 100 * part / whole : undefined;
const total = report.times.reduce((sum, t) => sum + t.ms, 0);
const most = report.times.reduce((ms, t) => Math.max(ms, t.ms), 0);
const rows = calls.map((call, i) => {
  const t = report.times[i] || {};
  const moved = call.arguments.reduce((sum, a) => sum + a.bytes, 0);
  return {i, name: call.name || call.kernel, kernel: call.kernel, ms: t.ms, share: 100 * t.ms / total,
          gflops: t.flops / t.ms * 1e-6, roof: 100 * t.roof_ms / t.ms, bound: t.bound || '',
          source: call.source || 'library', moved, spills: call.spills, flops: t.flops, bytes: t.bytes, ...estimateOf(i)};
});
// Percent of what the rates of the target allow, of the whole kernel and of its hottest loop.
function estimateOf(i) {
  const e = report.estimates[i];
  if (!e || e.problem) return {};
  return {cycles: e.cycles, cycleShare: percent(e.cycles, cycles), peak: percent(e.flops, e.cycles * e.peak_flops),
          hot: e.hot_loop && e.hot_loop.peak_percent || undefined,
          spills: e.hot_loop ? e.hot_loop.spills_an_iteration : calls[i].spills};
}
// What people must know of the estimates before they read them.
function estimateNote() {
  const problems = new Set(report.estimates.map((e) => e.problem));
  if (problems.size === 1 && !problems.has('')) return ' No estimates: ' + report.estimates[0].problem + '.';
  return ' The cycles are what LLVM\'s model of the processor says of the code, on one thread, with every access a hit in the ' +
    'first cache: no measurement.' + (report.estimated_alike.length > 1 ? ' LLVM has one model for ' +
                                      report.estimated_alike.join(', ') + '.' : '');
}
const count = (v) => String(Number(v.toFixed(1)));
const columns = [
  {key: 'name', title: 'call', words: true}, {key: 'i', title: '#', text: String, wide: true, words: true},
  ...(timed ? [{key: 'ms', title: 'ms', text: fixed(4)}, {key: 'share', title: '%', text: fixed(1)},
               {key: 'gflops', title: 'GFLOP/s', text: fixed(1), wide: true},
               {key: 'roof', title: 'roof %', text: fixed(0)},
               {key: 'bound', title: 'bound by', text: String, wide: true, words: true}] : []),
  ...(estimated ? [{key: 'cycles', title: 'cycles', text: fixed(0)}, {key: 'cycleShare', title: '%', text: fixed(1)},
                   {key: 'peak', title: 'peak %', text: fixed(0)}, {key: 'hot', title: 'hot loop %', text: fixed(0)},
                   {key: 'spills', title: 'spills', text: count, wide: true}] : []),
  {key: 'source', title: 'schedule', text: String, wide: timed, words: true},
  {key: 'moved', title: 'operands', text: bytes, wide: timed}];
let chosen = -1;

heading(report.model, [
  'for ' + report.target, calls.length + ' calls', 'weights ' + bytes(report.weight_bytes),
  'arena ' + bytes(report.arena_bytes), 'library ' + bytes(report.artifact_bytes), ...(report.sizes ? ['at ' + report.sizes] : []),
  ...(timed ? ['calls take ' + fixed(3)(total) + ' ms in sum'] : []),
  ...(estimated ? ['calls take ' + fixed(0)(cycles) + ' cycles by estimate' +
                   (report.clock > 0 ? ', ' + fixed(3)(cycles / report.clock * 1e3) + ' ms' : '')] : [])]);

const table = sortable('kernels', columns, rows, {sorted: timed ? 'ms' : estimated ? 'cycles' : 'i', down: timed || estimated, choose});
section('calls', 'Kernel calls',
  make('p', {class: 'note'}, timed ? 'Medians of the runs of about a second on this machine, on one thread.'
                                   : 'No times: ' + report.no_times + '.' + (estimated ? estimateNote() : '')),
  make('label', {}, 'Filter ', make('input', {id: 'filter', type: 'search', placeholder: 'name of a node or kernel',
                                              oninput: (event) => table.filter(event.target.value)})),
  scroll('Table of kernel calls', table.table));
find('main').append(make('section', {id: 'detail', tabindex: -1, 'aria-live': 'polite', 'aria-label': 'The chosen call'}));

const graph = drawGraph(rows.map((r) => ({label: r.kernel, weight: most > 0 ? Math.sqrt(r.ms / most) : .3,
  title: r.name + (timed ? `: ${fixed(4)(r.ms)} ms, ${fixed(1)(r.share)}%` : '')})), calls.map((c) => c.after), choose);
section('graph', 'Graph', make('details', {open: ''},
  make('summary', {}, 'A box is a call, below those whose results it reads.' +
                      (timed ? ' A stronger colour takes more of the time.' : '')),
  graph ? graph.element : make('p', {class: 'note'}, 'It has too many calls and edges for a drawing.')));
if (graph && calls.length) graph.show(0);

function links(title, list) {
  const items = list.map((i) => make('li', {}, make('button', {onclick: () => choose(i)}, rows[i].name)));
  return [make('h3', {}, title), items.length ? make('ul', {}, ...items) : make('p', {class: 'note'}, 'none')];
}
function hotLoop(e) {
  const hot = e.hot_loop;
  if (!hot) return 'no loop';
  return 'hottest loop by estimate: ' + fixed(0)(percent(hot.cycles, e.cycles)) + '% of the cycles, an iteration ' +
    fixed(1)(hot.cycles_an_iteration) + ' cycles, ' + count(hot.multiply_adds_an_iteration) + ' multiply-adds' +
    (hot.peak_percent > 0 ? ' (' + fixed(0)(hot.peak_percent) + '% of the peak)' : '') + ' and ' + count(hot.spills_an_iteration) + ' spills';
}
function factsOf(i) {
  const call = calls[i], r = rows[i];
  const errors = report.errors.filter((e) => e.call === i);
  return [
    ...(timed ? [fixed(4)(r.ms) + ' ms', fixed(1)(r.share) + '% of the sum', fixed(0)(r.roof) + '% of the roof (' + r.bound + ')'] : []),
    ...(r.cycles >= 0 ? [fixed(0)(r.cycles) + ' cycles by estimate', ...(r.peak >= 0 ? [fixed(0)(r.peak) + '% of the peak'] : []),
      hotLoop(report.estimates[i])] : []),
    ...((report.estimates[i] || {}).problem ? ['no estimate: ' + report.estimates[i].problem] : []),
    'kernel ' + call.kernel, bytes(call.code_bytes) + ' of code', call.spills + ' spills in innermost loops',
    ...errors.map((e) => 'error ' + short(e.max_rel) + ' of the range, ' + short(e.max_ulp) + ' ULP')];
}
function choose(i) {
  chosen = i;
  const call = calls[i];
  const readers = calls.flatMap((c, k) => c.after.includes(i) ? [k] : []);
  const origin = call.source ? 'From: ' + call.source + (call.tuned ? ', ' + call.tuned : '') +
    (call.algorithm ? '; algorithm ' + call.algorithm : '') : 'A function of the runtime library.';
  const cells = call.arguments.map((a) => make('tr', {},
    ...[a.name, a.place, a.offset, bytes(a.bytes)].map((v) => make('td', {}, String(v)))));
  const heads = ['operand', 'place', 'offset or number', 'size'];
  find('detail').replaceChildren(
    make('h2', {}, rows[i].name), make('p', {}, factsOf(i).join(' · ')),
    make('h3', {}, 'Schedule'), make('p', {}, origin), make('pre', {tabindex: 0}, call.schedule || '(none)'),
    make('h3', {}, 'Memory'),
    scroll('Operands', make('table', {},
      make('thead', {}, make('tr', {}, ...heads.map((t) => make('th', {scope: 'col'}, t)))),
      make('tbody', {}, ...cells))),
    ...links('Reads results of', call.after), ...links('Is read by', readers));
  table.choose(i);
  if (graph) graph.choose(i);
  drawRoofline();
  drawMemory();
  find('detail').focus();
}

const points = rows.filter((r) => r.ms > 0 && r.flops > 0 && r.bytes > 0);
const roofline = points.length && report.gflops > 0 ? section('roofline', 'Roofline', make('div')) : null;
function drawRoofline() {
  if (!roofline) return;
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
  for (let t = Math.ceil(left); t <= right; ++t) list.push(below(x(t), String(Number((10 ** t).toPrecision(1)))));
  for (let t = Math.ceil(low); t <= high; ++t) list.push(beside(y(t), String(Number((10 ** t).toPrecision(1)))));
  roofline.lastChild.replaceChildren(figure(
    'GFLOP/s by FLOP per byte of operands, both logarithmic. The line is what arithmetic and DRAM allow; ' +
    'what caches serve may lie above its slope. A larger circle takes more of the time. Peaks: ' + report.peaks,
    'Roofline', [...list, axes()]));
}

const memory = report.buffers.length ? section('memory', 'Memory over time', make('div')) : null;
function drawMemory() {
  if (!memory) return;
  const x = (call) => L + call / calls.length * (W - L - 10);
  const y = (at) => H - B - at / report.arena_bytes * (H - B - 15);
  const list = report.buffers.map((b) => make('rect', {
    class: 'mark' + (chosen >= b.first && chosen <= b.last ? ' chosen' : ''), x: x(b.first), y: y(b.offset + b.bytes),
    width: x(b.last + 1) - x(b.first), height: Math.max(.5, y(b.offset) - y(b.offset + b.bytes)),
    onclick: () => choose(Math.min(b.first, calls.length - 1))},
    make('title', {}, `${bytes(b.bytes)} at ${b.offset}, calls ${b.first} to ${b.last}` +
                      (b.first < calls.length ? ', from ' + rows[b.first].name : ''))));
  for (const part of [0, .5, 1]) list.push(beside(y(part * report.arena_bytes), bytes(Math.round(part * report.arena_bytes))));
  memory.lastChild.replaceChildren(figure(
    `The arena: ${bytes(report.arena_bytes)}; without sharing ${bytes(report.naive_arena_bytes)}. ` +
    'A rectangle is a buffer. With a chosen call, those alive then are marked.', 'Memory over time',
    [...list, axes(), below(W / 2, 'calls, in their order')]));
}
drawRoofline();
drawMemory();

if (report.errors_note) {
  const errors = report.errors.map((e) => ({...e, i: e.call}));
  section('errors', 'Errors', make('p', {class: 'note'}, report.errors_note), ...(errors.length ? [
    scroll('Table of errors', sortable('errors-table', [
      {key: 'name', title: 'result of', words: true}, {key: 'type', title: 'type', text: String, wide: true, words: true},
      {key: 'max_rel', title: 'of the range', text: short}, {key: 'max_ulp', title: 'ULP', text: short},
      {key: 'max_abs', title: 'absolute', text: short, wide: true}], errors, {sorted: 'max_rel', down: true, choose}).table)] : []));
}

if (report.choices_note) {
  const given = (text) => (v) => v === null ? '' : text(v);
  const choices = report.choices.map((c) => ({...c, i: c.call}));
  section('accuracy', 'Accuracy', make('p', {class: 'note'}, report.choices_note),
    scroll('Table of choices', sortable('accuracy-table', [
      {key: 'name', title: 'layer', words: true}, {key: 'choice', title: 'choice', text: String, words: true},
      {key: 'state', title: 'state', text: String, words: true}, {key: 'error', title: 'error alone', text: given(short)},
      {key: 'saved_ms', title: 'saved ms', text: given(fixed(4))},
      {key: 'exact_weight_bytes', title: 'weights, exact', text: bytes, wide: true},
      {key: 'weight_bytes', title: 'as chosen', text: bytes, wide: true}], choices, {sorted: 'error', down: true, choose}).table));
}
