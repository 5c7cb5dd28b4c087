"""Chromium for tests of pages, if the system has it with its driver."""

import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "google-chrome", "chrome"))), None)
DRIVER = shutil.which("chromedriver")

Browser = Any


@contextmanager
def browsing(profile: Path) -> Iterator[Browser]:
    """Start the system's browser; nothing is downloaded."""
    if CHROMIUM is None or DRIVER is None:
        pytest.skip("no chromium with chromedriver")
    webdriver = pytest.importorskip("selenium.webdriver")
    from selenium.webdriver.chrome.service import Service

    options = webdriver.ChromeOptions()
    options.binary_location = CHROMIUM
    for argument in (
        *("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"),
        *("--disable-extensions", "--disable-background-networking", "--no-first-run"),
        *("--window-size=1280,800", f"--user-data-dir={profile}"),
    ):
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    driver = webdriver.Chrome(options=options, service=Service(DRIVER, log_output=os.devnull))
    try:
        yield driver
    finally:
        driver.quit()


@contextmanager
def quiet(browser: Browser, address: str) -> Iterator[None]:
    """Open a page; check at the end that it logged nothing."""
    browser.get("about:blank")
    browser.get_log("browser")
    browser.get(address)
    yield
    assert browser.get_log("browser") == []


def until(browser: Browser, condition: Callable[[Browser], Any]) -> Any:
    """Wait until a condition is true; return its value."""
    from selenium.webdriver.support.ui import WebDriverWait

    return WebDriverWait(browser, 40, poll_frequency=0.02).until(condition)
