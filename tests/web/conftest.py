"""The live page in a browser."""

import threading
from collections.abc import Iterator

import pytest
from browsers import Browser, quiet
from live_pages import Served, wait_for

from tokaido_env.web.game_session import HUMAN, Session
from tokaido_env.web.live_game import LiveGame


@pytest.fixture
def live_game(request: pytest.FixtureRequest) -> LiveGame:
    """The served game; an indirect parameter chooses another one."""
    game = getattr(request, "param", ((HUMAN, "greedy"), "shikoku", 7))
    return LiveGame(Session(*game), advisor="champion", pace=0.0)


@pytest.fixture
def served(live_game: LiveGame) -> Iterator[Served]:
    """Serve a game as the command does, and close it."""
    uvicorn = pytest.importorskip("uvicorn")
    from tokaido_env.web.server import create_app, listen, new_token, page_address

    listener, token = listen(), new_token()
    port = listener.getsockname()[1]
    server = uvicorn.Server(
        uvicorn.Config(create_app(live_game, port, token), log_level="critical")
    )
    thread = threading.Thread(target=server.run, args=([listener],), daemon=True)
    thread.start()
    yield Served(live_game, page_address(port, token))
    live_game.close()
    server.should_exit = True
    thread.join(20)


@pytest.fixture
def opened(browser: Browser, served: Served) -> Iterator[Browser]:
    """The page of the game; at the end it has logged nothing and contacted no other host."""
    browser.set_window_size(1280, 900)
    with quiet(browser, served.page):
        wait_for(browser, ".choices button")
        yield browser
    names = browser.execute_script(
        "return performance.getEntriesByType('resource').map((one) => one.name)"
    )
    own = served.page.partition("#")[0]
    assert all(name.startswith((own, "data:")) for name in names)
    browser.get("about:blank")
