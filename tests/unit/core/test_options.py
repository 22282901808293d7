"""Settings: one description feeds files, flags and forms; what is wrong is said with the nearest right name."""

from __future__ import annotations

import argparse
from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.base.decoding_options import Decoding
from engine.core.options import Options, add_flags, describe, from_flags, option
from engine.core.settings import Settings, load_settings
from engine.errors import OptionError
from engine.methods import get_method, method_names
from engine.phrases import PhraseOptions
from engine.training import TrainingOptions
from engine.workflows.customize.request import CustomizeRequest, candidates, method_config, phrase_config, training_config, validate

ALL = [Decoding, CustomizeRequest, TrainingOptions, PhraseOptions, Settings]
ALL += [get_method(name).config_class for name in method_names()]


@dataclass(frozen=True)
class Sample(Options):
    """Sample settings."""

    beam: int = option(4, "Hypotheses.", low=1, high=64)
    penalty: float = option(1.0, "Penalty: 50 % more is 1.5.", low=0)
    order: str = option("up", "Order.", choices=("up", "down"))
    fast: bool = option(False, "Fast.")
    limit: int | None = option(None, "Limit.", low=1)
    layers: tuple[int, ...] = option((1, 2), "Layers.", low=0)


@pytest.mark.parametrize("cls", ALL, ids=lambda cls: cls.__name__)
def test_settings_survive_a_mapping_and_are_described(cls: type[Options]) -> None:
    default = cls()
    assert cls.from_mapping(default.to_mapping()) == default
    for item in describe(cls):
        assert item.help.endswith((".", "?")), f"{cls.__name__}.{item.name} has no help in a sentence"
        assert item.parse(item.default) == getattr(default, item.name)


@pytest.mark.parametrize("cls", ALL, ids=lambda cls: cls.__name__)
def test_flags_alone_give_the_defaults_and_help_is_printed(cls: type[Options]) -> None:
    parser = argparse.ArgumentParser()
    add_flags(parser, cls)
    assert vars(parser.parse_args([])) == {}, "a flag not given stays out, so that presets keep their say"
    assert from_flags(cls, parser.parse_args([])) == cls()
    assert all(item.flag in parser.format_help() for item in describe(cls))


def test_flags_go_over_presets_over_defaults() -> None:
    parser = argparse.ArgumentParser()
    add_flags(parser, Sample)
    arguments = parser.parse_args(["--beam", "8", "--no-fast", "--limit", "none", "--layers", "3, 4"])
    result = from_flags(Sample, arguments, {"beam": 2, "penalty": 0.5, "fast": True})
    assert result == Sample(beam=8, penalty=0.5, fast=False, limit=None, layers=(3, 4))


@pytest.mark.parametrize(
    ("values", "sentence"),
    [
        ({"beem": 3}, "beem is not a setting of Sample. Did you mean beam?"),
        ({"zzz": 3}, "zzz is not a setting of Sample. Known: beam, penalty, order, fast, limit, layers."),
        ({"beam": "four"}, "beam: 'four' is not a whole number."),
        ({"beam": 2.5}, "beam: 2.5 is not a whole number."),
        ({"beam": 0}, "beam: 0 is below the smallest allowed value, 1."),
        ({"beam": 65}, "beam: 65 is above the largest allowed value, 64."),
        ({"beam": None}, "beam: a value is required (Hypotheses.)"),
        ({"penalty": "nan"}, "penalty: not a number."),
        ({"order": "sideways"}, "order: 'sideways' is not one of up, down."),
        ({"fast": "perhaps"}, "fast: 'perhaps' is not yes or no."),
        ({"limit": 0}, "limit: 0 is below the smallest allowed value, 1."),
        ({"layers": [1, -1]}, "layers: -1 is below the smallest allowed value, 0."),
    ],
)
def test_what_is_wrong_is_said(values: dict, sentence: str) -> None:
    with pytest.raises(OptionError) as caught:
        Sample.from_mapping(values)
    assert str(caught.value) == sentence
    near = {key: value for key, value in values.items() if key in Sample().to_mapping()}
    if near:
        with pytest.raises(OptionError):
            Sample().replace(**near)


@given(
    st.dictionaries(
        st.sampled_from(["beam", "penalty", "order", "fast", "limit", "layers"]),
        st.one_of(st.none(), st.booleans(), st.integers(), st.floats(allow_infinity=False), st.text(), st.lists(st.integers())),
    )
)
def test_any_value_is_taken_or_refused_in_a_sentence(values: dict) -> None:
    if isinstance(values.get("layers"), int | float):
        values.pop("layers")
    try:
        result = Sample.from_mapping(values)
    except OptionError:
        return
    assert Sample.from_mapping(result.to_mapping()) == result
    assert 1 <= result.beam <= 64
    assert result.order in ("up", "down")


