"""The settings with which a CAT tool reaches this server: the address of a project and plugin, the token, the languages."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from engine.core.languages import primary_language
from engine.store import ProjectRow
from studio.auth.identity import is_loopback, sign_in_needed, tokens_needed
from studio.i18n.translate import tr

if TYPE_CHECKING:
    from studio.services.service import Service

BASE = "base"  # the choice of the project's base alone
ANY_KEY = "any-key"  # what a tool that insists on a key may send to a server that asks for none
DAYS = 90  # that a token made on the page is valid


@dataclass(frozen=True)
class Connection:
    """Where a tool sends its requests, and what it says there."""

    origin: str  # of the studio, as the reader's browser sees it
    path: str  # names a project, and maybe a plugin
    source: str
    target: str
    needs_token: bool
    signs_in: bool  # whether tokens are made on the page of an account
    local: bool  # whether the studio listens on this machine alone
    token: str = ""  # one that was just made: it is shown this once

    @property
    def address(self) -> str:
        """Of both interfaces, without a slash at the end."""
        return self.origin + self.path

    @property
    def command(self) -> str:
        """LibreTranslate's address with its command."""
        return f"{self.address}/translate"

    @property
    def versioned(self) -> str:
        """DeepL's address with its version."""
        return f"{self.address}/v2"

    @property
    def library(self) -> str:
        """The address for DeepL's own libraries, which replace what follows the last slash."""
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
    """The connection that a reader at `origin` gives a tool.

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
    """The secret of a new token of an account, which reads and translates, in the project alone where there is one."""
    number = project.id if project else None
    return service.store.tokens.create(tr("CAT tools"), user_id=account, project_id=number, days=DAYS)[1]


def known_choice(service: Service, project: ProjectRow | None, asked: str) -> str:
    """The choice that an address names, where it is one; else empty."""
    if project is None or asked == BASE:
        return BASE if project else ""
    rows = service.store.plugins.list(project.id)
    return asked if any(str(row.id) == asked and row.exists for row in rows) else ""
