"""Good inputs of every kind, small and as programs write them: what mutation starts from."""

# ruff: noqa: E501 - inputs are as long as they are

from __future__ import annotations

import json
import tempfile
import zipfile
from functools import cache
from pathlib import Path

from tests.documents import docx, drawn_run, links, odt, pdf, pptx, shape, slide, tmx, word_paragraph, xliff1, xliff2, xlsx

__all__ = ["seeds"]

ROOT = Path(__file__).resolve().parents[2]
PAIRS = [
    ("The rain stopped.", "雨停了。"),
    ("He said nothing.", "他什么也不曾说。"),
    ("We walked home & slept.", "我们在黑暗里走回家去。"),
]
HTML = """<!DOCTYPE html><html lang="en"><head><title>Rain</title><meta name="description" content="A day."></head>
<body><h1>The <b>rain</b> stopped</h1><p>He said <a href="x" title="why">nothing</a>.<br>Twice.</p><pre>code</pre>
<ul><li>One<li>Two</ul><img alt="A door"><script>var a = "<p>";</script><!-- a note --><input placeholder="Name"></body></html>
"""
MARKDOWN = """---\ntitle: Rain\n---\n\n# The *rain* stopped\n\nHe said [nothing](x "y"). `code`\n\n- One\n  - Two\n\n| a | b |\n|---|---|\n| c | d |
\n```py\nx = 1\n```\n\n> Quoted **words**.\n\n<div>raw</div>\n\n[^1]: A note.\n"""
PO = """# head\nmsgid ""\nmsgstr ""\n"Content-Type: text/plain; charset=UTF-8\\n"\n"Plural-Forms: nplurals=1; plural=0;\\n"\n
#. a note\n#: a.c:3\n#, c-format\nmsgctxt "menu"\nmsgid "Open %d _file"\nmsgid_plural "Open %d files"\nmsgstr[0] "打开 %d 个文件"\n
#, fuzzy\n#| msgid "Old"\nmsgid "Save\\n"\n"twice"\nmsgstr "保存"\n\n#~ msgid "Gone"\n#~ msgstr "没了"\n"""
SRT = """1\n00:00:01,000 --> 00:00:02,500\nThe rain\n<i>stopped.</i>\n\n2\n00:00:03,000 --> 00:00:04,000\n- Hello.\n- Goodbye.\n"""
VTT = """WEBVTT - title\n\nNOTE a note\n\nSTYLE\n::cue { color: red }\n\nid\n00:01.000 --> 00:02.500 align:start\n<v Ann>The rain <c.x>stopped</c>.\n"""
CARD = (
    """---\nlicense: cc-by-4.0\nlanguage: [en, zh]\npretty_name: Rain\ntags:\n- a\n---\n# Rain\n\nA *sentence*. And [one](x).\n"""
)
UNITS = [
    '<trans-unit id="1" approved="yes"><source>Open <g id="1">the <x id="2"/> door</g>.</source><target state="final">开门。</target></trans-unit>',
    '<trans-unit id="2"><source>He said <ph id="1">{0}</ph> <bpt id="2">&lt;b&gt;</bpt>nothing<ept id="2">&lt;/b&gt;</ept>.</source></trans-unit>',
    '<trans-unit id="3" translate="no"><source>X</source><seg-source><mrk mtype="seg" mid="1">X.</mrk></seg-source></trans-unit>',
]
UNITS2 = [
    '<unit id="1"><segment state="final"><source>Open <pc id="1">the <ph id="2"/> door</pc>.</source><target>开门。</target></segment></unit>',
    '<unit id="2"><notes><note>n</note></notes><segment><source>He said <sc id="1"/>nothing<ec startRef="1"/>.</source></segment><ignorable><source> </source></ignorable></unit>',
]


def _table(mark: str) -> str:
    return "\n".join(["source" + mark + "target" + mark + "domain", *(f'"{a}"{mark}{b}{mark}news' for a, b in PAIRS * 3)]) + "\n"


