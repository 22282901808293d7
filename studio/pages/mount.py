"""All pages of the studio as one Gradio application. Importing this module loads Gradio, which is slow."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

import studio.components.quick_gradio  # noqa: F401 - before any other import of Gradio

# isort: split
import gradio as gr

from engine.core.settings import Settings
from studio.components.gradio_sessions import keep_no_statistics, keep_sessions_small
from studio.components.home_welcome import add_welcome_routes
from studio.components.layout import PAGES
from studio.components.static_routes import add_static_routes
from studio.components.theme import STATIC, build_theme
from studio.i18n.translate import localized_config
from studio.pages import bases, cat_tools, compare, home, phrases, plugins, proportions, rate, samples, train, translate
from studio.services.service import Service

if TYPE_CHECKING:
    from fastapi import FastAPI

FAVICON = STATIC / "favicon.png"
MODULES = {
    "samples": samples,
    "phrases": phrases,
    "proportions": proportions,
    "train": train,
    "compare": compare,
    "rate": rate,
    "plugins": plugins,
    "translate": translate,
}


class Pages(gr.Blocks):
    """The studio's components, built once; their configuration is translated for each reader."""

    _built: Any = None

    @property
    def config(self) -> Any:
        return localized_config(self._built) if isinstance(self._built, dict) else self._built

    @config.setter
    def config(self, value: Any) -> None:
        self._built = value


def build(settings: Settings, service: Service | None = None) -> gr.Blocks:
    """All pages: `/` lists the projects, `/samples` … `/translate` are the steps, `?project=3` selects the project."""
    service = service or Service(settings)
    with Pages(title="Tailor MT", analytics_enabled=False, delete_cache=(3600, 86400)) as demo:
        home.build(demo, service)
    for slug, label in PAGES.items():
        with demo.route(label, f"/{slug}", show_in_navbar=False):
            MODULES[slug].build(demo, service)
    # Not steps of the work, so not in the frame's list.
    with demo.route("Bases", "/bases", show_in_navbar=False):
        bases.build(demo, service)
    with demo.route("CAT tools", "/cat-tools", show_in_navbar=False):
        cat_tools.build(demo, service)
    return demo


def mount_pages(app: FastAPI, service: Service) -> None:
    """Mount the pages at `/` of a server, with the static files that they load."""
    settings = service.settings
    add_static_routes(app)
    add_welcome_routes(app)
    keep_no_statistics()
    demo = build(settings, service)
    demo.queue(default_concurrency_limit=8)
    with warnings.catch_warnings():
        # Gradio warns about SSR with several pages even if it is switched off, as it is here.
        warnings.filterwarnings("ignore", message="SSR mode is not supported with multi-page apps")
        gr.mount_gradio_app(
            app,
            demo,
            path="/",
            server_name=settings.host,
            server_port=settings.port,
            footer_links=[],
            run_history=False,
            show_error=False,
            ssr_mode=False,
            favicon_path=str(FAVICON),
            max_file_size=f"{settings.max_upload_mib}mb",
            theme=build_theme(),
        )
    keep_sessions_small(app)
