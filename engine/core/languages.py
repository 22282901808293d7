"""Languages as BCP-47 tags: one canonical form inside the program, and the code that a model has for each.

A user may write zh, zh-CN, zh_hans, cmn or zho_Hans; inside, it is `zh`. The canonical form is `language[-Script][-REGION]`:
the macrolanguage where tags have one (cmn is zh, arb is ar), a script only where it is not the language's usual one, a
region only where the user gave one that does not merely say the script (zh-TW is zh-Hant). Tags are read by the library
langcodes (CLDR's and IANA's tables); nothing here needs torch.
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

# Codes of model families that are no BCP-47 tags, or mean something else there than the tag says.
OWN = {"ns": "nso", "pob": "pt-BR", "jp": "ja", "no": "nb"}
# What CLDR calls otherwise than most models do, and the languages' own two-letter codes.
PREFERRED = {"fil": "tl"}
SCRIPTS = {"Hang": "Kore"}  # Korean without Hanja and with


@dataclass(frozen=True)
class Tag:
    """A parsed tag. `language` is the canonical language, `own` the language as written (cmn of cmn_Hans); `script` is
    never empty, `explicit` says whether the tag or its region named it; `region` may be empty.
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
    """The script that a language is usually written in (in a region); empty where nobody knows."""
    from langcodes import Language

    script = Language.make(language=language, territory=region or None).maximize().script or ""
    return SCRIPTS.get(script, script)


@cache
def read_tag(text: str) -> Tag | None:
    """The tag that a text is, in any case, with hyphens or underscores; None where it is none or names no language."""
    from langcodes import Language, standardize_tag
    from langcodes.tag_parser import LanguageTagError

    cleaned = re.sub(r"[_\s.@]+", "-", text.strip()).lower().removesuffix("-xx")
    head, dash, rest = cleaned.partition("-")
    cleaned = OWN[cleaned] if cleaned in OWN else OWN.get(head, head) + dash + rest
    try:
        exact = Language.get(standardize_tag(cleaned))
        whole = Language.get(standardize_tag(cleaned, macro=True))
    except (LanguageTagError, LookupError, ValueError):
        return None
    if not whole.language or whole.language in ("und", "mul", "mis", "zxx") or not whole.is_valid():
        return None
    language = PREFERRED.get(whole.language, whole.language)
    region = whole.territory or ""
    script = SCRIPTS.get(whole.script or "", whole.script or "")
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
    """The canonical tag. Raises OptionError where the text names no language."""
    tag = read_tag(text)
    if tag is None:
        raise OptionError(
            "{text} is not a language code. Write it like en, zh, pt-BR or zh-Hant (BCP-47).", text=text or "Nothing"
        )
    return str(tag)


@cache
def subtag_names() -> dict[str, str]:
    """{subtag of a language, script or region: English name}, from IANA's registry."""
    from langcodes.registry_parser import parse_registry

    kinds = ("language", "script", "region")
    return {row["Subtag"]: row["Description"][0] for row in parse_registry() if row["Type"] in kinds}


def language_message(text: str) -> Message:
    """A tag as a sentence names it: Chinese, Chinese (zh-Hant); a text that is no tag as it is."""
    tag = read_tag(text)
    name = subtag_names().get(tag.language) if tag else None
    if not tag or not name:
        return Message(text)
    plain = Message(re.sub(r" \(.*", "", name))  # Modern Greek (1453-)
    return plain if str(tag) == tag.language else Message("{language} ({code})", language=plain, code=str(tag))


def primary_language(text: str) -> str:
    """The language alone: zh for zh-Hant, zho_Hans and ZH; a text that is no tag comes back in lower case."""
    tag = read_tag(text)
    return tag.language if tag else re.split(r"[-_@. ]+", text.strip().lower())[0]


def same_language(one: str, other: str) -> bool:
    """Do two tags name one language in one script? Regions do not count."""
    a, b = read_tag(one), read_tag(other)
    return a.short == b.short if a and b else one == other


def unspaced(text: str) -> bool:
    """Is the language written without spaces between words?"""
    return primary_language(text) in UNSPACED


