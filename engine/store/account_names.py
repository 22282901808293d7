"""Names of accounts that look alike: one form for each name, and what a name looks like."""

from __future__ import annotations

import unicodedata

# Scripts whose letters look like each other's; a name that mixes them is made to be taken for another.
ALIKE = ("LATIN", "CYRILLIC", "GREEK", "ARMENIAN", "CHEROKEE", "COPTIC")
# Letters that look like Latin ones in most fonts (from Unicode's confusables.txt), after case folding.
LOOKS = str.maketrans(
    "аԁеһіӏјѕсорхуԛԝвмнткгпαβγεικνορτυχωѵօսհոզցɑɡıǀ|10",
    "adehiljscopxyqwbmhtkrnabyeikvoptuxwvouhnqgagilllo",
)


def normal(name: str) -> str:
    """The name in Unicode's form NFKC with single spaces: wide letters and ligatures are plain ones."""
    return " ".join(unicodedata.normalize("NFKC", name).split())


def mixes_scripts(name: str) -> bool:
    """Does a name have letters of several scripts that look like each other's?"""
    scripts = {unicodedata.name(letter, "").partition(" ")[0] for letter in name if letter.isalpha()}
    return len(scripts & set(ALIKE)) > 1


def look(name: str) -> str:
    """What a name looks like: two names of one look are taken for each other."""
    letters = unicodedata.normalize("NFC", normal(name).casefold())
    return letters.translate(LOOKS).replace("i", "l").replace("rn", "m").replace("vv", "w").replace(" ", "")
