// The local play page: a model for live_game.js that uses HTTP requests.
import liveGame from "./live_game.js";

const NO_TOKEN = "This address lacks the token of the running program: open the address that tokaido play printed.";
const PATIENCE = 5; // seconds for an answer
const token = location.hash.slice(1);
const listeners = { "change:state": [], "msg:custom": [] };
let state = null;

const connection = document.getElementById("connection");

// Ask the server; say after some seconds that it does not answer.
async function request(path, body) {
  const options = { headers: { "X-Token": token } };
  if (body !== undefined) Object.assign(options, { method: "POST", body: JSON.stringify(body) });
  const seconds = PATIENCE + (body === undefined ? 20 : 0); // the server holds a request for a state
  const timer = setTimeout(() => (connection.textContent = `No answer for ${PATIENCE} s. The program is busy, or has stopped.`), 1000 * seconds);
  try {
    const response = await fetch(path, options);
    const answer = await response.json();
    if (!response.ok) throw Object.assign(new Error(answer.error), { status: response.status });
    connection.textContent = "";
    return answer;
  } finally {
    clearTimeout(timer);
  }
}

const emit = (event, data) => listeners[event].forEach((listener) => listener(data));

const model = {
  get: () => state,
  on: (event, listener) => listeners[event].push(listener),
  async send({ id, kind, name, arguments: given }) {
    try {
      emit("msg:custom", { id, answer: await request(`${kind}/${name}`, given) });
    } catch (error) {
      emit("msg:custom", { id, error: error.message });
    }
  },
};

async function watch() {
  for (;;) {
    try {
      state = await request(`state?version=${state?.version ?? 0}`);
      document.title = `${state.names.join(" against ")}, Tokaido Duo`;
      emit("change:state");
    } catch (error) {
      if (error.status === 403) return void (connection.textContent = NO_TOKEN);
      connection.textContent = `Connection lost (${error.message}): trying again. If the program has stopped, start tokaido play again: its start dialog resumes the games that this browser keeps.`;
      await new Promise((resolve) => setTimeout(resolve, 2000));
    }
  }
}

addEventListener("hashchange", () => location.reload()); // another token
if (token) {
  liveGame.render({ model, el: document.getElementById("game") });
  watch();
} else document.getElementById("connection").textContent = NO_TOKEN;
