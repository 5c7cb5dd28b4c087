"""What a person does on the live page in a browser; `web/conftest.py` serves it."""

from typing import Any, NamedTuple

from browsers import Browser, until

from tokaido_env.web.live_game import LiveGame


class Served(NamedTuple):
    """A live game and the address of its page."""

    live_game: LiveGame
    page: str


def wait_for(browser: Browser, selector: str) -> Any:
    return until(browser, lambda b: b.find_elements("css selector", selector))[0]


def text(browser: Browser, name: str) -> str:
    found: str = browser.find_element("class name", name).text
    return found


def click(browser: Browser, name: str) -> None:
    button = browser.find_element("class name", name)
    browser.execute_script("arguments[0].closest('details')?.setAttribute('open', '')", button)
    button.click()


def until_shown(browser: Browser, served: Served) -> None:
    """Wait until the page shows the present state; two states can look alike."""
    version = served.live_game.version
    page = wait_for(browser, "[data-version]")
    until(browser, lambda b: int(page.get_attribute("data-version")) >= version)


def act_and_wait(browser: Browser, served: Served, act: Any) -> None:
    """Act, and wait until no agent thinks and the page shows the result."""
    before = served.live_game.version
    act()
    until(browser, lambda b: served.live_game.version > before)
    state = served.live_game.state()
    while state["waits_for"] == "agent":
        state = served.live_game.state(state["version"], 5)
    until_shown(browser, served)
    until(
        browser,
        lambda b: (
            len(b.find_elements("css selector", ".log li")) == len(state["log"]) + 1
            and len(b.find_elements("css selector", ".choices [data-label]"))
            == (0 if state["dice"] else len(state["choices"]))
        ),
    )


def play_first(browser: Browser, served: Served) -> None:
    """Play the first choice."""
    wait_for(browser, ".choices button")
    click_first = "document.querySelector('.choices button').click()"  # never a replaced button
    act_and_wait(browser, served, lambda: browser.execute_script(click_first))


def press(browser: Browser, *keys: str) -> None:
    from selenium.webdriver.common.action_chains import ActionChains

    ActionChains(browser).send_keys(*keys).perform()