@cache
def seeds() -> dict[str, list[bytes]]:
    """Good inputs by kind."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)

        def made(path: Path) -> bytes:
            return path.read_bytes()

        word = (
            word_paragraph("The rain ", "stopped.", style="Heading1")
            + word_paragraph("He said nothing.")
            + (
                '<w:p><w:r><w:t>A </w:t></w:r><w:hyperlink r:id="1" xmlns:r="r"><w:r><w:t>link</w:t><w:tab/><w:br/></w:r></w:hyperlink>'
                '<w:ins w:id="1"><w:r><w:t>new</w:t></w:r></w:ins><w:del><w:r><w:delText>old</w:delText></w:r></w:del></w:p>'
                "<w:tbl><w:tr><w:tc><w:p><w:r><w:t>In a table.</w:t></w:r></w:p></w:tc></w:tr></w:tbl>"
            )
        )
        text = (
            "<text:h>The rain</text:h><text:p>He <text:span>said</text:span><text:s text:c='3'/> nothing.<text:line-break/>Twice.</text:p>"
            "<text:list><text:list-item><text:p>One.</text:p></text:list-item></text:list><text:p><text:note><text:note-body><text:p>Note"
            "</text:p></text:note-body></text:note></text:p>"
        )
        office = [
            made(docx(word, folder / "a.docx", footnotes=word_paragraph("A note."), header1=word_paragraph("Head"))),
            made(odt(text, folder / "a.odt")),
        ]
        slides = made(pptx([shape(drawn_run("The rain ") + drawn_run("stopped.", '<a:rPr b="1"/>') + "<a:br/>"), ""],
                           folder / "a.pptx",
                           {"ppt/slides/_rels/slide2.xml.rels": links(("notesSlide", "../notes.xml"), ("slideLayout", "../l.xml")),
                            "ppt/notes.xml": slide(shape(drawn_run("A note.\tAnd more.")), "notes"),
                            "ppt/l.xml": slide(shape(drawn_run("Hint"), placeholder="title") + shape(drawn_run("Head")), "sldLayout")}))  # fmt: skip
        paper = made(pdf([["The rain stopped.", "He said (nothing)."], ["1", "We walked home."]], folder / "a.pdf"))
        lines = "\n".join(b for _, b in PAIRS * 4)
        rows = "\n".join(json.dumps({"source": a, "target": b, "domain": "x"}, ensure_ascii=False) for a, b in PAIRS * 3)
        result: dict[str, list[bytes]] = {
            "txt": [
                lines.encode(),
                lines.encode("gb18030"),
                lines.encode("utf-16"),
                b"The rain\nstopped and\nnobody came.\n\nHe said it.\n",
            ],
            "csv": [_table(",").encode(), _table(";").encode("utf-16"), b'a,b\n"x\ny","z ""q"""\n'],
            "tsv": [_table("\t").encode()],
            "jsonl": [rows.encode(), b'{"translation": {"en": "Rain.", "zh": "\\u96e8\\u3002"}}\n{"text": "x"}\n["a", "b"]\n"s"\n'],
            "tmx": [
                tmx(PAIRS).encode(),
                tmx([('<bpt i="1">a</bpt>x<ept i="1"/>', '<ph x="1"/>雨<hi>了</hi>')], raw=True).encode("utf-16"),
            ],
            "xliff": [xliff1(UNITS).encode(), xliff2(UNITS2).encode()],
            "po": [PO.encode()],
            "docx": [office[0]],
            "pptx": [slides],
            "xlsx": [_workbook(folder)],
            "odt": [office[1]],
            "srt": [SRT.encode(), VTT.encode()],
            "pdf": [paper],
            "html": [HTML.encode()],
            "markdown": [MARKDOWN.encode()],
            "card": [CARD.encode()],
            "backup": [_backup(folder)],
            "bundle": [
                (ROOT / "tests/golden" / version / "plugin.zip").read_bytes() for version in ("format-1", "format-2", "format-3")
            ],
        }
    return result | _json_seeds()


