// Recorded games, with data in script elements of the page: `replay_page.py` describes it.
import { BOARD, Frames, LEGEND, MOVES, PLAYBACK } from "./frames.js";

const LAYOUT = `<header><h1>Tokaido Duo</h1><label class="choice"><span>Game</span> </label></header>
<main>
<section class="playback" aria-label="Playback"><p class="status" aria-live="polite"></p>${PLAYBACK}</section>
${BOARD}
<section class="points" aria-label="Points">
<table class="score"></table><div class="graph"></div>
<details class="continue"><summary>Continue from here</summary>
<p><a class="download" download="game.jsonl">Download the game</a>, then start it at this move:</p>
<p><code class="command"></code></p>
</details>
${LEGEND}
</section>
${MOVES}
</main>`;

// Return the value of the newest pair [at, value] up to a frame, from a flat list of pairs.
function newest(pairs, at) {
  let value = 0;
  for (let one = 0; pairs[one] <= at; one += 2) value = pairs[one + 1];
  return value;
}

async function unpack(script) {
  const bytes = Uint8Array.from(atob(script.textContent), (char) => char.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  script.textContent = await new Response(stream).text();
}

class Recorded extends Frames {
  constructor(el, scripts, chooser) {
    super(el, LAYOUT);
    Object.assign(this, { scripts, chooser, addressTimer: 0, opened: -1 });
    this.find("choice").append(chooser);
    this.find("choice").hidden = scripts.length === 1;
    chooser.addEventListener("change", () => this.open(chooser.selectedIndex, 0));
    addEventListener("hashchange", () => this.followAddress());
    this.followAddress();
  }

  open(index, at) {
    if (index !== this.opened) {
      this.pause();
      Object.assign(this, { opened: index, drawn: {} });
      this.chooser.selectedIndex = index;
      this.setGame(JSON.parse(this.scripts[index].textContent));
      document.title = `${this.game.names.join(" against ")}, Tokaido Duo`;
      this.find("graph").replaceChildren(...this.graphs());
      this.find("download").href = `data:text/plain;charset=utf-8,${encodeURIComponent(this.game.record)}`;
    }
    this.step(at);
  }

  frame(at) {
    const { panels, markup } = this.game;
    const partsOf = (parts) => Object.fromEntries(parts.map(([part, changes]) => [part, markup[newest(changes, at)]]));
    return { panels: Object.fromEntries(Object.entries(panels).map(([name, parts]) => [name, partsOf(parts)])) };
  }

  mark() {
    this.find("score").replaceChildren(...this.scoreRows(this.at));
    super.mark();
    this.find("command").textContent = `tokaido play --from game.jsonl --at ${this.at}`;
    clearTimeout(this.addressTimer); // browsers limit the rate of changes
    this.addressTimer = setTimeout(() => history.replaceState(null, "", `#game=${this.opened + 1}&move=${this.at}`), 350);
  }

  // The address: #game=2&move=57
  followAddress() {
    const address = new URLSearchParams(location.hash.slice(1));
    const game = Math.trunc(address.get("game") - 1) || 0;
    this.open(Math.max(0, Math.min(this.scripts.length - 1, game)), Number(address.get("move")));
  }
}

const scripts = [...document.querySelectorAll('script[type="application/gzip"]')];
await Promise.all(scripts.map(unpack));
new Recorded(document.getElementById("game"), scripts, document.querySelector("select.games"));
