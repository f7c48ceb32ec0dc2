// Words such as class=high size<=10 name="a b" choose packets by their tags, as FILTER does, and
// share:acme by their share, as SHARE does.

const operators = { "=": "eq", "!=": "ne", "<=": "le", ">=": "ge", "<": "lt", ">": "gt" };

// filterWords returns the arguments of a command, and throws what is wrong with the words.
export function filterWords(words) {
  const all = [];
  const rest = words.trim();
  const one = /\s*(?:share:("[^"]*"|\S*)|([^\s=!<>"]+|"[^"]*")(!=|<=|>=|=|<|>)("[^"]*"|\S*))/gy;
  let end = 0;
  for (let m; (m = one.exec(rest)); end = one.lastIndex) {
    const plain = (s) => s.startsWith('"') ? s.slice(1, -1) : s;
    if (m[1] !== undefined) all.push("SHARE", plain(m[1]));
    else all.push("FILTER", plain(m[2]), operators[m[3]], plain(m[4]));
  }
  if (rest.slice(end).trim()) throw new Error('tags: expected such as class=high size<=10 name="a b" share:acme, got ' + rest.slice(end).trim());
  return all;
}
