"""Detection of account names that look alike."""

from __future__ import annotations

import unicodedata

# Scripts with letters that look alike; a name that mixes them can be mistaken for another.
ALIKE = ("LATIN", "CYRILLIC", "GREEK", "ARMENIAN", "CHEROKEE", "COPTIC")
# Letters that look like Latin ones in most fonts (from Unicode's confusables.txt), after case folding.
LOOKS = str.maketrans("аԁеһіӏјѕсорхуԛԝвмнткгпαβγεικνορτυχωѵօսհոզցɑɡıǀ|10", "adehiljscopxyqwbmhtkrnabyeikvoptuxwvouhnqgagilllo")


def normal(name: str) -> str:
    """The name in Unicode NFKC with single spaces: full-width letters and ligatures become plain letters."""
    return " ".join(unicodedata.normalize("NFKC", name).split())


def mixes_scripts(name: str) -> bool:
    """Whether a name has letters of several scripts that look alike."""
    scripts = {unicodedata.name(letter, "").partition(" ")[0] for letter in name if letter.isalpha()}
    return len(scripts & set(ALIKE)) > 1


def look(name: str) -> str:
    """The visual form of a name: names with the same form can be mistaken for each other."""
    letters = unicodedata.normalize("NFC", normal(name).casefold())
    return letters.translate(LOOKS).replace("i", "l").replace("rn", "m").replace("vv", "w").replace(" ", "")