def _workbook(folder: Path) -> bytes:
    """A workbook with shared and inline texts, formulas, a table and a comment."""
    shared = ["The rain", "stopped", "<r><t>He </t></r><r><rPr><b/></rPr><t>said</t></r><rPh><t>x</t></rPh>", "Open"]
    rows = (
        '<row r="1"><c r="A1" t="s"><v>0</v></c><c t="s"><v>1</v></c></row><row><c t="s"><v>2</v></c><c t="s"><v>3</v></c></row>'
        '<row><c t="inlineStr"><is><t>In the cell.\nTwice.</t></is></c><c t="str"><f>IF(B2="Open",T[stopped])</f><v>x</v></c></row>'
    )
    parts: dict[str, str | bytes] = {
        "xl/worksheets/_rels/sheet1.xml.rels": links(("table", "../t.xml"), ("comments", "../c.xml"), ("drawing", "../d.xml")),
        "xl/t.xml": '<table ref="A1:B2"><tableColumns><tableColumn name="The rain"/><tableColumn name="stopped"/></tableColumns></table>',
        "xl/c.xml": '<comments><authors/><commentList><comment ref="A1"><text><t>A note.</t></text></comment></commentList></comments>',
        "xl/d.xml": slide(shape(drawn_run("A box."))),
    }
    return xlsx({"One": rows}, folder / "a.xlsx", shared, parts).read_bytes()


def _json_seeds() -> dict[str, list[bytes]]:
    corpus = [
        "\n".join(json.dumps({"text": b, "source": a, "file": "a.txt", "line": i}) for i, (a, b) in enumerate(PAIRS)).encode() + b"\n",
        json.dumps({"language": "zh", "source_language": "en", "kept": 3, "skipped": {"too short": 1}, "languages": {"zh": 1.0}, "warnings": [],
                    "files": [{"name": "a.txt", "encoding": "utf-8", "lines": 4, "kept": 3, "skipped": {"too short": 1},
                               "examples": {"too short": [[2, "x"]]}}]}).encode(),
        b'{"text": "\xe9\x9b\xa8", "length": 1, "count": 3, "label": "NP", "example": 0}\n',
        b'{"at": "2026-01-01T00:00:00+00:00", "action": "exclude", "keys": {"0123": "x"}}\n{"action": "undo"}\n',
        b'{"at": "2026-01-01T00:00:00+00:00", "action": "exclude", "phrases": ["x"], "sentences": true}\n',
        json.dumps({"samples": "abc", "phrases": "def"}).encode(),
    ]  # fmt: skip
    settings = [
        b'home = "x"\nthreads = 2\nport = 7860\nbase_precision = "float32"\nserver_folders = ["/data"]\nfirst_look = false\nmax_upload_mib = 3\n',
        b'device = "cpu"\nendpoints = ["http://127.0.0.1:9"]\n[x]\ny = 1\n',
    ]
    options = [b'{"min_chars": 2, "normalization": "NFC", "split_sentences": true}', b'{"l_max": 4, "parser": "auto", "min_count": 2}',
               b'{"max_updates": 10, "learning_rate": 0.02, "keep_pairs": 0.9}', b'{"beams": 4, "max_length": 99, "batch_tokens": 100}',
               b'{"base": "x", "source": "en", "target": "zh", "samples": ["a.txt"], "method": "memory_adapter", "method_options": "{}"}']  # fmt: skip
    return {"workspace": corpus, "settings": settings, "options": options, "archive": [_zip_of_texts()]}


def _zip_of_texts() -> bytes:
    import io

    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        archive.writestr("a.txt", "The rain stopped.\n")
    return out.getvalue()


def _backup(folder: Path) -> bytes:
    """An installation with one project."""
    from engine.core.settings import Settings
    from engine.store import Store
    from engine.workflows.maintenance.backup import make_backup

    settings = Settings(home=str(folder / "home"))
    store = Store(settings.store_url)
    store.projects.create("Rain", "en", "zh", "en-zh")
    store.close()
    (folder / "home" / "projects" / "1" / "samples").mkdir(parents=True)
    (folder / "home" / "projects" / "1" / "samples" / "a.txt").write_bytes(b"The rain stopped.\n")
    make_backup(settings, folder / "backup.zip")
    return (folder / "backup.zip").read_bytes()
