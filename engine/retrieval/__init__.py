"""Finding sentences that help to translate another: by shared rare words, by shared n-grams, by vectors.

words.py        a sentence as words
ngrams.py       the reduced set of n-grams of a sentence
idf.py          inverse document frequency, and an inverted index that finds the most similar token sets
vectors.py      an index of vectors: FAISS, exact where they are few
neighbours.py   sentences by IDF similarity, of whole sentences or of n-grams
dense.py        sentences by vectors of n-grams
own.py          which sentences of a set are a given sentence, or the same text but for trifles
sentences.py    the set itself as a file
"""

from engine.retrieval.idf import Idf, IdfIndex
from engine.retrieval.neighbours import IdfNgrams, IdfSentences, Neighbour
from engine.retrieval.ngrams import reduced_ngrams
from engine.retrieval.own import OwnText
from engine.retrieval.sentences import load_sentences, save_sentences
from engine.retrieval.words import words

__all__ = [
    "Idf",
    "IdfIndex",
    "IdfNgrams",
    "IdfSentences",
    "Neighbour",
    "OwnText",
    "load_sentences",
    "reduced_ngrams",
    "save_sentences",
    "words",
]
