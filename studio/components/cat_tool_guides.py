"""How each CAT tool is connected to this server, as data: what works, step by step, with the value of each field.

The steps follow the tools' sources where these are open (OmegaT and its connectors, Weblate, Okapi's Tikal and connectors, the
DeepL plug-in for Trados Studio), and the manual of memoQ.
"""

from __future__ import annotations

from dataclasses import dataclass

from studio.i18n.translate import mark

# Values of fields; what stands between brackets comes from the connection.
ORIGIN, ADDRESS, COMMAND, VERSIONED, KEY = "[origin]", "[address]", "[command]", "[versioned]", "[key]"
# Weblate's settings as its form would save them; 2 is its category of automatic suggestions.
WEBLATE_SHELL = (
    'weblate shell -c "from weblate.configuration.models import Setting; Setting.objects.update_or_create('
    "category=2, name='libretranslate', defaults={'value': {'url': '[address]', 'key': '[key]'}})\""
)
WAYS = {
    "direct": (mark("Connects directly"), "done"),
    "plugin": (mark("Connects through a plug-in"), "accent"),
    "files": (mark("Exchanges files"), ""),
}


@dataclass(frozen=True)
class Field:
    """A field of the tool, or a command, and what to write there."""

    label: str
    value: str


@dataclass(frozen=True)
class Step:
    """What to do; the fields to fill; the page of this studio where it is done, with the words of the link."""

    text: str
    fields: tuple[Field, ...] = ()
    page: str = ""
    link: str = ""


@dataclass(frozen=True)
class Guide:
    """One tool; `sends_key` is False for one that cannot send any."""

    name: str
    slug: str
    way: str
    summary: str
    steps: tuple[Step, ...]
    notes: tuple[str, ...] = ()
    sends_key: bool = True


_OPEN_TRANSLATE = mark("Open Translate")
_THIRD_PARTY = mark(
    "A third-party plug-in for LibreTranslate or DeepL that has a field for the server's address can "
    "use the addresses above. None has been tested."
)

OMEGAT = Guide(
    "OmegaT",
    "omegat",
    "plugin",
    mark(
        "With the plug-in omegat-libre-translate of the OmegaT project. OmegaT's own DeepL connectors "
        "contact DeepL's servers only and have no field for another address."
    ),
    (
        Step(
            mark(
                "Copy the plug-in's JAR file (github.com/omegat-org/omegat-libre-translate) to OmegaT's plugins "
                "folder and restart OmegaT."
            )
        ),
        Step(
            mark("Open Options > Preferences > Machine Translation, select Libre Translate and choose Configure."),
            (Field(mark("Server URL"), COMMAND),),
        ),
        Step(
            mark(
                "Enable Libre Translate in the same list. The translation of the current segment appears in the "
                "Machine Translation pane; Ctrl+M inserts it."
            )
        ),
    ),
    (
        mark("OmegaT takes the languages from its project and sends them without region: EN-US as en, ZH-CN as zh."),
        mark(
            "Without the plug-in: export a comparison as TMX on the page Compare and put the file into the "
            "folder tm/mt of the OmegaT project."
        ),
    ),
    sends_key=False,
)

WEBLATE = Guide(
    "Weblate",
    "weblate",
    "direct",
    mark(
        "Weblate's LibreTranslate and DeepL services have a field for the server's address. LibreTranslate "
        "is preferable: Weblate waits 20 seconds for its answer, but only 5 for DeepL's."
    ),
    (
        Step(
            mark(
                "Open Automatic suggestions, in the management interface for the whole site or in the settings of a"
                " project, and configure LibreTranslate."
            ),
            (Field(mark("API URL"), ADDRESS), Field(mark("API key"), KEY)),
        ),
        Step(
            mark("Or configure DeepL. Leave the formality at Default."),
            (Field(mark("API URL"), VERSIONED), Field(mark("API key"), KEY)),
        ),
        Step(
            mark(
                "Before saving the settings, Weblate checks them by translating a word from English to German. The "
                "check fails for a project with other languages (Could not fetch translation). In that case, save "
                "the settings for the whole site with this command on the Weblate server:"
            ),
            (Field(mark("Command"), WEBLATE_SHELL),),
        ),
        Step(
            mark(
                "Or enter the address without a project, if a base on this server translates from English to "
                "German. It uses the most recently changed project with the requested languages."
            ),
            (Field(mark("API URL"), ORIGIN),),
        ),
    ),
    (
        mark("Weblate sends simplified Chinese as zh to LibreTranslate and as ZH-HANS to DeepL; both are understood."),
        mark("Weblate sends its glossaries only through the DeepL service; the token then needs the scope write."),
    ),
)

