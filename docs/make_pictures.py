"""Take the pictures of the README and the first page's: a studio over a prepared home, in headless Chromium.

    make pictures                                   or: python docs/make_pictures.py
    python docs/make_pictures.py --only compare     some of them
    python docs/make_pictures.py --language zh      to look at the Chinese interface: written beside the others as *-zh.png
    python docs/make_pictures.py --every FOLDER     every page whole, on a desk and on a phone, light and dark, in both languages

The home is prepared once, by the program itself and with nothing invented: the bundled sample is read, a plugin is trained with
the budget `quick`, sentences are translated. That takes some minutes; what is done is kept in the cache folder, so that it goes
on where it was stopped and later pictures take seconds. Needs Debian's chromium (or CHROMIUM) and the extra `dev`.
"""

from __future__ import annotations

import argparse
import os
import shutil
import socket
import threading
import time
import urllib.request
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from platformdirs import user_cache_path

from engine.core.settings import Settings
from engine.store import ProjectRow
from engine.workflows.customize.request import CustomizeRequest
from studio.components.theme import STATIC
from studio.services.service import Service

IMAGES = Path(__file__).resolve().parent / "images"
SAMPLE = "literary-zh"
SIZE = {"width": 1280, "height": 800}
SIZES = {"desk": SIZE, "phone": {"width": 390, "height": 844}}
LOCALES = {"en": "en-US", "zh": "zh-CN"}
# Ends what fades in; what turns without end cannot be ended.
FADED = "document.getAnimations().forEach(one => { try { one.finish() } catch { /* endless */ } })"
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-quic",
    "--disable-sync",
    "--no-first-run",
]
ON_HOME = (3, 6, 7, 9, 10, 12)  # of the demonstration's sentences: what a plugin changes, in a few rows
WAIT = 300_000  # milliseconds for translating on a slow machine


def prepare(service: Service) -> ProjectRow:
    """The project with a plugin in it; whatever an earlier call finished is not done again."""
    from engine.base import BaseModel
    from engine.jobs.worker import run
    from studio.services.new_project import start_from_samples

    store = service.store
    projects = store.projects.list()
    if not projects:
        corpus = service.catalog.sample(SAMPLE)
        base = service.catalog.base_for(str(service.catalog.bases()[0]["path"]), "en", corpus.target)
        start_from_samples(service, [corpus], "en", corpus.target, base, True)
    run(service.settings, once=True)
    project = store.projects.list()[0]
    runs = service.runs(project.id)
    if not runs:
        request = CustomizeRequest(method="memory_adapter", budget="quick", knn=True, training_options={"watch": 12})
        service.start_run(project, request)
    elif runs[0].resumable:
        store.jobs.resume(runs[0].id)
    run(service.settings, once=True)
    plugins = store.plugins.list(project.id)
    if not plugins:
        raise SystemExit(f"The plugin was not made: {service.runs(project.id)[0].error}")
    if plugins[0].base_fingerprint != BaseModel.load(project.base, project.source, project.target).fingerprint():
        raise SystemExit(f"The base has changed since {service.settings.home} was prepared. Delete that folder and start again.")
    return project


# -- what is in the pictures


def translated(page: Any, url: str, project: ProjectRow, only: Sequence[int] = ()) -> None:
    """Sentences with and without the plugin: those of the demonstration, or some of them by their lines."""
    page.goto(f"{url}/compare?project={project.id}&plugin=1")
    page.wait_for_function("document.querySelector('textarea')?.value")
    field = page.locator("textarea").first
    if only:
        lines = field.input_value().splitlines()
        field.fill("\n".join(lines[line - 1] for line in only))
    page.locator(".tm-actions button.primary").click()
    page.locator("mark.new").first.wait_for(timeout=WAIT)
    page.wait_for_function("!document.querySelector('.tm-pending')", timeout=WAIT)


def home(page: Any, url: str, project: ProjectRow) -> dict[str, float]:
    """The table of a comparison, as wide as the first page shows it."""
    page.set_viewport_size({**SIZE, "width": 982})
    translated(page, url, project, ON_HOME)
    page.mouse.move(100, 600)
    page.evaluate("scrollTo(0, 0)")
    return dict(page.locator(".tm-compare").bounding_box())


def compare(page: Any, url: str, project: ProjectRow) -> None:
    """Sentences with and without the plugin, and what was read for a word that it changed."""
    translated(page, url, project)
    changed = page.locator("mark.new").nth(2)
    changed.hover()  # a text becomes words when it is pointed at
    changed.locator(".w").first.click()
    page.locator(".tm-read li:visible").first.wait_for(timeout=WAIT)
    page.mouse.move(100, 600)


def phrases(page: Any, url: str, project: ProjectRow) -> None:
    """A sentence's tree, the table and the histograms, one phrase chosen in all of them."""
    page.goto(f"{url}/phrases?project={project.id}&low=3&high=5")
    page.locator("table.tm-phrases tbody tr").nth(1).click()
    page.locator(".tm-under-phrase").wait_for(timeout=WAIT)
    page.locator(".tm-detail .tm-example").first.wait_for()
    page.mouse.move(100, 600)


def train(page: Any, url: str, project: ProjectRow) -> None:
    """The methods with what they cost here, and the run that was made."""
    page.goto(f"{url}/train?project={project.id}&budget=quick")
    page.locator(".js-plotly-plot .scatterlayer").first.wait_for(timeout=WAIT)
    page.locator(".tm-before").wait_for()


