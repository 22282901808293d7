"""Corpora: reading the user's samples in any format and encoding, cleaning them, checking their language, and splitting them."""

from engine.corpora.corpus import Corpus
from engine.corpora.formats.read import READERS
from engine.corpora.importer import SampleFiles, import_corpus, import_to
from engine.corpora.language import base_language, identify, language_name
from engine.corpora.overrides import Decisions
from engine.corpora.report import ImportReport
from engine.corpora.sentences import split_sentences
from engine.corpora.split import split
from engine.corpora.types import CorpusOptions, Segment
