// A drawing of calls in layers, each below those whose results it reads.
const NODE = {width: 132, height: 24, gap: 14, row: 46, lane: 12, most: 3000, mostPoints: 60000};

// after[i]: what i reads, all of smaller numbers. Gives the rows of the drawing, each a list of points
// {i, row, x, up, down}; of an edge over several rows a point a row without i. null: too much to draw.
function layersOf(after) {
  if (after.length > NODE.most) return null;
  const points = [], rows = [];
  const add = (i, row) => {
    const point = {i, row, x: 0, up: [], down: []};
    (rows[row] = rows[row] || []).push(point);
    points.push(point);
    return point;
  };
  const nodes = [];
  for (const reads of after)
    nodes.push(add(nodes.length, reads.reduce((row, r) => Math.max(row, nodes[r].row + 1), 0)));
  for (const node of nodes)
    for (const r of after[node.i]) {
      let from = nodes[r];
      for (let row = from.row + 1; row <= node.row; ++row) {
        const to = row === node.row ? node : add(-1, row);
        from.down.push(to);
        to.up.push(from);
        from = to;
      }
      if (points.length > NODE.mostPoints) return null;
    }
  return rows;
}
// Each point goes where its neighbours are, as far as those beside it in its row leave room.
function place(rows) {
  const half = (p) => (p.i < 0 ? NODE.lane : NODE.width + NODE.gap) / 2;
  function settle(row, neighbours) {
    const wanted = new Map(row.map((p) => {
      const near = neighbours(p);
      return [p, near.length ? near.reduce((sum, n) => sum + n.x, 0) / near.length : p.x];
    }));
    row.sort((a, b) => wanted.get(a) - wanted.get(b));
    let right = -Infinity, off = 0;
    for (const p of row) {
      p.x = Math.max(wanted.get(p), right + half(p));
      right = p.x + half(p);
      off += p.x - wanted.get(p);
    }
    for (const p of row) p.x -= off / row.length;
  }
  for (let round = 0; round < 4; ++round) {
    for (const row of rows) settle(row, (p) => p.up);
    for (const row of [...rows].reverse()) settle(row, (p) => p.down);
  }
  for (const row of rows) settle(row, (p) => p.up);
  const all = rows.flat();
  const left = all.reduce((x, p) => Math.min(x, p.x - half(p)), Infinity);
  for (const p of all) p.x -= left;
  return all.reduce((x, p) => Math.max(x, p.x + half(p)), 0);
}

// calls: {label, title, weight: 0 to 1, its share of the colour}. Gives {element, show(i), choose(i)}, or null. show: of a
// drawing that is larger than the window, the part with the call.
function drawGraph(calls, after, choose) {
  const rows = layersOf(after);
  if (!rows) return null;
  const width = place(rows), height = rows.length * NODE.row + 10;
  const y = (row) => row * NODE.row + 10 + NODE.height / 2;
  const edges = [], boxes = [];
  for (const p of rows.flat())
    for (const to of p.down) {
      const top = y(p.row) + (p.i < 0 ? 0 : NODE.height / 2), bottom = y(to.row) - (to.i < 0 ? 0 : NODE.height / 2);
      const middle = (top + bottom) / 2;
      edges.push({ends: [p.i, to.i], element: make('path', {class: 'edge', d: `M${p.x} ${top}C${p.x} ${middle} ${to.x} ${middle} ${to.x} ${bottom}`})});
    }
  for (const p of rows.flat().filter((q) => q.i >= 0)) {
    const call = calls[p.i];
    boxes[p.i] = make('g', {class: 'node', onclick: () => choose(p.i)},
      make('rect', {x: p.x - NODE.width / 2, y: y(p.row) - NODE.height / 2, width: NODE.width, height: NODE.height, rx: 4,
                    style: `fill-opacity: ${(.08 + .72 * call.weight).toFixed(3)}`}),
      make('text', {x: p.x, y: y(p.row) + 4, 'text-anchor': 'middle'}, call.label.length > 19 ? call.label.slice(0, 18) + '…' : call.label),
      make('title', {}, call.title));
    boxes[p.i].at = {x: p.x, y: y(p.row)};
  }
  const drawing = make('svg', {class: 'graph', width, height, viewBox: `0 0 ${width} ${height}`, role: 'img',
                               'aria-label': 'Calls, each below those whose results it reads'},
                       ...edges.map((e) => e.element), ...boxes);
  const element = scroll('Drawing of the graph', drawing);
  const show = (i) => {
    element.scrollTop = boxes[i].at.y - element.clientHeight / 2;
    element.scrollLeft = boxes[i].at.x - element.clientWidth / 2;
  };
  return {element, show, choose(chosen) {
    boxes.forEach((box, i) => box.classList.toggle('chosen', i === chosen));
    for (const e of edges) e.element.classList.toggle('chosen', e.ends.includes(chosen));
    show(chosen);
  }};
}
