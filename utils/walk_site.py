"""Walk the built site as a reader does: all links and pictures, and in a browser the pages, the search, both colours.

``make docs-test`` builds the site and runs this. It needs Playwright and a Chromium: Debian's (``apt-get install
chromium``) or Playwright's own (``playwright install chromium``). ``--pictures FOLDER`` keeps what the browser showed.
With ``--browser optional``, as in CI, a browser that does not start or dies three times is said and is no error; what
it shows still is one, and links, anchors and the files of pictures are checked without it.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from html.parser import HTMLParser
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urldefrag, urljoin, urlsplit

__all__ = ["SEARCHES", "find_broken_links", "main"]

SEARCHES = {
    "crossentropy": "crossentropy",
    "cross entropy": "crossentropy",
    "GPU": "Devices",
    "cuda": "Devices",
    "Module": "Module",
    "jit": "compile",
    "learning rate": "learning rate",
    "onnx": "ONNX",
    "random seed": "seed",
    "jupyter": "notebook",
}
"""What readers search for, and a word that one of the first three results must have in its title or text."""

_PATIENCE = 120_000  # milliseconds, on a busy machine
_OPTIONS = ["--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu"]  # in containers, also as root
_PHONE, _DESK = (390, 844), (1400, 900)
_REFERENCE = (
    "reference/conv/",
    "reference/nn/Conv2d/",
    "reference/training/Trainer/",
    "reference/ops/",
    "emberlint/EMB401/",
)


class _Page(HTMLParser):
    """The addresses that a page leads to, and the anchors that it has."""

    def __init__(self) -> None:
        super().__init__()
        self.links: list[str] = []
        self.anchors: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note the anchors and addresses of one element."""
        found = dict(attrs)
        self.anchors.update(value for key in ("id", "name") if (value := found.get(key)))
        key = {"a": "href", "link": "href", "img": "src", "script": "src"}.get(tag)
        if key and (target := found.get(key)):
            self.links.append(target)


def _read(path: Path) -> _Page:
    page = _Page()
    page.feed(path.read_text(encoding="utf-8"))
    return page


def find_broken_links(site: Path) -> list[str]:
    """Return the links, anchors and pictures of all pages that lead nowhere in the folder of the site."""
    pages = {path: _read(path) for path in site.rglob("*.html")}
    broken = []
    for path, page in pages.items():
        base = f"http://site/{path.relative_to(site).as_posix()}"
        for target in page.links:
            address, anchor = urldefrag(urljoin(base, target))
            parts = urlsplit(address)
            if parts.netloc != "site" or path.name == "404.html":  # elsewhere; 404.html has addresses of the server
                continue
            file = site / unquote(parts.path).lstrip("/")
            file = file / "index.html" if file.is_dir() else file
            is_there = file.is_file() and (not anchor or file not in pages or unquote(anchor) in pages[file].anchors)
            if not is_there:
                broken.append(f"{path.relative_to(site)}: {target}")
    return sorted(set(broken))


class _QuietHandler(SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: Any) -> None:
        """Print no line for each request."""


