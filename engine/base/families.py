"""How each family of models is told the languages: a tag in the source (Marian), or codes known to the tokenizer.

Languages are BCP-47 codes ("en", "zh", "de"); each family maps them to its own ("zh" is zh_CN for mBART, zho_Hans for NLLB).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

from engine.errors import ModelError

__all__ = ["Family", "check_type", "family_of"]

MBART = {
    "ar": "ar_AR", "cs": "cs_CZ", "de": "de_DE", "en": "en_XX", "es": "es_XX", "et": "et_EE", "fi": "fi_FI", "fr": "fr_XX",
    "gu": "gu_IN", "hi": "hi_IN", "it": "it_IT", "ja": "ja_XX", "kk": "kk_KZ", "ko": "ko_KR", "lt": "lt_LT", "lv": "lv_LV",
    "my": "my_MM", "ne": "ne_NP", "nl": "nl_XX", "ro": "ro_RO", "ru": "ru_RU", "si": "si_LK", "tr": "tr_TR", "vi": "vi_VN",
    "zh": "zh_CN", "af": "af_ZA", "az": "az_AZ", "bn": "bn_IN", "fa": "fa_IR", "he": "he_IL", "hr": "hr_HR", "id": "id_ID",
    "ka": "ka_GE", "km": "km_KH", "mk": "mk_MK", "ml": "ml_IN", "mn": "mn_MN", "mr": "mr_IN", "pl": "pl_PL", "ps": "ps_AF",
    "pt": "pt_XX", "sv": "sv_SE", "sw": "sw_KE", "ta": "ta_IN", "te": "te_IN", "th": "th_TH", "tl": "tl_XX", "uk": "uk_UA",
    "ur": "ur_PK", "xh": "xh_ZA", "gl": "gl_ES", "sl": "sl_SI",
}  # fmt: skip
NLLB = {
    "ar": "arb_Arab", "bg": "bul_Cyrl", "bn": "ben_Beng", "ca": "cat_Latn", "cs": "ces_Latn", "da": "dan_Latn",
    "de": "deu_Latn", "el": "ell_Grek", "en": "eng_Latn", "es": "spa_Latn", "et": "est_Latn", "fa": "pes_Arab",
    "fi": "fin_Latn", "fr": "fra_Latn", "he": "heb_Hebr", "hi": "hin_Deva", "hr": "hrv_Latn", "hu": "hun_Latn",
    "id": "ind_Latn", "it": "ita_Latn", "ja": "jpn_Jpan", "ko": "kor_Hang", "lt": "lit_Latn", "lv": "lvs_Latn",
    "ms": "zsm_Latn", "nl": "nld_Latn", "no": "nob_Latn", "pl": "pol_Latn", "pt": "por_Latn", "ro": "ron_Latn",
    "ru": "rus_Cyrl", "sk": "slk_Latn", "sl": "slv_Latn", "sr": "srp_Cyrl", "sv": "swe_Latn", "sw": "swh_Latn",
    "ta": "tam_Taml", "th": "tha_Thai", "tr": "tur_Latn", "uk": "ukr_Cyrl", "ur": "urd_Arab", "vi": "vie_Latn",
    "zh": "zho_Hans", "zh-hant": "zho_Hant",
}  # fmt: skip


class Family(ABC):
    """How one family marks the direction; stateless but for the tokenizer it was made with."""

    def __init__(self, tokenizer: Any, name: str) -> None:
        self.tokenizer = tokenizer
        self.name = name

    @abstractmethod
    def languages(self) -> list[str]:
        """The codes this model knows, for messages; empty when it cannot tell."""

    @abstractmethod
    def check(self, source: str, target: str) -> None:
        """Raises ModelError when the model does not know a language, naming those it knows."""

    @abstractmethod
    def encode(self, texts: list[str], source: str, target: str) -> list[list[int]]:
        """Source token ids, special tokens included."""

    @abstractmethod
    def label(self, texts: list[str], source: str, target: str) -> list[list[int]]:
        """Target token ids as the decoder should predict them, special tokens included."""

    def forced_bos(self, target: str) -> int | None:
        """The token that must come first in the output, or None."""
        return None

    def direction_ids(self) -> set[int]:
        """Ids of language tags and codes: tokens that belong to no phrase."""
        return set()

    def _unknown(self, language: str) -> ModelError:
        known = self.languages()
        listed = ", ".join(known[:40]) + (" …" if len(known) > 40 else "")
        return ModelError(
            f"The base {self.name} does not know the language {language}. It knows {listed or 'one direction only'}."
        )


class Marian(Family):
    """Marian (OPUS-MT, ours): the target by a tag `>>zh<<` at the start of the source; models of one direction have no tags."""

    def __init__(self, tokenizer: Any, name: str) -> None:
        super().__init__(tokenizer, name)
        self.tags = {tag[2:-2]: tag for tag in tokenizer.supported_language_codes}

    def languages(self) -> list[str]:
        if self.tags:
            return sorted(self.tags)
        return [code for code in (self.tokenizer.source_lang, self.tokenizer.target_lang) if code]

    def _tag(self, target: str) -> str:
        if target in self.tags:
            return self.tags[target]
        # OPUS-MT's multilingual models use three-letter codes, some with a script: cmn_Hans, deu, eng.
        three = {
            "zh": "cmn_Hans",
            "en": "eng",
            "de": "deu",
            "fr": "fra",
            "es": "spa",
            "it": "ita",
            "pt": "por",
            "ru": "rus",
            "ja": "jpn",
        }
        return self.tags.get(three.get(target, ""), "")

    def check(self, source: str, target: str) -> None:
        if self.tags:
            if not self._tag(target):
                raise self._unknown(target)
            # A tag names a target only; but a model of exactly two tags is bilingual, so its sources are its targets.
            if len(self.tags) == 2 and not self._tag(source):
                raise self._unknown(source)
            if source == target:
                raise ModelError(f"Source and target are both {source}. Give two different languages.")
            return
        known = [self.tokenizer.source_lang, self.tokenizer.target_lang]
        if all(known) and [source, target] != known:
            raise ModelError(
                f"The base {self.name} translates from {known[0]} to {known[1]} only, not from {source} to {target}."
            )

    def encode(self, texts: list[str], source: str, target: str) -> list[list[int]]:
        tag = f"{self._tag(target)} " if self.tags else ""
        return self.tokenizer([tag + text for text in texts])["input_ids"]

    def label(self, texts: list[str], source: str, target: str) -> list[list[int]]:
        return self.tokenizer(text_target=texts)["input_ids"]

    def direction_ids(self) -> set[int]:
        return set(self.tokenizer.convert_tokens_to_ids(list(self.tags.values())))


class Coded(Family):
    """M2M100, NLLB and mBART: languages are codes of the tokenizer; the target's code comes first in the output."""

    def __init__(self, tokenizer: Any, name: str, codes: dict[str, str]) -> None:
        super().__init__(tokenizer, name)
        # M2M100's codes may stand beside its vocabulary.
        vocabulary = {*tokenizer.get_vocab(), *getattr(tokenizer, "lang_token_to_id", ())}
        self.codes = {short: code for short, code in codes.items() if code in vocabulary}

    def languages(self) -> list[str]:
        return sorted(self.codes)

    def check(self, source: str, target: str) -> None:
        for language in (source, target):
            if language not in self.codes:
                raise self._unknown(language)
        if source == target:
            raise ModelError(f"Source and target are both {source}. Give two different languages.")

    def _set(self, source: str, target: str) -> None:
        # M2M100's tokenizer wants the bare code, the others their own token.
        bare = type(self.tokenizer).__name__.startswith("M2M100")
        self.tokenizer.src_lang = source if bare else self.codes[source]
        self.tokenizer.tgt_lang = target if bare else self.codes[target]

    def encode(self, texts: list[str], source: str, target: str) -> list[list[int]]:
        self._set(source, target)
        return self.tokenizer(texts)["input_ids"]

    def label(self, texts: list[str], source: str, target: str) -> list[list[int]]:
        self._set(source, target)
        return self.tokenizer(text_target=texts)["input_ids"]

    def forced_bos(self, target: str) -> int | None:
        return self.tokenizer.convert_tokens_to_ids(self.codes[target])

    def direction_ids(self) -> set[int]:
        return set(self.tokenizer.convert_tokens_to_ids(list(self.codes.values())))


def check_type(model_type: str, name: str) -> None:
    """Raises ModelError for architectures that are not supported, before their weights are read."""
    if model_type not in ("marian", "m2m_100", "mbart"):
        raise ModelError(
            f"The base {name} is a {model_type} model. Tailor MT works with Marian, M2M100, NLLB and mBART models, whose "
            "decoder layers have self_attn and encoder_attn."
        )


def family_of(model_type: str, tokenizer: Any, name: str) -> Family:
    """The family of a loaded tokenizer. Raises ModelError for architectures that are not supported."""
    kind = type(tokenizer).__name__
    if model_type == "marian":
        return Marian(tokenizer, name)
    if model_type == "m2m_100" and kind.startswith("Nllb"):
        return Coded(tokenizer, name, NLLB)
    if model_type == "m2m_100":
        return Coded(tokenizer, name, dict(tokenizer.lang_code_to_token))
    check_type(model_type, name)
    return Coded(tokenizer, name, MBART)
