"""`tailormt doctor`: checks an installation and its data folder, and repairs what it can without losing anything.

Nothing is changed without `repair`; unreferenced files are moved to `lost+found` in the data folder, never removed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from engine.core.progress import Progress
from engine.core.settings import Settings
from engine.errors import TailorError
from engine.store import Store
from engine.workflows.maintenance import files, installation, rows
from engine.workflows.maintenance.finding import Finding

Look = Callable[["Settings", "Store"], Iterator[Finding]]

FIRST: dict[str, Callable[[Settings], Iterator[Finding]]] = {
    "permissions": installation.permissions,
    "disk": installation.disk,
    "libraries": installation.libraries,
    "bases": installation.bases,
    "parsers": installation.parsers,
    "store": rows.store_whole,
}
THEN: dict[str, Look] = {  # these need the rows of the store
    "jobs": rows.stale_jobs,
    "projects": rows.projects,
    "missing": rows.missing_files,
    "bundles": rows.bundles,
    "checksums": files.checksums,
    "unnamed": files.unnamed,
    "leftovers": files.leftovers,
}
TITLES = {"missing": "for missing files", "unnamed": "for unreferenced files", "leftovers": "for leftover files"}
CLOSED = ("store",)  # with a finding of these checks, the rows cannot be read


def examine(settings: Settings, *, repair: bool = False, progress: Progress | None = None) -> list[Finding]:
    """All problems, repaired if `repair` is set and a repair exists. Raises Cancelled when the user stops."""
    progress, result = progress or Progress(), []
    count = len(FIRST) + len(THEN)

    def look(name: str, number: int, work: Callable[[], Iterator[Finding]]) -> None:
        progress.begin(f"Checking {TITLES.get(name, name)}", number, count)
        progress.check()
        try:
            for finding in work():
                if repair and finding.mend is not None:
                    mend(finding)
                result.append(finding)
        except TailorError as error:
            result.append(Finding(name, str(error)))
        except OSError as error:
            result.append(Finding(name, f"{name.capitalize()} could not be checked: {error}.", str(error.filename or "")))

    for number, (name, check) in enumerate(FIRST.items()):
        look(name, number, lambda check=check: check(settings))  # type: ignore[misc]
    if any(finding.check in CLOSED and not finding.mended for finding in result):
        return result
    store = rows.opened(settings)
    if store is not None:
        try:
            for number, (name, check_rows) in enumerate(THEN.items(), len(FIRST)):
                look(name, number, lambda check=check_rows: check(settings, store))  # type: ignore[misc]
        finally:
            store.close()
    return result


def mend(finding: Finding) -> None:
    assert finding.mend is not None
    try:
        finding.mended = finding.mend()
    except (TailorError, OSError) as error:
        finding.sentence += f" It could not be mended: {str(error).rstrip('.')}."


def to_mapping(findings: list[Finding]) -> dict[str, object]:
    unrepaired = [finding for finding in findings if not finding.mended]
    return {"ok": not unrepaired, "findings": [finding.to_mapping() for finding in findings]}
