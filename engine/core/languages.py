"""Languages as BCP-47 tags: one canonical form inside the program, mapped to the code of each model.

Users may write zh, zh-CN, zh_hans, cmn or zho_Hans; the canonical form is `zh`. In general it is `language[-Script][-REGION]`:
the macrolanguage if there is one (cmn is zh, arb is ar), a script only if it is not the language's usual one, a region only if
the user gave one that does more than imply the script (zh-TW is zh-Hant). Tags are parsed by the library langcodes (with CLDR's
and IANA's tables). Needs no torch.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache, cached_property

from engine.errors import OptionError
from engine.messages import Message

# Languages written without spaces between words; Khmer, Lao, Burmese and Tibetan use them between clauses only.
UNSPACED = frozenset({"zh", "yue", "wuu", "lzh", "ja", "th", "lo", "km", "my", "bo", "dz"})

# Codes of model families that are not BCP-47 tags or differ in meaning from the tag.
OWN = {"ns": "nso", "pob": "pt-BR", "jp": "ja", "no": "nb"}
# Languages that CLDR and most models name differently.
PREFERRED = {"fil": "tl"}
SCRIPTS = {"Hang": "Kore"}  # Korean without and with Hanja


@dataclass(frozen=True)
class Tag:
    """A parsed tag.

    `language` is the canonical language, `own` the language as written (cmn of cmn_Hans); `script` is never empty, and
    `explicit` tells whether the tag or its region specified it; `region` may be empty.
    """

    language: str
    own: str
    script: str
    region: str
    explicit: bool

    @property
    def usual_script(self) -> bool:
        return self.script == (_script(self.language) or self.script)

    @property
    def short(self) -> str:
        """language[-Script]"""
        return self.language if self.usual_script else f"{self.language}-{self.script}"

    def __str__(self) -> str:
        return f"{self.short}-{self.region}" if self.region else self.short


@cache
def _script(language: str, region: str = "") -> str:
    """The script that a language is usually written in (in a region); empty if unknown."""
    from langcodes import Language

    script = Language.make(language=language, territory=region or None).maximize().script or ""
    return SCRIPTS.get(script, script)


@cache
def read_tag(text: str) -> Tag | None:
    """Parse a tag in any case, with hyphens or underscores; None if it is invalid or names no language."""
    from langcodes import Language, standardize_tag
    from langcodes.tag_parser import LanguageTagError

    cleaned = re.sub(r"[_\s.@]+", "-", text.strip()).lower().removesuffix("-xx")
    head, dash, rest = cleaned.partition("-")
    cleaned = OWN[cleaned] if cleaned in OWN else OWN.get(head, head) + dash + rest
    try:
        exact = Language.get(standardize_tag(cleaned))
        macro = Language.get(standardize_tag(cleaned, macro=True))
    except (LanguageTagError, LookupError, ValueError):
        return None
    if not macro.language or macro.language in ("und", "mul", "mis", "zxx") or not macro.is_valid():
        return None
    language = PREFERRED.get(macro.language, macro.language)
    region = macro.territory or ""
    script = SCRIPTS.get(macro.script or "", macro.script or "")
    usual, local = _script(language), _script(language, region) if region else ""
    explicit = bool(script)
    if not script and local and local != usual:
        script, explicit = local, True
    script = script or usual
    # A region that only implies the script is dropped: zh-TW is zh-Hant, zh-CN is zh.
    if region and language == "zh" and region in ("CN", "TW", "SG"):
        region = ""
    return Tag(language, exact.language or language, script, region, explicit)


def canonical(text: str) -> str:
    """The canonical tag. Raises OptionError if the text names no language."""
    tag = read_tag(text)
    if tag is None:
        raise OptionError("{text} is not a language code. Write it like en, zh, pt-BR or zh-Hant (BCP-47).", text=text or "Nothing")
    return str(tag)


@cache
def subtag_names() -> dict[str, str]:
    """{language, script or region subtag: English name}, from IANA's registry."""
    from langcodes.registry_parser import parse_registry

    kinds = ("language", "script", "region")
    return {row["Subtag"]: row["Description"][0] for row in parse_registry() if row["Type"] in kinds}


def language_message(text: str) -> Message:
    """A language's name for a sentence: Chinese, Chinese (zh-Hant); a text that is not a tag is returned unchanged."""
    tag = read_tag(text)
    name = subtag_names().get(tag.language) if tag else None
    if not tag or not name:
        return Message(text)
    plain = Message(re.sub(r" \(.*", "", name))  # Modern Greek (1453-)
    return plain if str(tag) == tag.language else Message("{language} ({code})", language=plain, code=str(tag))


def primary_language(text: str) -> str:
    """The language without script and region: zh for zh-Hant, zho_Hans and ZH; an invalid tag is returned in lower case."""
    tag = read_tag(text)
    return tag.language if tag else re.split(r"[-_@. ]+", text.strip().lower())[0]


