"""A page in a real Chromium, for a test that uses it as a reader does."""

import shutil
from contextlib import contextmanager
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, sync_playwright

CHROMIUM = shutil.which("chromium") or shutil.which("google-chrome")


@contextmanager
def chromium():
    """A `Browser`: the Chromium that this machine has. Skips where it has none."""
    if CHROMIUM is None:
        pytest.skip("needs Chromium")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        try:
            yield browser
        finally:
            browser.close()


@contextmanager
def opened(browser: Browser, path: Path, *, width=1280, height=900, **more):
    """The `Page` of a file, with all its charts; `more` goes to Playwright's `new_page`.

    When it is closed, no error and no warning may have been said on it, and nothing asked for
    that is not in the file.
    """
    page: Page = browser.new_page(viewport={"width": width, "height": height}, **more)
    page.set_default_timeout(10_000)
    own = ("data:", "blob:", path.as_uri())
    wrong = []
    page.on("pageerror", lambda error: wrong.append(str(error)))
    page.on("console", lambda said: said.type in ("error", "warning") and wrong.append(said.text))
    page.on("request", lambda asked: asked.url.startswith(own) or wrong.append(asked.url))
    try:
        page.goto(path.as_uri())
        page.evaluate("window.drawn")
        yield page
    finally:
        page.close()
    assert wrong == [], wrong