@pytest.mark.parametrize("values", [{"beam": "inf"}, {"beam": float("inf")}, {"layers": 3}])
def test_infinity_and_lone_numbers_are_refused_too(values: dict) -> None:
    with pytest.raises(OptionError):
        Sample.from_mapping(values)


# -- a request's settings: defaults, then the budget's, then its own


@pytest.mark.parametrize("budget", ["quick", "balanced", "best"])
def test_own_settings_go_over_the_budgets(budget: str) -> None:
    request = CustomizeRequest(
        budget=budget,
        method="memory_adapter",
        method_options={"temperature": 0.1},
        training_options={"max_updates": "7"},
        phrase_options={"l_max": 3},
    )
    assert method_config(request).temperature == 0.1
    assert training_config(request).max_updates == 7
    assert phrase_config(request).l_max == 3
    plain = CustomizeRequest(budget=budget, method="memory_adapter")
    assert method_config(request).replace(temperature=method_config(plain).temperature) == method_config(plain)
    assert training_config(request).replace(max_updates=training_config(plain).max_updates) == training_config(plain)


@pytest.mark.parametrize(
    ("changes", "match"),
    [
        ({"method": "memory_adaptor"}, "There is no method memory_adaptor. Did you mean memory_adapter"),
        ({"method_options": {"temprature": 1}}, "Did you mean temperature"),
        ({"training_options": {"max_update": 1}}, "Did you mean max_updates"),
        ({"phrase_options": {"lmax": 1}}, "Did you mean l_max"),
    ],
)
def test_a_wrong_request_is_refused_before_any_work(tmp_path, changes: dict, match: str) -> None:
    sample = tmp_path / "a.txt"
    sample.write_text("雨停了。\n", encoding="utf-8")
    request = CustomizeRequest(base="b", source="en", target="zh", samples=(str(sample),), **changes)
    with pytest.raises(OptionError, match=match):
        validate(request)


def test_the_mappings_of_older_rows_are_text() -> None:
    result = CustomizeRequest.of_job({"corpus_id": 3, "method_options": '{"k": 4}', "knn_options": ""})
    assert (result.method_options, result.knn_options, result.training_options) == ({"k": 4}, {}, {})
    assert CustomizeRequest.from_mapping(result.to_mapping()) == result
    not_json = "method_options: not valid JSON"
    for text, match in (
        ("{", not_json),
        ("9" * 5000, not_json),
        ("[" * 100_000, not_json),
        ("[]", "method_options: .* is not a mapping"),
    ):
        with pytest.raises(OptionError, match=match):
            CustomizeRequest.of_job({"method_options": text})


# -- the program's settings


def test_environment_goes_over_the_file(tmp_path) -> None:
    (tmp_path / "settings.toml").write_text('port = 9000\ndevice = "cpu"\n', encoding="utf-8")
    result = load_settings({"TAILORMT_HOME": str(tmp_path), "TAILORMT_PORT": "9001", "TAILORMT_UNKNOWN": "x"})
    assert (result.port, result.device, result.home_dir) == (9001, "cpu", tmp_path)


@pytest.mark.parametrize(
    ("text", "match"),
    [("port = ", "not valid TOML"), ("prot = 1", "Did you mean port"), ('port = "x"', "port: 'x' is not a whole number")],
)
def test_a_wrong_settings_file_is_named(tmp_path, text: str, match: str) -> None:
    (tmp_path / "settings.toml").write_text(text, encoding="utf-8")
    with pytest.raises(OptionError, match=match):
        load_settings({"TAILORMT_HOME": str(tmp_path)})


def test_auto_tries_the_methods_that_have_the_settings() -> None:
    def methods(**values) -> list[str]:
        return [request.method for request in candidates(CustomizeRequest.from_mapping(values))]

    assert methods() == methods(method="") == ["knn", "density_ratio", "memory_adapter", "houlsby_adapter", "fine_tuning"]
    assert methods(budget="quick") == ["knn", "memory_adapter"]
    assert methods(method="lhuc") == ["lhuc"]
    assert methods(knn=True) == ["density_ratio", "memory_adapter", "houlsby_adapter", "fine_tuning"]
    assert methods(method_options={"phrases_per_layer": 9}, budget="quick") == ["memory_adapter"]
    assert methods(method_options={"k": 4}) == ["knn"]
    with pytest.raises(OptionError, match="no_such"):
        methods(method_options={"no_such": 4})


@pytest.mark.parametrize("value", [10**30, -(10**30), 1e300, float("inf"), "1e30", "99999999999999999999"])
def test_a_number_without_a_bound_of_its_own_is_bounded(value: object) -> None:
    for kind in (TrainingOptions, Settings):
        for item in describe(kind):
            if item.type in (int, float) and not item.many:
                with pytest.raises(OptionError) as caught:
                    item.parse(value)
                assert len(str(caught.value)) < 500