def same_language(first: str, second: str) -> bool:
    """Whether two tags name the same language and script, regardless of region."""
    a, b = read_tag(first), read_tag(second)
    return a.short == b.short if a and b else first == second


def unspaced(text: str) -> bool:
    """Whether the language is written without spaces between words."""
    return primary_language(text) in UNSPACED


@cache
def _registry() -> tuple[dict[str, str], frozenset[str]]:
    """({language: macrolanguage}, codes of collections such as roa, gem), from IANA's subtag registry."""
    from langcodes.registry_parser import parse_registry

    macro, collections = {}, set()
    for row in parse_registry():
        if row.get("Type") == "language":
            if "Macrolanguage" in row:
                macro[row["Subtag"]] = row["Macrolanguage"]
            if row.get("Scope") == "collection":
                collections.add(row["Subtag"])
    return macro, frozenset(collections)


def is_collection(text: str) -> bool:
    """Whether a model's code names a group of languages (mul, roa, ROMANCE, celtic, en+de) instead of a single one."""
    return read_tag(text) is None or text.lower() in _registry()[1]


class Codes:
    """The language codes of one model, found by any tag.

    `codes` maps the model's codes, which name languages (zho_Hans, zh_CN, cmn_Hans, pt), to the tokenizer's words for them.
    Codes that are not tags are ignored.
    """

    def __init__(self, codes: dict[str, str]) -> None:
        self._known = [(tag, value) for code, value in codes.items() if (tag := read_tag(code))]

    def __bool__(self) -> bool:
        return bool(self._known)

    def items(self) -> list[tuple[str, str]]:
        """(canonical tag, the tokenizer's word) of every code."""
        return [(self._name(tag), value) for tag, value in self._known]

    @cached_property
    def tags(self) -> list[str]:
        """The canonical tags of all languages, sorted; with regions only if a language and script has several."""
        return sorted({self._name(tag) for tag, _ in self._known})

    def _name(self, tag: Tag) -> str:
        several = {other.region for other, _ in self._known if other.short == tag.short}
        return str(tag) if len(several) > 1 else tag.short

    def find(self, text: str) -> tuple[str, str] | None:
        """(canonical tag as this model distinguishes languages, the tokenizer's word), or None.

        The language must be the same, or represent its macrolanguage (qu is quy, no is nb). A script that the user named must
        match; otherwise the usual script is preferred. A region only expresses a preference.
        """
        requested = read_tag(text)
        if requested is None:
            return None
        results = [(self._rank(requested, tag, i), tag, value) for i, (tag, value) in enumerate(self._known)]
        matches = [(rank, tag, value) for rank, tag, value in results if rank is not None]
        if not matches:
            return None
        _, tag, value = min(matches, key=lambda row: row[0])
        return self._name(tag) if tag.language == requested.language else requested.short, value

    def _rank(self, requested: Tag, tag: Tag, index: int) -> tuple[int, ...] | None:
        """The rank of a code as a match, smaller is better; None if it does not match."""
        if tag.language != requested.language and not self._stands_for(tag, requested):
            return None
        same_script = tag.script == requested.script or tag.language != requested.language
        if not same_script and (requested.explicit or not tag.explicit):
            return None
        region = 0 if tag.region == requested.region else 1 if not tag.region else 2
        return (tag.language != requested.language, not same_script, region, tag.own != requested.own, not tag.explicit, index)

    @staticmethod
    def _stands_for(tag: Tag, requested: Tag) -> bool:
        """Whether a language may represent its macrolanguage, as quy for qu and pbt for ps.

        Excluded are members of separate standing, such as id for ms, and Cantonese for zh.
        """
        part = len(tag.language) == 3 and requested.language != "zh"
        return part and _registry()[0].get(tag.language) == requested.language

    def nearest(self, text: str, limit: int = 3) -> list[str]:
        """The model's tags closest to a text: related languages, or similarly spelt tags if the text is not a tag."""
        from langcodes import tag_distance

        requested = read_tag(text)
        near: list[tuple[float, str]] = []
        if requested is not None:
            for name in self.tags:
                distance = 0 if name.split("-")[0] == requested.language else tag_distance(str(requested), name)
                if distance < 50 and not (name == "en" and distance > 10):  # everything is near English in CLDR's table
                    near.append((distance, name))
        names = [name for _, name in sorted(near)]
        return names[:limit] if requested else difflib.get_close_matches(text.lower(), self.tags, n=limit, cutoff=0.5)


def listed(tags: Iterable[str], limit: int = 12) -> str:
    """Tags for a sentence: all of them if few, otherwise the first ones and the number of others."""
    tags = list(tags)
    return ", ".join(tags) if len(tags) <= limit else f"{', '.join(tags[:limit])} and {len(tags) - limit} more"
