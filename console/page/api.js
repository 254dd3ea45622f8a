// What the page asks of its handler, which is at the same path.
import { setClock } from "./dom.js";

export class Refused extends Error {
  constructor(status, text) {
    super(text);
    this.status = status;
  }
}

export async function get(what, query) {
  return read(await fetch(`api/${what}?${new URLSearchParams(query)}`, { headers: { Accept: "application/json" } }).catch(unanswered("The console does not answer.")));
}

export async function post(what, body, signal) {
  return read(await fetch(`api/${what}`, { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body), signal })
    .catch(unanswered("The console does not answer. What was asked for may be done nevertheless.")));
}

// unanswered says why there is no answer, which browsers say each in their own words.
const unanswered = (why) => (err) => { throw err.name === "AbortError" ? err : new Error(why); };

async function read(response) {
  setClock(Date.parse(response.headers.get("Date")));
  if (response.status === 204) return null;
  const content = await response.json().catch(() => ({}));
  if (!response.ok) throw new Refused(response.status, content.error ?? `the console answers ${response.status}`);
  return content;
}

// follow calls seen with what a screen shows, as long as it is looked at, and lost when the console does
// not answer: it connects again by itself. It returns a function that ends it.
export function follow(query, seen, lost) {
  let source = null, retry = 0, ended = false;
  const open = () => {
    if (ended || source || document.hidden) return;
    source = new EventSource(`api/live?${new URLSearchParams(query)}`);
    source.addEventListener("screen", (event) => seen(JSON.parse(event.data)));
    source.onerror = () => {
      const refused = source.readyState === EventSource.CLOSED; // it will not try again
      lost(refused);
      if (!refused) return;
      close();
      retry = setTimeout(open, 2000);
    };
  };
  const close = () => {
    clearTimeout(retry);
    source?.close();
    source = null;
  };
  // A page in the background costs nothing.
  const look = () => (document.hidden ? close() : open());
  document.addEventListener("visibilitychange", look);
  open();
  return () => {
    ended = true;
    document.removeEventListener("visibilitychange", look);
    close();
  };
}
