(() => {
  const byId = (id) => document.getElementById(id);
  const games = [...document.querySelectorAll('script[type^="application/"]')];
  const [sentence, slider, list, graph, rounds] =
    ["sentence", "slider", "moves", "graph", "round"].map(byId);
  const [chosen, speed, play, theme] = ["game", "speed", "play", "theme"].map(byId);
  const inFrame = location.protocol === "about:"; // in a notebook, which has no address

  let data = null; // of the shown game, from replay_page.py
  let shown = -1; // index of the shown position
  let parts = []; // of the picture: a group, its changes and its markup's index
  let cells = [];
  let timer = 0; // of the next move; 0 when paused
  let addressTimer = 0; // of the next change of the address

  const element = (name, text = "", attributes = {}) => {
    const made = document.createElement(name);
    made.textContent = text;
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    return made;
  };
  const clamp = (value, last) => Math.max(0, Math.min(last, Math.trunc(value) || 0));
  const end = () => data.moves.length;

  const motions = new Motions(document.querySelector("main"), () => prefersMotion() && Number(speed.value) >= DURATION);

  // Return the value of the newest pair [move, value] up to a move, from a flat list of pairs.
  function newest(pairs, move, none) {
    let low = 0;
    let high = pairs.length / 2;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (pairs[2 * middle] <= move) low = middle + 1;
      else high = middle;
    }
    return low ? pairs[2 * low - 1] : none;
  }

  // Packed games

  async function unpack(script) {
    const bytes = Uint8Array.from(atob(script.textContent), (char) => char.charCodeAt(0));
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
    script.textContent = await new Response(stream).text();
  }

  // A game

  function open(game) {
    pause();
    chosen.selectedIndex = game;
    data = JSON.parse(games[game].textContent);
    shown = -1;
    document.title = `${data.title}, Tokaido Duo`;
    slider.max = end();
    createPanels();
    createMoves();
    createTable();
    graph.innerHTML = data.graph;
    byId("review").innerHTML = data.review;
    byId("download").href = `data:text/plain;charset=utf-8,${encodeURIComponent(data.record)}`;
    applyTheme();
    rounds.replaceChildren(
      ...data.rounds.map(([round, move]) => element("option", round || "Set-up", { value: move })),
    );
  }

  function createPanels() {
    parts = [];
    for (const [panel, names] of Object.entries(data.panels)) {
      const groups = names.map(([part, changes]) => {
        const group = document.createElementNS("http://www.w3.org/2000/svg", "g");
        group.dataset.part = part;
        parts.push({ group, changes, index: 0 });
        return group;
      });
      document.querySelector(`[data-panel="${panel}"]`).replaceChildren(...groups);
    }
  }

  function createMoves() {
    const line = (text, seat, round) => {
      const item = element("li", "", round === null ? {} : { "data-round": round });
      const button = element("button", text, { type: "button", tabindex: -1 });
      if (seat !== null) button.dataset.seat = seat;
      item.append(button);
      return item;
    };
    let before = null;
    const lines = data.moves.map(([round, seat, text]) => {
      const first = round !== before;
      before = round;
      return line(text, seat, first ? (round ? `Round ${round}` : "Set-up") : null);
    });
    list.replaceChildren(line("Start", null, null), ...lines);
  }

  function createTable() {
    const [head, body] = document.querySelectorAll("thead, tbody");
    const row = (first, ...others) => {
      const made = element("tr");
      made.append(first, ...others);
      return made;
    };
    const names = data.names.map((name, seat) =>
      element("th", name, { scope: "col", "data-seat": seat }),
    );
    head.replaceChildren(row(element("td"), ...names));
    body.replaceChildren(
      ...data.rows.map((name) =>
        row(element("th", name, { scope: "row" }), ...names.map(() => element("td"))),
      ),
    );
    cells = [...body.querySelectorAll("td")];
  }

  // A position

  function show(move) {
    if (data === null) return; // not unpacked yet
    move = clamp(move, end());
    if (move === shown) return;
    const isNext = move === shown + 1 && move > 1;
    shown = move;
    for (const part of parts) {
      const index = newest(part.changes, move, 0);
      if (index !== part.index) {
        part.index = index;
        part.group.innerHTML = data.markup[index];
      }
    }
    motions.clear();
    if (isNext) motions.add([data.motions[move - 1]]);
    data.cells[move].forEach((value, cell) => (cells[cell].textContent = value));
    sentence.textContent = move ? data.moves[move - 1][2] : "Start";
    byId("position").textContent = `move ${move} of ${end()}`;
    byId("command").textContent = `tokaido play --from game.jsonl --at ${move}`;
    byId("copy").textContent = "Copy";
    slider.value = move;
    slider.setAttribute("aria-valuetext", `move ${move} of ${end()}: ${sentence.textContent}`);
    rounds.value = newest(data.rounds.flatMap(([, first]) => [first, first]), move, 0);
    for (const marker of graph.querySelectorAll(".marker")) {
      marker.style.left = `${(100 * move) / Math.max(1, end())}%`;
    }
    for (const id of ["first", "previous"]) byId(id).disabled = move === 0;
    for (const id of ["next", "last"]) byId(id).disabled = move === end();
    select(move);
    updateAddress();
  }

  function select(move) {
    const current = list.children[move].firstChild;
    const old = list.querySelector("[aria-current]");
    if (old) {
      old.removeAttribute("aria-current");
      old.tabIndex = -1;
    }
    current.setAttribute("aria-current", "step");
    current.tabIndex = 0;
    if (old && old === document.activeElement) current.focus({ preventScroll: true });
    const frame = list.parentElement; // scrollIntoView would scroll the page too
    frame.scrollTop = current.parentElement.offsetTop - frame.clientHeight / 2;
  }

  // Playback

  function pause() {
    clearTimeout(timer);
    timer = 0;
    delete play.dataset.playing;
    play.setAttribute("aria-label", "Play");
    sentence.setAttribute("aria-live", "polite");
  }

  function start() {
    if (shown === end()) show(0);
    play.dataset.playing = "";
    play.setAttribute("aria-label", "Pause");
    sentence.setAttribute("aria-live", "off"); // a screen reader could not keep up
    wait();
  }

  function wait() {
    timer = setTimeout(() => {
      show(shown + 1);
      if (shown === end()) pause();
      else wait();
    }, Number(speed.value));
  }

  const toggle = () => (timer ? pause() : start());
  const go = (move) => {
    pause();
    show(move);
  };

  // The address: #game=2&move=57

  function followAddress() {
    const address = new URLSearchParams(location.hash.slice(1));
    const game = clamp(address.get("game") - 1, games.length - 1);
    if (data === null || game !== chosen.selectedIndex) open(game);
    go(address.get("move"));
  }

  function updateAddress() {
    if (inFrame || addressTimer) return; // browsers limit the rate of changes
    addressTimer = setTimeout(() => {
      addressTimer = 0;
      history.replaceState(null, "", `#game=${chosen.selectedIndex + 1}&move=${shown}`);
    }, 350);
  }

  // Light and dark

  const dark = matchMedia("(prefers-color-scheme: dark)");
  let chosenDark = null; // by the button; null follows the reader's setting

  function applyTheme() {
    const isDark = chosenDark ?? dark.matches;
    document.documentElement.dataset.theme = isDark ? "dark" : "light";
    theme.textContent = isDark ? "Use light theme" : "Use dark theme";
    for (const picture of document.querySelectorAll(".tokaido")) {
      picture.classList.toggle("tokaido-dark", isDark);
      picture.classList.toggle("tokaido-light", !isDark);
    }
  }

  // Input

  const steps = {
    ArrowLeft: () => go(shown - 1),
    ArrowRight: () => go(shown + 1),
    Home: () => go(0),
    End: () => go(end()),
    " ": toggle,
  };

  document.addEventListener("keydown", (event) => {
    const { key, repeat, target } = event;
    const hasOwnKeys = target.closest("select") || (key === " " && target.closest("button, summary"));
    if (hasOwnKeys || event.ctrlKey || event.altKey || event.metaKey || !(key in steps)) return;
    event.preventDefault();
    if (!repeat || key.startsWith("Arrow")) steps[key]();
  });

  function seek(event) {
    const plot = event.target.closest(".plot");
    if (!plot || !(event.buttons & 1)) return;
    const box = plot.getBoundingClientRect();
    go(Math.round((end() * (event.clientX - box.left)) / box.width));
  }

  const keys = { first: "Home", previous: "ArrowLeft", next: "ArrowRight", last: "End", play: " " };
  for (const [id, key] of Object.entries(keys)) byId(id).addEventListener("click", steps[key]);
  byId("copy").addEventListener("click", () => {
    getSelection().selectAllChildren(byId("command"));
    byId("copy").textContent = document.execCommand("copy") ? "Copied" : "Press Ctrl+C";
  });
  slider.addEventListener("input", () => go(Number(slider.value)));
  rounds.addEventListener("change", () => go(Number(rounds.value)));
  chosen.addEventListener("change", () => {
    open(chosen.selectedIndex);
    show(0);
  });
  list.addEventListener("click", (event) => {
    const item = event.target.closest("li");
    if (item) go([...list.children].indexOf(item));
  });
  graph.addEventListener("pointerdown", seek);
  graph.addEventListener("pointermove", seek);
  theme.addEventListener("click", () => {
    chosenDark = document.documentElement.dataset.theme !== "dark";
    applyTheme();
  });
  dark.addEventListener("change", applyTheme);

  function begin() {
    addEventListener("hashchange", followAddress);
    followAddress();
  }

  chosen.closest("label").hidden = games.length === 1;
  byId("continue").hidden = inFrame; // frames of notebooks allow no download
  const packed = games.filter((script) => script.type === "application/gzip");
  if (packed.length) Promise.all(packed.map(unpack)).then(begin);
  else begin();
})();
