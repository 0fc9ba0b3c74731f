// The page of tune --report.
const tasks = report.tasks, rounds = report.rounds;
const gain = (before, after) => before > 0 && after > 0 ? before / after : NaN;
const rows = tasks.map((t, i) => ({i, name: t.name, calls: t.calls, ms: t.seconds * 1e3, first: t.default_seconds * 1e3,
  share: 100 * t.calls * t.seconds / report.network_seconds, gain: gain(t.default_seconds, t.seconds),
  gflops: t.flops / t.seconds * 1e-9, trials: t.trials, known: t.known,
  changed: t.error ? 'failed' : !(t.seconds > 0) ? 'not reached' : t.schedule === t.default_schedule ? 'default' : 'new'}));
let chosen = -1, bySeconds = false;

heading('Tuning of ' + report.model, [
  'for ' + report.target, fixed(4)(report.default_network_seconds * 1e3) + ' ms by default',
  fixed(4)(report.network_seconds * 1e3) + ' ms tuned: ' + fixed(2)(gain(report.default_network_seconds, report.network_seconds)) + ' x',
  report.trials + ' trials in ' + fixed(0)(report.seconds) + ' s', 'stopped: ' + report.stopped]);

// lines: {name, i, points: [[x, y], ...]}: a step line each, the chosen one in front.
function steps(lines, xTitle, note, label, digits) {
  const all = lines.flatMap((l) => l.points);
  if (!all.length) return make('p', {class: 'note'}, 'Nothing was measured.');
  const right = Math.max(...all.map((p) => p[0]), 1e-9), top = Math.max(...all.map((p) => p[1])) * 1.05;
  const x = (v) => L + v / right * (W - L - 20), y = (v) => H - B - v / top * (H - B - 20);
  const path = (l) => l.points.map(([a, b], n) => n ? `H${x(a)}V${y(b)}` : `M${x(a)} ${y(b)}`).join('') + `H${x(right)}`;
  const order = [...lines].sort((a, b) => (a.i === chosen) - (b.i === chosen));
  const list = order.map((l) => make('path', {class: 'curve' + (l.i === chosen ? ' chosen' : ''), d: path(l),
    onclick: () => l.i >= 0 && choose(l.i)}, make('title', {}, l.name)));
  for (const part of [0, .5, 1]) list.push(beside(y(top * part), fixed(digits)(top * part)), below(x(right * part), short(right * part), part === 1 ? 'end' : 'middle'));
  return figure(note, label, [...list, axes(), below(x(right * .75), xTitle)]);
}
const xOf = (seconds, trials) => bySeconds ? seconds : trials;
const xTitle = () => bySeconds ? 'seconds' : 'trials';

// A task's best after each trial is known by trial, and by time at the ends of its rounds.
function curveOf(t, i) {
  const times = (s) => [xOf(s.seconds, s.task_trials), gain(t.default_seconds, s.task_seconds)];
  const points = bySeconds ? rounds.filter((r) => r.task === i).map(times)
                           : t.curve.map((s, n) => [n + 1, gain(t.default_seconds, s)]);
  return {name: t.name, i, points: points.filter((p) => Number.isFinite(p[1]))};
}
const network = section('network', 'The network', make('div'));
const curves = section('curves', 'Each kernel', make('div'));
function draw() {
  const reached = rounds.filter((r) => r.network_seconds > 0);
  network.lastChild.replaceChildren(
    make('p', {}, 'By ', make('button', {id: 'by', onclick: () => { bySeconds = !bySeconds; draw(); find('by').focus(); }},
      bySeconds ? 'seconds: show trials' : 'trials: show seconds')),
    steps([{name: 'network', i: -2, points: reached.map((r) => [xOf(r.seconds, r.trials), r.network_seconds * 1e3])}], xTitle(),
      'Milliseconds of the whole network with the best schedules so far, by ' + xTitle() +
      '. Kernels without a time of their own yet count with their default schedule\'s.', 'Time of the network', 3));
  curves.lastChild.replaceChildren(steps(tasks.map(curveOf).filter((l) => l.points.length), xTitle(),
    'How many times faster than its default schedule each kernel is, by ' + xTitle() + '. The chosen one is marked.', 'Gains', 2));
}

const table = sortable('kernels', [
  {key: 'name', title: 'kernel', words: true}, {key: 'calls', title: 'calls', text: String, wide: true},
  {key: 'share', title: '%', text: fixed(1)}, {key: 'first', title: 'default ms', text: fixed(4), wide: true},
  {key: 'ms', title: 'best ms', text: fixed(4)}, {key: 'gain', title: 'x', text: fixed(2)},
  {key: 'gflops', title: 'GFLOP/s', text: fixed(1), wide: true}, {key: 'trials', title: 'trials', text: String, wide: true},
  {key: 'changed', title: 'schedule', text: String, words: true}], rows, {sorted: 'share', down: true, choose});
section('tasks', 'What changed',
  make('p', {class: 'note'}, `Measured again: ${report.confirmed} gains stand, ${report.refuted} do not, ${report.not_confirmed} were not reached. ` +
    `${report.reached} of ${tasks.length} kernels have a time.`), scroll('Table of kernels', table.table));
find('main').append(make('section', {id: 'detail', tabindex: -1, 'aria-live': 'polite', 'aria-label': 'The chosen kernel'}));

function choose(i) {
  chosen = i;
  const t = tasks[i], r = rows[i];
  find('detail').replaceChildren(make('h2', {}, t.name),
    make('p', {}, [fixed(4)(r.first) + ' ms by default', fixed(4)(r.ms) + ' ms at best', r.trials + ' trials',
                   t.known + ' known before', short(t.space) + ' points in its space', 'algorithm ' + t.algorithm,
                   ...(t.error ? ['failed: ' + t.error] : [])].join(' · ')),
    make('h3', {}, 'Best schedule'), make('pre', {tabindex: 0}, t.schedule || '(none)'),
    make('h3', {}, 'Default schedule'), make('pre', {tabindex: 0}, t.default_schedule || '(none)'));
  table.choose(i);
  draw();
  find('detail').focus();
}
draw();
