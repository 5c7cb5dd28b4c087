// Animations of events; `render/motions.py` describes the motions. The picture already shows the
// position after the events, so nothing depends on an animation, and it can be cut at any time.
export const DURATION = 250; // milliseconds of an event

export const prefersMotion = () => !matchMedia("(prefers-reduced-motion: reduce)").matches;

export class Motions {
  // `root` contains the panels of the picture; `isOn` returns whether to animate.
  constructor(root, isOn) {
    Object.assign(this, { root, isOn, animations: [], events: [], start: 0 });
  }

  clear() {
    for (const one of this.animations.splice(0)) one.cancel();
    for (const one of this.root.querySelectorAll(".moving")) one.remove();
    this.events = [];
  }

  // Append events to those that run; also restart those after the picture was drawn again.
  add(events) {
    const isRunning = performance.now() < this.start + DURATION * this.events.length;
    const running = isRunning && this.events.length < 16 ? this.events : []; // do not fall behind
    if (!running.length) this.start = performance.now();
    this.clear();
    this.events = this.isOn() ? [...running, ...events.filter((motions) => motions.length)] : [];
    const ways = {}; // by pawn
    this.events.forEach((motions, at) => motions.forEach(([kind, ...rest]) => {
      if (kind === "roll") this.roll(at);
      else if (kind === "move") this.move(at, ...rest);
      else (ways[`${rest[0]} ${rest[1]}`] ??= []).push([at, rest[2]]);
    }));
    for (const [pawn, moves] of Object.entries(ways)) this.slide(pawn, moves);
  }

  animate(element, frames, options) {
    const length = this.animations.push(element.animate(frames, options));
    return Object.assign(this.animations[length - 1], { currentTime: performance.now() - this.start });
  }

  // One animation of a pawn for all its moves, so that it waits where each move starts.
  slide(pawn, moves) {
    const end = this.events.length;
    const frame = (time, [x, y]) => ({ offset: time / end, transform: `translate(${x}px, ${y}px)` });
    const frames = moves.flatMap(([at, way]) => way.map((point, step) => frame(at + step / (way.length - 1), point)));
    const ends = [frame(0, moves[0][1][0]), frame(end, moves.at(-1)[1].at(-1))];
    this.animate(this.part(`island pawn ${pawn}`).firstChild, [ends[0], ...frames, ends[1]], { duration: DURATION * end });
  }

  roll(at) {
    const frames = [{ rotate: "-1turn", opacity: 0 }, { rotate: "0turn", opacity: 1 }];
    for (const one of this.root.querySelectorAll('[data-part^="die "] :is(.spot, .huge)')) {
      this.animate(one, frames, { duration: DURATION, delay: DURATION * at, fill: "backwards" });
    }
  }

  move(at, icon, from, to) {
    const token = document.createElement("div");
    token.className = "moving";
    const theme = this.part(from).closest("svg").getAttribute("class");
    token.innerHTML = `<svg viewBox="-14 -14 28 28" class="${theme}"><circle r="13" class="spot"/>${GLYPHS[icon]}</svg>`;
    this.root.append(token);
    const frames = [from, to].map((part) => ({ transform: `translate(${this.centre(part)})`, opacity: 1 }));
    this.animate(token, frames, { duration: DURATION, delay: DURATION * at }).onfinish = () => token.remove();
  }

  // Return the element of a part, named by its panel and its own name.
  part(name) {
    return this.root.querySelector(`[data-panel="${name.split(" ")[0]}"] [data-part="${name.slice(name.indexOf(" ") + 1)}"]`);
  }

  centre(name) {
    const { left, top, width, height } = this.part(name).getBoundingClientRect();
    const frame = this.root.getBoundingClientRect();
    return `${left + width / 2 - frame.left - 14}px, ${top + height / 2 - frame.top - 14}px`;
  }
}