TRADOS = Guide(
    "Trados Studio",
    "trados",
    "files",
    mark(
        "The DeepL plug-in for Trados Studio contacts DeepL's servers only and has no field for another "
        "address. Translate the project's bilingual files here instead."
    ),
    (
        Step(
            mark(
                "Close the document in the Editor. In the Projects view, open the project folder: its folder of the"
                " target language has an .sdlxliff file for each document."
            )
        ),
        Step(
            mark(
                "Translate this file on the page Translate with the plugin of your choice. Segments that have a "
                "translation stay as they are."
            ),
            page="translate",
            link=_OPEN_TRANSLATE,
        ),
        Step(
            mark(
                "Give the result the name of the original file and put it in its place. Its segments are marked as Draft, with "
                "the origin machine translation."
            )
        ),
    ),
    (
        mark(
            "As a translation memory: export a comparison as TMX on the page Compare, import it in the "
            "Translation Memories view and add the memory to the project."
        ),
        _THIRD_PARTY,
    ),
)

MEMOQ = Guide(
    "memoQ",
    "memoq",
    "files",
    mark(
        "memoQ's own DeepL plug-in contacts DeepL's servers only and has no field for another address, and "
        "memoQ has no plug-in of its own for LibreTranslate. Translate its bilingual files here instead."
    ),
    (
        Step(
            mark(
                "In Project home > Translations, select the document and export it as a bilingual file: memoQ "
                "XLIFF, not compressed (.mqxliff). Compressed files (.mqxlz) cannot be read here."
            )
        ),
        Step(
            mark("Translate this file on the page Translate with the plugin of your choice."),
            page="translate",
            link=_OPEN_TRANSLATE,
        ),
        Step(
            mark("Import the result into the same memoQ project with the command Import: memoQ updates the document.")
        ),
    ),
    (
        mark(
            "As a translation memory: export a comparison as TMX on the page Compare and import it in memoQ's "
            "Resource console > Translation memories > Import from TMX/CSV."
        ),
        _THIRD_PARTY,
    ),
)

OKAPI = Guide(
    mark("Okapi (Rainbow, Tikal)"),
    "okapi",
    "files",
    mark(
        "Okapi's DeepL connector contacts DeepL's servers only, and there is no connector for "
        "LibreTranslate. Tikal and Rainbow extract a document to XLIFF, which is translated here and merged"
        " back."
    ),
    (
        Step(
            mark("Extract the document with Tikal. The option -nocopy leaves the targets empty."),
            (Field(mark("Command"), "tikal -x manual.html -sl [source] -tl [target] -nocopy"),),
        ),
        Step(
            mark(
                "Translate manual.html.xlf on the page Translate and save the result under the same name, beside "
                "manual.html."
            ),
            page="translate",
            link=_OPEN_TRANSLATE,
        ),
        Step(
            mark("Merge the translation back: Tikal writes manual.out.html."),
            (Field(mark("Command"), "tikal -m manual.html.xlf -sl [source] -tl [target]"),),
        ),
    ),
    (
        mark(
            "In Rainbow: create a kit with Utilities > Translation Kit Creation (Generic XLIFF), translate the "
            "files of its folder work here, put them back under the same names, and run Utilities > Translation"
            " Kit Post-Processing."
        ),
    ),
)

GUIDES = (OMEGAT, TRADOS, MEMOQ, WEBLATE, OKAPI)
