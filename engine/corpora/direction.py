"""Which side of a bilingual file is the user's text: by the languages that the file states, and those of the project."""

from __future__ import annotations

from collections import Counter
from functools import lru_cache

from engine.corpora.language import base_language, language_name
from engine.corpora.records import Record, Request, Skip

__all__ = ["NO_TRANSLATION", "OTHER_LANGUAGES", "Sides", "plain_language"]

NO_TRANSLATION = "no translation"
OTHER_LANGUAGES = "in other languages"
plain_language = lru_cache(maxsize=512)(base_language)


class Sides:
    """Gives records of units with a source and a target, and counts the languages that were stated."""

    def __init__(self, request: Request) -> None:
        self.request = request
        self.language = plain_language(request.language)
        self.source = plain_language(request.source_language) if request.source_language else ""
        self.found: Counter[str] = Counter()

    def record(
        self, line: int, source: str | None, target: str | None, source_code: str, target_code: str, domain: str = ""
    ) -> Record | Skip:
        """The unit as the project sees it. A file of the other direction is turned round; an unstated target language is
        taken to be the project's."""
        from_, into = plain_language(source_code or ""), plain_language(target_code or "")
        for code, text in ((from_, source), (into, target)):
            if code and text and text.strip():
                self.found[code] += 1
        if into == self.language or (not into and from_ != self.language):
            if not target or not target.strip():
                return Skip(line, NO_TRANSLATION, source or "")
            keep = source if source and source.strip() and self._wanted(from_) else None
            return Record(line, target, keep, domain)
        if from_ == self.language:
            if not source or not source.strip():
                return Record(line, "")
            other = target if target and target.strip() and into and self._wanted(into) else None
            return Record(line, source, other, domain)
        return Skip(line, OTHER_LANGUAGES, target or source or "")

    def _wanted(self, code: str) -> bool:
        return not self.source or not code or code == self.source

    def hint(self) -> str:
        """What languages the file has, for the sentence that says that none of it fits; empty when it states none."""
        if not self.found or self.language in self.found:
            return ""
        names = ", ".join(language_name(code) for code, _ in self.found.most_common(6))
        return f"the file says that it holds {names}, not {language_name(self.language)}"
