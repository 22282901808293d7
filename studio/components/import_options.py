"""The form fields for the import settings."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from engine.core.options import describe
from engine.corpora import CorpusOptions
from studio.components.html import hidden_text, html_block
from studio.components.settings_fields import FOLD, SettingsGroup, changed, collected, field_value, settings_fields

KIND = "reading"
NOT_ASKED = ("domain_from_file", "check_language", "max_line_chars")  # settings without a field


class ImportOptions:
    """The fields; `values` is the event input that receives their collected values."""

    def layout(self) -> None:
        """Lay out the fields with the defaults."""
        self.fields = html_block(_fields({}), classes="tm-settings", script=FOLD)
        self.values = hidden_text()

    def fill(self, options: Mapping[str, Any]) -> dict[Any, Any]:
        """The fields filled with a project's settings."""
        return {self.fields: _fields(options)}

    def changed(self, values: str) -> dict[str, object]:
        """The settings that differ from the defaults. Raises OptionError naming an invalid setting."""
        return changed(CorpusOptions, collected(values).get(KIND, {}))


def _fields(options: Mapping[str, Any]) -> str:
    values = {item.name: field_value(item, options.get(item.name, item.default)) for item in describe(CorpusOptions)}
    return settings_fields(KIND, [SettingsGroup(KIND, CorpusOptions, values, skip=NOT_ASKED)])
