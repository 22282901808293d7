"""Activity of this process as Prometheus counters and histograms; the studio serves them at /metrics."""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Counter, Histogram, disable_created_metrics

disable_created_metrics()  # type: ignore[no-untyped-call]
SECONDS = (0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)
REGISTRY = CollectorRegistry()

TRANSLATIONS = Counter("tailormt_translations", "Texts translated by this process.", registry=REGISTRY)
TRANSLATED_CHARACTERS = Counter("tailormt_translated_characters", "Characters of these texts.", registry=REGISTRY)
TRANSLATION_SECONDS = Histogram(
    "tailormt_translation_seconds", "How long one call of the translator took.", buckets=SECONDS, registry=REGISTRY
)
MEMORY_READS = Counter(
    "tailormt_memory_reads", "Queries that were answered from a plugin's memory, one a layer and position.", registry=REGISTRY
)
ANSWERS = Counter("tailormt_answers", "Answers by kind and status.", ("kind", "status"), registry=REGISTRY)
REQUEST_SECONDS = Histogram("tailormt_request_seconds", "How long requests took.", ("kind",), buckets=SECONDS, registry=REGISTRY)
