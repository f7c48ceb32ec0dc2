// Where a view is, as the part of the address behind "#". A name that is no UTF-8 is in base64.

export function to(view, database, name, more = {}) {
  const p = new URLSearchParams({ db: database });
  if (typeof name === "string") p.set("name", name);
  else p.set("base64", name.base64);
  for (const [key, value] of Object.entries(more)) if (value) p.set(key, value);
  return "#/" + view + "?" + p;
}

// sound is a base64 that can be read: empty for one that cannot.
function sound(base64) {
  try {
    return btoa(atob(base64));
  } catch {
    return "";
  }
}

export function parse(hash) {
  const [view, query = ""] = hash.replace(/^#\/?/, "").split(/\?(.*)/s);
  const p = new URLSearchParams(query);
  return {
    view,
    database: Number(p.get("db") ?? 0),
    name: p.has("base64") ? { base64: sound(p.get("base64")) } : p.get("name") ?? "",
    state: p.get("state") ?? "",
    tags: p.get("tags") ?? "",
    id: p.get("id") ?? "",
    find: p.get("find") ?? "",
    filter: p.get("filter") ?? "",
    sort: p.get("sort") ?? "",
  };
}