@contextmanager
def _serve(site: Path) -> Iterator[str]:
    """Serve a folder on a free port of this machine; yield its address."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(_QuietHandler, directory=str(site)))
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}/"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


_MEASURE = """() => ({
    page: document.documentElement.scrollWidth - window.innerWidth,
    code: [...document.querySelectorAll('.md-content pre > code')]
        .filter(code => code.offsetParent !== null && code.scrollWidth > code.clientWidth + 1)
        .map(code => code.innerText.split('\\n').sort((a, b) => b.length - a.length)[0]),
    pictures: [...document.images].filter(image => !image.complete || image.naturalWidth === 0).map(image => image.src),
})"""


class _Walk:
    """One run through the site in a browser; ``wrong`` collects what a reader would stumble over."""

    def __init__(self, browser: Any, address: str, pictures: Path | None) -> None:
        self.browser, self.address, self.pictures = browser, address, pictures
        self.wrong: list[str] = []

    @contextmanager
    def _open(self, size: tuple[int, int], scheme: str = "light") -> Iterator[Any]:
        """Yield an empty tab of a size; errors on the console and failed requests are noted."""
        context = self.browser.new_context(
            viewport=dict(zip(("width", "height"), size, strict=True)), color_scheme=scheme
        )
        context.set_default_timeout(_PATIENCE)
        page = context.new_page()
        page.on("console", lambda message: message.type == "error" and self.wrong.append(f"console: {message.text}"))
        page.on("pageerror", lambda error: self.wrong.append(f"script of {page.url}: {error}"))
        page.on("response", lambda answer: answer.status >= 400 and self.wrong.append(f"{answer.status}: {answer.url}"))
        try:
            yield page
        finally:
            context.close()

    def _keep(self, page: Any, name: str, whole: bool = False) -> None:
        if self.pictures is not None:
            page.screenshot(path=self.pictures / f"{name}.png", full_page=whole)

    def look_at(self, paths: list[str]) -> None:
        """Open each page as on a phone and on a desk: it must not scroll sideways, and show its code and pictures."""
        for size in (_PHONE, _DESK):
            with self._open(size) as page:
                for path in paths:
                    page.goto(self.address + path, wait_until="load")
                    found = page.evaluate(_MEASURE)
                    where = f"{path or 'landing page'} at {size[0]} px"
                    if found["page"] > 0:
                        self.wrong.append(f"{where}: wider than the window by {found['page']} px")
                    self.wrong += [f"{where}: cut code: {line}" for line in found["code"]]
                    self.wrong += [f"{where}: picture does not load: {source}" for source in found["pictures"]]
                    self._keep(page, f"{path.strip('/').replace('/', '-') or 'landing'}-{size[0]}", whole=True)

    def look_in_the_dark(self, paths: list[str]) -> None:
        """Switch to the dark colours by the button in the header: dark ground, bright text, on the next pages too."""
        with self._open(_DESK) as page:
            page.goto(self.address, wait_until="load")
            page.locator("label[for=__palette_1]").click()
            for path in paths:
                page.goto(self.address + path, wait_until="load")
                colours = page.evaluate(
                    "() => ['backgroundColor', 'color'].map(key => getComputedStyle(document.body)[key]"
                    ".match(/[\\d.]+/g).slice(0, 3).reduce((sum, part) => sum + Number(part), 0) / 3)"
                )
                if not colours[0] < 90 < colours[1]:
                    self.wrong.append(f"{path or 'landing page'}: not dark in dark mode: {colours}")
                self._keep(page, f"{path.strip('/').replace('/', '-') or 'landing'}-dark", whole=True)

    def search(self) -> None:
        """Type each word into the search and read the first results."""
        with self._open(_DESK) as page:
            page.goto(self.address, wait_until="load")
            field, results = page.locator("input.md-search__input"), page.locator(".md-search-result__item")
            said = "() => document.querySelector('.md-search-result__meta').textContent"
            field.click()
            for word, wanted in SEARCHES.items():
                field.press("Control+a")
                field.press("Backspace")
                page.wait_for_function(f"({said})().includes('Type')")  # what the word before found is gone
                field.press_sequentially(word)  # the search listens to keys
                page.wait_for_function(f"({said})().includes('match')")
                texts: list[str] = []
                for _ in range(20):  # the first results may be those of the word's beginning
                    page.wait_for_timeout(500)
                    texts = results.all_inner_texts()[:3]
                    if any(wanted.lower() in text.lower() for text in texts):
                        break
                else:
                    titles = [text.partition("\n")[0] for text in texts]
                    self.wrong.append(f"search for {word!r}: no {wanted!r} among the first results, which are {titles}")
                self._keep(page, f"search-{word.replace(' ', '-')}")

    def follow(self) -> None:
        """Go from the landing page to the tutorial by the menu, and on by the button below the page."""
        with self._open(_DESK) as page:
            page.goto(self.address, wait_until="load")
            page.locator(".md-nav--primary a", has_text="Tutorial").first.click()
            page.wait_for_url("**/tutorial/")
            page.locator("a.md-footer__link--next").click()
            page.wait_for_load_state()
            if page.url.endswith("/tutorial/"):
                self.wrong.append("the tutorial does not lead on")


def _find_browser() -> str | None:
    """Return an installed Chromium, or None for Playwright's own."""
    return next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)


def _walk(site: Path, pictures: Path | None) -> list[str]:
    """Return what is wrong on the pages, as a browser shows them.

    Raises:
        playwright.sync_api.Error: if the browser does not start, or ends on the way.
    """
    from playwright.sync_api import sync_playwright

    made = (site / "reference", site / "emberlint")  # pages of one form; a few stand for all
    written = [path.parent for path in site.rglob("index.html") if not path.is_relative_to(made[0])]
    written = sorted(path.relative_to(site).as_posix() for path in written if path.parent != made[1])
    paths = ["" if path == "." else f"{path}/" for path in written] + list(_REFERENCE)
    with sync_playwright() as playwright, _serve(site) as address:
        browser = playwright.chromium.launch(executable_path=_find_browser(), args=_OPTIONS, timeout=_PATIENCE)
        walk = _Walk(browser, address, pictures)
        walk.look_at(paths)
        walk.look_in_the_dark(["", "tutorial/", "performance/", "reference/conv/"])
        walk.search()
        walk.follow()
        browser.close()
    print(f"walked {len(paths)} pages at {_PHONE[0]} and {_DESK[0]} px, {len(SEARCHES)} searches")
    return walk.wrong


def _walk_or_say_why_not(site: Path, pictures: Path | None, is_needed: bool) -> list[str]:
    """Walk, up to three times where the browser ends; return what is wrong."""
    problem = ""
    try:
        from playwright.sync_api import Error
    except ImportError as error:
        problem = str(error)
    else:
        for _ in range(3):
            try:
                return _walk(site, pictures)
            except Error as error:
                problem = str(error).strip().partition("\n")[0]
    advice = f"{problem}\n  install one: apt-get install chromium, or: playwright install chromium"
    if is_needed:
        return [f"no browser to walk the site with: {advice}"]
    print(f"{'!' * 100}\nNOT WALKED: no browser shows the site, only its links were checked: {advice}\n{'!' * 100}")
    return []


def main(arguments: list[str] | None = None) -> int:
    """Check the site in a folder, print what is wrong, and say by the exit code whether anything is."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("site", type=Path, nargs="?", default=Path("site"), help="the folder that MkDocs built")
    parser.add_argument("--pictures", type=Path, help="a folder for pictures of what the browser showed")
    parser.add_argument(
        "--browser", choices=("needed", "optional"), default="needed", help="whether it is an error to have none"
    )
    options = parser.parse_args(arguments)
    if options.pictures is not None:
        options.pictures.mkdir(parents=True, exist_ok=True)
    site = options.site.resolve()
    wrong = [f"broken link in {line}" for line in find_broken_links(site)]
    wrong += _walk_or_say_why_not(site, options.pictures, options.browser == "needed")
    for line in wrong:
        print(line)
    print(f"site: {len(wrong)} things to mend" if wrong else "site: nothing to mend")
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main())
