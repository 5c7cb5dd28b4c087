// How to play, in two minutes; docs/get-started/game.md explains the same.
import { LEGEND_LIST } from "./frames.js";

const KEYS = {
  "1 to 9": "make that choice", u: "undo", n: "new game", a: "get advice", r: "review the game",
  space: "pause or resume agents", "← → Home End": "show an earlier position", Escape: "return to the game, or close a dialog",
  "Tab, Enter": "go to a control and use it; the map marks the place of a choice with the focus", "?": "this page",
};

export const HELP = `
<h3>The goal</h3>
<p>Each player leads a pilgrim, a merchant and an artist over the island of Shikoku. When the game ends, the player with the larger sum of faith, commerce and culture wins.</p>
<ul>
<li><b>The pilgrim</b> walks clockwise along the coast. Temples and gardens bring faith: the step on the temple track times the step on the garden track. Hot springs and seashores bring tokens, towns bring coins.</li>
<li><b>The merchant</b> travels the trade routes: to mountain towns to draw wares from a bag, and to coastal towns to sell them. Ten coins become a gold slab; slabs bring commerce.</li>
<li><b>The artist</b> goes from area to area: reveals paintings where other characters are, and gives the front one away where its picture fits. Paintings given bring culture.</li>
</ul>
<h3>A round</h3>
<ol>
<li>The player who leads the round rolls three dice, one for each character.</li>
<li>The leader picks a die, moves that character exactly so far, and may use the effect of the place.</li>
<li>The other player picks one of the two dice that are left, then the leader takes the last one.</li>
<li>The other player leads the next round.</li>
</ol>
<p>So a player moves twice in one round and once in the next, and what you pick, your opponent does not have.</p>
<h3>The end</h3>
<p>The game ends after the round in which a player does one of four things:</p>
<ul>
<li>reaches the end of the temple track,</li>
<li>reaches the end of the garden track,</li>
<li>holds six gold slabs,</li>
<li>has given ten paintings.</li>
</ul>
<h3>The board</h3>
${LEGEND_LIST}
<h3>Keys</h3>
<dl class="legend-list">${Object.entries(KEYS).map(([key, text]) => `<dt>${key}</dt><dd>${text}</dd>`).join("")}</dl>`;
