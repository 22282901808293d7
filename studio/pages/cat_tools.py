"""The page CAT tools: the addresses of this server for CAT tools, and the settings of each tool."""

from __future__ import annotations

from typing import Any

import gradio as gr

from engine.errors import InputError
from studio.auth.identity import guest
from studio.components.cat_tool_cards import connection_card, tool_cards
from studio.components.html import hidden_text, html_block
from studio.components.layout import QUIET, StudioPage, handle_errors, in_turn, page, requested_project
from studio.components.templating import script
from studio.services.cat_connections import connection, known_choice, new_token
from studio.services.origin import origin_of
from studio.services.translation import plugin_choices

TEXT = "How to use your plugins from OmegaT, Trados Studio, memoQ, Weblate and Okapi."
ACT = script("copy.js") + script("cat-tools.js")
# Keeps the choice in the address, so that reloads and links restore it.
MARK = script("cat-tools-mark.js")
COPY = script("cat-tools-copy.js")


class CatToolsPage(StudioPage):
    """/cat-tools: the connection of a project and plugin, then a card for each tool with its settings."""

    def layout(self) -> None:
        with page(self.demo, self.service, "cat-tools", "CAT tools", TEXT):
            self.connection = html_block(script=ACT)
            self.tools = html_block(script=ACT)
            self.choice = hidden_text()

    def events(self) -> None:
        outputs = [self.connection, self.tools, self.choice]
        self.demo.load(handle_errors(self.fill), None, outputs, **QUIET)
        chosen = self.connection.choose(handle_errors(self.choose), None, outputs, **in_turn("cat tools"))
        chosen.then(None, self.choice, None, js=MARK)
        created = self.connection.create(handle_errors(self.create), self.choice, outputs, **QUIET)
        created.then(None, None, None, js=COPY)

    def fill(self, request: gr.Request) -> dict[Any, Any]:
        """Fill the page for the choice in its address."""
        return self._drawn(request, str(request.query_params.get("plugin", "")))

    def choose(self, request: gr.Request, event: gr.EventData) -> dict[Any, Any]:
        """Fill the page for another choice of the menu."""
        return self._drawn(request, str(event.value))

    def create(self, request: gr.Request, choice: str) -> dict[Any, Any]:
        """Create a token for the signed-in user and show it. Raises InputError for a guest."""
        identity = guest()
        if identity is None or identity.account is None:
            raise InputError("Sign in to create a token, or create one with `tailormt token create`.")
        project = self.service.need(requested_project(request)) if requested_project(request) else None
        return self._drawn(request, choice, new_token(self.service, identity.account.id, project))

    def _drawn(self, request: gr.Request, requested: str, token: str = "") -> dict[Any, Any]:
        project = self.service.project(requested_project(request))
        choice = known_choice(self.service, project, requested)
        tool_connection = connection(self.service, origin_of(request.headers), project, choice, token)
        default = self.service.store.defaults.get(project.id) if project else None
        plugins = plugin_choices(self.service, project) if project else []
        return {
            self.connection: connection_card(tool_connection, project, plugins, default.name if default else "", choice),
            self.tools: tool_cards(tool_connection, project),
            self.choice: choice,
        }


build = CatToolsPage.build
