"""Language codes of bases and their equivalents in stanza."""

from __future__ import annotations

import re

# NLLB and M2M100 use three-letter codes with a script (zho_Hans, deu_Latn); stanza uses two-letter codes if they exist.
SHORT = {
    "afr": "af", "ara": "ar", "arb": "ar", "bel": "be", "bul": "bg", "cat": "ca", "ces": "cs", "chi": "zh", "cmn": "zh",
    "cym": "cy", "dan": "da", "deu": "de", "ell": "el", "eng": "en", "est": "et", "eus": "eu", "fas": "fa", "pes": "fa",
    "fin": "fi", "fra": "fr", "gle": "ga", "glg": "gl", "heb": "he", "hin": "hi", "hrv": "hr", "hun": "hu", "hye": "hy",
    "ind": "id", "isl": "is", "ita": "it", "jpn": "ja", "kat": "ka", "kaz": "kk", "khm": "km", "kor": "ko", "lao": "lo",
    "lat": "la", "lav": "lv", "lvs": "lv", "lit": "lt", "mar": "mr", "mya": "my", "nld": "nl", "nno": "nn", "nob": "nb",
    "pol": "pl", "por": "pt", "ron": "ro", "rus": "ru", "slk": "sk", "slv": "sl", "spa": "es", "srp": "sr", "swe": "sv",
    "tam": "ta", "tel": "te", "tha": "th", "tur": "tr", "ukr": "uk", "urd": "ur", "vie": "vi", "zho": "zh",
}  # fmt: skip
TRADITIONAL = {"hant", "tw", "hk", "mo"}


def _parts(language: str) -> list[str]:
    return [part for part in re.split(r"[-_@. ]+", language.strip().lower()) if part] or [""]


def plain_code(language: str) -> str:
    """The language without script and region, in two letters if possible: `zh` for zh-CN, zh_TW, zho_Hans; `en` for eng_Latn."""
    first = _parts(language)[0]
    return SHORT.get(first, first)


def stanza_code(language: str) -> str:
    """stanza's code of the language: `zh-hans` for zh, zh-CN, cmn; `zh-hant` for zh-TW, zho_Hant; `nb` for no."""
    code, *rest = _parts(language)
    code = SHORT.get(code, code)
    if code == "zh":
        return "zh-hant" if TRADITIONAL & set(rest) else "zh-hans"
    return "nb" if code == "no" else code