# A picture may be of a part of the page, which its function returns.
PICTURES: dict[str, Callable[[Any, str, ProjectRow], dict[str, float] | None]] = {
    "compare": compare, "phrases": phrases, "train": train, "home": home,
}  # fmt: skip


def main() -> None:
    from engine.jobs import start_background_worker, stop_background_worker

    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--home", type=Path, default=user_cache_path("tailormt") / "pictures", help="the prepared home")
    parser.add_argument("--only", choices=list(PICTURES), nargs="+", default=list(PICTURES), help="some of the pictures")
    parser.add_argument("--language", choices=["en", "zh"], default="en", help="of the interface")
    parser.add_argument("--dark", action="store_true", help="in dark colours: written as *-dark.png")
    parser.add_argument("--every", type=Path, metavar="FOLDER", help="every page in every form, written there")
    parser.add_argument("--pages", nargs="+", metavar="NAME", help="with --every: some of the pages")
    args = parser.parse_args()
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        settings = Settings(home=str(args.home), port=free.getsockname()[1], device="cpu")
    project = prepare(Service(settings))
    serve(settings)
    url = f"http://127.0.0.1:{settings.port}"
    start_background_worker(settings)  # what Compare translates is a job
    try:
        if args.every:
            shoot_every(url, project, args.every, args.pages)
        else:
            shoot(url, project, args.only, args.language, args.dark)
    finally:
        stop_background_worker(settings)


def serve(settings: Settings) -> None:
    """The studio in a thread of this program."""
    import uvicorn

    from studio.app import create_app

    server = uvicorn.Server(uvicorn.Config(create_app(settings), port=settings.port, log_level="warning"))
    threading.Thread(target=server.run, daemon=True).start()
    deadline = time.monotonic() + 90
    while True:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{settings.port}/", timeout=2):
                return
        except OSError:
            if time.monotonic() > deadline:
                raise SystemExit("The studio did not answer within 90 s.") from None
            time.sleep(0.3)


def started(driver: Any) -> Any:
    """Headless Chromium."""
    chromium = os.environ.get("CHROMIUM") or shutil.which("chromium") or shutil.which("chromium-browser")
    return driver.chromium.launch(executable_path=chromium, args=FLAGS)


def settle(page: Any) -> None:
    """Wait until the text of the page has stayed the same for two seconds, half a minute at most."""
    page.wait_for_load_state("networkidle")
    before, same = "", 0
    for _ in range(60):
        page.wait_for_timeout(500)
        text = page.evaluate("document.body.innerText")
        same, before = same + 1 if text == before else 0, text
        if same == 4:
            break
    page.evaluate(FADED)


def shoot(url: str, project: ProjectRow, names: list[str], language: str, dark: bool) -> None:
    from playwright.sync_api import sync_playwright

    ending = ("-zh" if language == "zh" else "") + ("-dark" if dark else "")
    IMAGES.mkdir(exist_ok=True)
    with sync_playwright() as driver:
        browser = started(driver)
        context = browser.new_context(viewport=SIZE, locale=LOCALES[language], color_scheme="dark" if dark else "light")
        for name in names:
            page = context.new_page()
            page.set_default_timeout(60_000)
            clip = PICTURES[name](page, url, project)
            page.wait_for_timeout(800)
            file = IMAGES / f"studio-{name}{ending}.png" if name != "home" else STATIC / f"comparison{ending}.png"
            page.screenshot(path=str(file), clip=clip, full_page=clip is not None)
            print(os.path.relpath(file))
            page.close()
        browser.close()


def shoot_every(url: str, project: ProjectRow, folder: Path, names: list[str] | None = None) -> None:
    """Every page from its top to its end, or those of these `names`, in both languages, both sizes and both colours, as
    PAGE-LANGUAGE-SIZE-COLOUR.png.
    """
    from playwright.sync_api import sync_playwright

    from studio.components.layout import PAGES as STEPS

    addresses = {"home": "/", "new": "/samples?project=new"}
    addresses |= {name: f"/{name}?project={project.id}" for name in (*STEPS, "cat-tools")}
    addresses |= {"bases": "/bases", "unknown": "/no-such-page", "translated": ""}
    if unknown := set(names or ()) - set(addresses):
        raise SystemExit(f"There is no page {', '.join(sorted(unknown))}. Pages: {', '.join(addresses)}")
    addresses = {name: address for name, address in addresses.items() if not names or name in names}
    folder.mkdir(parents=True, exist_ok=True)
    with sync_playwright() as driver:
        browser = started(driver)
        if "translated" in addresses:
            addresses["translated"] = address_of_translated(browser, url, project)
        for language, locale in LOCALES.items():
            for colour in ("light", "dark"):
                for size, viewport in SIZES.items():
                    context = browser.new_context(viewport=viewport, locale=locale, color_scheme=colour, has_touch=size == "phone")
                    page = context.new_page()
                    page.set_default_timeout(60_000)
                    for name, address in addresses.items():
                        page.goto(url + address)
                        settle(page)
                        page.screenshot(path=str(folder / f"{name}-{language}-{size}-{colour}.png"), full_page=True)
                        print(f"{name}-{language}-{size}-{colour}.png", flush=True)
                    context.close()
        browser.close()


def address_of_translated(browser: Any, url: str, project: ProjectRow) -> str:
    """Where a comparison is shown with its translations and an open word; it is made for that."""
    page = browser.new_page(viewport=SIZE)
    page.set_default_timeout(60_000)
    compare(page, url, project)
    address = str(page.url).removeprefix(url)
    page.close()
    return address


if __name__ == "__main__":
    main()
