"""The settings that a CAT tool needs to reach this server: the address of a project and plugin, the token, the languages."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from engine.core.languages import primary_language
from engine.store import ProjectRow
from studio.auth.identity import is_loopback, sign_in_needed, tokens_needed
from studio.i18n.translate import tr

if TYPE_CHECKING:
    from studio.services.service import Service

BASE = "base"  # the choice of the project's base without a plugin
ANY_KEY = "any-key"  # for tools that require a key although the server does not
DAYS = 90  # validity of a token created on the page


@dataclass(frozen=True)
class Connection:
    """The address to which a tool sends its requests, and their parameters."""

    origin: str  # of the studio, as reached by the reader's browser
    path: str  # names a project and optionally a plugin
    source: str
    target: str
    needs_token: bool
    signs_in: bool  # whether the studio uses accounts, on whose page tokens are created
    local: bool  # whether the studio listens on the loopback interface only
    token: str = ""  # a newly created token, which is shown only once

    @property
    def address(self) -> str:
        """The address of both interfaces, without a trailing slash."""
        return self.origin + self.path

    @property
    def command(self) -> str:
        """The address for LibreTranslate clients that expect the full endpoint."""
        return f"{self.address}/translate"

    @property
    def versioned(self) -> str:
        """The address for DeepL clients that expect the API version."""
        return f"{self.address}/v2"

    @property
    def library(self) -> str:
        """The address for DeepL's client libraries, which replace the part after the last slash."""
        return f"{self.address}/"

    @property
    def key(self) -> str:
        """The text shown in a field for a key."""
        return (self.token or "tmt_…") if self.needs_token else ANY_KEY

    @property
    def deepl_source(self) -> str:
        return primary_language(self.source).upper()

    @property
    def deepl_target(self) -> str:
        return self.target.upper()


def connection(service: Service, origin: str, project: ProjectRow | None, choice: str, token: str = "") -> Connection:
    """The connection settings for a tool, as shown to a reader at `origin`.

    `choice` is a plugin's number, `base`, or empty for the project's default plugin. Without a project the address names none.
    """
    settings = service.settings
    path = f"/cat/{project.id}" + (f"/{choice}" if choice else "") if project else ""
    return Connection(
        origin=origin,
        path=path,
        source=project.source if project else "en",
        target=project.target if project else "zh",
        needs_token=tokens_needed(settings),
        signs_in=sign_in_needed(settings),
        local=is_loopback(settings.host),
        token=token,
    )


def new_token(service: Service, account: int, project: ProjectRow | None) -> str:
    """Create a token of an account, limited to the project if given, and return its secret."""
    number = project.id if project else None
    return service.store.tokens.create(tr("CAT tools"), user_id=account, project_id=number, days=DAYS)[1]


def known_choice(service: Service, project: ProjectRow | None, requested: str) -> str:
    """The plugin choice in an address if it is valid, else empty."""
    if project is None or requested == BASE:
        return BASE if project else ""
    rows = service.store.plugins.list(project.id)
    return requested if any(str(row.id) == requested and row.exists for row in rows) else ""
