// Words such as class=high size<=10 name="a b" choose packets by their tags, as FILTER does.

const operators = { "=": "eq", "!=": "ne", "<=": "le", ">=": "ge", "<": "lt", ">": "gt" };

// filterWords returns the arguments of a command, and throws what is wrong with the words.
export function filterWords(words) {
  const all = [];
  const rest = words.trim();
  const one = /\s*([^\s=!<>"]+|"[^"]*")(!=|<=|>=|=|<|>)("[^"]*"|\S*)/gy;
  let end = 0;
  for (let m; (m = one.exec(rest)); end = one.lastIndex) {
    const plain = (s) => s.startsWith('"') ? s.slice(1, -1) : s;
    all.push("FILTER", plain(m[1]), operators[m[2]], plain(m[3]));
  }
  if (rest.slice(end).trim()) throw new Error('tags: expected such as class=high size<=10 name="a b", got ' + rest.slice(end).trim());
  return all;
}
