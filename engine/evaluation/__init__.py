"""Evaluation: BLEU and chrF with significance, and the differences between translations."""

from engine.evaluation.diff import word_diff
from engine.evaluation.evaluate import evaluate, evaluate_files, read_lines
from engine.evaluation.metrics import tokenizer
from engine.evaluation.report import Report