@cache
def _registry() -> tuple[dict[str, str], frozenset[str]]:
    """({language: macrolanguage}, codes of collections as roa, gem), from IANA's subtag registry."""
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
    """Does a model's code name a group of languages (mul, roa, ROMANCE, celtic, en+de) and no single one?"""
    return read_tag(text) is None or text.lower() in _registry()[1]


class Codes:
    """The codes by which one model knows its languages, found again from any tag.

    `codes` is {the model's own code as it names a language (zho_Hans, zh_CN, cmn_Hans, pt): what the tokenizer wants}.
    Codes that are no tags are left out.
    """

    def __init__(self, codes: dict[str, str]) -> None:
        self._known = [(tag, value) for code, value in codes.items() if (tag := read_tag(code))]

    def __bool__(self) -> bool:
        return bool(self._known)

    def items(self) -> list[tuple[str, str]]:
        """(canonical tag, what the tokenizer wants) of every code."""
        return [(self._name(tag), value) for tag, value in self._known]

    @cached_property
    def tags(self) -> list[str]:
        """The canonical tags of all languages, sorted; regions only where one language and script has several."""
        return sorted({self._name(tag) for tag, _ in self._known})

    def _name(self, tag: Tag) -> str:
        several = {other.region for other, _ in self._known if other.short == tag.short}
        return str(tag) if len(several) > 1 else tag.short

    def find(self, text: str) -> tuple[str, str] | None:
        """(canonical tag as this model distinguishes languages, what the tokenizer wants), or None.

        The language must be the same, or the one that stands for its macrolanguage (qu is quy, no is nb). A script that
        the user named must be the code's; without one the usual script is preferred. A region prefers, no more.
        """
        wanted = read_tag(text)
        if wanted is None:
            return None
        results = [(self._rank(wanted, tag, i), tag, value) for i, (tag, value) in enumerate(self._known)]
        fitting = [(rank, tag, value) for rank, tag, value in results if rank is not None]
        if not fitting:
            return None
        _, tag, value = min(fitting, key=lambda row: row[0])
        return self._name(tag) if tag.language == wanted.language else wanted.short, value

    def _rank(self, wanted: Tag, tag: Tag, index: int) -> tuple[int, ...] | None:
        """How well a code fits, smaller is better; None where it does not."""
        if tag.language != wanted.language and not self._stands_for(tag, wanted):
            return None
        same_script = tag.script == wanted.script or tag.language != wanted.language
        if not same_script and (wanted.explicit or not tag.explicit):
            return None
        region = 0 if tag.region == wanted.region else 1 if not tag.region else 2
        return (
            tag.language != wanted.language,
            not same_script,
            region,
            tag.own != wanted.own,
            not tag.explicit,
            index,
        )

    @staticmethod
    def _stands_for(tag: Tag, wanted: Tag) -> bool:
        """May a part stand for its macrolanguage, as quy for qu and pbt for ps? Not one with a standing of its own, as id
        for ms, and not Cantonese for zh.
        """
        part = len(tag.language) == 3 and wanted.language != "zh"
        return part and _registry()[0].get(tag.language) == wanted.language

    def nearest(self, text: str, limit: int = 3) -> list[str]:
        """The model's tags most like a text: related languages; for a text that is no tag, those spelt alike."""
        from langcodes import tag_distance

        wanted = read_tag(text)
        near: list[tuple[float, str]] = []
        if wanted is not None:
            for name in self.tags:
                distance = 0 if name.split("-")[0] == wanted.language else tag_distance(str(wanted), name)
                if distance < 50 and not (name == "en" and distance > 10):  # everybody is near English in CLDR's table
                    near.append((distance, name))
        names = [name for _, name in sorted(near)]
        return names[:limit] if wanted else difflib.get_close_matches(text.lower(), self.tags, n=limit, cutoff=0.5)


def listed(tags: Iterable[str], limit: int = 12) -> str:
    """Tags for a sentence: all of a few, the number of many."""
    tags = list(tags)
    return ", ".join(tags) if len(tags) <= limit else f"{', '.join(tags[:limit])} and {len(tags) - limit} more"
