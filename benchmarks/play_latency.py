"""How long after a click an agent's move is on the page: python benchmarks/play_latency.py.

Games are played in Chromium against an agent; timed is from the click on a choice that leads to a
decision of the agent until the page shows what it decided. The page itself takes the time.
"""

from __future__ import annotations

import argparse
import shutil
import statistics
import threading
import time
from typing import Any

import uvicorn

from tokaido_env.web.server import address, app_of, listen, new_token
from tokaido_env.web.session import HUMAN, Session
from tokaido_env.web.table import Table

# Click the last choice; tell when the log has an entry of the agent more, and how long it took.
CLICK = """
const done = arguments[arguments.length - 1];
const log = document.querySelector(".log");
const own = () => log.querySelectorAll("li[data-seat='1']").length;
const before = own(), length = log.children.length;
const since = performance.now();
const watch = new MutationObserver(() => {
  const isOwn = own() > before, waits = document.querySelector(".turn").ariaBusy === "true";
  if (!isOwn && (waits || log.children.length === length)) return;
  watch.disconnect();
  requestAnimationFrame(() => done(isOwn ? performance.now() - since : null));
});
const seen = { subtree: true, childList: true, attributes: true };
watch.observe(document.querySelector(".turn"), seen);
watch.observe(log, { childList: true });
[...document.querySelectorAll(".choices button")].at(-1).click();
"""


def main() -> None:
    """Play and print the times."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--against", default="champion:sims=400")
    parser.add_argument("--moves", type=int, default=50)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    table = Table(Session((HUMAN, options.against), seed=options.seed))
    listener, token = listen(), new_token()
    port = listener.getsockname()[1]
    server = uvicorn.Server(uvicorn.Config(app_of(table, port, token), log_level="critical"))
    threading.Thread(target=server.run, kwargs={"sockets": [listener]}, daemon=True).start()
    times = sorted(timed(address(port, token), table, options.moves))
    low, high = times[len(times) // 4], times[3 * len(times) // 4]
    print(
        f"{options.against}: {len(times)} moves, median {statistics.median(times):.0f} ms, "
        f"quartiles {low:.0f} and {high:.0f}, longest {times[-1]:.0f}"
    )
    server.should_exit = True
    table.close()


def timed(page: str, table: Table, moves: int) -> list[float]:
    """Return how long the agent's moves took to be seen, in milliseconds, after the first."""
    browser = opened(page)
    times: list[float] = []
    try:
        while len(times) <= moves:
            wait_for_choices(browser, table)
            took = browser.execute_async_script(CLICK)
            if took is not None:
                times.append(took)
    finally:
        browser.quit()
    return times[1:]


def wait_for_choices(browser: Any, table: Table) -> None:
    """Wait until a person is to decide, in this game or the next, and the page shows it."""
    told = table.look()
    while told["waits_for"] != "human":
        if told["waits_for"] == "nobody":
            table.do("new", {})
        told = table.look(told["version"], 10)
    while len(browser.find_elements("css selector", ".choices button")) != len(told["choices"]):
        time.sleep(0.02)
    time.sleep(0.2)


def opened(page: str) -> Any:
    """Return a browser with the page."""
    from selenium import webdriver

    options = webdriver.ChromeOptions()
    for argument in ("--headless=new", "--no-sandbox", "--disable-dev-shm-usage"):
        options.add_argument(argument)
    browser = webdriver.Chrome(options, webdriver.ChromeService(shutil.which("chromedriver")))
    browser.set_script_timeout(60)
    browser.get(page)
    return browser


if __name__ == "__main__":
    main()
