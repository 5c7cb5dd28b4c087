// The page of a local table: the model of its module, which fetches.
import table from "./table.js";

const token = location.hash.slice(1);
const listeners = { "change:told": [], "msg:custom": [] };
let told = null;

async function fetched(path, body) {
  const options = { headers: { "X-Token": token } };
  if (body !== undefined) Object.assign(options, { method: "POST", body: JSON.stringify(body) });
  const response = await fetch(path, options);
  const answer = await response.json();
  if (!response.ok) throw Object.assign(new Error(answer.error), { key: answer.key });
  return answer;
}

const fire = (name, given) => listeners[name].forEach((listener) => listener(given));

const model = {
  get: () => told,
  on: (name, listener) => listeners[name].push(listener),
  async send({ id, kind, name, arguments: given }) {
    try {
      fire("msg:custom", { id, answer: await fetched(`${kind}/${name}`, given) });
    } catch (error) {
      fire("msg:custom", { id, error: error.message, key: error.key });
    }
  },
};

async function watch() {
  for (;;) {
    try {
      told = await fetched(`look?seen=${told?.version ?? 0}`);
      document.title = `${told.names.join(" against ")}, Tokaido Duo`;
      document.getElementById("lost").textContent = "";
      fire("change:told");
    } catch (error) {
      document.getElementById("lost").textContent = `no answer: ${error.message}; the game is kept, trying again`;
      await new Promise((later) => setTimeout(later, 2000));
    }
  }
}

const el = document.getElementById("table");
table.render({ model, el });
// Keys work wherever on the page they are pressed.
addEventListener("keydown", (event) => {
  if (event.target !== document.body) return;
  const { key, ctrlKey, metaKey, altKey } = event;
  const again = new KeyboardEvent("keydown", { key, ctrlKey, metaKey, altKey, cancelable: true });
  if (!el.dispatchEvent(again)) event.preventDefault();
});
watch();
